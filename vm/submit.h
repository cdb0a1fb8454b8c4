/* From a call to a record in the ring, and the lock that issuers take (PROTOCOL.md 2, 3). */
#ifndef EDDY_VM_SUBMIT_H
#define EDDY_VM_SUBMIT_H

#include <vm/engine.h>
#include <vm/machine.h>
#include <vm/service.h>

/* A call as the VM's own kinds make them. */
typedef struct eddy_submission {
    eddy_instruction instruction; /* without sequence; mentions and sizes on the caller's stack */
    size_t argument_bytes;        /* rounded up to 8 */
    uint32_t new_count;
    uint32_t part_count; /* of a call */
    int64_t new_bytes;
    uint8_t device; /* that these are on; of a device's call without any, that of the stream */
    int64_t cost_ps;
    eddy_vm_stream *stream;
    const char *op;      /* for errors; NULL: the instruction's own name */
    int64_t deadline_ns; /* of the wait for room in the ring: TIMED_OUT, unrecorded; 0: none */
} eddy_submission;

/* Runs the op's name function. */
eddy_origin eddy_vm_call_origin(const eddy_vm_call *call);

/* Fails with what the status says by itself, as SHUT_DOWN does. */
eddy_status eddy_vm_refuse(eddy_status status, eddy_origin origin);
/* Enters the submission lock, or fails with the reason in the thread's slot. */
EDDY_MUST_USE eddy_status eddy_vm_enter(eddy_vm *vm, eddy_origin origin);
/* One-thread mode: the caller has the engine's work to do, or a service's. */
static inline bool eddy_vm_has_to_drive(const eddy_vm *vm) {
    return vm->is_one_thread &&
           (eddy_engine_has_work(vm) || eddy_load_relaxed(&vm->engine_word) != 0 ||
            eddy_service_has_due(vm));
}
/* Leaves it after something was written, or with something to do. */
void eddy_vm_leave_busy(eddy_vm *vm, int64_t deadline_ns);
/* Leaves it and wakes the scheduler thread if it sleeps; in one-thread mode does the engine's work, unless another thread does it until the deadline. */
static inline void eddy_vm_leave_until(eddy_vm *vm, int64_t deadline_ns) {
    if (EDDY_UNLIKELY(vm->has_written || eddy_vm_has_to_drive(vm)))
        eddy_vm_leave_busy(vm, deadline_ns);
    else
        eddy_vm_unlock(vm);
}
static inline void eddy_vm_leave(eddy_vm *vm) {
    eddy_vm_leave_until(vm, EDDY_CLOCK_FOREVER);
}
/* Writes an instruction to the ring, waiting for room: may leave and enter the lock in between. Lock: submission. */
EDDY_MUST_USE eddy_status eddy_vm_write(eddy_vm *vm, eddy_submission *submission);
/* Puts the pending releases into the ring, as far as there is room. Lock: submission. */
void eddy_vm_flush_releases(eddy_vm *vm);
/* Looks how far the engine is, now and then: whether records up to `position`, beyond what was seen, may still be unread. */
bool eddy_vm_look_behind(eddy_vm *vm, uint64_t position);
/* Whether records up to `position` may still be unread; cheap, and wrong on the safe side. Lock: submission. */
static inline bool eddy_vm_is_behind(eddy_vm *vm, uint64_t position) {
    return EDDY_UNLIKELY(position > vm->ring.consumed_seen) && eddy_vm_look_behind(vm, position);
}
/* Whether nothing that was submitted can touch the storage any more: the holder of the lock then owns its shared line (D1).
 * Lock: submission. */
static inline bool eddy_vm_is_idle(eddy_vm *vm, eddy_storage *storage) {
    return !eddy_vm_is_behind(vm, storage->issuer.last_position) &&
           eddy_vm_storage_is_idle(storage);
}

/* Makes or collects free numbers; false when there are none to be had. Lock: submission. */
bool eddy_vm_numbers_find(eddy_vm *vm);
/* Takes a free number; NULL when there is none to be had. Lock: submission. */
static inline eddy_storage *eddy_vm_number_take(eddy_vm *vm, eddy_storage_number *number) {
    eddy_storage_table *table = vm->table;
    /* Now and then, so that numbers are reused while their lines are in the cache. */
    if (EDDY_UNLIKELY((++vm->numbers_since_collect & 15) == 0 || !table->free_head) &&
        !eddy_vm_numbers_find(vm))
        return NULL;
    eddy_storage *storage = eddy_storage_at(table, table->free_head);
    EDDY_ASSERT(!storage->issuer.is_used);
    *number = table->free_head;
    table->free_head = storage->issuer.next_free;
    storage->issuer.is_used = true;
    storage->issuer.generation++;
    storage->issuer.last_position = 0;
    return storage;
}
static inline void eddy_vm_number_give(eddy_vm *vm, eddy_storage *storage,
                                       eddy_storage_number number) {
    EDDY_ASSERT(storage->issuer.is_used);
    storage->issuer.is_used = false;
    storage->issuer.next_free = vm->table->free_head;
    vm->table->free_head = number;
}

/* A TOUCH or RECOVER of many storages. Lock: submission. */
EDDY_MUST_USE eddy_status eddy_vm_write_list(eddy_vm *vm, eddy_instruction_kind kind,
                                             eddy_mention access, eddy_vm_stream *stream,
                                             const eddy_storage_number *storages, int64_t count,
                                             eddy_origin origin);

#endif
