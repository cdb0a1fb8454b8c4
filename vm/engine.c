/* The engine's role: takes records in order, runs what is ready and cheap, hands over the rest, retires (PROTOCOL 7). */
#include <errno.h>
#include <streams/launcher.h>
#include <string.h>
#include <vm/attend.h>
#include <vm/device.h>
#include <vm/dump.h>
#include <vm/engine.h>
#include <vm/execute.h>
#include <vm/graph.h>
#include <vm/instruction_kinds.h>
#include <vm/machine.h>
#include <vm/pace.h>
#include <vm/price.h>
#include <vm/starved.h>
#include <vm/traced.h>
#include <vm/wait.h>

/* Records taken between two checks for completions. */
#define BURST 64
/* Up to this estimate an issuer runs calls in the engine's role; to release and retake the role takes a hundredth of that. */
#define INLINE_NS (65 << 7)
/* The estimate up to which an issuer runs calls outside of the role, in hand-overs. With helpers such a call takes less. */
#define OWN_FACTOR 10
/* Calls further apart than this count as unrelated: a helper would be asleep again. */
#define LULL_NS 20000
/* Calls of so many hand-overs run alone before a helper is woken for the next ones. */
#define ALONE_MOST 4

/* The engine word: FREE, HELD, or WANTED: held, and a thread has requested since the holder's last check began. */
#define FREE 0u
#define HELD 1u
#define WANTED 2u

bool eddy_engine_request(eddy_vm *vm) {
    uint32_t word = FREE;
    /* In one step where it is free, as it mostly is. */
    if (eddy_load_relaxed(&vm->engine_word) == FREE &&
        eddy_cas_acq_rel(&vm->engine_word, &word, HELD))
        return true;
    return eddy_exchange_acq_rel(&vm->engine_word, WANTED) == FREE;
}

void eddy_engine_complete(eddy_vm *vm, eddy_node *node) {
    eddy_lifo_push(&vm->completions, &node->completion);
}

void eddy_vm_poke(eddy_vm *vm) {
    eddy_add_seq_cst(&vm->wake_word, 1u);
    if (eddy_load_seq_cst(&vm->is_asleep))
        eddy_sleep_wake_one(&vm->wake_word);
}

/* ---- publishing ---- */

void eddy_engine_publish_counters(eddy_vm *vm) {
    eddy_store_relaxed(&vm->counted.caller_run, vm->engine.caller_run);
    eddy_store_relaxed(&vm->counted.scheduler_run, vm->engine.scheduler_run);
    eddy_store_relaxed(&vm->counted.worker_run, vm->engine.worker_run);
    eddy_store_relaxed(&vm->counted.edges_made, vm->engine.edges_made);
    eddy_store_relaxed(&vm->counted.edges_skipped, vm->engine.edges_skipped);
    eddy_store_relaxed(&vm->counted.ready, vm->engine.ready_count);
    eddy_store_relaxed(&vm->counted.running, vm->engine.running_count);
    eddy_store_relaxed(&vm->counted.sent, vm->engine.sent_count);
    /* Last: a thread that sees the node counted sees its edges counted. */
    eddy_store_release(&vm->counted.nodes_made, vm->engine.nodes_made);
}

/* Requested again before the first is logged: one dump is enough. */
static void take_dump(eddy_vm *vm) {
    if (!vm->engine.dump)
        vm->engine.dump = eddy_dump_live(vm);
}

static void publish_bytes(eddy_vm *vm, uint32_t device) {
    if (eddy_load_relaxed(&vm->finished_bytes[device]) != vm->engine.finished_bytes[device])
        eddy_store_seq_cst(&vm->finished_bytes[device], vm->engine.finished_bytes[device]);
}

__attribute__((noinline)) static void publish_devices(eddy_vm *vm) {
    for (uint32_t i = 1; i < eddy_load_acquire(&vm->device_count); i++)
        publish_bytes(vm, i);
}

