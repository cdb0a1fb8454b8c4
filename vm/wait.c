/* Blocking calls: a waiter, an instruction that finishes it, and a thread that helps meanwhile (PROTOCOL.md section 9). */
#include <base/status.h>
#include <base/trace.h>
#include <errno.h>
#include <string.h>
#include <vm/device.h>
#include <vm/engine.h>
#include <vm/event.h>
#include <vm/instruction_kinds.h>
#include <vm/machine.h>
#include <vm/marks.h>
#include <vm/service.h>
#include <vm/submit.h>
#include <vm/wait.h>

/* A waiting thread looks this long for work to help with before it sleeps. */
#define SPIN_NS 20000
#define SPIN_CHECKS 32

uint64_t eddy_vm_thread_number(void) {
    static _Atomic uint64_t last;
    static __thread uint64_t number;
    if (number == 0)
        number = eddy_add_relaxed(&last, (uint64_t)1) + 1;
    return number;
}

/* ---- helping ---- */

typedef struct wanted {
    uint64_t number; /* the wait's */
    const eddy_vm *vm;
    uint64_t before; /* a barrier waits for every instruction up to this number */
} wanted;

static bool is_wanted(const eddy_work *work, const void *context) {
    const wanted *want = context;
    if (!eddy_engine_is_call(work))
        return false;
    const eddy_node *node =
        (const eddy_node *)(const void *)((const char *)work - offsetof(eddy_node, work));
    if (node->vm != want->vm || node->instruction.place == EDDY_PLACE_WORKER)
        return false;
    return eddy_load_relaxed(&node->wanted_number) == want->number ||
           node->instruction.view.sequence <= want->before;
}

/* Does one piece of work of others; false if there is none that a waiter may do. With a timeout: slices only. */
static bool help(eddy_vm *vm, const eddy_waiter *waiter, uint64_t before, bool has_deadline) {
    if (eddy_team_help_slice())
        return true;
    if (has_deadline)
        return false;
    wanted want = {waiter->number, vm, before};
    return vm->has_team && eddy_team_help_work(is_wanted, &want);
}

/* Takes the engine's role if it is free and there is work, which a device may have completed before its reaper looks. In one-thread mode that may be work that the unmap of another, departed
 * thread has left: this thread then also runs the user code that becomes due. */
static void help_engine(eddy_vm *vm, const eddy_waiter *waiter) {
    bool has_reaped = !vm->is_one_thread && eddy_device_reap_all(vm);
    if (!has_reaped && (!eddy_engine_has_work(vm) || eddy_load_relaxed(&vm->engine_word) != 0))
        return;
    eddy_engine_drive_waiting(vm, waiter);
    eddy_service_run_due(vm);
}

static eddy_status abandon(eddy_waiter *waiter) {
    /* The engine recycles it later; or it was done just now. */
    return eddy_exchange_acq_rel(&waiter->state, EDDY_WAITER_ABANDONED) == EDDY_WAITER_DONE
               ? EDDY_OK
               : EDDY_TIMED_OUT;
}

/* From here on the engine nudges. The waiter checks once more before it sleeps, and finds work that was queued before: the engine takes
 * the team's lock before it nudges. */
static void say_sleeping(eddy_waiter *waiter) {
    uint32_t state = EDDY_WAITER_PENDING;
    (void)eddy_cas_acq_rel(&waiter->state, &state, EDDY_WAITER_SLEEPING);
}

/* Sleeps until the engine wakes the thread: for the end of its wait, or for work to help with. False on
 * timeout. */
static bool sleep_for_news(eddy_waiter *waiter, int64_t deadline_ns) {
    while (eddy_load_acquire(&waiter->state) == EDDY_WAITER_SLEEPING)
        if (!eddy_sleep_wait(&waiter->state, EDDY_WAITER_SLEEPING, deadline_ns))
            return false;
    return true;
}

static void stop_spinning(bool *spins) {
    if (*spins)
        eddy_team_spin_end();
    *spins = false;
}

