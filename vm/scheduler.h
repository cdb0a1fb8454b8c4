/* The scheduler thread: plays the engine when there is work, spins a while after it, then sleeps. */
#ifndef EDDY_VM_SCHEDULER_H
#define EDDY_VM_SCHEDULER_H

#include <vm/machine.h>

/* Starts the thread; without one the VM goes to one-thread mode. */
void eddy_scheduler_start(eddy_vm *vm);
/* Ends and joins it; nothing is in flight. */
void eddy_scheduler_end(eddy_vm *vm);

#endif