/* is_idle: no work is left; else more publications follow, and held back issuers are woken only when it pays. */
static void publish(eddy_vm *vm, bool is_idle) {
    if (EDDY_UNLIKELY(eddy_load_relaxed(&vm->wants_dump)) &&
        eddy_exchange_acq_rel(&vm->wants_dump, false))
        take_dump(vm);
    eddy_graph_return_numbers(vm);
    eddy_graph_return_beyond(vm);
    if (eddy_load_relaxed(&vm->numbers_returned) != vm->engine.numbers_written)
        eddy_store_release(&vm->numbers_returned, vm->engine.numbers_written);
    uint64_t head = eddy_load_relaxed(&vm->ring.head);
    /* Publications within the burst may have owed a wake, which follows here. */
    bool has_news = vm->engine.unpublished > 0 || eddy_load_relaxed(&vm->ring.consumed) != head;
    if (!has_news && !(is_idle && vm->engine.owes_wake))
        return;
    vm->engine.unpublished = 0;
    eddy_engine_publish_counters(vm);
    eddy_store_release(&vm->retired, vm->engine.retired);
    eddy_store_seq_cst(&vm->ring.consumed, head);
    eddy_store_release(&vm->waits, vm->engine.waits);
    eddy_store_release(&vm->finished_ns, vm->engine.finished_ns);
    eddy_store_release(&vm->finished_dear_ns, vm->engine.finished_dear_ns);
    publish_bytes(vm, 0);
    if (EDDY_UNLIKELY(eddy_load_acquire(&vm->device_count) > 0))
        publish_devices(vm);
    eddy_store_seq_cst(&vm->finished, vm->engine.finished);
    if (!is_idle && head - vm->engine.woken_at_head < EDDY_RING_LINES / 2 &&
        vm->engine.finished - vm->engine.woken_at_finished < (uint64_t)vm->low_count) {
        vm->engine.owes_wake = true;
        return;
    }
    vm->engine.owes_wake = false;
    vm->engine.woken_at_head = head;
    vm->engine.woken_at_finished = vm->engine.finished;
    if (eddy_load_seq_cst(&vm->throttled) > 0) {
        eddy_add_seq_cst(&vm->progress, 1u);
        eddy_sleep_wake_all(&vm->progress);
    }
}

/* ---- running ---- */

/* Whether the thread with the role runs the call; if so, and if the call needs a permit, the thread has it. */
static bool begin_here(eddy_vm *vm, const eddy_instruction *instruction) {
    if (vm->is_one_thread || instruction->view.descriptor == &eddy_starved_room)
        return true;
    if (instruction->place != EDDY_PLACE_ANY || vm->is_worker_path)
        return false;
    bool is_cheap = instruction->cost_ns <= EDDY_SCHEDULER_RUN_NS;
    if (!is_cheap && (instruction->cost_ns > vm->engine.inline_ns ||
                      vm->engine.inline_left_ns <= 0 || !eddy_team_kernel_begin(false)))
        return false;
    vm->engine.inline_left_ns -= instruction->cost_ns;
    return true;
}

static void end_here(const eddy_vm *vm, const eddy_instruction *instruction) {
    if (!vm->is_one_thread && instruction->view.descriptor != &eddy_starved_room &&
        instruction->cost_ns > EDDY_SCHEDULER_RUN_NS)
        eddy_team_kernel_end();
}

static void count_run(eddy_vm *vm) {
    if (vm->engine.is_caller)
        vm->engine.caller_run++;
    else
        vm->engine.scheduler_run++;
}

static int64_t new_bytes_of(const eddy_instruction *instruction) {
    int64_t bytes = 0;
    const int64_t *size = instruction->sizes;
    for (uint32_t i = 0; i < instruction->view.operand_count; i++)
        if ((instruction->mentions[i] & (EDDY_MENTION_NEW | EDDY_MENTION_MUT2)) == EDDY_MENTION_NEW)
            bytes += *size++;
    return bytes;
}

eddy_execute_result eddy_engine_execute(eddy_vm *vm, const eddy_instruction *instruction) {
    void *data[EDDY_NODE_USES];
    int64_t data_bytes[EDDY_NODE_USES];
    eddy_spill *spill = instruction->spill;
    /* Cheaper than a helper would be, but for one that was tried again. */
    bool is_alone = vm->is_one_thread || instruction->cost_ns <= vm->engine.inline_ns;
    return eddy_vm_execute(vm, instruction, &vm->engine.cache,
                           is_alone ? &eddy_team_serial : &vm->team, spill ? spill->data : data,
                           spill ? spill->data_bytes : data_bytes);
}

