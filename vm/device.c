/* Devices: tickets, wait lists, the launcher and the reaper (DEVICES.md). */
#include <base/kept_text.h>
#include <base/status.h>
#include <stdlib.h>
#include <streams/launcher.h>
#include <streams/staging.h>
#include <string.h>
#include <vm/device.h>
#include <vm/device_copy.h>
#include <vm/early.h>
#include <vm/engine.h>
#include <vm/graph.h>
#include <vm/instruction_kinds.h>
#include <vm/launch.h>
#include <vm/marks.h>
#include <vm/shortage.h>
#include <vm/stream.h>
#include <vm/submit.h>
#include <vm/traced.h>
#include <vm/wait.h>

/* Between dispatch and arrival. */
static eddy_vm_device *device_of(const eddy_node *node) {
    return node->queue->device;
}

static eddy_device_queue *queue_of(const eddy_vm_stream *stream) {
    return &stream->device->queues[stream->device_queue];
}

/* ---- edges ---- */

static bool is_late(const eddy_node *node) {
    return node->instruction.kind == EDDY_KIND_CALL && node->instruction.view.descriptor->count;
}

static bool is_program(const eddy_node *node) {
    return node->instruction.kind == EDDY_KIND_CALL &&
           node->instruction.view.descriptor->is_program;
}

static bool is_in_rounds(const eddy_node *node) {
    return is_program(node) && node->instruction.view.descriptor->rounds &&
           !node->stream->device->backend->class->run;
}

bool eddy_device_is_repeated(const eddy_node *node) {
    return is_late(node) || is_in_rounds(node);
}

bool eddy_device_stands_apart(const eddy_node *node) {
    return is_late(node) || is_program(node);
}

static bool is_foreign(const eddy_node *node) {
    return node->instruction.kind == EDDY_KIND_CALL &&
           node->instruction.view.descriptor->is_foreign;
}

bool eddy_device_orders(const eddy_node *source, const eddy_node *node) {
    return source->stream->device && source->stream->device == node->stream->device &&
           eddy_instruction_has(&source->instruction, EDDY_KIND_IS_STREAMED) &&
           eddy_instruction_has(&node->instruction, EDDY_KIND_IS_STREAMED) &&
           !eddy_device_stands_apart(source) && !eddy_device_stands_apart(node) &&
           !is_foreign(node);
}

/* ---- dispatch: engine ---- */

static void come_after(const eddy_node *node, eddy_device_launch *launch, const eddy_node *source) {
    uint32_t queue = source->stream->device_queue, bit = 1u << queue;
    if (queue == node->queue->under->number ||
        ((launch->waited_for & bit) && launch->waits[queue] >= source->ticket))
        return;
    launch->waited_for |= bit;
    launch->waits[queue] = source->ticket;
}

/* All sources that have not ended are still linked: into the wait list, and those that write what the node reads among the sources of the launch. */
static void note_sources(const eddy_node *node, eddy_device_launch *launch) {
    for (uint32_t i = 0; i < node->instruction.view.operand_count; i++) {
        const eddy_use *use = &node->uses[i];
        bool is_input = eddy_mention_is_input(node->instruction.mentions[i]);
        launch->under.writes_in_place |= use->is_write && is_input;
        if (use->source) {
            come_after(node, launch, use->source);
            if (is_input)
                launch->under.sources[launch->under.source_count++] = use->source->ticket;
        }
        if (use->is_write)
            for (const eddy_use *reader = use->reader_next; reader; reader = reader->reader_next)
                come_after(node, launch, reader->node);
    }
    for (int i = 0; i < EDDY_ORDER_COUNT; i++)
        if (node->orders[i].source)
            come_after(node, launch, node->orders[i].source);
}

/* Through a wait for ticket `ticket` of `other`: that and all that it comes after, if its clock is still as the ticket left it. */
static void raise_clock(eddy_vm_device *device, eddy_device_queue *queue, uint32_t other,
                        uint64_t ticket) {
    const eddy_device_queue *source = &device->queues[other];
    queue->clock[other] = ticket;
    for (uint32_t k = 0; k < EDDY_BACKEND_QUEUES && source->changed <= ticket; k++)
        if (queue->clock[k] < source->clock[k])
            queue->clock[k] = source->clock[k];
}