/* Helps, spins if a processor is free for it (*spins then, also on return), and sleeps. */
static eddy_status await(eddy_vm *vm, eddy_waiter *waiter, uint64_t before, int64_t deadline_ns,
                         bool *spins) {
    bool has_deadline = deadline_ns != EDDY_CLOCK_FOREVER;
    int64_t spin_end = 0;
    for (;;) {
        if (!has_deadline)
            help_engine(vm, waiter);
        for (int i = 0; i < SPIN_CHECKS; i++) {
            if (eddy_waiter_is_done(waiter))
                return EDDY_OK;
            eddy_atomic_pause();
        }
        int64_t now = eddy_clock_ns();
        if (now >= deadline_ns)
            return abandon(waiter);
        if (help(vm, waiter, before, has_deadline)) {
            stop_spinning(spins);
            spin_end = 0;
            continue;
        }
        if (spin_end == 0) {
            *spins = eddy_team_spin_begin();
            spin_end = *spins ? now + SPIN_NS : now;
        } else if (now >= spin_end) {
            stop_spinning(spins);
            say_sleeping(waiter);
            if (!help(vm, waiter, before, has_deadline) && !sleep_for_news(waiter, deadline_ns))
                return abandon(waiter);
            spin_end = 0;
        }
    }
}

eddy_status eddy_vm_wait_for(eddy_vm *vm, eddy_waiter *waiter, uint64_t before,
                             int64_t deadline_ns) {
    if (eddy_waiter_is_done(waiter))
        return EDDY_OK;
    eddy_order_check();
    if (eddy_service_is_current_thread())
        return abandon(waiter) == EDDY_OK ? EDDY_OK : EDDY_WOULD_DEADLOCK;
    bool spins = false;
    eddy_status status = await(vm, waiter, before, deadline_ns, &spins);
    stop_spinning(&spins);
    return status;
}

/* ---- errors ---- */

/* The lend or callback behind which a wait would never end. */
static const char *deadlock_reason(void) {
    return eddy_service_is_current_thread() ? ": a callback may only wait for what is over already"
                                            : ": this thread itself has mapped or borrowed what it "
                                              "waits for (eddy_unmap, eddy_lend_end)";
}

static eddy_status fail_wait(eddy_status status, const eddy_vm_wait *wait) {
    return eddy_fail(status, wait->origin, "%s%s", eddy_status_text(status),
                     status == EDDY_WOULD_DEADLOCK ? deadlock_reason() : "");
}

/* Copies the record of a poison to *error; returns its status. */
static eddy_status describe_poison(eddy_vm *vm, eddy_poison poison, eddy_error *error) {
    eddy_errors_find(&vm->errors, eddy_poison_sequence(poison), error);
    if (eddy_poison_state_of(poison) == EDDY_POISON_SKIPPED)
        error->status = EDDY_SKIPPED;
    else if (eddy_poison_state_of(poison) == EDDY_POISON_TORN)
        error->status = EDDY_TORN;
    return error->status;
}

eddy_status eddy_vm_fail_poison(eddy_vm *vm, eddy_poison poison) {
    eddy_error error;
    describe_poison(vm, poison, &error);
    return eddy_fail_record(&error);
}

/* ---- waits on storages ---- */

/* The result of a finished wait. */
typedef struct wait_result {
    eddy_poison poison;
    eddy_shape *shape;
    void *value;
} wait_result;

static void result_from_storage(const eddy_storage *storage, const eddy_wait_arguments *arguments,
                                wait_result *result) {
    result->poison = storage->shared.poison;
    if (result->poison != 0)
        return;
    if (arguments->bytes > 0)
        memcpy(result->value, (const char *)storage->shared.data + arguments->offset,
               arguments->bytes);
    if (arguments->wants_shape)
        *result->shape = *storage->shared.late_shape;
}

