/* Waits of blocking calls (PROTOCOL.md 9). */
#ifndef EDDY_VM_WAIT_H
#define EDDY_VM_WAIT_H

#include <vm/machine.h>

struct eddy_submission;

/* Marks a kernel or a blocking call that is running: until its end the VM is not freed. Begun by the engine, or under the
 * submission lock. */
static inline void eddy_vm_inside_begin(eddy_vm *vm) {
    eddy_add_relaxed(&vm->inside, 1);
}
static inline void eddy_vm_inside_end(eddy_vm *vm) {
    eddy_sub_release(&vm->inside, 1);
}

/* Waits until everything submitted has retired, for the debug mode that syncs after each op; errors stay unseen. */
void eddy_vm_drain(eddy_vm *vm, eddy_origin origin);

/* Enters the lock for a call that waits in any case, with a waiter for the calling thread; ended by eddy_vm_inside_end. */
EDDY_MUST_USE eddy_status eddy_vm_enter_with_waiter(eddy_vm *vm, const eddy_vm_wait *wait,
                                                    eddy_waiter **waiter);
/* Submits an instruction that finishes a waiter and waits for it. The lock is held on entry and not on return; on OK the
 * waiter is DONE and the caller recycles it. */
EDDY_MUST_USE eddy_status eddy_vm_submit_and_wait(eddy_vm *vm, struct eddy_submission *submission,
                                                  eddy_waiter *waiter, const eddy_vm_wait *wait);
/* Fails with the record of a poison. */
eddy_status eddy_vm_fail_poison(eddy_vm *vm, eddy_poison poison);

/* Blocks until the waiter is done, helping; TIMED_OUT and WOULD_DEADLOCK abandon it. For a barrier, which waits for every instruction up
 * to a number, `before` is that number; else 0. */
eddy_status eddy_vm_wait_for(eddy_vm *vm, eddy_waiter *waiter, uint64_t before,
                             int64_t deadline_ns);

#endif