/* Of the queues in `set`, which is not empty, the one whose ticket is the highest. */
static uint32_t highest_of(const eddy_device_launch *launch, uint32_t set) {
    uint32_t highest = (uint32_t)__builtin_ctz(set);
    for (uint32_t left = set & (set - 1); left; left &= left - 1) {
        uint32_t q = (uint32_t)__builtin_ctz(left);
        if (launch->waits[q] > launch->waits[highest])
            highest = q;
    }
    return highest;
}

/* What the device knows anyway is not waited for (V1). From the highest ticket down: only a higher one can imply another. */
static void leave_out_implied(eddy_vm_device *device, const eddy_node *node,
                              eddy_device_launch *launch) {
    eddy_device_queue *queue = node->queue;
    for (uint32_t left = launch->waited_for; left;) {
        uint32_t highest = highest_of(launch, left);
        uint64_t ticket = launch->waits[highest];
        left &= ~(1u << highest);
        if (ticket <= queue->clock[highest]) {
            launch->waited_for &= ~(1u << highest);
            continue;
        }
        raise_clock(device, queue, highest, ticket);
        queue->changed = node->ticket;
    }
}

static bool has_writer_ahead(const eddy_node *node, eddy_storage_number storage) {
    for (uint32_t i = 0; i < node->instruction.view.operand_count; i++)
        if (node->uses[i].storage == storage && node->uses[i].source)
            return true;
    return false;
}

/* Known by now: an input is poisoned whose writers ahead have all ended. One that is on its way may heal it. */
static bool has_bad_input(eddy_vm *vm, const eddy_node *node) {
    for (uint32_t i = 0; i < node->instruction.view.operand_count; i++) {
        eddy_mention mention = node->instruction.mentions[i];
        if (eddy_mention_is_input(mention) &&
            eddy_vm_storage(vm, eddy_mention_number(mention))->shared.poison != 0 &&
            !has_writer_ahead(node, eddy_mention_number(mention)))
            return true;
    }
    return false;
}

/* Its own, and in a round one for each call. */
static uint32_t tickets_of(const eddy_node *node) {
    const eddy_vm_instruction *view = &node->instruction.view;
    return node->phase == EDDY_STAGING_ROUNDS ? 1 + view->descriptor->rounds->call_count(view) : 1;
}

static bool has_window(const eddy_vm_device *device, const eddy_node *node) {
    return device->ticket + tickets_of(node) - device->oldest < EDDY_DEVICE_WINDOW;
}

static eddy_device_launch *open_row(eddy_vm_device *device, uint64_t ticket) {
    eddy_device_launch *launch = eddy_device_launch_of(device, ticket);
    memset(launch, 0, offsetof(eddy_device_launch, waits));
    launch->is_open = true;
    return launch;
}

/* Those of a round's calls are open until it ends. */
static eddy_device_launch *give_tickets(eddy_vm_device *device, eddy_node *node) {
    uint64_t first = device->ticket + 1;
    for (uint32_t i = tickets_of(node); i-- > 1;)
        open_row(device, ++device->ticket);
    node->ticket = ++device->ticket;
    eddy_device_launch *launch = open_row(device, node->ticket);
    launch->first_ticket = first;
    launch->dispatch = ++device->dispatched;
    launch->under.queue = node->queue->under;
    launch->under.ticket = node->ticket;
    return launch;
}

/* Who listens hears of each launch when it is over. */
static eddy_status mark(eddy_vm_device *device, eddy_backend_queue *queue, uint64_t ticket) {
    const eddy_backend_class *class = device->backend->class;
    bool may_wait = class->mark_later && eddy_launcher_has_next(device->launcher) &&
                    !eddy_trace_hears(EDDY_TRACE_DEVICE);
    return may_wait ? class->mark_later(queue, ticket) : class->mark(queue, ticket);
}

static void mark_waiting(eddy_vm_device *device) {
    if (device->backend->class->mark_waiting)
        (void)device->backend->class->mark_waiting(device->backend);
}

static void node_launch(eddy_work *work, eddy_status failure);

