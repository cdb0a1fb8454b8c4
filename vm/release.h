/* Releases of storages (PROTOCOL.md 8). */
#ifndef EDDY_VM_RELEASE_H
#define EDDY_VM_RELEASE_H

#include <vm/machine.h>

/* Releases a storage. Lock: submission. */
void eddy_vm_release_locked(eddy_vm *vm, eddy_storage_number number);
/* Releases *count storages; *count is 0 then. Lock: submission. */
static inline void eddy_vm_release_all_locked(eddy_vm *vm, const eddy_storage_number *numbers,
                                              uint32_t *count) {
    for (uint32_t i = 0; i < *count; i++)
        eddy_vm_release_locked(vm, numbers[i]);
    *count = 0;
}
/* Takes up to `most` pending releases out of their list. Lock: submission. */
uint32_t eddy_vm_pending_take(eddy_vm *vm, eddy_storage_number *numbers, uint32_t most);

/* Recycles links that were pushed to the lock-free list after the VM had freed everything. Any thread. */
void eddy_vm_releases_drop(eddy_vm *vm);

#endif