static void let_go(eddy_vm *vm, const eddy_instruction *instruction) {
    int64_t new_bytes = new_bytes_of(instruction); /* on the host: a device's calls have nodes */
    for (uint32_t i = 0; i < instruction->view.operand_count; i++) {
        eddy_storage *storage = eddy_vm_storage(vm, eddy_mention_number(instruction->mentions[i]));
        eddy_store_release(&storage->shared.retired,
                           eddy_load_relaxed(&storage->shared.retired) + 1);
    }
    eddy_graph_count_retired(vm, instruction, 0, new_bytes, true);
    eddy_spill_release(&vm->engine.arguments, instruction->spill);
}

__attribute__((noinline)) static void let_go_heard(eddy_vm *vm,
                                                   const eddy_instruction *instruction) {
    eddy_trace_span span = EDDY_TRACE_BEGIN(RELEASE, EDDY_TRACED(vm, instruction));
    const char *name = eddy_instruction_name(instruction);
    uint64_t sequence = instruction->view.sequence;
    let_go(vm, instruction);
    EDDY_TRACE_END(span, .op = name, .sequence = sequence);
}

/* An instruction that ran straight from the ring: retired without a node. */
static void retire_direct(eddy_vm *vm, const eddy_instruction *instruction) {
    if (eddy_trace_hears(EDDY_TRACE_RELEASE))
        let_go_heard(vm, instruction);
    else
        let_go(vm, instruction);
}

/* Recent calls that the calling thread has run alone in close succession. */
static __thread struct {
    int64_t ns;       /* by estimate */
    int64_t until_ns; /* when the last one ended */
} alone;

/* Whether helpers would come in time. For calls between dear and cheap: if a worker is awake, or if many such calls follow
 * each other, so that one wake serves them all. */
static bool may_be_worth_helpers(uint32_t cost_ns, int64_t now_ns) {
    int64_t hand_over_ns = eddy_team_hand_over_ns();
    if (cost_ns > hand_over_ns)
        return true;
    if (now_ns - alone.until_ns > LULL_NS)
        alone.ns = 0;
    alone.ns += cost_ns;
    return eddy_team_has_spinner() || alone.ns > ALONE_MOST * hand_over_ns;
}

/* Runs a node's call, with helpers if they pay. */
static eddy_execute_result execute_node(eddy_vm *vm, const eddy_instruction *instruction) {
    void *data[EDDY_NODE_USES];
    int64_t data_bytes[EDDY_NODE_USES];
    eddy_spill *spill = instruction->spill;
    uint32_t cost_ns = instruction->cost_ns;
    eddy_price *price = NULL;
    if (cost_ns > INLINE_NS && cost_ns <= eddy_team_hand_over_ns() * OWN_FACTOR &&
        !instruction->view.descriptor->is_program)
        price = eddy_price_find(eddy_instruction_name(instruction), cost_ns);
    int64_t begin_ns = eddy_clock_ns();
    bool asks = instruction->view.descriptor->is_program ||
                (cost_ns > INLINE_NS && may_be_worth_helpers(cost_ns, begin_ns) &&
                 (!price || eddy_price_asks_helpers(price)));
    eddy_blocks_cache cache;
    eddy_blocks_cache_init(&cache, &vm->tensors);
    eddy_execute_result result =
        eddy_vm_execute(vm, instruction, &cache, asks ? &vm->team : &eddy_team_serial,
                        spill ? spill->data : data, spill ? spill->data_bytes : data_bytes);
    eddy_blocks_cache_fini(&cache);
    alone.until_ns = eddy_clock_ns();
    if (price && result == EDDY_EXECUTED)
        eddy_price_note(price, asks, alone.until_ns - begin_ns);
    return result;
}

/* Runs the work of a node on a stream's thread. Without memory it is tried again later, but not on an ordered
 * stream: later works in its queue have no edge, and would find their inputs missing. */
