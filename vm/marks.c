/* How far ahead of the engine an issuer may be (PROTOCOL.md section 10): hard marks, and how far a lead pays. */
#include <base/call_site.h>
#include <base/status.h>
#include <base/trace.h>
#include <stdio.h>
#include <streams/team.h>
#include <vm/engine.h>
#include <vm/machine.h>
#include <vm/marks.h>
#include <vm/service.h>
#include <vm/submit.h>

/* A lead below so many instructions always pays: other threads may be idle. */
#define LEAD_LEAST 8
/* Work ahead that keeps other threads busy while the caller computes, in ns of estimates. */
#define LEAD_NS 1000000
/* The longest wait of an issuer that is too far ahead: nothing depends on its end. */
#define PATIENCE_NS 4000000
/* Between two searches for work to help with. */
#define SPIN_CHECKS 32
#define SPIN_NS 20000
/* The most waits in flight; further ones wait for their turn. */
#define WAITS_MOST 4096
/* An issuer that is held back looks this often after what is left to launchers. */
#define LEFT_NS 1000000

/* Bytes after `finished`, which is stored after them: bytes that are old belong to a count that is old, and who waits for progress sees that. */
static void refresh_seen(eddy_vm *vm) {
    vm->finished_ns_seen = eddy_load_acquire(&vm->finished_ns);
    vm->finished_dear_ns_seen = eddy_load_acquire(&vm->finished_dear_ns);
    vm->finished_seen = eddy_load_seq_cst(&vm->finished);
    int64_t bytes = vm->marks[0].finished_bytes_seen = eddy_load_seq_cst(&vm->finished_bytes[0]);
    for (uint32_t i = 1; i < eddy_load_relaxed(&vm->device_count); i++)
        bytes += vm->marks[i].finished_bytes_seen = eddy_load_seq_cst(&vm->finished_bytes[i]);
    vm->finished_bytes_seen = bytes;
}

/* ---- waiting ---- */

/* Waits for progress of the engine. Lock: submission, released meanwhile and held again on return in each case. */
static eddy_status wait_for_progress(eddy_vm *vm, eddy_origin origin, int64_t deadline_ns) {
    eddy_add_seq_cst(&vm->throttled, 1);
    uint32_t progress = eddy_load_seq_cst(&vm->progress);
    uint64_t finished = eddy_load_seq_cst(&vm->finished);
    uint64_t consumed = eddy_load_seq_cst(&vm->ring.consumed);
    bool has_moved = finished != vm->finished_seen || consumed != vm->ring.consumed_seen;
    vm->ring.consumed_seen = consumed;
    /* It may wait for what was left to a launcher, which may be launching. A thread that has the role is not asked: this one looks again after LEFT_NS. */
    bool may_have_left = vm->is_driven && eddy_load_relaxed(&vm->device_count) > 0;
    bool asks = may_have_left && eddy_load_relaxed(&vm->engine_word) == 0;
    vm->has_written |= asks;
    eddy_vm_leave(vm);
    if (may_have_left) {
        int64_t look_ns = eddy_clock_ns() + LEFT_NS;
        deadline_ns = deadline_ns < look_ns ? deadline_ns : look_ns;
    }
    if (!has_moved && !eddy_team_help_slice())
        eddy_sleep_wait(&vm->progress, progress, deadline_ns);
    eddy_vm_lock(vm);
    /* Counted until here: a closing thread waits for threads inside. */
    eddy_sub_seq_cst(&vm->throttled, 1);
    return eddy_load_relaxed(&vm->state) == EDDY_VM_RUNNING
               ? EDDY_OK
               : eddy_vm_refuse(EDDY_SHUT_DOWN, origin);
}

/* What `is_over` of the VM and `lines` says, or the deadline. */
static eddy_status wait_until(eddy_vm *vm, bool (*is_over)(eddy_vm *vm, uint32_t lines),
                              uint32_t lines, eddy_origin origin, int64_t deadline_ns) {
    while (!is_over(vm, lines)) {
        if (eddy_clock_ns() >= deadline_ns)
            return EDDY_TIMED_OUT;
        /* Progress is what differs from the values before the sleep. */
        refresh_seen(vm);
        eddy_status status = wait_for_progress(vm, origin, deadline_ns);
        if (status != EDDY_OK)
            return status;
    }
    return EDDY_OK;
}