static void hand_over(eddy_vm *vm, eddy_vm_device *device, eddy_node *node) {
    eddy_device_launch *launch = give_tickets(device, node);
    note_sources(node, launch);
    leave_out_implied(device, node, launch);
    bool looks =
        node->instruction.kind == EDDY_KIND_CALL || node->instruction.kind == EDDY_KIND_SHARE;
    launch->is_skipped = looks && !is_program(node) && has_bad_input(vm, node);
    if (!node->was_dispatched) {
        node->was_dispatched = true;
        eddy_graph_dispatched(vm, node);
    }
    eddy_early_dispatched(vm, node);
    node->state = EDDY_NODE_DISPATCHED;
    if (vm->engine.running_count++ == 0)
        eddy_store_seq_cst(&vm->has_running, true);
    vm->engine.worker_run++;
    vm->engine.sent_count++;
    node->work.run = node_launch;
    eddy_work_queue_dispatch(device->launcher, &node->work);
}

static void find_oldest(eddy_vm_device *device) {
    while (device->oldest <= device->ticket &&
           !eddy_device_launch_of(device, device->oldest)->is_open)
        device->oldest++;
}

static bool has_held(const eddy_vm_device *device) {
    return device->held.first || device->held_givers.first || device->is_short;
}

static eddy_node_list *list_of(eddy_vm_device *device, const eddy_node *node) {
    return eddy_shortage_gives(node) ? &device->held_givers : &device->held;
}

/* NULL: none may be dispatched, whether there is room or not. */
static eddy_node *first_held(const eddy_vm_device *device) {
    eddy_node *giver = device->held_givers.first, *other = device->held.first;
    if (device->is_short)
        return giver && giver->instruction.view.sequence <= device->stalled_until ? giver : NULL;
    return giver && (!other || eddy_node_is_before(giver, other)) ? giver : other;
}

/* Whether a call that was made before it has become ready meanwhile: it comes first. */
static bool is_passed(const eddy_vm *vm, const eddy_vm_device *device, const eddy_node *node) {
    for (const eddy_node *ready = vm->engine.ready_there.first;
         ready && eddy_node_is_before(ready, node); ready = ready->ready_next)
        if (ready->stream->device == device)
            return true;
    return false;
}

void eddy_device_release_held(eddy_vm *vm, eddy_vm_device *device) {
    find_oldest(device);
    for (eddy_node *node;
         (node = first_held(device)) && has_window(device, node) && !is_passed(vm, device, node);) {
        eddy_node_list_pop(list_of(device, node));
        hand_over(vm, device, node);
    }
}

/* Behind earlier ones that are held, also where it would fit itself: those that need more of the window would wait for ever while others pass. */
static void dispatch(eddy_vm *vm, eddy_vm_device *device, eddy_node *node) {
    if (EDDY_LIKELY(!has_held(device) && has_window(device, node))) {
        hand_over(vm, device, node);
        return;
    }
    eddy_node_list_insert(list_of(device, node), node);
    eddy_device_release_held(vm, device);
}

void eddy_device_dispatch(eddy_vm *vm, eddy_node *node) {
    eddy_vm_device *device = node->stream->device;
    node->queue = queue_of(node->stream);
    if (is_late(node))
        node->phase = EDDY_STAGING_COUNTS;
    else if (is_in_rounds(node))
        node->phase = EDDY_STAGING_ROUNDS;
    dispatch(vm, device, node);
}

void eddy_device_dispatch_again(eddy_vm *vm, eddy_node *node, eddy_device_queue *queue) {
    node->queue = queue;
    dispatch(vm, queue->device, node);
}

/* ---- staging: engine ---- */

static eddy_storage *first_storage(eddy_vm *vm, const eddy_node *node) {
    return eddy_vm_storage(vm, eddy_mention_number(node->instruction.mentions[0]));
}

/* The queue on which the storage is lent as it lies there; NULL: all other instructions. */
static eddy_device_queue *queue_of_lend(const eddy_instruction *instruction) {
    return instruction->kind == EDDY_KIND_LEND
               ? ((const eddy_lend_arguments *)instruction->view.arguments)->queue
               : NULL;
}

