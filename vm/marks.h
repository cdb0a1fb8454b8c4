/* How far ahead an issuer may be (PROTOCOL.md 10). Lock: submission. */
#ifndef EDDY_VM_MARKS_H
#define EDDY_VM_MARKS_H

#include <vm/machine.h>

/* The dear part of an instruction's estimate: all of it if it is too dear for the caller, else 0. An instruction that only workers may run
 * is always dear. */
static inline int64_t eddy_marks_dear_ns(int64_t cost_ns, eddy_vm_place place) {
    if (cost_ns > EDDY_DEAR_NS)
        return cost_ns;
    return place == EDDY_PLACE_WORKER ? EDDY_DEAR_NS : 0;
}
/* New bytes of one device in flight, as last read. */
static inline int64_t eddy_marks_bytes(const eddy_vm *vm, uint32_t device) {
    return vm->marks[device].issued_bytes - vm->marks[device].finished_bytes_seen;
}
/* Counts an instruction that is about to be written. */
static inline void eddy_marks_count(eddy_vm *vm, int64_t cost_ns, eddy_vm_place place) {
    vm->issued_ns += cost_ns;
    vm->issued_dear_ns += eddy_marks_dear_ns(cost_ns, place);
    int64_t count = (int64_t)(vm->issued - vm->finished_seen);
    int64_t bytes = vm->issued_bytes - vm->finished_bytes_seen;
    if (EDDY_UNLIKELY(count > vm->in_flight_peak))
        vm->in_flight_peak = count;
    if (EDDY_UNLIKELY(bytes > vm->bytes_in_flight_peak))
        vm->bytes_in_flight_peak = bytes;
}
/* The bytes of new storages that may be in flight of the device whose memory is limited so: also of who is held back now. */
void eddy_marks_limit_set(eddy_vm *vm, uint32_t device, int64_t limit_bytes);
/* Waits, without the lock, if the call would be too far ahead: of all instructions, or of the bytes of the device that it makes storages on. */
EDDY_MUST_USE eddy_status eddy_marks_wait_slow(eddy_vm *vm, const eddy_vm_call *call,
                                               uint32_t device);
static inline eddy_status eddy_marks_wait(eddy_vm *vm, const eddy_vm_call *call, uint32_t device) {
    uint64_t count = vm->issued - vm->finished_seen;
    /* Whether the issuer is below half of the marks, as last read, and has nothing else to check. */
    if (EDDY_LIKELY(!vm->is_driven && 2 * count <= (uint64_t)vm->high_count &&
                    eddy_marks_bytes(vm, device) < vm->marks[device].high_bytes &&
                    eddy_load_relaxed(&vm->behind) < EDDY_BEHIND_MOST))
        return EDDY_OK;
    return eddy_marks_wait_slow(vm, call, device);
}
/* The same for a call that waits, at most until the deadline (TIMED_OUT, unrecorded then): abandoned waits stay, and take memory, until
 * their instruction has retired. */
EDDY_MUST_USE eddy_status eddy_marks_wait_for_waits(eddy_vm *vm, eddy_origin origin,
                                                    int64_t deadline_ns);
/* The same until the ring has room for a record. */
EDDY_MUST_USE eddy_status eddy_marks_wait_for_room(eddy_vm *vm, uint32_t lines, eddy_origin origin,
                                                   int64_t deadline_ns);

#endif
