#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <streams/blocks.h>
#include <string.h>
#include <unistd.h>

static eddy_blocks_pool pool;
static eddy_blocks_cache cache;

static void begin(void) {
    eddy_blocks_pool_init(&pool, EDDY_MEMORY_TENSOR);
    eddy_blocks_cache_init(&cache, &pool);
}

static void end(void) {
    eddy_blocks_cache_fini(&cache);
    eddy_blocks_pool_fini(&pool);
    cr_assert_eq(eddy_load_relaxed(&pool.live_bytes), 0);
    cr_assert_eq(eddy_blocks_pool_cached_bytes(&pool), 0);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_TENSOR).bytes, 0);
}

static int64_t held_bytes(void) {
    return eddy_memory_counted(EDDY_MEMORY_TENSOR).bytes;
}

Test(blocks, a_class_fits_its_sizes_and_wastes_at_most_a_quarter) {
    begin();
    for (int64_t bytes = 0; bytes < (INT64_C(1) << 26);
         bytes = bytes < 3000 ? bytes + 1 : bytes * 9 / 8 + 1) {
        int64_t before = held_bytes();
        void *data = eddy_blocks_acquire(&cache, bytes);
        cr_assert_not_null(data);
        cr_assert_eq((uintptr_t)data % 64, 0);
        int64_t taken = held_bytes() - before - eddy_blocks_pool_cached_bytes(&pool);
        cr_assert_geq(taken, bytes);
        if (bytes > 64)
            cr_assert_leq(taken, bytes + bytes / 4, "%lld for %lld", (long long)taken,
                          (long long)bytes);
        if (bytes < 1 << 20 && bytes > 0)
            memset(data, 1, (size_t)bytes);
        eddy_blocks_release(&cache, data, bytes);
        eddy_blocks_cache_flush(&cache);
        eddy_blocks_pool_trim(&pool);
        cr_assert_eq(held_bytes(), 0);
    }
    end();
}

Test(blocks, sizes_of_one_class_share_blocks_and_the_last_comes_out_first) {
    begin();
    void *first = eddy_blocks_acquire(&cache, 100), *second = eddy_blocks_acquire(&cache, 100);
    eddy_blocks_release(&cache, first, 100);
    eddy_blocks_release(&cache, second, 100);
    cr_assert_eq(eddy_blocks_acquire(&cache, 112), second);
    cr_assert_eq(eddy_blocks_acquire(&cache, 97), first);
    void *other = eddy_blocks_acquire(&cache, 113);
    cr_assert(other != first && other != second);
    eddy_blocks_release(&cache, first, 97);
    eddy_blocks_release(&cache, second, 112);
    eddy_blocks_release(&cache, other, 113);
    end();
}

#ifndef EDDY_BLOCKS_UNDER_ASAN
Test(blocks, large_sizes_share_memory) {
    begin();
    void *parts[3];
    for (int i = 0; i < 3; i++)
        parts[i] = eddy_blocks_acquire(&cache, 1 << 20);
    for (int i = 0; i < 3; i++)
        eddy_blocks_release(&cache, parts[i], 1 << 20);
    void *large = eddy_blocks_acquire(&cache, 3 << 20);
    cr_assert_eq(held_bytes(), 3 << 20);
    cr_assert_eq(eddy_blocks_pool_cached_bytes(&pool), 0);
    eddy_blocks_release(&cache, large, 3 << 20);
    end();
}
#endif

Test(blocks, steady_use_takes_nothing_from_the_host_allocator) {
    begin();
    for (int round = 0; round < 3; round++) {
        int64_t before = eddy_memory_counted(EDDY_MEMORY_TENSOR).acquisitions;
        for (int i = 0; i < 10000; i++) {
            int64_t bytes = (i * 37 % 100 + 1) * 1000;
            void *data = eddy_blocks_acquire(&cache, bytes);
            eddy_blocks_release(&cache, data, bytes);
        }
        if (round > 0)
            cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_TENSOR).acquisitions, before);
    }
    end();
}

/* One cache only takes, another only frees. */
Test(blocks, a_cache_that_overflows_feeds_the_others) {
    begin();
    eddy_blocks_cache other;
    eddy_blocks_cache_init(&other, &pool);
    for (int i = 0; i < 20000; i++) {
        void *data = eddy_blocks_acquire(&cache, 256);
        cr_assert_not_null(data);
        eddy_blocks_release(&other, data, 256);
    }
    cr_assert_leq(eddy_memory_counted(EDDY_MEMORY_TENSOR).acquisitions,
                  4 * EDDY_BLOCK_CACHED_PER_CLASS);
    cr_assert_leq(other.counts[8], EDDY_BLOCK_CACHED_PER_CLASS);
    eddy_blocks_cache_fini(&other);
    end();
}

