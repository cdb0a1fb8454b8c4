/* Copies between the host and a device, the way that holds no thread up. */
#ifndef EDDY_VM_DEVICE_COPY_H
#define EDDY_VM_DEVICE_COPY_H

#include <vm/device.h>

/* The most that is pinned of the host's memory for a device's small copies; each queue that makes large ones has a ring besides (streams/staging.h). */
#define EDDY_PINNED_BYTES ((int64_t)64 << 20)
/* Up to here a wait, lend or callback has a pinned block of its own, which the device copies to and from; beyond, copies are staged. */
#define EDDY_PINNED_WHOLE_BYTES ((int64_t)1 << 20)

/* Launches a copy as part of launch `ticket`. TO_DEVICE, TO_HOST: the host's side is not pinned. Launcher only. */
void eddy_device_copy(eddy_vm_device *device, eddy_backend_queue *queue, uint64_t ticket, void *to,
                      const void *from, int64_t bytes, eddy_copy_direction direction);

/* Memory of the host for elements of a device: *is_pinned says of which sort. NULL: there is none. Launcher only. */
void *eddy_device_copy_acquire(eddy_vm_device *device, int64_t bytes, bool *is_pinned);
/* Gives it back to where the launcher finds it again. Engine only. */
void eddy_device_copy_recycle(eddy_vm_device *device, void *data, int64_t bytes, bool is_pinned);

#endif