static void node_run(eddy_work *work, eddy_status failure) {
    eddy_node *node = (eddy_node *)(void *)((char *)work - offsetof(eddy_node, work));
    eddy_vm *vm = node->vm;
    const eddy_instruction *instruction = &node->instruction;
    eddy_add_relaxed(&vm->begun_count, 1u);
    if (failure != EDDY_OK) {
        eddy_vm_execute_failed(vm, instruction, failure);
    } else {
        node->is_starved = execute_node(vm, instruction) == EDDY_EXECUTE_STARVED;
        if (EDDY_UNLIKELY(node->is_starved && (node->stream->is_ordered || node->is_last_try))) {
            node->is_starved = false;
            eddy_vm_execute_failed(vm, instruction, EDDY_OUT_OF_MEMORY);
        }
    }
    eddy_engine_complete(vm, node);
    eddy_engine_drive(vm);
    eddy_vm_inside_end(vm);
}

bool eddy_engine_is_call(const eddy_work *work) {
    return work->run == node_run;
}

/* The node leaves the engine until it is DONE. */
static void send_off(eddy_vm *vm, eddy_node *node) {
    node->stream->dispatched_count++;
    if (vm->engine.running_count++ == 0)
        eddy_store_seq_cst(&vm->has_running, true);
    vm->engine.sent_count++;
    node->work.run = node_run;
    eddy_vm_inside_begin(vm);
}

/* The pace of the calling thread's program. */
static __thread eddy_pace pace;

static eddy_pace_moment moment(const eddy_vm *vm, uint64_t sequence) {
    return (eddy_pace_moment){vm, eddy_clock_ns(), sequence, eddy_load_relaxed(&vm->finished_ns)};
}

static void end_stretch(const eddy_vm *vm, uint64_t sequence, bool waits) {
    if (pace.is_open)
        eddy_pace_end(&pace, moment(vm, sequence), EDDY_CALLER_RUN_PS / 1000, waits);
}

void eddy_engine_issuer_waits(const eddy_vm *vm, bool for_result) {
    end_stretch(vm, vm->sequence, for_result);
}

/* Whether another thread should run a dear call: if its issuer has work of its own meanwhile, or if the call cannot be
 * sliced and no other thread runs one now, so that others can run beside it. */
static bool is_for_others(const eddy_vm *vm, const eddy_instruction *instruction) {
    int64_t hand_over_ns = eddy_team_hand_over_ns();
    if (instruction->cost_ns <= hand_over_ns)
        return false;
    end_stretch(vm, instruction->view.sequence, false);
    if (pace.own_ns > hand_over_ns)
        return true;
    if (pace.has_waited || vm->engine.running_count > 0)
        return false;
    const eddy_price *price =
        eddy_price_find(eddy_instruction_name(instruction), instruction->cost_ns);
    return eddy_price_is_whole(price) && eddy_price_alone_ns(price) > 2 * hand_over_ns;
}

/* Whether the issuer of a ready call runs it itself, without the role, which others may take meanwhile. */
static bool takes_along(eddy_vm *vm, const eddy_node *node) {
    const eddy_instruction *instruction = &node->instruction;
    if (instruction->view.sequence != vm->engine.own_sequence)
        return false;
    bool takes = !node->stream->is_ordered && instruction->place == EDDY_PLACE_ANY &&
                 instruction->view.descriptor != &eddy_starved_room &&
                 instruction->cost_ns <= vm->engine.own_ns && !is_for_others(vm, instruction) &&
                 eddy_team_kernel_begin(false);
    if (!takes && instruction->cost_ns > eddy_team_hand_over_ns())
        eddy_pace_begin(&pace, moment(vm, instruction->view.sequence));
    return takes;
}

/* Dispatches a node to the thread that runs it. */
void eddy_engine_dispatch(eddy_vm *vm, eddy_node *node) {
    eddy_vm_stream *stream = node->stream;
    send_off(vm, node);
    vm->engine.worker_run++;
    eddy_trace_span span = EDDY_TRACE_BEGIN(DISPATCH, EDDY_TRACED(vm, &node->instruction));
    /* The node may be freed as soon as it is dispatched. */
    const char *name = span.listeners ? eddy_instruction_name(&node->instruction) : NULL;
    uint64_t sequence = node->instruction.view.sequence;
    eddy_waiter *waiter = eddy_load_relaxed(&node->wanted_by);
    eddy_work_queue_dispatch(stream->queue, &node->work);
    /* A sleeping waiter for it can run it before any worker is free. */
    if (waiter && eddy_team_is_busy())
        eddy_waiter_nudge(waiter);
    EDDY_TRACE_END(span, .op = name, .sequence = sequence);
}

