/* Memory of one device of a VM, as callers see it. */
#include <streams/staging.h>
#include <vm/device.h>
#include <vm/marks.h>
#include <vm/submit.h>
#include <vm/vm.h>
#include <vm/wait.h>

/* Whether the VM's memory may be looked at; it cannot close until eddy_vm_inside_end. */
static bool enter(eddy_vm *vm) {
    if (!eddy_vm_lock_if_open(vm))
        return false;
    eddy_vm_inside_begin(vm);
    eddy_vm_unlock(vm);
    return true;
}

static int64_t pinned_bytes(const eddy_vm_device *device) {
    int64_t bytes =
        device->pinned ? eddy_device_pool_statistics_read(device->pinned).held_bytes : 0;
    return device->staging ? bytes + eddy_staging_bytes(device->staging) : bytes;
}

static eddy_vm_memory read_device(const eddy_vm_device *device) {
    eddy_device_pool_statistics read = eddy_device_pool_statistics_read(device->pool);
    return (eddy_vm_memory){.live_bytes = read.live_bytes,
                            .peak_bytes = read.peak_bytes,
                            .cached_bytes = read.cached_bytes,
                            .limit_bytes = read.limit_bytes,
                            .staging_bytes = pinned_bytes(device)};
}

eddy_vm_memory eddy_vm_memory_read(eddy_vm *vm, uint8_t device) {
    eddy_vm_memory memory = {0};
    if (!enter(vm))
        return memory;
    if (device == 0) {
        memory = (eddy_vm_memory){.live_bytes = eddy_load_relaxed(&vm->tensors.live_bytes),
                                  .peak_bytes = eddy_load_relaxed(&vm->tensors.peak_bytes),
                                  .cached_bytes = eddy_blocks_pool_cached_bytes(&vm->tensors),
                                  .limit_bytes = eddy_memory_limit()};
    } else {
        memory = read_device(vm->devices[device]);
    }
    eddy_vm_inside_end(vm);
    return memory;
}

int64_t eddy_vm_memory_trim(eddy_vm *vm, uint8_t device) {
    if (!enter(vm))
        return 0;
    int64_t bytes =
        device == 0 ? eddy_blocks_pool_trim(&vm->tensors) : eddy_device_trim(vm->devices[device]);
    eddy_vm_inside_end(vm);
    return bytes;
}

/* The mark follows the pool, also where two threads set a limit at once. */
static void set_limit(eddy_vm_device *device, int64_t bytes) {
    eddy_device_pool_set_limit(device->pool, bytes);
    eddy_vm_lock(device->vm);
    eddy_marks_limit_set(device->vm, device->number,
                         eddy_device_pool_statistics_read(device->pool).limit_bytes);
    eddy_vm_unlock(device->vm);
}

void eddy_vm_memory_limit_set(eddy_vm *vm, uint8_t device, int64_t bytes) {
    if (!enter(vm))
        return;
    if (device == 0) {
        eddy_memory_limit_set(bytes);
        int64_t held = eddy_load_relaxed(&vm->tensors.live_bytes) +
                       eddy_blocks_pool_cached_bytes(&vm->tensors);
        if (held > eddy_memory_limit())
            eddy_blocks_pool_trim(&vm->tensors);
    } else {
        set_limit(vm->devices[device], bytes);
    }
    eddy_vm_inside_end(vm);
}

int64_t eddy_vm_memory_list(eddy_vm *vm, uint8_t device, eddy_memory_block *blocks,
                            int64_t capacity) {
    if (!enter(vm))
        return 0;
    int64_t count = device == 0
                        ? eddy_blocks_pool_list(&vm->tensors, blocks, capacity)
                        : eddy_device_pool_list(vm->devices[device]->pool, blocks, capacity);
    eddy_vm_inside_end(vm);
    return count;
}
