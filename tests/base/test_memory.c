#include <base/memory.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

Test(memory, blocks_are_aligned_counted_and_given_back) {
    size_t sizes[] = {0, 1, 63, 64, 65, 4096, 1 << 20};
    void *blocks[7];
    eddy_memory_count before = eddy_memory_counted(EDDY_MEMORY_NODE);
    int64_t sum = 0;
    for (int i = 0; i < 7; i++) {
        blocks[i] = eddy_memory_acquire(sizes[i], EDDY_MEMORY_NODE);
        cr_assert_not_null(blocks[i]);
        cr_assert_eq((uintptr_t)blocks[i] % 64, 0u);
        memset(blocks[i], 0xab, sizes[i]);
        sum += (int64_t)sizes[i];
    }
    eddy_memory_count held = eddy_memory_counted(EDDY_MEMORY_NODE);
    cr_assert_eq(held.bytes - before.bytes, sum);
    cr_assert_eq(held.blocks - before.blocks, 7);
    cr_assert_eq(held.acquisitions - before.acquisitions, 7);
    cr_assert_geq(held.peak_bytes, held.bytes);
    for (int i = 0; i < 7; i++)
        eddy_memory_release(blocks[i], sizes[i], EDDY_MEMORY_NODE);
    eddy_memory_release(NULL, 8, EDDY_MEMORY_NODE);
    eddy_memory_count after = eddy_memory_counted(EDDY_MEMORY_NODE);
    cr_assert_eq(after.bytes, before.bytes);
    cr_assert_eq(after.blocks, before.blocks);
    cr_assert_eq(after.peak_bytes, held.peak_bytes);
}

Test(memory, zeroed_blocks_are_zero_also_when_reused) {
    for (int round = 0; round < 3; round++) {
        unsigned char *block = eddy_memory_acquire_zeroed(1000, EDDY_MEMORY_TABLE);
        for (int i = 0; i < 1000; i++)
            cr_assert_eq(block[i], 0);
        memset(block, 0xff, 1000);
        eddy_memory_release(block, 1000, EDDY_MEMORY_TABLE);
    }
}

Test(memory, growing_keeps_the_contents) {
    char *block = eddy_memory_grow(NULL, 0, 4, EDDY_MEMORY_CACHE);
    memcpy(block, "abcd", 4);
    block = eddy_memory_grow(block, 4, 400, EDDY_MEMORY_CACHE);
    cr_assert_arr_eq(block, "abcd", 4);
    eddy_memory_fail_at(EDDY_MEMORY_CACHE, 0, 1);
    cr_assert_null(eddy_memory_grow(block, 400, 800, EDDY_MEMORY_CACHE));
    cr_assert_arr_eq(block, "abcd", 4);
    block = eddy_memory_grow(block, 400, 2, EDDY_MEMORY_CACHE);
    cr_assert_arr_eq(block, "ab", 2);
    eddy_memory_release(block, 2, EDDY_MEMORY_CACHE);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_CACHE).bytes, 0);
}

Test(memory, absurd_sizes_fail_quietly) {
    errno = 7;
    cr_assert_null(eddy_memory_acquire(SIZE_MAX, EDDY_MEMORY_TEXT));
    cr_assert_null(eddy_memory_acquire(SIZE_MAX / 4 + 1, EDDY_MEMORY_TEXT));
    cr_assert_null(eddy_memory_acquire_zeroed((size_t)1 << 62, EDDY_MEMORY_TENSOR));
    cr_assert_eq(errno, 7, "errno is kept");
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_TEXT).acquisitions, 0);
}

Test(memory, limit_holds_for_tensors_and_workspaces_only) {
    cr_assert_gt(eddy_memory_limit(), 1 << 20);
    eddy_memory_limit_set(1000);
    cr_assert_eq(eddy_memory_limit(), 1000);
    void *tensor = eddy_memory_acquire(600, EDDY_MEMORY_TENSOR);
    void *workspace = eddy_memory_acquire(400, EDDY_MEMORY_WORKSPACE);
    cr_assert(tensor && workspace, "up to the limit, not beyond");
    cr_assert_null(eddy_memory_acquire(1, EDDY_MEMORY_TENSOR));
    cr_assert_null(eddy_memory_acquire(1, EDDY_MEMORY_WORKSPACE));
    void *node = eddy_memory_acquire(5000, EDDY_MEMORY_NODE);
    cr_assert_not_null(node);
    eddy_memory_release(workspace, 400, EDDY_MEMORY_WORKSPACE);
    workspace = eddy_memory_acquire(399, EDDY_MEMORY_TENSOR);
    cr_assert_not_null(workspace, "what was given back can be had again");
    eddy_memory_release(workspace, 399, EDDY_MEMORY_TENSOR);
    eddy_memory_release(tensor, 600, EDDY_MEMORY_TENSOR);
    eddy_memory_release(node, 5000, EDDY_MEMORY_NODE);
    eddy_memory_limit_set(0);
    cr_assert_gt(eddy_memory_limit(), 1 << 20, "0 restores the default");
}

static void *fill_and_drain(void *successes) {
    for (int round = 0; round < 2000; round++) {
        void *block = eddy_memory_acquire(100, EDDY_MEMORY_TENSOR);
        if (!block)
            continue;
        ++*(int64_t *)successes;
        int64_t held = eddy_memory_counted(EDDY_MEMORY_TENSOR).bytes;
        cr_assert_leq(held, 250);
        eddy_memory_release(block, 100, EDDY_MEMORY_TENSOR);
    }
    return NULL;
}