static void run_call(eddy_vm *vm, eddy_node *node) {
    eddy_vm_stream *stream = node->stream;
    bool is_queue_free = !stream->is_ordered || stream->dispatched_count == 0;
    eddy_graph_dispatched(vm, node);
    if (!is_queue_free || stream->is_foreign || !begin_here(vm, &node->instruction)) {
        if (takes_along(vm, node)) {
            send_off(vm, node);
            vm->engine.own = node;
            vm->engine.caller_run++;
        } else {
            eddy_engine_dispatch(vm, node);
        }
        return;
    }
    bool is_room = node->instruction.view.descriptor == &eddy_starved_room;
    bool is_starved =
        is_room || eddy_engine_execute(vm, &node->instruction) == EDDY_EXECUTE_STARVED;
    end_here(vm, &node->instruction);
    if (is_starved) {
        if (!stream->is_ordered) {
            eddy_starved_add(vm, node);
            return;
        }
        eddy_vm_execute_failed(vm, &node->instruction, EDDY_OUT_OF_MEMORY);
    }
    count_run(vm);
    eddy_graph_retire(vm, node);
}

static eddy_node *take_here(eddy_vm *vm) {
    eddy_node *node = vm->engine.ready_head;
    vm->engine.ready_head = node->ready_next;
    if (!vm->engine.ready_head)
        vm->engine.ready_tail = &vm->engine.ready_head;
    return node;
}

/* What a device runs is launched in the order of the calls, so that none takes the memory of an earlier one; it comes ahead of what is ready on the host if it is earlier. */
__attribute__((noinline)) static eddy_node *take_there_or_here(eddy_vm *vm) {
    const eddy_node *node = vm->engine.ready_head, *there = vm->engine.ready_there.first;
    return !node || eddy_node_is_before(there, node) ? eddy_node_list_pop(&vm->engine.ready_there)
                                                     : take_here(vm);
}

void eddy_engine_run_ready(eddy_vm *vm) {
    for (int count = 0; vm->engine.ready_count > 0; count++) {
        /* A long list, for example behind a lend that ended: progress is published to waiters, and other threads may continue with it. */
        if (count >= BURST) {
            publish(vm, false);
            count = 0;
            if (vm->engine.inline_left_ns <= 0)
                return;
        }
        eddy_node *node =
            EDDY_LIKELY(!vm->engine.ready_there.first) ? take_here(vm) : take_there_or_here(vm);
        vm->engine.ready_count--;
        if (eddy_device_runs(node))
            eddy_device_dispatch(vm, node);
        else if (node->instruction.kind == EDDY_KIND_CALL)
            run_call(vm, node);
        else if (eddy_instruction_kind_run(vm, node))
            eddy_graph_retire(vm, node);
    }
}

/* ---- taking ---- */

static void take_instruction(eddy_vm *vm, const eddy_instruction *instruction) {
    eddy_instruction_kind kind = (eddy_instruction_kind)instruction->kind;
    if (kind == EDDY_KIND_CALL) {
        if (!vm->streams[instruction->stream]->is_foreign &&
            instruction->view.descriptor != &eddy_starved_room &&
            eddy_graph_is_free(vm, instruction) && begin_here(vm, instruction)) {
            bool has_run = eddy_engine_execute(vm, instruction) == EDDY_EXECUTED;
            end_here(vm, instruction);
            if (has_run) {
                count_run(vm);
                retire_direct(vm, instruction);
                return;
            }
        }
    } else if (eddy_instruction_kind_run_direct(vm, instruction)) {
        retire_direct(vm, instruction);
        return;
    }
    eddy_node *node = eddy_graph_node_acquire(vm, instruction);
    eddy_graph_link(vm, node);
    if (node->state == EDDY_NODE_WAITING)
        eddy_instruction_kind_blocked(vm, node);
}

__attribute__((noinline)) static void take_heard(eddy_vm *vm, const eddy_instruction *instruction) {
    eddy_trace_span span = EDDY_TRACE_BEGIN(SCHEDULE, EDDY_TRACED(vm, instruction));
    const char *name = eddy_instruction_name(instruction);
    uint64_t sequence = instruction->view.sequence;
    take_instruction(vm, instruction);
    EDDY_TRACE_END(span, .op = name, .sequence = sequence);
}