static bool has_room(eddy_vm *vm, uint32_t lines) {
    return eddy_ring_has_room(&vm->ring, lines);
}

eddy_status eddy_marks_wait_for_room(eddy_vm *vm, uint32_t lines, eddy_origin origin,
                                     int64_t deadline_ns) {
    if (has_room(vm, lines))
        return EDDY_OK;
    eddy_trace_span span =
        EDDY_TRACE_BEGIN(WAIT, .op = origin.op, .address = origin.address, .detail = "room: ring");
    vm->ring_stall_count++;
    eddy_status status = wait_until(vm, has_room, lines, origin, deadline_ns);
    EDDY_TRACE_END(span, .op = origin.op, .detail = "room");
    return status;
}

/* ---- hard marks ---- */

void eddy_marks_limit_set(eddy_vm *vm, uint32_t device, int64_t limit_bytes) {
    eddy_vm_mark *mark = &vm->marks[device];
    int64_t option = vm->options.in_flight_bytes_high;
    mark->high_bytes = option > 0 ? option : (int64_t)1 << 30;
    /* Instructions far ahead must not take the memory that earlier ones need. */
    if (mark->high_bytes > limit_bytes / 4)
        mark->high_bytes = limit_bytes / 4;
    mark->low_bytes = mark->high_bytes / 2;
    if (eddy_load_seq_cst(&vm->throttled) > 0) {
        eddy_add_seq_cst(&vm->progress, 1u);
        eddy_sleep_wake_all(&vm->progress);
    }
}

/* An empty VM takes any instruction, and an empty device one of any size. */
static bool is_above(const eddy_vm *vm, int64_t count_mark, uint32_t device, int64_t bytes_mark) {
    int64_t count = (int64_t)(vm->issued - vm->finished_seen);
    int64_t bytes = eddy_marks_bytes(vm, device);
    return (count > 0 && count >= count_mark) || (bytes > 0 && bytes >= bytes_mark);
}

static bool is_above_high(const eddy_vm *vm, uint32_t device) {
    return is_above(vm, vm->high_count, device, vm->marks[device].high_bytes);
}

static bool is_above_low(const eddy_vm *vm, uint32_t device) {
    return is_above(vm, vm->low_count, device, vm->marks[device].low_bytes);
}

static const char *name_wait(const eddy_vm *vm, uint32_t device) {
    if ((int64_t)(vm->issued - vm->finished_seen) >= vm->high_count)
        return "room: instructions";
    return device == 0 ? "room: bytes" : "room: bytes of a device";
}

__attribute__((noinline)) static eddy_status wait_below_marks(eddy_vm *vm, uint32_t device,
                                                              eddy_origin origin) {
    refresh_seen(vm);
    if (!is_above_high(vm, device))
        return EDDY_OK;
    eddy_trace_span span = EDDY_TRACE_BEGIN(WAIT, .op = origin.op, .address = origin.address,
                                            .detail = name_wait(vm, device));
    eddy_status status = EDDY_OK;
    while (status == EDDY_OK && is_above_low(vm, device)) {
        status = wait_for_progress(vm, origin, EDDY_CLOCK_FOREVER);
        refresh_seen(vm);
    }
    EDDY_TRACE_END(span, .op = origin.op, .detail = "room");
    return status;
}

/* ---- bounds of their own ---- */

static bool has_few_waits(eddy_vm *vm, uint32_t lines) {
    (void)lines;
    return eddy_load_acquire(&vm->waits) < WAITS_MOST;
}

eddy_status eddy_marks_wait_for_waits(eddy_vm *vm, eddy_origin origin, int64_t deadline_ns) {
    if (EDDY_LIKELY(has_few_waits(vm, 0)))
        return EDDY_OK;
    eddy_trace_span span =
        EDDY_TRACE_BEGIN(WAIT, .op = origin.op, .address = origin.address, .detail = "room: waits");
    eddy_status status = wait_until(vm, has_few_waits, 0, origin, deadline_ns);
    EDDY_TRACE_END(span, .op = origin.op, .detail = "room");
    return status;
}

