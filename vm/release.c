/* Releases of storages (PROTOCOL.md section 8). Never blocks, never fails: nor does it wait for another thread that works in one-thread mode. */
#include <base/trace.h>
#include <vm/engine.h>
#include <vm/execute.h>
#include <vm/machine.h>
#include <vm/release.h>
#include <vm/submit.h>

/* Lock: submission. The storage is idle: its memory and number are freed at once. */
static void free_here(eddy_vm *vm, eddy_storage *storage, eddy_storage_number number) {
    eddy_vm_storage_free(vm, storage, &vm->issuer_cache, &vm->issuer_arguments);
    eddy_vm_number_give(vm, storage, number);
}

uint32_t eddy_vm_pending_take(eddy_vm *vm, eddy_storage_number *numbers, uint32_t most) {
    uint32_t count = 0;
    while (count < most && vm->pending_head) {
        eddy_storage *storage = eddy_vm_storage(vm, vm->pending_head);
        numbers[count++] = vm->pending_head;
        vm->pending_head = storage->issuer.next_free;
        vm->pending_bytes -= storage->issuer.bytes;
    }
    vm->pending_count -= count;
    return count;
}

void eddy_vm_release_locked(eddy_vm *vm, eddy_storage_number number) {
    eddy_storage *storage = eddy_vm_storage(vm, number);
    if (EDDY_LIKELY(eddy_vm_is_idle(vm, storage))) {
        free_here(vm, storage, number);
        return;
    }
    storage->issuer.next_free = vm->pending_head;
    vm->pending_head = number;
    vm->pending_count++;
    vm->pending_bytes += storage->issuer.bytes;
    /* A release with a deleter is not batched (`borrow` does not change before the release takes effect). */
    if (vm->pending_count >= EDDY_PENDING_RELEASES || vm->pending_bytes >= EDDY_PENDING_BYTES ||
        storage->shared.borrow)
        eddy_vm_flush_releases(vm);
}

/* Lock: submission. Where the ring is full, what is pending could come to lie behind a barrier that was asked for after it. */
static bool has_room_for_releases(eddy_vm *vm) {
    return eddy_ring_has_room(&vm->ring, eddy_record_lines(0, 0, 0, EDDY_RECORD_RELEASES));
}

/* Without the lock: the engine frees it once it has taken the records written before. */
static void hand_over(eddy_vm *vm, eddy_vm_release_link *link) {
    link->after = eddy_load_relaxed(&vm->ring.tail);
    eddy_lifo_push(&vm->releases, &link->link);
    if (EDDY_UNLIKELY(eddy_load_seq_cst(&vm->state) == EDDY_VM_CLOSED))
        eddy_vm_releases_drop(vm);
    else
        eddy_vm_poke(vm);
}

void eddy_vm_releases_drop(eddy_vm *vm) {
    eddy_lifo_link *link = eddy_lifo_take_all(&vm->releases);
    while (link) {
        eddy_vm_release_link *release = (eddy_vm_release_link *)(void *)link;
        link = link->next;
        release->recycle(release);
    }
}

void eddy_vm_release(eddy_vm *vm, eddy_vm_release_link *link) {
    if (EDDY_UNLIKELY(vm->process != eddy_process_generation)) {
        link->recycle(link);
        return;
    }
    if (EDDY_UNLIKELY(!eddy_vm_try_lock(vm))) {
        hand_over(vm, link);
        return;
    }
    if (EDDY_UNLIKELY(eddy_load_relaxed(&vm->state) == EDDY_VM_CLOSED)) {
        /* Everything was freed when the VM closed. */
        eddy_vm_unlock(vm);
        link->recycle(link);
        return;
    }
    bool has_room = has_room_for_releases(vm);
    if (EDDY_LIKELY(has_room))
        eddy_vm_release_locked(vm, link->storage);
    eddy_vm_leave_until(vm, 0);
    if (EDDY_LIKELY(has_room))
        link->recycle(link);
    else
        hand_over(vm, link);
}

bool eddy_vm_release_many(eddy_vm *vm, const eddy_storage_number *numbers, uint32_t *count,
                          bool waits) {
    if (EDDY_UNLIKELY(vm->process != eddy_process_generation)) {
        *count = 0;
        return true;
    }
    if (waits)
        eddy_vm_lock(vm);
    else if (!eddy_vm_try_lock(vm))
        return false;
    if (EDDY_UNLIKELY(eddy_load_relaxed(&vm->state) == EDDY_VM_CLOSED)) {
        *count = 0;
        eddy_vm_unlock(vm);
        return true;
    }
    bool has_room = has_room_for_releases(vm);
    if (EDDY_LIKELY(has_room))
        eddy_vm_release_all_locked(vm, numbers, count);
    eddy_vm_leave_until(vm, 0);
    return has_room;
}