static void stage(eddy_vm *vm, eddy_node *node, eddy_staging_phase phase,
                  eddy_device_queue *queue) {
    node->phase = phase;
    node->queue = queue;
    dispatch(vm, queue->device, node);
}

static const eddy_vm_device *device_of_storage(eddy_vm *vm, const eddy_node *node) {
    return vm->devices[first_storage(vm, node)->shared.device];
}

bool eddy_device_fetches(eddy_vm *vm, const eddy_instruction *instruction) {
    if (!eddy_instruction_has(instruction, EDDY_KIND_USES_DATA) ||
        instruction->view.operand_count == 0 || queue_of_lend(instruction))
        return false;
    const eddy_storage *storage =
        eddy_vm_storage(vm, eddy_mention_number(instruction->mentions[0]));
    return storage->shared.device != 0 && storage->shared.poison == 0 &&
           (instruction->kind != EDDY_KIND_WAIT ||
            ((const eddy_wait_arguments *)instruction->view.arguments)->bytes > 0);
}

void eddy_device_fetch(eddy_vm *vm, eddy_node *node) {
    stage(vm, node, EDDY_STAGING_FETCHES, queue_of(device_of_storage(vm, node)->to_host));
}

bool eddy_device_stores(eddy_vm *vm, eddy_node *node) {
    eddy_device_queue *lent_on = queue_of_lend(&node->instruction);
    if (lent_on && node->phase == EDDY_STAGING_NONE) {
        stage(vm, node, EDDY_STAGING_SETTLES, lent_on);
        return true;
    }
    if (node->phase != EDDY_STAGING_HOLDS)
        return false;
    if (eddy_mention_writes(node->instruction.mentions[0]) && node->staging_poison == 0) {
        stage(vm, node, EDDY_STAGING_STORES, queue_of(device_of_storage(vm, node)->to_device));
        return true;
    }
    eddy_launch_unstage(vm, node);
    return false;
}

/* ---- launching: launcher ---- */

static void append_launched(eddy_device_queue *queue, eddy_node *node) {
    node->queue_next = NULL;
    eddy_lock_acquire(&queue->lock);
    *(queue->launched ? &queue->last_launched->queue_next : &queue->launched) = node;
    queue->last_launched = node;
    eddy_lock_release(&queue->lock);
}

static void node_launch(eddy_work *work, eddy_status failure) {
    eddy_node *node = (eddy_node *)(void *)((char *)work - offsetof(eddy_node, work));
    eddy_vm_device *device = device_of(node);
    eddy_vm *vm = device->vm;
    if (EDDY_UNLIKELY(eddy_load_acquire(&vm->is_halted)) && !vm->is_one_thread)
        eddy_thread_park();
    bool is_last_try = device->is_last_try;
    if (EDDY_UNLIKELY(is_last_try))
        device->is_last_try = false;
    if (eddy_load_acquire(&device->backend->is_lost))
        failure = EDDY_DEVICE_LOST;
    if (is_last_try && failure == EDDY_OK && device->backend->class->rows_forget)
        device->backend->class->rows_forget(device->backend);
    if (failure == EDDY_OK)
        eddy_early_give(node->queue);
    /* A round is many launches. */
    if (node->instruction.view.descriptor && node->instruction.view.descriptor->is_program)
        mark_waiting(device);
    if (failure == EDDY_OK && !eddy_launch_begin(device, node)) {
        if (!is_last_try) {
            device->stalled_ticket = node->ticket;
            mark_waiting(device);
            eddy_launcher_stall(device->launcher, work);
            eddy_store_seq_cst(&vm->has_stalled, true);
            eddy_vm_poke(vm);
            return;
        }
        failure = EDDY_OUT_OF_MEMORY;
    }
    if (failure != EDDY_OK)
        eddy_launch_fail(device, node, failure);
    eddy_device_queue *queue = node->queue;
    uint64_t ticket = node->ticket;
    eddy_add_relaxed(&vm->begun_count, 1u);
    append_launched(queue, node);
    eddy_status status = mark(device, queue->under, ticket);
    /* The node may be gone. */
    eddy_lock_acquire(&queue->lock);
    queue->marked = ticket;
    eddy_lock_release(&queue->lock);
    /* If it is lost by now, the reaper may have looked before the ticket was noted. */
    if (EDDY_UNLIKELY(status != EDDY_OK || eddy_load_acquire(&device->backend->is_lost)))
        eddy_doorbell_ring(&device->backend->progress);
}