static bool is_idle(eddy_vm *vm, const eddy_vm_call *call) {
    for (int64_t i = 0; i < call->instruction.operand_count; i++)
        if (!call->operands[i].is_new &&
            !eddy_vm_is_idle(vm, eddy_vm_storage(vm, call->operands[i].storage)))
            return false;
    return true;
}

static eddy_status fail_behind(eddy_vm *vm, const eddy_vm_call *call) {
    const void *blocker = (const void *)eddy_load_relaxed(&vm->blocker);
    char address[32];
    snprintf(address, sizeof(address), "%p", eddy_call_site_address(blocker));
    const char *place = eddy_call_site_place(blocker);
    return eddy_fail(EDDY_WOULD_DEADLOCK, eddy_vm_call_origin(call),
                     "%lld calls wait behind a tensor that is mapped, or for a callback (since the "
                     "call at %s), and "
                     "nothing has moved for %d s",
                     (long long)eddy_load_relaxed(&vm->behind), place ? place : address,
                     (int)(EDDY_PATIENCE_NS / 1000000000));
}

static bool are_many_behind(eddy_vm *vm, const eddy_vm_call *call) {
    return eddy_load_relaxed(&vm->behind) >= EDDY_BEHIND_MOST && !is_idle(vm, call);
}

/* While there is progress. */
static eddy_status wait_while_behind(eddy_vm *vm, const eddy_vm_call *call) {
    int64_t deadline = eddy_clock_deadline(EDDY_PATIENCE_NS);
    uint64_t retired = eddy_load_acquire(&vm->retired);
    while (are_many_behind(vm, call)) {
        if (eddy_clock_ns() >= deadline)
            return fail_behind(vm, call);
        refresh_seen(vm);
        eddy_status status = wait_for_progress(vm, eddy_vm_call_origin(call), deadline);
        if (status != EDDY_OK)
            return status;
        uint64_t now = eddy_load_acquire(&vm->retired);
        if (now != retired)
            deadline = eddy_clock_deadline(EDDY_PATIENCE_NS);
        retired = now;
    }
    return EDDY_OK;
}

/* Back-pressure does not count instructions behind a lend or a callback, which may wait for the issuer. If there are very many, a call
 * that may be behind one is held back while there is progress, and then refused. */
__attribute__((noinline)) static eddy_status wait_for_users(eddy_vm *vm, const eddy_vm_call *call) {
    if (!are_many_behind(vm, call))
        return EDDY_OK;
    eddy_origin origin = eddy_vm_call_origin(call);
    eddy_trace_span span = EDDY_TRACE_BEGIN(WAIT, .op = origin.op, .address = origin.address,
                                            .detail = "room: behind a lend or a callback");
    eddy_status status = wait_while_behind(vm, call);
    EDDY_TRACE_END(span, .op = origin.op, .detail = "room");
    return status;
}

/* ---- the lead ---- */

typedef struct lead {
    int64_t count, bytes, ns, dear_ns;
} lead;

static lead lead_now(const eddy_vm *vm) {
    return (lead){.count = (int64_t)(vm->issued - vm->finished_seen),
                  .bytes = eddy_marks_bytes(vm, 0),
                  .ns = vm->issued_ns - vm->finished_ns_seen,
                  .dear_ns = vm->issued_dear_ns - vm->finished_dear_ns_seen};
}

/* Little of the work ahead is worth a hand-over: the caller should run such calls itself, once that work is done. */
static bool is_mostly_cheap(lead l) {
    return 2 * l.dear_ns < l.ns;
}

/* More new bytes than fit the caches: each further call takes fresh memory. */
static bool is_large(const eddy_vm *vm, lead l) {
    return l.count >= LEAD_LEAST && l.bytes >= vm->lead_bytes;
}

static bool is_spent(const eddy_vm *vm, lead l, bool is_cheap) {
    if (l.count <= 0)
        return false;
    if (is_cheap && l.dear_ns <= 0)
        return true;
    return is_large(vm, l) || (l.count >= LEAD_LEAST && l.ns >= LEAD_NS);
}

static bool has_finished(eddy_vm *vm, uint64_t count, int64_t ns) {
    return (int64_t)(eddy_load_acquire(&vm->finished) - count) >= 0 ||
           eddy_load_acquire(&vm->finished_ns) - ns >= 0;
}

