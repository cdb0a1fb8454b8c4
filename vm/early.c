#include <vm/early.h>

/* ---- lists: lock: the queue's ---- */

static void append_locked(eddy_vm *vm, eddy_device_queue *queue, eddy_storage_number number) {
    eddy_storage *storage = eddy_vm_storage(vm, number);
    storage->engine.early_next = 0;
    storage->engine.early_previous = queue->last_early;
    if (queue->last_early)
        eddy_vm_storage(vm, queue->last_early)->engine.early_next = number;
    else
        eddy_store_relaxed(&queue->early, number);
    queue->last_early = number;
}

static void remove_locked(eddy_vm *vm, eddy_device_queue *queue, eddy_storage *storage) {
    eddy_storage_number next = storage->engine.early_next,
                        previous = storage->engine.early_previous;
    if (previous)
        eddy_vm_storage(vm, previous)->engine.early_next = next;
    else
        eddy_store_relaxed(&queue->early, next);
    *(next ? &eddy_vm_storage(vm, next)->engine.early_previous : &queue->last_early) = previous;
    storage->engine.early_ticket = 0;
}

/* ---- the engine's side ---- */

/* What no other user comes after. */
typedef struct last_users {
    eddy_vm_device *device;
    eddy_device_queue *queue;
    uint64_t ticket; /* the highest */
} last_users;

/* False: its ticket does not say that it is done with the storage, or it is in another queue than the others. */
static bool add_user(last_users *to, const eddy_node *node) {
    if (node->stream->device != to->device || node->ticket == 0 ||
        !eddy_instruction_has(&node->instruction, EDDY_KIND_IS_STREAMED) ||
        eddy_device_stands_apart(node))
        return false;
    eddy_device_queue *queue = &to->device->queues[node->stream->device_queue];
    if (to->queue && to->queue != queue)
        return false;
    to->queue = queue;
    if (to->ticket < node->ticket)
        to->ticket = node->ticket;
    return true;
}

/* The readers since the last write, or that write: on the device they come after all other users. */
static bool find_last_users(const eddy_storage *storage, last_users *found) {
    for (const eddy_use *reader = storage->engine.readers; reader; reader = reader->reader_next)
        if (!add_user(found, reader->node))
            return false;
    return storage->engine.readers ||
           (storage->engine.last_writer && add_user(found, storage->engine.last_writer));
}

void eddy_early_released(eddy_vm *vm, eddy_storage_number number) {
    eddy_storage *storage = eddy_vm_storage(vm, number);
    last_users found = {.device = vm->devices[storage->shared.device]};
    if (storage->shared.borrow || !find_last_users(storage, &found))
        return;
    storage->engine.early_queue = found.queue;
    eddy_lock_acquire(&found.queue->lock);
    storage->engine.early_ticket = found.ticket;
    append_locked(vm, found.queue, number);
    eddy_lock_release(&found.queue->lock);
}

void eddy_early_dispatched(eddy_vm *vm, const eddy_node *node) {
    for (uint32_t i = 0; i < node->instruction.view.operand_count; i++) {
        const eddy_storage *storage = eddy_vm_storage(vm, node->uses[i].storage);
        if (storage->engine.is_released && storage->shared.device != 0 &&
            !storage->engine.early_queue)
            eddy_early_released(vm, node->uses[i].storage);
    }
}

void eddy_early_ended(eddy_vm *vm, eddy_storage *storage) {
    eddy_device_queue *queue = storage->engine.early_queue;
    storage->engine.early_queue = NULL;
    eddy_lock_acquire(&queue->lock);
    if (storage->engine.early_ticket != 0)
        remove_locked(vm, queue, storage);
    eddy_lock_release(&queue->lock);
}

void eddy_early_take_back(eddy_vm *vm, const eddy_node *node) {
    for (uint32_t i = 0; i < node->instruction.view.operand_count; i++) {
        eddy_storage *storage = eddy_vm_storage(vm, node->uses[i].storage);
        if (storage->engine.early_queue)
            eddy_early_ended(vm, storage);
    }
}

/* ---- the launcher's side ---- */

/* As long as it is in the list, the engine does not touch its data. */
static bool take_first(eddy_device_queue *queue, void **data, uint64_t *ticket) {
    eddy_vm *vm = queue->device->vm;
    eddy_lock_acquire(&queue->lock);
    eddy_storage_number first = eddy_load_relaxed(&queue->early);
    eddy_storage *storage = first ? eddy_vm_storage(vm, first) : NULL;
    bool is_due = storage && storage->engine.early_ticket <= queue->marked;
    if (is_due) {
        bool is_kept = eddy_load_relaxed(&storage->shared.is_kept);
        *data = is_kept ? NULL : storage->shared.data;
        *ticket = storage->engine.early_ticket;
        if (!is_kept)
            storage->shared.data = NULL;
        remove_locked(vm, queue, storage);
    }
    eddy_lock_release(&queue->lock);
    return is_due;
}

void eddy_early_give(eddy_device_queue *queue) {
    void *data;
    uint64_t ticket;
    /* What is appended meanwhile is for the next launch: a stalled one is tried again. */
    while (eddy_load_relaxed(&queue->early) != 0 && take_first(queue, &data, &ticket))
        eddy_device_pool_give(queue->device->pool, data, queue->under->number, ticket);
}