eddy_status eddy_vm_submit_and_wait(eddy_vm *vm, eddy_submission *submission, eddy_waiter *waiter,
                                    const eddy_vm_wait *wait) {
    submission->op = wait->origin.op;
    submission->instruction.view.address = wait->origin.address;
    int64_t deadline_ns = submission->deadline_ns = eddy_clock_deadline(wait->timeout_ns);
    eddy_status status = eddy_marks_wait_for_waits(vm, wait->origin, deadline_ns);
    if (status == EDDY_OK)
        status = eddy_vm_write(vm, submission);
    if (status == EDDY_TIMED_OUT)
        fail_wait(status, wait);
    uint64_t before =
        eddy_instruction_has(&submission->instruction, EDDY_KIND_ENDS_ALL) ? vm->sequence : 0;
    eddy_vm_leave_until(vm, deadline_ns);
    if (status != EDDY_OK) {
        eddy_vm_event_release(eddy_instruction_kind_event(&submission->instruction));
        eddy_waiter_recycle(&vm->waiters, waiter);
        return status;
    }
    uint64_t sequence = submission->instruction.view.sequence;
    eddy_trace_span span =
        EDDY_TRACE_BEGIN(WAIT, .op = wait->origin.op, .runtime = vm->number, .sequence = sequence,
                         .address = wait->origin.address, .detail = "result");
    status = eddy_vm_wait_for(vm, waiter, before, deadline_ns);
    EDDY_TRACE_END(span, .op = wait->origin.op, .sequence = sequence);
    if (status != EDDY_OK)
        return fail_wait(status, wait);
    if (waiter->status != EDDY_OK) {
        status = waiter->status;
        const char *device = waiter->device;
        eddy_waiter_recycle(&vm->waiters, waiter);
        return device ? eddy_errors_fail(status, device, wait->origin) : fail_wait(status, wait);
    }
    return EDDY_OK;
}

/* A waiter for the calling thread. */
static eddy_waiter *waiter_for(eddy_vm *vm, const eddy_vm_wait *wait) {
    eddy_waiter *waiter = eddy_waiter_acquire(&vm->waiters);
    if (!waiter) {
        eddy_fail(EDDY_OUT_OF_MEMORY, wait->origin, "no memory to wait");
        return NULL;
    }
    waiter->thread = eddy_vm_thread_number();
    return waiter;
}

eddy_status eddy_vm_enter_with_waiter(eddy_vm *vm, const eddy_vm_wait *wait, eddy_waiter **waiter) {
    eddy_status status = eddy_vm_enter(vm, wait->origin);
    if (status != EDDY_OK)
        return status;
    eddy_engine_issuer_waits(vm, true);
    *waiter = waiter_for(vm, wait);
    if (!*waiter) {
        eddy_vm_leave(vm);
        return EDDY_OUT_OF_MEMORY;
    }
    eddy_vm_inside_begin(vm);
    return EDDY_OK;
}

static eddy_status wait_on(eddy_vm *vm, eddy_storage_number number, eddy_wait_arguments *arguments,
                           const eddy_vm_wait *wait, wait_result *result) {
    eddy_status status = eddy_vm_enter(vm, wait->origin);
    if (status != EDDY_OK)
        return status;
    eddy_engine_issuer_waits(vm, true);
    eddy_storage *storage = eddy_vm_storage(vm, number);
    if (EDDY_LIKELY(eddy_vm_storage_is_idle(storage)) &&
        EDDY_LIKELY(storage->shared.device == 0 || arguments->bytes == 0)) {
        result_from_storage(storage, arguments, result);
        eddy_vm_unlock(vm);
        return EDDY_OK;
    }
    if (wait->timeout_ns <= 0) {
        eddy_vm_leave_until(vm, 0);
        return fail_wait(EDDY_TIMED_OUT, wait);
    }
    eddy_waiter *waiter = waiter_for(vm, wait);
    if (!waiter) {
        eddy_vm_leave(vm);
        return EDDY_OUT_OF_MEMORY;
    }
    arguments->waiter = waiter;
    eddy_mention mention = number | EDDY_MENTION_CONST;
    eddy_submission submission = {
        .instruction = {.view = {.arguments = arguments, .operand_count = 1},
                        .kind = EDDY_KIND_WAIT,
                        .mentions = &mention},
        .argument_bytes = sizeof(*arguments)};
    eddy_vm_inside_begin(vm);
    status = eddy_vm_submit_and_wait(vm, &submission, waiter, wait);
    if (status == EDDY_OK) {
        result->poison = waiter->poison;
        if (result->poison == 0 && arguments->bytes > 0)
            memcpy(result->value, waiter->value, arguments->bytes);
        if (result->poison == 0 && arguments->wants_shape)
            *result->shape = waiter->shape;
        eddy_waiter_recycle(&vm->waiters, waiter);
    }
    eddy_vm_inside_end(vm);
    return status;
}

