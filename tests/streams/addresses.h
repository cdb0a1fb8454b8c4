/* For the tests of the device pool: a backend that has addresses only, each of them once, queues that the test completes, and a pool
 * over it. */
#ifndef EDDY_TESTS_STREAMS_ADDRESSES_H
#define EDDY_TESTS_STREAMS_ADDRESSES_H

#include <base/memory.h>
#include <base/order.h>
#include <criterion/criterion.h>
#include <streams/device_pool.h>
#include <string.h>

#define KIB ((int64_t)1 << 10)
#define MIB ((int64_t)1 << 20)
#define CHUNK (2 * MIB)

enum { QUEUES = 3, CHUNKS = 1024 };

typedef struct interval {
    char *data;
    int64_t bytes;
} interval;

static struct {
    eddy_backend backend;
    eddy_backend_queue rows[QUEUES];
    eddy_backend_queue *queues[EDDY_BACKEND_QUEUES];
    eddy_lock lock;
    interval chunks[CHUNKS];
    int chunk_count, asked_count;
    int64_t held_bytes, most_bytes; /* most: what a backend has at all */
    char *next;
    void (*on_release)(const char *data, int64_t bytes);
} fake;

static eddy_device_pool *pool;
static int64_t blocks_before;

static void *fake_acquire(eddy_backend *backend, int64_t bytes) {
    eddy_order_check();
    cr_assert_eq(backend, &fake.backend);
    cr_assert(bytes > 0 && bytes % 512 == 0);
    void *data = NULL;
    eddy_lock_acquire(&fake.lock);
    fake.asked_count++;
    if (fake.held_bytes + bytes <= fake.most_bytes) {
        cr_assert_lt(fake.chunk_count, CHUNKS);
        data = fake.next;
        fake.chunks[fake.chunk_count++] = (interval){data, bytes};
        fake.held_bytes += bytes;
        fake.next += bytes; /* adjacent chunks, which must not be joined */
    }
    eddy_lock_release(&fake.lock);
    return data;
}

static void fake_release(eddy_backend *backend, void *data, int64_t bytes) {
    eddy_order_check();
    cr_assert_eq(backend, &fake.backend);
    if (fake.on_release)
        fake.on_release(data, bytes);
    eddy_lock_acquire(&fake.lock);
    int i = 0;
    while (i < fake.chunk_count && fake.chunks[i].data != data)
        i++;
    cr_assert(i < fake.chunk_count && fake.chunks[i].bytes == bytes, "a chunk, and all of it");
    fake.chunks[i] = fake.chunks[--fake.chunk_count];
    fake.held_bytes -= bytes;
    eddy_lock_release(&fake.lock);
}

static const eddy_backend_class fake_class = {
    .name = "fake",
    .memory_acquire = fake_acquire,
    .memory_release = fake_release,
};

static bool begin(int64_t limit_bytes) {
    memset(&fake, 0, sizeof(fake));
    eddy_lock_init(&fake.lock, EDDY_RANK_NONE);
    fake.backend.class = &fake_class;
    for (uint32_t q = 0; q < QUEUES; q++) {
        fake.rows[q].backend = &fake.backend;
        fake.rows[q].number = q;
        fake.queues[q] = &fake.rows[q];
    }
    fake.most_bytes = INT64_MAX;
    fake.next = (char *)(uintptr_t)(UINT64_C(1) << 40);
    blocks_before = eddy_memory_counted(EDDY_MEMORY_RUNTIME).blocks;
    pool = eddy_device_pool_create(&fake.backend, fake.queues, limit_bytes);
    return pool;
}

static void end(void) {
    eddy_device_pool_destroy(pool);
    cr_assert_eq(fake.held_bytes, 0, "all went back to the backend");
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_RUNTIME).blocks, blocks_before, "no book leaks");
}

static void complete(uint32_t queue, uint64_t ticket) {
    eddy_store_release(&fake.rows[queue].completed, ticket);
}

static char *take(int64_t bytes, uint32_t queue) {
    return eddy_device_pool_take(pool, bytes, queue);
}

static void give(void *data, uint32_t queue, uint64_t ticket) {
    eddy_device_pool_give(pool, data, queue, ticket);
}

static eddy_device_pool_statistics statistics(void) {
    return eddy_device_pool_statistics_read(pool);
}

#endif
