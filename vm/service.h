/* The thread for user code: callbacks and deleters. */
#ifndef EDDY_VM_SERVICE_H
#define EDDY_VM_SERVICE_H

#include <vm/machine.h>

EDDY_MUST_USE eddy_status eddy_service_create(eddy_vm *vm);
/* Starts the thread, if needed, before user code is accepted. INTERNAL, recorded, if the system gives
 * no thread. Lock: submission. */
EDDY_MUST_USE eddy_status eddy_service_start(eddy_vm *vm, eddy_origin origin);
/* Runs the remaining items, then ends the thread. False if that takes longer: the objects that it uses then stay, the VM's struct too. */
bool eddy_service_destroy(eddy_vm *vm, int64_t deadline_ns);
/* Any thread; never blocks. */
void eddy_service_push(eddy_vm *vm, eddy_service_item *item);
/* A user's buffer and its deleter; made with the storage, so that releasing it needs no memory. */
typedef struct eddy_borrowed {
    eddy_service_item item;
    void (*release)(void *context);
    void *context;
} eddy_borrowed;

/* One-thread mode: user code is due. */
static inline bool eddy_service_has_due(const eddy_vm *vm) {
    return vm->is_one_thread && !eddy_lifo_is_empty(&vm->due);
}
/* One-thread mode: runs due items on the calling thread, unless it is inside user code already. No lock held. */
void eddy_service_run_due(eddy_vm *vm);
bool eddy_service_is_current_thread(void);
eddy_status eddy_service_sync(eddy_vm *vm, int64_t deadline_ns);

#endif