/* ---- completion: reaper, waiters ---- */

/* What the host reads and writes is copied on streams of the device. */
static const eddy_vm_stream *stream_of(const eddy_node *node) {
    const eddy_vm_device *device = device_of(node);
    return node->phase == EDDY_STAGING_FETCHES  ? device->to_host
           : node->phase == EDDY_STAGING_STORES ? device->to_device
                                                : node->stream;
}

/* Lock: the queue's. */
static void trace_done(eddy_device_queue *queue, const eddy_node *node, int64_t launched_ns) {
    int64_t began_ns =
        launched_ns > 0 && launched_ns < queue->done_ns ? queue->done_ns : launched_ns;
    EDDY_TRACE_AT(DEVICE, EDDY_TRACED(node->stream->vm, &node->instruction),
                  EDDY_TRACED_ON(stream_of(node)), .began_ns = began_ns);
    queue->done_ns = eddy_clock_ns();
}

/* Hands what is complete from the head of a queue's list to the engine; all that is launched, if the device is lost. Under the lock to the end: none of several
 * threads passes the other. */
static bool reap_queue(eddy_vm_device *device, eddy_device_queue *queue, bool is_lost) {
    eddy_lock_acquire(&queue->lock);
    uint64_t completed = queue->is_halted ? 0 : eddy_load_acquire(&queue->under->completed);
    eddy_node *node = queue->launched;
    bool has_any = false;
    while (node && (node->ticket <= completed || (is_lost && node->ticket <= queue->marked))) {
        if (node->ticket > completed)
            eddy_device_launch_of(device, node->ticket)->failure = EDDY_DEVICE_LOST;
        eddy_node *next = node->queue_next;
        if (eddy_trace_hears(EDDY_TRACE_DEVICE))
            trace_done(queue, node, eddy_device_launch_of(device, node->ticket)->launched_ns);
        eddy_engine_complete(device->vm, node);
        node = next;
        has_any = true;
    }
    queue->launched = node;
    eddy_lock_release(&queue->lock);
    return has_any;
}

static bool reap_queues(eddy_vm_device *device, bool is_lost) {
    bool has_any = false;
    uint32_t count = eddy_load_acquire(&device->queue_count);
    for (uint32_t q = 0; q < count; q++)
        has_any |= reap_queue(device, &device->queues[q], is_lost);
    return has_any;
}

static bool reap(eddy_vm_device *device) {
    /* Looked at once: where nodes are taken as lost, the memory of their copies may go, so that the stager has stopped before. */
    bool is_lost = eddy_load_acquire(&device->backend->is_lost);
    if (EDDY_UNLIKELY(is_lost))
        eddy_staging_stop(device->staging);
    return reap_queues(device, is_lost);
}

bool eddy_device_reap(eddy_vm_device *device) {
    return reap_queues(device, false);
}

bool eddy_device_reap_all(eddy_vm *vm) {
    bool has_any = false;
    for (uint32_t i = 1; i < eddy_load_acquire(&vm->device_count); i++)
        has_any |= eddy_device_reap(vm->devices[i]);
    return has_any;
}

static void reaper_main(void *context) {
    eddy_vm_device *device = context;
    for (;;) {
        uint32_t seen = eddy_doorbell_seen(&device->backend->progress);
        if (eddy_load_acquire(&device->vm->is_halted))
            eddy_thread_park();
        if (reap(device))
            eddy_engine_drive(device->vm);
        else if (eddy_load_acquire(&device->is_ending))
            return;
        else
            device->backend->class->await(device->backend, seen);
    }
}

/* ---- ends: engine ---- */

/* Of the node whose last ticket this is. */
static void close_rows(eddy_vm_device *device, uint64_t last) {
    for (uint64_t ticket = eddy_device_launch_of(device, last)->first_ticket; ticket <= last;
         ticket++)
        eddy_device_launch_of(device, ticket)->is_open = false;
}