bool eddy_vm_is_ready(eddy_vm *vm, eddy_storage_number number) {
    if (eddy_vm_enter(vm, (eddy_origin){"is_ready", NULL}) != EDDY_OK)
        return false;
    bool is_ready = eddy_vm_storage_is_idle(eddy_vm_storage(vm, number));
    eddy_vm_leave_until(vm, 0);
    return is_ready;
}

eddy_status eddy_vm_await_storage(eddy_vm *vm, eddy_storage_number number,
                                  const eddy_vm_wait *wait) {
    eddy_wait_arguments arguments = {0};
    wait_result result = {0};
    return wait_on(vm, number, &arguments, wait, &result);
}

eddy_status eddy_vm_wait_storage(eddy_vm *vm, eddy_storage_number number,
                                 const eddy_vm_wait *wait) {
    eddy_wait_arguments arguments = {0};
    wait_result result = {0};
    eddy_status status = wait_on(vm, number, &arguments, wait, &result);
    if (status != EDDY_OK)
        return status;
    return result.poison ? eddy_vm_fail_poison(vm, result.poison) : EDDY_OK;
}

eddy_status eddy_vm_late_shape(eddy_vm *vm, eddy_storage_number number, const eddy_vm_wait *wait,
                               eddy_shape *shape) {
    eddy_wait_arguments arguments = {.wants_shape = 1};
    eddy_shape found;
    wait_result result = {.shape = &found};
    eddy_status status = wait_on(vm, number, &arguments, wait, &result);
    if (status != EDDY_OK)
        return status;
    if (result.poison)
        return eddy_vm_fail_poison(vm, result.poison);
    *shape = found;
    return EDDY_OK;
}

eddy_status eddy_vm_read_small(eddy_vm *vm, eddy_storage_number number, int64_t offset_bytes,
                               size_t bytes, void *target, const eddy_vm_wait *wait) {
    EDDY_ASSERT(bytes <= EDDY_READ_SMALL_BYTES);
    eddy_wait_arguments arguments = {.offset = offset_bytes, .bytes = (uint32_t)bytes};
    wait_result result = {.value = target};
    eddy_status status = wait_on(vm, number, &arguments, wait, &result);
    if (status != EDDY_OK)
        return status;
    return result.poison ? eddy_vm_fail_poison(vm, result.poison) : EDDY_OK;
}

eddy_status eddy_vm_poison(eddy_vm *vm, eddy_storage_number number, const eddy_vm_wait *wait,
                           eddy_error *error) {
    eddy_wait_arguments arguments = {0};
    wait_result result = {0};
    eddy_status status = wait_on(vm, number, &arguments, wait, &result);
    if (status != EDDY_OK)
        return status;
    return result.poison ? describe_poison(vm, result.poison, error) : EDDY_OK;
}