Test(blocks, trimming_gives_the_pool_back_and_leaves_what_is_in_use) {
    begin();
    void *kept = eddy_blocks_acquire(&cache, 5 << 20),
         *freed = eddy_blocks_acquire(&cache, 5 << 20);
    memset(kept, 1, 5 << 20);
    eddy_blocks_release(&cache, freed, 5 << 20);
    int64_t cached = eddy_blocks_pool_cached_bytes(&pool);
    cr_assert_geq(cached, 5 << 20);
    cr_assert_eq(eddy_blocks_pool_trim(&pool), cached);
    cr_assert_eq(eddy_blocks_pool_trim(&pool), 0);
    cr_assert_eq(((char *)kept)[1234567], 1);
    eddy_blocks_release(&cache, kept, 5 << 20);
    end();
}

Test(blocks, a_refusal_of_the_host_allocator_trims_and_tries_again) {
    begin();
    eddy_memory_limit_set(8 << 20);
    void *large = eddy_blocks_acquire(&cache, 5 << 20);
    cr_assert_not_null(large);
    cr_assert_null(eddy_blocks_acquire(&cache, 6 << 20));
    eddy_blocks_release(&cache, large, 5 << 20);
    void *other = eddy_blocks_acquire(&cache, 6 << 20);
    cr_assert_not_null(other, "in the place of the cached one");
    eddy_blocks_release(&cache, other, 6 << 20);
    eddy_memory_limit_set(0);
    end();
}

Test(blocks, a_refusal_trims_every_pool_of_the_process) {
    begin();
    eddy_blocks_pool other;
    eddy_blocks_cache others;
    eddy_blocks_pool_init(&other, EDDY_MEMORY_TENSOR);
    eddy_blocks_cache_init(&others, &other);
    eddy_memory_limit_set(8 << 20);
    eddy_blocks_release(&others, eddy_blocks_acquire(&others, 5 << 20), 5 << 20);
    cr_assert_eq(eddy_blocks_pool_cached_bytes(&other), 5 << 20);
    void *block = eddy_blocks_acquire(&cache, 6 << 20);
    cr_assert_not_null(block);
    cr_assert_eq(eddy_blocks_pool_cached_bytes(&other), 0);
    eddy_blocks_release(&cache, block, 6 << 20);
    void *workspace = eddy_memory_acquire(7 << 20, EDDY_MEMORY_WORKSPACE);
    cr_assert_not_null(workspace, "whoever asks the host allocator");
    eddy_memory_release(workspace, 7 << 20, EDDY_MEMORY_WORKSPACE);
    eddy_blocks_cache_fini(&others);
    eddy_blocks_pool_fini(&other);
    eddy_memory_limit_set(0);
    end();
}

Test(blocks, a_refusal_returns_what_is_free_between_blocks_in_use) {
    begin();
    enum { COUNT = 16 };
    void *blocks[COUNT];
    eddy_memory_limit_set(COUNT << 20);
    for (int i = 0; i < COUNT; i++)
        cr_assert_not_null(blocks[i] = eddy_blocks_acquire(&cache, 1 << 20));
    cr_assert_null(eddy_blocks_acquire(&cache, 1 << 20));
    for (int i = 0; i < COUNT; i += 2)
        eddy_blocks_release(&cache, blocks[i], 1 << 20);
    int64_t large_bytes = COUNT / 2 << 20;
    void *large = eddy_blocks_acquire(&cache, large_bytes);
    cr_assert_not_null(large, "though no two free ones lie side by side");
    cr_assert_eq(held_bytes(), COUNT << 20);
    eddy_blocks_release(&cache, large, large_bytes);
    for (int i = 1; i < COUNT; i += 2)
        eddy_blocks_release(&cache, blocks[i], 1 << 20);
    eddy_memory_limit_set(0);
    end();
}

/* A sanitizer's allocator keeps what it is given. */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

/* Pages of the process, from the kernel. */
static int64_t resident_bytes(void) {
    long long size, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%lld %lld", &size, &pages), 2);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static void *fill_and_give_up(void *context) {
    enum { MOST = 500 };
    static void *blocks[MOST];
    int64_t bytes = *(const int64_t *)context;
    eddy_blocks_cache mine;
    eddy_blocks_cache_init(&mine, &pool);
    int count = (int)((32 << 20) / bytes);
    cr_assert_leq(count, MOST);
    for (int i = 0; i < count; i++) {
        blocks[i] = eddy_blocks_acquire(&mine, bytes);
        memset(blocks[i], 1, (size_t)bytes);
    }
    for (int i = 0; i < count; i++)
        eddy_blocks_release(&mine, blocks[i], bytes);
    eddy_blocks_cache_fini(&mine);
    return NULL;
}

