/* Memory for elements and workspaces, kept for reuse: in size classes, last in first out; large blocks as spans.
 *
 * A pool belongs to a VM and is shared by all its threads (lock: pool->lock). A cache belongs to one role at a time (the
 * holder of the submission lock, the engine, one worker) and keeps small blocks without a lock; larger ones go to the pool at
 * once. The first access to a fresh page is expensive, so blocks are kept until they are trimmed, or until the host allocator refuses any
 * request of the process: then every pool frees its cached blocks. */
#ifndef EDDY_STREAMS_BLOCKS_H
#define EDDY_STREAMS_BLOCKS_H

#include <base/assert.h>
#include <base/memory.h>
#include <base/sleep.h>
#include <streams/spans.h>

/* AddressSanitizer has to see each block acquired and released. */
#if defined(__SANITIZE_ADDRESS__)
#define EDDY_BLOCKS_UNDER_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EDDY_BLOCKS_UNDER_ASAN
#endif
#endif

/* Four classes per power of two from 64 bytes up to 2^46: at most a quarter is wasted. */
#define EDDY_BLOCK_CLASS_COUNT 164
#define EDDY_BLOCK_BYTES_MAX ((int64_t)1 << 46)

/* Blocks above this size are spans. A class keeps its peak number of blocks, so a program of several sizes would
 * hold the sum of all peaks; above this size a tree in place of a list pays, and whole pages waste less than a class.
 * Under AddressSanitizer no block is a span: the host allocator then gives each block, with poisoned memory around it. */
#ifdef EDDY_BLOCKS_UNDER_ASAN
#define EDDY_BLOCK_CLASSED_BYTES EDDY_BLOCK_BYTES_MAX
#else
#define EDDY_BLOCK_CLASSED_BYTES ((int64_t)128 << 10)
#endif

typedef struct eddy_block_free {
    struct eddy_block_free *next;
} eddy_block_free;

typedef struct eddy_blocks_pool {
    struct eddy_blocks_pool *next, **link; /* lock: that of the list of all pools */
    eddy_lock lock;
    eddy_memory_purpose purpose;                   /* const after init */
    eddy_block_free *bins[EDDY_BLOCK_CLASS_COUNT]; /* lock: lock */
    int64_t binned_bytes;                          /* lock: lock */
    int64_t found_count; /* lock: lock; how often a bin had what was asked for */
    eddy_spans spans;
    _Atomic int64_t live_bytes; /* atomic: relaxed counter of bytes in use */
    _Atomic int64_t peak_bytes;
} eddy_blocks_pool;

/* Blocks up to this size are kept in caches. */
#define EDDY_BLOCK_CACHED_BYTES 32768
#define EDDY_BLOCK_CACHED_CLASSES 40
#define EDDY_BLOCK_CACHED_PER_CLASS 64

typedef struct eddy_blocks_cache {
    eddy_blocks_pool *pool;
    eddy_block_free *bins[EDDY_BLOCK_CACHED_CLASSES];
    uint8_t counts[EDDY_BLOCK_CACHED_CLASSES];
} eddy_blocks_cache;

void eddy_blocks_pool_init(eddy_blocks_pool *pool, eddy_memory_purpose purpose);
/* Gives everything back to the host allocator; caches must have been finished. */
void eddy_blocks_pool_fini(eddy_blocks_pool *pool);
void eddy_blocks_cache_init(eddy_blocks_cache *cache, eddy_blocks_pool *pool);
void eddy_blocks_cache_fini(eddy_blocks_cache *cache);

/* Class of a size: class 0 is 64 bytes, then 80, 96, 112, 128, 160, ... */
static inline uint32_t eddy_block_class(int64_t bytes) {
    if (bytes <= 64)
        return 0;
    uint64_t last = (uint64_t)bytes - 1;
    uint32_t power = 63u - (uint32_t)__builtin_clzll(last); /* last in [2^power, 2^(power + 1)) */
    uint32_t quarter = (uint32_t)(last >> (power - 2)) & 3u;
    return (power - 6) * 4 + quarter + 1;
}

/* The general case: also if the cache has no block, or the size has no class. */
EDDY_MUST_USE void *eddy_blocks_acquire_slow(eddy_blocks_cache *cache, int64_t bytes);
void eddy_blocks_release_slow(eddy_blocks_cache *cache, void *data, int64_t bytes);

/* At least `bytes` (0 counts as 1), aligned to 64, contents undefined; NULL if the host allocator refuses even after all pools
 * were trimmed. The size of a block follows from `bytes` alone, so the release has to state the same `bytes`. */
EDDY_MUST_USE static inline void *eddy_blocks_acquire(eddy_blocks_cache *cache, int64_t bytes) {
#ifndef EDDY_BLOCKS_UNDER_ASAN
    if (EDDY_LIKELY((uint64_t)bytes <= EDDY_BLOCK_CACHED_BYTES)) {
        uint32_t class = eddy_block_class(bytes);
        eddy_block_free *block = cache->bins[class];
        if (EDDY_LIKELY(block != NULL)) {
            cache->bins[class] = block->next;
            cache->counts[class]--;
            return block;
        }
    }
#endif
    return eddy_blocks_acquire_slow(cache, bytes);
}

/* NULL is allowed. Any cache of the same pool may be used. */
static inline void eddy_blocks_release(eddy_blocks_cache *cache, void *data, int64_t bytes) {
#ifndef EDDY_BLOCKS_UNDER_ASAN
    if (EDDY_LIKELY(data != NULL && bytes <= EDDY_BLOCK_CACHED_BYTES)) {
        uint32_t class = eddy_block_class(bytes);
        if (EDDY_LIKELY(cache->counts[class] < EDDY_BLOCK_CACHED_PER_CLASS)) {
            eddy_block_free *block = (eddy_block_free *)data;
            block->next = cache->bins[class];
            cache->bins[class] = block;
            cache->counts[class]++;
            return;
        }
    }
#endif
    eddy_blocks_release_slow(cache, data, bytes);
}

/* The bytes that the pool keeps for reuse. Bytes in caches count as live. */
int64_t eddy_blocks_pool_cached_bytes(eddy_blocks_pool *pool);
/* How often the pool had kept what was asked for; caches, which are asked first, count nothing. */
int64_t eddy_blocks_pool_found(eddy_blocks_pool *pool);
/* Writes the first `capacity` of these: of small ones how many there are of a size, of large ones each. Returns how many rows there are. */
int64_t eddy_blocks_pool_list(eddy_blocks_pool *pool, eddy_memory_block *blocks, int64_t capacity);
/* Gives the pool's cached blocks back to the host allocator, and their pages to the system; returns bytes. */
int64_t eddy_blocks_pool_trim(eddy_blocks_pool *pool);
/* Moves a cache's blocks to its pool. */
void eddy_blocks_cache_flush(eddy_blocks_cache *cache);

#endif