eddy_status eddy_vm_event_wait(eddy_vm_event *event, const eddy_vm_wait *wait) {
    eddy_vm *vm = event->vm;
    if (eddy_vm_event_is_passed(event))
        return EDDY_OK;
    if (wait->timeout_ns <= 0)
        return fail_wait(EDDY_TIMED_OUT, wait);
    eddy_waiter *waiter;
    eddy_status status = eddy_vm_enter_with_waiter(vm, wait, &waiter);
    if (status != EDDY_OK)
        return status;
    eddy_wait_arguments arguments = {.waiter = waiter, .event = event};
    eddy_submission submission = {
        .instruction = {.view.arguments = &arguments, .kind = EDDY_KIND_WAIT},
        .argument_bytes = sizeof(arguments)};
    /* Owned by the instruction: after a timeout it may outlive the call. */
    eddy_add_relaxed(&event->references, 1);
    status = eddy_vm_submit_and_wait(vm, &submission, waiter, wait);
    if (status == EDDY_OK)
        eddy_waiter_recycle(&vm->waiters, waiter);
    eddy_vm_inside_end(vm);
    return status;
}

/* ---- lends ---- */

struct eddy_vm_lend {
    eddy_node node; /* a lend is its node */
};

/* stream: of the storage's device, to code there; NULL: to the host. */
static eddy_status lend_begin(eddy_vm *vm, eddy_storage_number number, bool is_mut,
                              const eddy_vm_stream *stream, const eddy_vm_wait *wait, void **data,
                              eddy_vm_lend **lend) {
    eddy_waiter *waiter;
    eddy_status status = eddy_vm_enter_with_waiter(vm, wait, &waiter);
    if (status != EDDY_OK)
        return status;
    /* Nothing is in the way: the engine grants it at its next check, which a timeout does not count as a wait. A device copies first. */
    eddy_vm_wait patient = *wait;
    eddy_storage *storage = eddy_vm_storage(vm, number);
    if ((storage->shared.device == 0 || stream) && eddy_vm_storage_is_idle(storage))
        patient.timeout_ns = EDDY_CLOCK_FOREVER;
    eddy_lend_arguments arguments = {waiter,
                                     stream ? &stream->device->queues[stream->device_queue] : NULL};
    eddy_mention mention = number | (is_mut ? EDDY_MENTION_MUT : EDDY_MENTION_CONST);
    eddy_submission submission = {
        .instruction = {.view = {.arguments = &arguments, .operand_count = 1},
                        .kind = EDDY_KIND_LEND,
                        .mentions = &mention},
        .argument_bytes = sizeof(arguments)};
    status = eddy_vm_submit_and_wait(vm, &submission, waiter, &patient);
    if (status == EDDY_OK) {
        eddy_poison poison = waiter->poison;
        if (poison) {
            status = eddy_vm_fail_poison(vm, poison);
        } else {
            *data = waiter->data;
            *lend = (eddy_vm_lend *)(void *)waiter->lend;
        }
        eddy_waiter_recycle(&vm->waiters, waiter);
    }
    eddy_vm_inside_end(vm);
    return status;
}

eddy_status eddy_vm_lend_begin(eddy_vm *vm, eddy_storage_number number, bool is_mut,
                               const eddy_vm_wait *wait, void **data, eddy_vm_lend **lend) {
    return lend_begin(vm, number, is_mut, NULL, wait, data, lend);
}

/* The VM, and so the queue, does not close before the lend's end. */
static const eddy_device_queue *queue_of(const eddy_vm_lend *lend) {
    return ((const eddy_lend_arguments *)lend->node.instruction.view.arguments)->queue;
}

eddy_status eddy_vm_lend_begin_there(eddy_vm *vm, eddy_storage_number number, bool is_mut,
                                     eddy_vm_stream *stream, const eddy_vm_wait *wait, void **data,
                                     void **native, eddy_vm_lend **lend) {
    eddy_status status = lend_begin(vm, number, is_mut, stream, wait, data, lend);
    if (status != EDDY_OK)
        return status;
    const eddy_device_queue *queue = queue_of(*lend);
    *native = queue->device->backend->class->lend_begin(queue->under);
    return EDDY_OK;
}