Test(memory, no_two_threads_pass_the_limit_together) {
    eddy_memory_limit_set(250);
    pthread_t threads[4];
    int64_t successes[4] = {0};
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, fill_and_drain, &successes[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    eddy_memory_count count = eddy_memory_counted(EDDY_MEMORY_TENSOR);
    cr_assert_eq(count.bytes, 0);
    cr_assert_eq(count.blocks, 0);
    cr_assert_eq(count.acquisitions, successes[0] + successes[1] + successes[2] + successes[3]);
    cr_assert_leq(count.peak_bytes, 250);
}

Test(memory, pages_are_counted_and_go_back_in_any_parts) {
    const size_t part = 1 << 16;
    char *high = eddy_memory_map(NULL, 2 * part, EDDY_MEMORY_TENSOR);
    cr_assert_not_null(high);
    char *low = eddy_memory_map(high - part, part, EDDY_MEMORY_TENSOR);
    cr_assert_eq(low, high - part, "what lies below is free");
    memset(low, 1, 3 * part);
    eddy_memory_count held = eddy_memory_counted(EDDY_MEMORY_TENSOR);
    cr_assert_eq(held.bytes, (int64_t)(3 * part));
    cr_assert_eq(held.blocks, 0);
    cr_assert_eq(held.acquisitions, 2);
    char *elsewhere = eddy_memory_map(high, part, EDDY_MEMORY_TENSOR);
    cr_assert(elsewhere && (elsewhere + part <= low || elsewhere >= high + 2 * part));
    cr_assert_eq(high[0], 1, "nothing is mapped over");
    eddy_memory_unmap(elsewhere, part, EDDY_MEMORY_TENSOR);
    eddy_memory_unmap(low, 2 * part, EDDY_MEMORY_TENSOR);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_TENSOR).bytes, (int64_t)part);
    cr_assert_eq(high[2 * part - 1], 1);
    eddy_memory_unmap(high + part, part, EDDY_MEMORY_TENSOR);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_TENSOR).bytes, 0);
}

Test(memory, pages_are_limited_and_fail_on_demand) {
    eddy_memory_limit_set(1 << 20);
    cr_assert_null(eddy_memory_map(NULL, 1 << 21, EDDY_MEMORY_TENSOR));
    eddy_memory_fail_at(EDDY_MEMORY_TENSOR, 0, 1);
    errno = 7;
    cr_assert_null(eddy_memory_map(NULL, 1 << 20, EDDY_MEMORY_TENSOR));
    cr_assert_null(eddy_memory_map(NULL, (size_t)1 << 62, EDDY_MEMORY_TENSOR));
    cr_assert_null(eddy_memory_map(NULL, (size_t)1 << 62, EDDY_MEMORY_NODE));
    cr_assert_eq(errno, 7, "errno is kept");
    void *pages = eddy_memory_map(NULL, 1 << 20, EDDY_MEMORY_TENSOR);
    cr_assert_not_null(pages);
    eddy_memory_unmap(pages, 1 << 20, EDDY_MEMORY_TENSOR);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_TENSOR).bytes, 0);
}

static void *kept;
static int reclaims;

static int64_t give_kept(void) {
    reclaims++;
    if (!kept)
        return 0;
    eddy_memory_release(kept, 600, EDDY_MEMORY_TENSOR);
    kept = NULL;
    return 600;
}

Test(memory, a_refusal_asks_caches_once_and_an_injected_one_does_not) {
    eddy_memory_reclaim_with(give_kept);
    eddy_memory_limit_set(1000);
    kept = eddy_memory_acquire(600, EDDY_MEMORY_TENSOR);
    void *block = eddy_memory_acquire(700, EDDY_MEMORY_WORKSPACE);
    cr_assert_not_null(block);
    cr_assert_eq(reclaims, 1);
    cr_assert_null(eddy_memory_acquire(700, EDDY_MEMORY_TENSOR));
    cr_assert_eq(reclaims, 2);
    eddy_memory_fail_at(EDDY_MEMORY_TENSOR, 0, 1);
    cr_assert_null(eddy_memory_acquire(1, EDDY_MEMORY_TENSOR));
    cr_assert_eq(reclaims, 2);
    eddy_memory_release(block, 700, EDDY_MEMORY_WORKSPACE);
}

/* Takes `count` blocks and returns which failed as a bit mask. */
static unsigned failures_among(int count, eddy_memory_purpose purpose) {
    unsigned failed = 0;
    for (int i = 0; i < count; i++) {
        void *block = eddy_memory_acquire(8, purpose);
        if (!block)
            failed |= 1u << i;
        eddy_memory_release(block, 8, purpose);
    }
    return failed;
}

Test(memory, faults_come_at_the_numbered_requests) {
    eddy_memory_fail_at(EDDY_MEMORY_HANDLE, 2, 2);
    cr_assert_eq(failures_among(4, EDDY_MEMORY_NODE), 0u, "another purpose does not count");
    cr_assert_eq(failures_among(8, EDDY_MEMORY_HANDLE), 0x0cu);
    cr_assert_eq(eddy_memory_failures_injected(), 2);
    eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, 1, 1);
    cr_assert_eq(eddy_memory_failures_injected(), 0);
    cr_assert_eq(failures_among(1, EDDY_MEMORY_NODE), 0u);
    cr_assert_eq(failures_among(2, EDDY_MEMORY_HANDLE), 1u, "any purpose, numbered together");
    eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, 0, INT64_MAX);
    cr_assert_eq(failures_among(3, EDDY_MEMORY_TENSOR), 7u, "every request from the next one on");
    eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, 0, 0);
    cr_assert_eq(failures_among(3, EDDY_MEMORY_TENSOR), 0u);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_TENSOR).bytes, 0);
}
