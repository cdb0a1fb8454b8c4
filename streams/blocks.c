#include <base/atomic.h>
#include <base/process.h>
#include <base/trace.h>
#include <streams/blocks.h>
#include <string.h>

#ifdef EDDY_BLOCKS_UNDER_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

static inline int64_t class_bytes(uint32_t class) {
    if (class == 0)
        return 64;
    uint32_t power = (class - 1) / 4 + 6;
    uint32_t quarter = (class - 1) % 4;
    return ((int64_t)1 << power) / 4 * (5 + (int64_t)quarter);
}

/* ---- pools ---- */

/* All of them. A pool's own lock is taken inside this one, never the other way round. */
static struct {
    eddy_lock lock;
    eddy_blocks_pool *first; /* lock: lock */
    bool watches_forks;      /* lock: lock */
} pools = {.lock = EDDY_LOCK_OF(EDDY_RANK_POOLS)};

/* The child forgets the parent's pools, which may be in the middle of a change. */
static void forget_pools(void) {
    eddy_lock_init(&pools.lock, EDDY_RANK_POOLS);
    pools.first = NULL;
}

static int64_t pool_give_back(eddy_blocks_pool *pool) {
    int64_t given = eddy_spans_trim(&pool->spans);
    eddy_lock_acquire(&pool->lock);
    bool is_empty = pool->binned_bytes == 0;
    eddy_lock_release(&pool->lock);
    for (uint32_t class = 0; class < EDDY_BLOCK_CLASS_COUNT && !is_empty; class ++) {
        eddy_lock_acquire(&pool->lock);
        eddy_block_free *list = pool->bins[class];
        pool->bins[class] = NULL;
        for (eddy_block_free *b = list; b; b = b->next)
            pool->binned_bytes -= class_bytes(class);
        eddy_lock_release(&pool->lock);
        while (list) {
            eddy_block_free *next = list->next;
            ASAN_UNPOISON_MEMORY_REGION(list, (size_t)class_bytes(class));
            eddy_memory_release(list, (size_t)class_bytes(class), pool->purpose);
            given += class_bytes(class);
            list = next;
        }
    }
    if (given > 0)
        EDDY_TRACE_AT(ALLOCATOR, .op = "trim", .bytes = given);
    return given;
}

/* Called by the host allocator before it refuses. */
static int64_t all_give_back(void) {
    int64_t given = 0;
    eddy_lock_acquire(&pools.lock);
    for (eddy_blocks_pool *pool = pools.first; pool; pool = pool->next)
        given += pool_give_back(pool);
    eddy_lock_release(&pools.lock);
    return given;
}

int64_t eddy_blocks_pool_trim(eddy_blocks_pool *pool) {
    int64_t given = pool_give_back(pool);
    if (given > 0)
        eddy_memory_return_pages();
    return given;
}

void eddy_blocks_pool_init(eddy_blocks_pool *pool, eddy_memory_purpose purpose) {
    memset(pool, 0, sizeof(*pool));
    eddy_lock_init(&pool->lock, EDDY_RANK_POOL);
    pool->purpose = purpose;
    eddy_spans_init(&pool->spans, purpose);
    eddy_lock_acquire(&pools.lock);
    if (!pools.watches_forks) {
        eddy_process_at_fork_child(forget_pools);
        eddy_memory_reclaim_with(all_give_back);
    }
    pools.watches_forks = true;
    pool->next = pools.first;
    pool->link = &pools.first;
    if (pool->next)
        pool->next->link = &pool->next;
    pools.first = pool;
    eddy_lock_release(&pools.lock);
}

void eddy_blocks_pool_fini(eddy_blocks_pool *pool) {
    eddy_lock_acquire(&pools.lock);
    *pool->link = pool->next;
    if (pool->next)
        pool->next->link = pool->link;
    eddy_lock_release(&pools.lock);
    pool_give_back(pool);
    eddy_spans_fini(&pool->spans);
}

int64_t eddy_blocks_pool_cached_bytes(eddy_blocks_pool *pool) {
    eddy_lock_acquire(&pool->lock);
    int64_t binned_bytes = pool->binned_bytes;
    eddy_lock_release(&pool->lock);
    return binned_bytes + eddy_spans_free_bytes(&pool->spans);
}

int64_t eddy_blocks_pool_found(eddy_blocks_pool *pool) {
    eddy_lock_acquire(&pool->lock);
    int64_t found_count = pool->found_count;
    eddy_lock_release(&pool->lock);
    return found_count + eddy_spans_found(&pool->spans);
}

/* ---- caches ---- */

void eddy_blocks_cache_init(eddy_blocks_cache *cache, eddy_blocks_pool *pool) {
    memset(cache, 0, sizeof(*cache));
    cache->pool = pool;
}

void eddy_blocks_cache_fini(eddy_blocks_cache *cache) {
    if (cache->pool)
        eddy_blocks_cache_flush(cache);
}

static void pool_put_locked(eddy_blocks_pool *pool, eddy_block_free *block, uint32_t class) {
    block->next = pool->bins[class];
    pool->bins[class] = block;
    pool->binned_bytes += class_bytes(class);
    ASAN_POISON_MEMORY_REGION(block + 1, (size_t)class_bytes(class) - sizeof(*block));
}