/* Ends what has arrived in a queue, as far as its sources have ended. */
static void end_arrived(eddy_vm *vm, eddy_vm_device *device, eddy_device_queue *queue) {
    eddy_node *node;
    while ((node = queue->arrived) && node->unended == 0) {
        queue->arrived = node->queue_next;
        uint64_t last = node->ticket;
        bool is_over = eddy_launch_end(device, node);
        close_rows(device, last);
        vm->engine.running_count--;
        if (is_over)
            eddy_graph_retire(vm, node);
    }
}

void eddy_device_arrived(eddy_vm *vm, eddy_node *node) {
    eddy_device_queue *queue = node->queue;
    eddy_vm_device *device = queue->device;
    node->state = EDDY_NODE_ARRIVED;
    node->queue_next = NULL;
    *(queue->arrived ? &queue->last_arrived->queue_next : &queue->arrived) = node;
    queue->last_arrived = node;
    /* An end may let the first one of another queue end; not from within it. */
    device->endable = 1u << queue->under->number;
    while (device->endable) {
        uint32_t q = (uint32_t)__builtin_ctz(device->endable);
        device->endable &= ~(1u << q);
        end_arrived(vm, device, &device->queues[q]);
    }
    eddy_device_release_held(vm, device);
}

void eddy_device_take_back(eddy_vm *vm, eddy_vm_device *device, eddy_node *node) {
    close_rows(device, node->ticket);
    node->ticket = 0;
    eddy_early_take_back(vm, node);
    eddy_node_list_insert(list_of(device, node), node);
    vm->engine.running_count--;
    vm->engine.worker_run--;
    vm->engine.sent_count--;
}

void eddy_device_source_ended(eddy_node *node) {
    EDDY_ASSERT(node->unended > 0);
    if (--node->unended == 0)
        node->stream->device->endable |= 1u << node->stream->device_queue;
}

/* ---- short of memory, one thread: engine ---- */

/* Whether something has been launched and has not ended. In one-thread mode. */
static bool has_launched(eddy_vm_device *device) {
    uint64_t end = eddy_launcher_is_stalled(device->launcher)
                       ? eddy_device_launch_of(device, device->stalled_ticket)->first_ticket
                       : device->ticket + 1;
    return device->oldest < end;
}

/* In one-thread mode what is launched is over before the call returns. */
static bool wait_for_launched(eddy_vm_device *device) {
    bool is_any = false;
    while (has_launched(device) && !is_any) {
        uint32_t seen = eddy_doorbell_seen(&device->backend->progress);
        is_any = reap(device);
        if (!is_any)
            device->backend->class->await(device->backend, seen);
    }
    return is_any;
}

bool eddy_device_attend(eddy_vm *vm, bool has_moved) {
    bool is_any = false;
    if (eddy_load_acquire(&vm->has_stalled))
        eddy_store_seq_cst(&vm->has_stalled, false);
    is_any |= eddy_shortage_attend(vm, has_moved);
    for (uint32_t i = 1; vm->is_one_thread && i < eddy_load_acquire(&vm->device_count); i++)
        is_any |= wait_for_launched(vm->devices[i]);
    return is_any;
}

/* ---- streams ---- */

/* In turns, of those whose priority is nearest. Lock: making. */
static uint32_t queue_to_share(const eddy_vm_device *device, uint32_t count, int32_t priority) {
    uint32_t nearest = 0;
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t q = (device->stream_count + i) % count;
        int64_t distance = llabs((int64_t)device->priorities[q] - priority);
        if (distance < least) {
            least = distance;
            nearest = q;
        }
    }
    return nearest;
}

/* A queue for one more stream: of its own as long as there are any. Lock: making. */
static bool queue_for(eddy_vm_device *device, int32_t priority, uint32_t *number, bool *is_own) {
    uint32_t count = eddy_load_relaxed(&device->queue_count);
    eddy_backend_queue *under = NULL;
    if (count < EDDY_BACKEND_QUEUES)
        under = device->backend->class->queue_create(device->backend, priority);
    if (under) {
        EDDY_ASSERT(under->number == count);
        device->queues[count].under = device->unders[count] = under;
        device->priorities[count] = priority;
        eddy_store_release(&device->queue_count, count + 1);
        *number = count;
        *is_own = true;
        return true;
    }
    *is_own = false;
    *number = queue_to_share(device, count, priority);
    return count > 0;
}

