/* The scheduler thread: plays the engine when there is work, spins for a while afterwards, then sleeps. */
#ifndef EDDY_VM_SCHEDULER_H
#define EDDY_VM_SCHEDULER_H

#include <vm/machine.h>

/* Starts the thread; without one the VM uses one-thread mode. */
void eddy_scheduler_start(eddy_vm *vm);
/* Ends and joins the thread; nothing is in flight. */
void eddy_scheduler_end(eddy_vm *vm);

#endif