static void *pool_acquire(eddy_blocks_pool *pool, uint32_t class) {
    eddy_lock_acquire(&pool->lock);
    eddy_block_free *block = pool->bins[class];
    if (block) {
        pool->bins[class] = block->next;
        pool->binned_bytes -= class_bytes(class);
        pool->found_count++;
    }
    eddy_lock_release(&pool->lock);
    if (block)
        return block;
    void *fresh = eddy_memory_acquire((size_t)class_bytes(class), pool->purpose);
    EDDY_TRACE_AT(ALLOCATOR, .op = fresh ? "take" : "refuse", .bytes = class_bytes(class));
    return fresh;
}

static void count_live(eddy_blocks_pool *pool, int64_t bytes) {
    int64_t live = eddy_add_relaxed(&pool->live_bytes, bytes) + bytes;
    int64_t peak = eddy_load_relaxed(&pool->peak_bytes);
    while (live > peak && !eddy_cas_relaxed(&pool->peak_bytes, &peak, live)) {
    }
}

void *eddy_blocks_acquire_slow(eddy_blocks_cache *cache, int64_t bytes) {
    if (EDDY_UNLIKELY(bytes < 0 || bytes > EDDY_BLOCK_BYTES_MAX))
        return NULL;
    if (bytes > EDDY_BLOCK_CLASSED_BYTES) {
        eddy_blocks_pool *pool = cache->pool;
        void *span = eddy_spans_acquire(&pool->spans, bytes);
        if (span)
            count_live(pool, eddy_spans_rounded(&pool->spans, bytes));
        return span;
    }
    uint32_t class = eddy_block_class(bytes);
    if (class < EDDY_BLOCK_CACHED_CLASSES && cache->bins[class]) {
        eddy_block_free *block = cache->bins[class];
        ASAN_UNPOISON_MEMORY_REGION(block, (size_t)class_bytes(class));
        cache->bins[class] = block->next;
        cache->counts[class]--;
        return block;
    }
    void *data = pool_acquire(cache->pool, class);
    if (data) {
        ASAN_UNPOISON_MEMORY_REGION(data, (size_t)class_bytes(class));
        /* Blocks that a cache keeps count as live: the hot path then touches no counter. */
        count_live(cache->pool, class_bytes(class));
    }
    return data;
}

void eddy_blocks_release_slow(eddy_blocks_cache *cache, void *data, int64_t bytes) {
    if (!data)
        return;
    eddy_blocks_pool *pool = cache->pool;
    if (bytes > EDDY_BLOCK_CLASSED_BYTES) {
        eddy_sub_relaxed(&pool->live_bytes, eddy_spans_rounded(&pool->spans, bytes));
        eddy_spans_release(&pool->spans, data, bytes);
        return;
    }
    uint32_t class = eddy_block_class(bytes);
    eddy_block_free *block = data;
    if (class < EDDY_BLOCK_CACHED_CLASSES && cache->counts[class] < EDDY_BLOCK_CACHED_PER_CLASS) {
        block->next = cache->bins[class];
        cache->bins[class] = block;
        cache->counts[class]++;
        ASAN_POISON_MEMORY_REGION(block + 1, (size_t)class_bytes(class) - sizeof(*block));
        return;
    }
    eddy_sub_relaxed(&pool->live_bytes, class_bytes(class));
    eddy_lock_acquire(&pool->lock);
    pool_put_locked(pool, block, class);
    /* A full cache gives half to the pool, so that a thread that only frees supplies one that only acquires. */
    if (class < EDDY_BLOCK_CACHED_CLASSES) {
        for (int i = 0; i < EDDY_BLOCK_CACHED_PER_CLASS / 2; i++) {
            eddy_block_free *kept = cache->bins[class];
            cache->bins[class] = kept->next;
            cache->counts[class]--;
            eddy_sub_relaxed(&pool->live_bytes, class_bytes(class));
            pool_put_locked(pool, kept, class);
        }
    }
    eddy_lock_release(&pool->lock);
}

void eddy_blocks_cache_flush(eddy_blocks_cache *cache) {
    eddy_blocks_pool *pool = cache->pool;
    eddy_lock_acquire(&pool->lock);
    for (uint32_t class = 0; class < EDDY_BLOCK_CACHED_CLASSES; class ++) {
        while (cache->bins[class]) {
            eddy_block_free *block = cache->bins[class];
            cache->bins[class] = block->next;
            eddy_sub_relaxed(&pool->live_bytes, class_bytes(class));
            pool_put_locked(pool, block, class);
        }
        cache->counts[class] = 0;
    }
    eddy_lock_release(&pool->lock);
}

int64_t eddy_blocks_pool_list(eddy_blocks_pool *pool, eddy_memory_block *blocks, int64_t capacity) {
    int64_t rows = 0;
    eddy_lock_acquire(&pool->lock);
    for (uint32_t class = 0; class < EDDY_BLOCK_CLASS_COUNT; class ++) {
        int64_t count = 0;
        for (const eddy_block_free *b = pool->bins[class]; b; b = b->next)
            count++;
        if (count > 0 && rows++ < capacity)
            blocks[rows - 1] = (eddy_memory_block){
                .bytes = class_bytes(class), .count = count, .state = EDDY_MEMORY_BLOCK_FREE};
    }
    eddy_lock_release(&pool->lock);
    int64_t rest = capacity > rows ? capacity - rows : 0;
    return rows + eddy_spans_list(&pool->spans, rest > 0 ? blocks + rows : NULL, rest);
}