static bool take_records(eddy_vm *vm) {
    bool has_taken = false;
    for (int i = 0; i < BURST; i++) {
        eddy_record *record = eddy_ring_peek(&vm->ring);
        if (!record)
            break;
        has_taken = true;
        if ((record->kind_releases & 15) == EDDY_KIND_PAD) {
            eddy_ring_pop(&vm->ring, record);
            continue;
        }
        eddy_instruction instruction;
        const eddy_storage_number *releases;
        uint32_t release_count;
        eddy_ring_read(record, &instruction, &releases, &release_count);
        for (uint32_t r = 0; r < release_count; r++)
            eddy_graph_release(vm, releases[r]);
        if (instruction.kind != EDDY_KIND_RELEASES) {
            if (eddy_trace_hears(EDDY_TRACE_SCHEDULE))
                take_heard(vm, &instruction);
            else
                take_instruction(vm, &instruction);
        }
        eddy_ring_pop(&vm->ring, record);
    }
    return has_taken;
}

static bool take_completions(eddy_vm *vm) {
    if (eddy_lifo_is_empty(&vm->completions))
        return false;
    eddy_lifo_link *link = eddy_lifo_take_all_in_order(&vm->completions);
    bool has_taken = link != NULL;
    while (link) {
        eddy_node *node = (eddy_node *)(void *)((char *)link - offsetof(eddy_node, completion));
        link = link->next;
        if (EDDY_UNLIKELY(node->queue != NULL)) {
            eddy_device_arrived(vm, node);
            continue;
        }
        if (node->instruction.kind == EDDY_KIND_CALL) {
            node->stream->dispatched_count--;
            vm->engine.running_count--;
        } else {
            eddy_instruction_kind_completed(vm, node);
            if (EDDY_UNLIKELY(eddy_device_stores(vm, node)))
                continue;
        }
        if (node->is_starved)
            eddy_starved_add(vm, node);
        else
            eddy_graph_retire(vm, node);
    }
    return has_taken;
}

/* Releases from the lock-free list take effect once the records before their stamp are taken. */
bool eddy_engine_take_releases(eddy_vm *vm) {
    if (!eddy_lifo_is_empty(&vm->releases)) {
        eddy_lifo_link *link = eddy_lifo_take_all(&vm->releases);
        while (link) {
            eddy_lifo_link *next = link->next;
            link->next = vm->engine.held_releases;
            vm->engine.held_releases = link;
            link = next;
        }
    }
    bool has_taken = false;
    uint64_t head = eddy_load_relaxed(&vm->ring.head);
    eddy_lifo_link **at = &vm->engine.held_releases;
    while (*at) {
        eddy_vm_release_link *release = (eddy_vm_release_link *)(void *)*at;
        if (release->after > head) {
            at = &(*at)->next;
            continue;
        }
        *at = (*at)->next;
        eddy_graph_release(vm, release->storage);
        release->recycle(release);
        has_taken = true;
    }
    return has_taken;
}

/* Whether nothing of the VM will release memory: kernels have released theirs, the nodes that waited for them are running, and releases of
 * callers have taken effect. */
static bool has_given_all_up(eddy_vm *vm) {
    return vm->engine.running_count == 0 && vm->engine.ready_count == 0 &&
           !eddy_ring_peek(&vm->ring) && !vm->engine.held_releases &&
           eddy_lifo_is_empty(&vm->releases);
}

/* To other VMs. */
static void tell_others(eddy_vm *vm, bool has_moved) {
    bool is_over = eddy_load_relaxed(&vm->has_running) && has_given_all_up(vm);
    if (is_over)
        eddy_store_seq_cst(&vm->has_running, false);
    if (is_over || has_moved)
        eddy_starved_tell_others(vm);
}

/* Whether another round may find work after one that has moved something: a source has more, or starved instructions may have waited for what was moved. */
static bool has_more(eddy_vm *vm) {
    return eddy_ring_peek(&vm->ring) || !eddy_lifo_is_empty(&vm->completions) ||
           !eddy_lifo_is_empty(&vm->releases) || vm->engine.held_releases ||
           vm->engine.starved.first;
}