static eddy_status stream_create(eddy_vm *vm, eddy_vm_device *device, int32_t priority,
                                 const char *name, eddy_vm_stream **stream) {
    uint32_t queue;
    bool is_own;
    eddy_lock_acquire(&device->making);
    eddy_status status = queue_for(device, priority, &queue, &is_own)
                             ? eddy_vm_stream_add_device(vm, device, queue, is_own, name, stream)
                             : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK)
        device->stream_count++;
    eddy_lock_release(&device->making);
    return status;
}

/* ---- life ---- */

static void device_free(eddy_vm_device *device) {
    if (device->has_reaper) {
        eddy_store_release(&device->is_ending, true);
        eddy_doorbell_ring(&device->backend->progress);
        eddy_thread_join(&device->reaper);
    }
    if (device->launcher)
        device->launcher->class->destroy(device->launcher);
    eddy_staging_destroy(device->staging);
    eddy_device_pool_destroy(device->pinned);
    eddy_device_pool_destroy(device->pool);
    eddy_vm_stream_release(device->compute);
    eddy_vm_stream_release(device->to_host);
    eddy_vm_stream_release(device->to_device);
    eddy_memory_release(device, sizeof(*device), EDDY_MEMORY_RUNTIME);
}

/* Pinned memory, and the thread that copies by way of it. */
static bool prepare_copies(eddy_vm_device *made) {
    if (!made->backend->class->pinned_acquire)
        return true;
    made->pinned = eddy_device_pool_create_pinned(made->backend, made->unders, EDDY_PINNED_BYTES);
    if (!made->pinned || made->vm->is_one_thread)
        return made->pinned != NULL;
    made->staging = eddy_staging_create(made->backend);
    return made->staging != NULL;
}

/* NULL where there is no memory. */
static eddy_vm_device *device_create(eddy_vm *vm, eddy_backend *backend, const char *name,
                                     int64_t limit_bytes) {
    eddy_vm_device *made = eddy_memory_acquire_zeroed(sizeof(*made), EDDY_MEMORY_RUNTIME);
    if (!made)
        return NULL;
    made->vm = vm;
    made->backend = backend;
    made->name = eddy_kept_text(name);
    if (!made->name)
        made->name = backend->class->name;
    made->oldest = 1;
    eddy_lock_init(&made->making, EDDY_RANK_NONE);
    for (uint32_t q = 0; q < EDDY_BACKEND_QUEUES; q++) {
        made->queues[q].device = made;
        eddy_lock_init(&made->queues[q].lock, EDDY_RANK_LEAF);
    }
    made->pool = eddy_device_pool_create(backend, made->unders, limit_bytes);
    backend->pool = made->pool;
    backend->is_on_callers_thread = vm->is_one_thread;
    made->launcher =
        made->pool ? eddy_launcher_create(!vm->is_one_thread, eddy_attend_duty(made)) : NULL;
    if (made->launcher && !prepare_copies(made)) {
        device_free(made);
        return NULL;
    }
    if (made->launcher && !vm->is_one_thread)
        made->has_reaper =
            eddy_thread_create(&made->reaper, "eddy-reaper", reaper_main, made) == EDDY_OK;
    if (made->launcher && (made->has_reaper || vm->is_one_thread))
        return made;
    device_free(made);
    return NULL;
}

/* OUT_OF_MEMORY where there are too many; SHUT_DOWN. */
static eddy_status device_register(eddy_vm *vm, eddy_vm_device *made) {
    eddy_status status = EDDY_OK;
    eddy_vm_lock(vm);
    uint32_t count = eddy_load_relaxed(&vm->device_count);
    if (count == 0)
        count = 1; /* the host */
    if (eddy_load_relaxed(&vm->state) != EDDY_VM_RUNNING) {
        status = EDDY_SHUT_DOWN;
    } else if (count >= EDDY_VM_DEVICES) {
        status = EDDY_OUT_OF_MEMORY;
    } else {
        made->number = (uint8_t)count;
        vm->devices[count] = made;
        vm->default_streams[count] = made->compute;
        eddy_marks_limit_set(vm, count, eddy_device_pool_statistics_read(made->pool).limit_bytes);
        eddy_store_release(&vm->device_count, count + 1);
    }
    eddy_vm_unlock(vm);
    return status;
}

