#include <base/log.h>
#include <streams/staging.h>
#include <string.h>
#include <vm/device_copy.h>

/* Up to here the launching thread fills a pinned block itself: 2 to 5 us, where the wake-up of another thread is 20. */
#define SHORT_BYTES ((int64_t)64 << 10)

static void copy_plainly(eddy_backend_queue *queue, void *to, const void *from, int64_t bytes,
                         eddy_copy_direction direction) {
    (void)queue->backend->class->copy(queue, to, from, bytes, direction);
}

/* False: there is no pinned memory. */
static bool copy_shortly(eddy_vm_device *device, eddy_backend_queue *queue, uint64_t ticket,
                         void *to, const void *from, int64_t bytes) {
    void *block = eddy_device_pool_take(device->pinned, bytes, EDDY_POOL_HOST);
    if (!block)
        return false;
    memcpy(block, from, (size_t)bytes);
    copy_plainly(queue, to, block, bytes, EDDY_COPY_TO_DEVICE);
    eddy_device_pool_give(device->pinned, block, queue->number, ticket);
    return true;
}

/* Once: the copies work, and take longer. */
static void say_unpinned(eddy_vm_device *device) {
    if (!device->has_said_unpinned)
        eddy_log_line("device %d: there is no pinned memory for copies, which hold up what is "
                      "launched meanwhile",
                      (int)device->number);
    device->has_said_unpinned = true;
}

void eddy_device_copy(eddy_vm_device *device, eddy_backend_queue *queue, uint64_t ticket, void *to,
                      const void *from, int64_t bytes, eddy_copy_direction direction) {
    /* Without threads who launches waits for the device in any case. */
    if (!device->staging || bytes == 0 || direction == EDDY_COPY_ON_DEVICE) {
        copy_plainly(queue, to, from, bytes, direction);
        return;
    }
    bool is_launched = direction == EDDY_COPY_TO_DEVICE && bytes <= SHORT_BYTES
                           ? copy_shortly(device, queue, ticket, to, from, bytes)
                           : eddy_staging_copy(device->staging, queue, to, from, bytes,
                                               direction) != EDDY_OUT_OF_MEMORY;
    if (is_launched)
        return;
    say_unpinned(device);
    copy_plainly(queue, to, from, bytes, direction);
}

void *eddy_device_copy_acquire(eddy_vm_device *device, int64_t bytes, bool *is_pinned) {
    void *data = device->pinned && bytes <= EDDY_PINNED_WHOLE_BYTES
                     ? eddy_device_pool_take(device->pinned, bytes, EDDY_POOL_HOST)
                     : NULL;
    *is_pinned = data != NULL;
    if (data)
        return data;
    eddy_blocks_cache cache;
    eddy_blocks_cache_init(&cache, &device->vm->tensors);
    data = eddy_blocks_acquire(&cache, bytes);
    eddy_blocks_cache_fini(&cache);
    return data;
}

void eddy_device_copy_recycle(eddy_vm_device *device, void *data, int64_t bytes, bool is_pinned) {
    if (is_pinned) {
        eddy_device_pool_give(device->pinned, data, 0, 0);
        return;
    }
    eddy_blocks_cache cache;
    eddy_blocks_cache_init(&cache, &device->vm->tensors);
    eddy_blocks_release(&cache, data, bytes);
    eddy_blocks_cache_fini(&cache);
}
