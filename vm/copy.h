/* The call that copies between a device and the host. */
#ifndef EDDY_VM_COPY_H
#define EDDY_VM_COPY_H

#include <vm/device.h>

extern const eddy_vm_descriptor eddy_copy_op;
/* Launcher only. */
void eddy_copy_launch(const eddy_vm_run *run, const eddy_backend_launch *launch);

#endif
