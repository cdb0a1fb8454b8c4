/* Streams inside the VM. */
#ifndef EDDY_VM_STREAM_H
#define EDDY_VM_STREAM_H

#include <vm/machine.h>

/* Adds a stream that runs on `under`, which the VM takes if OK; one reference goes to the caller. is_foreign: kernels run
 * on `under` alone, never on the caller or the scheduler. `name` as in vm.h. OUT_OF_MEMORY also where there are too many streams; SHUT_DOWN. Records nothing
 * in the error slot. */
EDDY_MUST_USE eddy_status eddy_vm_stream_add(eddy_vm *vm, eddy_work_queue *under, bool is_foreign,
                                             const char *name, eddy_vm_stream **stream);
/* The same on queue number `queue` of a device; is_own: no other stream has that queue. The VM does not close meanwhile. */
EDDY_MUST_USE eddy_status eddy_vm_stream_add_device(eddy_vm *vm, struct eddy_vm_device *device,
                                                    uint32_t queue, bool is_own, const char *name,
                                                    eddy_vm_stream **stream);
/* Records why no stream was added; returns the status. */
eddy_status eddy_vm_stream_refuse(eddy_status status, eddy_origin origin);
/* Frees all streams; nothing is in flight. */
void eddy_vm_streams_fini(eddy_vm *vm);

#endif