/* Does what there is to do; whether there may be more. `lingers`: a thread that waits for more looks once more before it publishes, since each publication slows issuers down. */
static bool tick(eddy_vm *vm, bool lingers) {
    if (EDDY_UNLIKELY(eddy_load_relaxed(&vm->is_halted)))
        return false;
    bool has_moved = take_completions(vm);
    eddy_engine_run_ready(vm);
    if (has_moved)
        eddy_starved_tell_others(vm);
    if (EDDY_UNLIKELY(vm->engine.starved.first && has_moved))
        eddy_starved_relieve(vm, false);
    has_moved |= take_records(vm);
    has_moved |= eddy_engine_take_releases(vm);
    if (vm->engine.ready_count > 0) {
        eddy_engine_run_ready(vm);
        has_moved = true;
    }
    tell_others(vm, has_moved);
    /* What runs from here on may give work to what was looked at before. */
    bool goes_on = EDDY_UNLIKELY(eddy_load_acquire(&vm->device_count) > 0) &&
                   eddy_device_attend(vm, has_moved);
    if (EDDY_UNLIKELY(eddy_load_relaxed(&vm->was_told)) &&
        (!vm->engine.starved.first || vm->engine.running_count > 0)) {
        eddy_store_relaxed(&vm->was_told, false);
        if (vm->engine.starved.first) {
            eddy_starved_relieve(vm, false);
            goes_on = true;
        }
    }
    if (EDDY_UNLIKELY(vm->engine.starved.first && vm->engine.running_count == 0) &&
        eddy_starved_is_due(vm, has_moved || goes_on)) {
        eddy_starved_relieve(vm, true);
        eddy_engine_run_ready(vm);
        goes_on = true;
    }
    if (vm->engine.unpublished >= BURST)
        publish(vm, false);
    return vm->engine.ready_count > 0 || goes_on || (has_moved && (lingers || has_more(vm)));
}

/* ---- the role ---- */

/* Looks for work without giving the role up; true if there is some. */
static bool spin(eddy_vm *vm, int64_t spin_ns) {
    int64_t end = eddy_clock_ns() + spin_ns;
    do {
        for (int i = 0; i < 64; i++) {
            if (eddy_ring_peek(&vm->ring) || !eddy_lifo_is_empty(&vm->completions) ||
                !eddy_lifo_is_empty(&vm->releases))
                return true;
            eddy_atomic_pause();
        }
    } while (eddy_clock_ns() < end);
    return false;
}

/* The work that a thread keeps when it gives the role up. */
typedef struct luggage {
    eddy_node *own;
    eddy_dump *dump;
} luggage;

static luggage pack(eddy_vm *vm) {
    luggage taken = {vm->engine.own, vm->engine.dump};
    vm->engine.own = NULL;
    vm->engine.dump = NULL;
    return taken;
}

static bool has_to_launch(const eddy_engine_turn *turn) {
    return turn->launcher && eddy_launcher_has_next(turn->launcher);
}

/* Gives the role up before everything is done; the scheduler thread does the rest. was_asked: what was requested may not have been taken. A launcher that has something to launch comes back for what was left
 * to it. */
static luggage leave(eddy_vm *vm, const eddy_engine_turn *turn, bool was_asked) {
    bool comes_back = has_to_launch(turn) && !was_asked;
    publish(vm, !comes_back);
    luggage taken = pack(vm);
    bool has_left = vm->engine.ready_count > 0;
    eddy_store_seq_cst(&vm->has_left, has_left);
    uint32_t word = eddy_exchange_acq_rel(&vm->engine_word, FREE);
    if (has_left || (eddy_engine_has_work(vm) && (word == WANTED || !comes_back)))
        eddy_vm_poke(vm);
    return taken;
}

static bool may_leave(const eddy_vm *vm, const eddy_engine_turn *turn) {
    /* In one-thread mode no other thread would do the rest, and the next one would not know of the starved ones. */
    if (vm->is_one_thread || vm->engine.starved.first)
        return false;
    return vm->engine.inline_left_ns <= 0 || (turn->until && eddy_waiter_is_done(turn->until)) ||
           has_to_launch(turn) ||
           (turn->attendance && !eddy_attend_has_left(turn->attendance, &vm->ring));
}