eddy_status eddy_vm_lend_end_there(eddy_vm *vm, eddy_vm_lend *lend) {
    if (vm->process != eddy_process_generation)
        return EDDY_OK;
    const eddy_device_queue *queue = queue_of(lend);
    eddy_status status = queue->device->backend->class->lend_end(queue->under);
    eddy_vm_lend_end(vm, lend, false);
    return status;
}

void eddy_vm_lend_keep(eddy_vm *vm, eddy_vm_lend *lend) {
    eddy_storage_number number = eddy_mention_number(lend->node.instruction.mentions[0]);
    eddy_store_relaxed(&eddy_vm_storage(vm, number)->shared.is_kept, true);
}

void eddy_vm_lend_end(eddy_vm *vm, eddy_vm_lend *lend, bool failed) {
    if (vm->process != eddy_process_generation)
        return;
    /* The lend is in flight, so the VM exists. */
    eddy_vm_inside_begin(vm);
    lend->node.has_failed_lend = failed;
    eddy_store_release(&lend->node.has_ended_lend, true);
    eddy_engine_complete(vm, &lend->node);
    if (vm->is_one_thread) {
        eddy_lock_acquire(&vm->one_thread);
        eddy_engine_drive(vm);
        eddy_lock_release(&vm->one_thread);
        eddy_service_run_due(vm);
    } else {
        eddy_vm_poke(vm);
    }
    eddy_vm_inside_end(vm);
}

/* ---- the whole VM ---- */

static eddy_status wait_for_all(eddy_vm *vm, const eddy_vm_wait *wait) {
    eddy_waiter *waiter;
    eddy_status status = eddy_vm_enter_with_waiter(vm, wait, &waiter);
    if (status != EDDY_OK)
        return status;
    /* Those that find no room in the barrier's record would wait for the next one. */
    eddy_vm_flush_releases(vm);
    eddy_waiter_arguments arguments = {waiter};
    eddy_submission submission = {
        .instruction = {.view.arguments = &arguments, .kind = EDDY_KIND_BARRIER},
        .argument_bytes = sizeof(arguments)};
    status = eddy_vm_submit_and_wait(vm, &submission, waiter, wait);
    if (status == EDDY_OK)
        eddy_waiter_recycle(&vm->waiters, waiter);
    eddy_vm_inside_end(vm);
    return status;
}

void eddy_vm_drain(eddy_vm *vm, eddy_origin origin) {
    eddy_vm_wait wait = {EDDY_CLOCK_FOREVER, origin};
    eddy_error before;
    bool had_error = eddy_error_peek(&before);
    /* Behind a lend, or inside a callback, an op stays queued in every mode: that is not an error of the caller. */
    if (wait_for_all(vm, &wait) == EDDY_OK)
        return;
    eddy_error_take(NULL);
    if (had_error)
        eddy_error_restore(&before);
}

eddy_status eddy_vm_sync(eddy_vm *vm, const eddy_vm_wait *wait, eddy_error *error) {
    eddy_status status = wait_for_all(vm, wait);
    if (status != EDDY_OK)
        return status;
    eddy_error unseen;
    if (!eddy_errors_take_unseen(&vm->errors, &unseen))
        return EDDY_OK;
    if (error)
        *error = unseen;
    return eddy_fail_record(&unseen);
}

eddy_status eddy_vm_sync_service(eddy_vm *vm, const eddy_vm_wait *wait) {
    eddy_status status = eddy_vm_enter(vm, wait->origin);
    if (status != EDDY_OK)
        return status;
    int64_t deadline_ns = eddy_clock_deadline(wait->timeout_ns);
    eddy_vm_inside_begin(vm);
    eddy_vm_leave_until(vm, deadline_ns);
    status = eddy_service_sync(vm, deadline_ns);
    eddy_vm_inside_end(vm);
    return status == EDDY_OK ? EDDY_OK : fail_wait(status, wait);
}
