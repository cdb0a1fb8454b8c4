/* Memory of a device that goes back at the launch of what comes after its last users, not when these have ended (DEVICES.md 4).
 *
 * A storage that was released stands in the list of the one queue in which its last users are, from the moment on when all are dispatched. The queue's next
 * launch takes it from there and gives its memory back, with the ticket of the last user; if there is none until they have ended, the engine does, as with any storage. */
#ifndef EDDY_VM_EARLY_H
#define EDDY_VM_EARLY_H

#include <vm/device.h>

/* A storage of a device was released and has users. Engine only. */
void eddy_early_released(eddy_vm *vm, eddy_storage_number number);
/* A node has got its ticket: the last user, it may be, of storages that were released before. Engine only. */
void eddy_early_dispatched(eddy_vm *vm, const eddy_node *node);
/* A node has lost its ticket, and will have another: storages that it uses leave the list. Engine only. */
void eddy_early_take_back(eddy_vm *vm, const eddy_node *node);
/* The last user of a storage has ended: it leaves the list, unless it has. Engine only. */
void eddy_early_ended(eddy_vm *vm, eddy_storage *storage);
/* Gives the memory back whose last users are launched. Launcher only, before it takes memory for the queue. */
void eddy_early_give(eddy_device_queue *queue);

#endif
