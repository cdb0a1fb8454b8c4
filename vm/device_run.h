/* A call's functions on a device that runs code of the host (the far one): what a device's own kernels do there, done by those of the CPU. */
#ifndef EDDY_VM_DEVICE_RUN_H
#define EDDY_VM_DEVICE_RUN_H

#include <vm/device.h>

/* Launches the call's `run`, or, with `shapes` and `bytes` (else NULL), its `count`, behind a look at the words of the launch's sources. False: no memory
 * for that, nothing is launched. Launcher only. */
EDDY_MUST_USE bool eddy_device_run_launch(const eddy_vm_run *run, const eddy_backend_launch *launch,
                                          eddy_shape *shapes, int64_t *bytes);

#endif