eddy_status eddy_vm_device_add(eddy_vm *vm, eddy_backend *backend, const char *name,
                               int64_t limit_bytes, eddy_origin origin, uint8_t *device) {
    eddy_status status = eddy_vm_enter(vm, origin);
    if (status != EDDY_OK)
        return status;
    eddy_vm_inside_begin(vm);
    eddy_vm_leave(vm);
    eddy_vm_device *made = device_create(vm, backend, name, limit_bytes);
    status = made ? stream_create(vm, made, 0, "compute", &made->compute) : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK)
        status = stream_create(vm, made, 0, "copies to the host", &made->to_host);
    if (status == EDDY_OK)
        status = stream_create(vm, made, 0, "copies to the device", &made->to_device);
    if (status == EDDY_OK)
        status = device_register(vm, made);
    if (status == EDDY_OK)
        *device = made->number;
    else if (made)
        device_free(made);
    eddy_vm_inside_end(vm);
    if (status == EDDY_OK)
        return EDDY_OK;
    if (status != EDDY_OUT_OF_MEMORY)
        return eddy_vm_refuse(status, origin);
    return eddy_fail(status, origin, "no memory, no thread, or more than %d devices",
                     EDDY_VM_DEVICES - 1);
}

int64_t eddy_device_trim(eddy_vm_device *device) {
    return eddy_device_pool_trim(device->pool) +
           (device->pinned ? eddy_device_pool_trim(device->pinned) : 0);
}

int64_t eddy_device_trim_all(eddy_vm *vm) {
    int64_t bytes = 0;
    for (uint32_t i = 1; i < eddy_load_acquire(&vm->device_count); i++)
        bytes += eddy_device_trim(vm->devices[i]);
    return bytes;
}

static void halt_queues(eddy_vm_device *device) {
    for (uint32_t q = 0; q < EDDY_BACKEND_QUEUES; q++) {
        eddy_lock_acquire(&device->queues[q].lock);
        device->queues[q].is_halted = true;
        eddy_lock_release(&device->queues[q].lock);
    }
}

bool eddy_device_halt_all(eddy_vm *vm, int64_t deadline_ns) {
    bool is_still = true;
    for (uint32_t i = 1; i < eddy_load_acquire(&vm->device_count); i++) {
        eddy_backend *backend = vm->devices[i]->backend;
        halt_queues(vm->devices[i]);
        is_still &= !backend->class->halt || backend->class->halt(backend, deadline_ns);
        eddy_staging_stop(vm->devices[i]->staging);
    }
    return is_still;
}

void eddy_device_fini_all(eddy_vm *vm) {
    for (uint32_t i = 1; i < eddy_load_relaxed(&vm->device_count); i++) {
        eddy_backend *backend = vm->devices[i]->backend;
        device_free(vm->devices[i]);
        backend->class->destroy(backend);
    }
    eddy_store_relaxed(&vm->device_count, 0u);
}

/* ---- streams of users ---- */

eddy_vm_stream *eddy_vm_device_stream(eddy_vm *vm, uint8_t device) {
    return vm->default_streams[device];
}

eddy_status eddy_vm_device_stream_create(eddy_vm *vm, uint8_t number, int32_t priority,
                                         const char *name, eddy_vm_stream **stream) {
    eddy_origin origin = {"stream_create", NULL};
    eddy_status status = eddy_vm_enter(vm, origin);
    if (status != EDDY_OK)
        return status;
    EDDY_ASSERT(number > 0 && number < eddy_load_relaxed(&vm->device_count));
    eddy_vm_device *device = vm->devices[number];
    eddy_vm_inside_begin(vm);
    eddy_vm_leave(vm);
    status = stream_create(vm, device, priority, name, stream);
    eddy_vm_inside_end(vm);
    return status == EDDY_OK ? EDDY_OK : eddy_vm_stream_refuse(status, origin);
}
