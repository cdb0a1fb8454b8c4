/* Memory of a device that others use, and memory of others on a device: what eddy_vm_share and eddy_vm_storage_import do beyond the caller's thread. */
#ifndef EDDY_VM_SHARE_H
#define EDDY_VM_SHARE_H

#include <vm/device.h>

/* Launches a SHARE: the waiter gets the address, and a fence if it wants one. Launcher only. */
void eddy_share_launch(eddy_vm_device *device, eddy_node *node);
/* Where a SHARE was not launched: tells the waiter why. False: it has to be (`node` is NULL). Engine only. */
bool eddy_share_end(eddy_vm *vm, const eddy_instruction *instruction, eddy_node *node);

#endif