static luggage work(eddy_vm *vm, const eddy_engine_turn *turn) {
    vm->engine.own_sequence = turn->own_sequence;
    vm->engine.own_ns = turn->own_ns;
    vm->engine.inline_ns = turn->inline_ns;
    vm->engine.inline_left_ns = turn->budget_ns;
    vm->engine.is_caller = turn->is_caller;
    bool was_asked = false;
    for (;;) {
        /* Launchers and reapers read its line. */
        if (EDDY_UNLIKELY(eddy_load_relaxed(&vm->has_left)))
            eddy_store_relaxed(&vm->has_left, false);
        while (tick(vm, turn->spin_ns > 0))
            if (may_leave(vm, turn))
                return leave(vm, turn, was_asked);
        if (turn->until && eddy_waiter_is_done(turn->until) && !vm->is_one_thread)
            return leave(vm, turn, was_asked);
        publish(vm, true);
        if (turn->spin_ns > 0 && spin(vm, turn->spin_ns))
            continue;
        luggage taken = pack(vm);
        uint32_t held = HELD;
        if (eddy_cas_acq_rel(&vm->engine_word, &held, FREE))
            return taken;
        vm->engine.own = taken.own;
        vm->engine.dump = taken.dump;
        /* The checks that follow see what was requested before. */
        eddy_exchange_acq_rel(&vm->engine_word, HELD);
        was_asked = true;
    }
}

/* The VM whose role the thread has. */
static __thread const eddy_vm *worked_for;

bool eddy_engine_is_mine(const eddy_vm *vm) {
    return worked_for == vm;
}

void eddy_engine_work(eddy_vm *vm, const eddy_engine_turn *turn) {
    eddy_order_check();
    /* The thread may be a user's: kernels must not change its errno. */
    int saved_errno = errno;
    const eddy_vm *outer = worked_for;
    worked_for = vm;
    luggage taken = work(vm, turn);
    worked_for = outer;
    if (EDDY_UNLIKELY(taken.dump != NULL))
        eddy_dump_log(taken.dump);
    if (taken.own) {
        uint64_t sequence = taken.own->instruction.view.sequence;
        bool is_dear = taken.own->instruction.cost_ns > eddy_team_hand_over_ns();
        node_run(&taken.own->work, EDDY_OK);
        eddy_team_kernel_end();
        if (is_dear)
            eddy_pace_begin(&pace, moment(vm, sequence));
    }
    errno = saved_errno;
}

static void drive(eddy_vm *vm, eddy_engine_turn turn) {
    if (eddy_engine_request(vm))
        eddy_engine_work(vm, &turn);
}

void eddy_engine_drive(eddy_vm *vm) {
    drive(vm, (eddy_engine_turn){.budget_ns = INT64_MAX, .is_caller = vm->is_one_thread});
}

void eddy_engine_drive_own(eddy_vm *vm, uint64_t sequence, bool is_shared) {
    int64_t hand_over_ns = eddy_team_hand_over_ns();
    /* Beside other issuers no thread keeps the role during a call, since their calls would wait for it. */
    drive(vm, (eddy_engine_turn){.inline_ns = is_shared ? EDDY_SCHEDULER_RUN_NS : INLINE_NS,
                                 .budget_ns = hand_over_ns,
                                 .is_caller = true,
                                 .own_sequence = sequence,
                                 .own_ns = hand_over_ns * OWN_FACTOR});
}

void eddy_engine_drive_waiting(eddy_vm *vm, const eddy_waiter *until) {
    drive(vm, (eddy_engine_turn){.until = until,
                                 .inline_ns = vm->is_driven ? eddy_team_hand_over_ns() : 0,
                                 .budget_ns = INT64_MAX,
                                 .is_caller = true});
}

void eddy_engine_drive_release(eddy_vm *vm) {
    drive(vm, (eddy_engine_turn){.is_caller = true});
}

bool eddy_engine_look(eddy_vm *vm, void (*look)(eddy_vm *vm, void *context), void *context,
                      int64_t deadline_ns) {
    const eddy_engine_turn turn = {.is_caller = true};
    for (;;) {
        bool is_last = eddy_clock_ns() >= deadline_ns;
        if (eddy_engine_request(vm)) {
            bool looks = is_last || !eddy_ring_peek(&vm->ring);
            if (looks)
                look(vm, context);
            eddy_engine_work(vm, &turn);
            if (looks)
                return true;
        }
        if (is_last)
            return false;
        sched_yield();
    }
}