/* Spins for a while, helping; true when enough has finished. */
static bool spin_for(eddy_vm *vm, uint64_t count, int64_t ns) {
    if (!eddy_team_spin_begin())
        return has_finished(vm, count, ns);
    int64_t end = eddy_clock_ns() + SPIN_NS;
    bool is_enough = false;
    while (!(is_enough = has_finished(vm, count, ns)) && eddy_clock_ns() < end) {
        if (eddy_engine_has_work(vm) && eddy_load_relaxed(&vm->engine_word) == 0)
            eddy_engine_drive_waiting(vm, NULL);
        if (eddy_team_help_slice())
            end = eddy_clock_ns() + SPIN_NS;
        for (int i = 0; i < SPIN_CHECKS; i++)
            eddy_atomic_pause();
    }
    eddy_team_spin_end();
    return is_enough;
}

/* Lock: submission, released meanwhile. Until half of the lead is done; all of it if it is mostly cheap. */
__attribute__((noinline)) static eddy_status wait_for_lead(eddy_vm *vm, lead l,
                                                           eddy_origin origin) {
    int64_t deadline = eddy_clock_ns() + PATIENCE_NS;
    uint64_t count = vm->issued - (is_mostly_cheap(l) ? 0 : (uint64_t)l.count / 2);
    int64_t ns = vm->issued_ns - (is_mostly_cheap(l) ? 0 : l.ns / 2);
    eddy_engine_issuer_waits(vm, false);
    eddy_trace_span span =
        EDDY_TRACE_BEGIN(WAIT, .op = origin.op, .address = origin.address, .detail = "lead");
    eddy_status status = EDDY_OK;
    while (status == EDDY_OK && !has_finished(vm, count, ns) && eddy_clock_ns() < deadline) {
        eddy_add_seq_cst(&vm->throttled, 1);
        eddy_vm_leave(vm);
        bool is_enough = spin_for(vm, count, ns);
        eddy_vm_lock(vm);
        eddy_sub_seq_cst(&vm->throttled, 1);
        status = eddy_load_relaxed(&vm->state) == EDDY_VM_RUNNING
                     ? EDDY_OK
                     : eddy_vm_refuse(EDDY_SHUT_DOWN, origin);
        if (!is_enough && status == EDDY_OK)
            status = wait_for_progress(vm, origin, deadline);
        refresh_seen(vm);
    }
    /* An instruction takes longer than estimated: no further call waits until there is progress, unless memory grows. */
    if (!has_finished(vm, count, ns))
        vm->vain_at = vm->finished_seen;
    EDDY_TRACE_END(span, .op = origin.op, .detail = "room");
    return status;
}

eddy_status eddy_marks_wait_slow(eddy_vm *vm, const eddy_vm_call *call, uint32_t device) {
    if (eddy_service_is_current_thread())
        return EDDY_OK;
    if (EDDY_UNLIKELY(is_above_high(vm, device))) {
        eddy_status status = wait_below_marks(vm, device, eddy_vm_call_origin(call));
        if (status != EDDY_OK)
            return status;
    } else if (EDDY_UNLIKELY(vm->finished_seen + (uint64_t)vm->high_count / 2 < vm->issued)) {
        refresh_seen(vm);
    }
    if (EDDY_UNLIKELY(eddy_load_relaxed(&vm->behind) >= EDDY_BEHIND_MOST)) {
        eddy_status status = wait_for_users(vm, call);
        if (status != EDDY_OK)
            return status;
    }
    /* How far a lead pays is known of this machine's processors alone. */
    if (!vm->is_driven || (call->stream && call->stream->device))
        return EDDY_OK;
    /* The work ahead may be another issuer's, which does not count for this one. */
    bool is_cheap = !eddy_vm_is_shared(vm) && call->place == EDDY_PLACE_ANY &&
                    eddy_record_cost_class_ns(eddy_record_cost_class(call->cost_ps)) <=
                        eddy_team_hand_over_ns();
    if (!is_spent(vm, lead_now(vm), is_cheap))
        return EDDY_OK;
    refresh_seen(vm);
    lead now = lead_now(vm);
    return is_spent(vm, now, is_cheap) && (vm->vain_at != vm->finished_seen || is_large(vm, now))
               ? wait_for_lead(vm, now, eddy_vm_call_origin(call))
               : EDDY_OK;
}
