/* What becomes of launches that a device has no memory for (DEVICES.md 4). Engine only. */
#ifndef EDDY_VM_SHORTAGE_H
#define EDDY_VM_SHORTAGE_H

#include <vm/device.h>

/* Lets a launcher that has stalled try again, in another order where that may help, or for the last time. has_moved: memory may have become free. Whether there is more to do. */
bool eddy_shortage_relieve(eddy_vm *vm, eddy_vm_device *device, bool has_moved);

#endif
