/* Waits of blocking calls (PROTOCOL.md 9). */
#ifndef EDDY_VM_WAIT_H
#define EDDY_VM_WAIT_H

#include <vm/machine.h>

/* A kernel or a blocking call is under way: between the two the VM is not given back. Begun by the engine, or under the
 * submission lock. */
static inline void eddy_vm_inside_begin(eddy_vm *vm) {
    eddy_add_relaxed(&vm->inside, 1);
}
static inline void eddy_vm_inside_end(eddy_vm *vm) {
    eddy_sub_release(&vm->inside, 1);
}

/* Waits until everything submitted has retired, as the debug mode that syncs after each op does; errors stay unseen. */
void eddy_vm_drain(eddy_vm *vm, eddy_origin origin);

/* Blocks until the waiter is done, helping; TIMED_OUT and WOULD_DEADLOCK abandon it. A barrier wants every instruction up
 * to number `before`; 0 elsewhere. */
eddy_status eddy_vm_wait_for(eddy_vm *vm, eddy_waiter *waiter, uint64_t before,
                             int64_t deadline_ns);

#endif
