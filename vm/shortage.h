/* What becomes of launches that a device has no memory for (DEVICES.md 4). Engine only. */
#ifndef EDDY_VM_SHORTAGE_H
#define EDDY_VM_SHORTAGE_H

#include <vm/device.h>

/* Lets launchers that have stalled try again, in another order where that may help, or for the last time. has_moved: memory may have become free. Whether there is more to do. */
bool eddy_shortage_attend(eddy_vm *vm, bool has_moved);
/* Whether its launch takes no memory, and leads to the end of what has some: the next round of a run, the end of a lend. */
bool eddy_shortage_gives(const eddy_node *node);

#endif
