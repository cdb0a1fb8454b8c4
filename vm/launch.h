/* An instruction of a device at its launch and at its end (DEVICES.md 4, 5): what vm/execute.c does in a row on the host. */
#ifndef EDDY_VM_LAUNCH_H
#define EDDY_VM_LAUNCH_H

#include <vm/device.h>

/* Takes memory and launches, without the mark. False: there was no memory, nothing has happened. Launcher only. */
bool eddy_launch_begin(eddy_vm_device *device, eddy_node *node);
/* It could not be launched for `failure`. Launcher only. */
void eddy_launch_fail(eddy_vm_device *device, eddy_node *node, eddy_status failure);
/* Error to poison, and what a kind other than a call does; false when it is not over yet. Engine only. */
bool eddy_launch_end(eddy_vm_device *device, eddy_node *node);
/* Releases the memory of the host that a wait, lend or callback has had. Engine only. */
void eddy_launch_unstage(eddy_vm *vm, eddy_node *node);

#endif