Test(blocks, trimming_gives_back_pages_between_blocks_in_use) {
    begin();
    enum { COUNT = 32 };
    char *blocks[COUNT];
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = eddy_blocks_acquire(&cache, 1 << 20);
        memset(blocks[i], i, 1 << 20);
    }
    for (int i = 0; i < COUNT; i += 2)
        eddy_blocks_release(&cache, blocks[i], 1 << 20);
    int64_t before = resident_bytes();
    cr_assert_eq(eddy_blocks_pool_trim(&pool), COUNT / 2 << 20);
    cr_assert_leq(resident_bytes(), before - ((COUNT / 2 - 1) << 20));
    for (int i = 1; i < COUNT; i += 2) {
        cr_assert(blocks[i][0] == i && blocks[i][(1 << 20) - 1] == i);
        eddy_blocks_release(&cache, blocks[i], 1 << 20);
    }
    end();
}

/* Whatever the C library's thresholds have come to, and whichever thread's arena the blocks are from. */
Test(blocks, trimming_gives_pages_back_to_the_system) {
    begin();
    void *volatile large = malloc(30 << 20);
    free(large); /* raises them */
    int64_t sizes[] = {160 << 10, 640 << 10, 5 << 20, 20 << 20};
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        cr_assert_eq(pthread_create(&thread, NULL, fill_and_give_up, &sizes[i]), 0);
        pthread_join(thread, NULL);
        int64_t before = resident_bytes();
        cr_assert_geq(eddy_blocks_pool_trim(&pool), 20 << 20);
        cr_assert_leq(resident_bytes(), before - (18 << 20), "blocks of %lld bytes",
                      (long long)sizes[i]);
    }
    end();
}
#endif

Test(blocks, impossible_sizes_are_refused) {
    begin();
    cr_assert_null(eddy_blocks_acquire(&cache, -1));
    cr_assert_null(eddy_blocks_acquire(&cache, EDDY_BLOCK_BYTES_MAX + 1));
    cr_assert_null(eddy_blocks_acquire(&cache, INT64_MAX));
    eddy_blocks_release(&cache, NULL, 100);
    end();
}

Test(blocks, live_and_peak_follow_what_is_held) {
    begin();
    void *a = eddy_blocks_acquire(&cache, 1 << 20), *b = eddy_blocks_acquire(&cache, 1 << 20);
    cr_assert_eq(eddy_load_relaxed(&pool.live_bytes), 2 << 20);
    eddy_blocks_release(&cache, a, 1 << 20);
    cr_assert_eq(eddy_load_relaxed(&pool.live_bytes), 1 << 20);
    cr_assert_eq(eddy_blocks_pool_cached_bytes(&pool), 1 << 20);
    cr_assert_eq(eddy_load_relaxed(&pool.peak_bytes), 2 << 20);
    eddy_blocks_release(&cache, b, 1 << 20);
    end();
}

/* ---- threads: a pool is shared, a cache is not ---- */

static void *churn(void *context) {
    eddy_blocks_cache mine;
    eddy_blocks_cache_init(&mine, &pool);
    uint64_t state = (uint64_t)(uintptr_t)context * 977 + 1;
    void *held[32] = {0};
    int64_t sizes[32];
    for (int i = 0; i < 30000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int slot = (int)(state >> 59);
        if (held[slot]) {
            if (*(uint64_t *)held[slot] != (uint64_t)sizes[slot])
                return "somebody else's block";
            eddy_blocks_release(&mine, held[slot], sizes[slot]);
            held[slot] = NULL;
        } else {
            sizes[slot] = (int64_t)(state >> 20 & 0xffff) + 8;
            held[slot] = eddy_blocks_acquire(&mine, sizes[slot]);
            *(uint64_t *)held[slot] = (uint64_t)sizes[slot];
        }
        if (i % 5000 == 0)
            eddy_blocks_pool_trim(&pool);
    }
    for (int slot = 0; slot < 32; slot++)
        eddy_blocks_release(&mine, held[slot], sizes[slot]);
    eddy_blocks_cache_fini(&mine);
    return NULL;
}

Test(blocks, threads_share_a_pool) {
    begin();
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, churn, (void *)i), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        cr_assert_null(wrong);
    }
    end();
}
