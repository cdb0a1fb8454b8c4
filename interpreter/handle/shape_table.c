#include <interpreter/handle/shape_table.h>

#include <base/atomic.h>
#include <base/hash.h>
#include <base/memory.h>
#include <base/shape.h>
#include <base/sleep.h>

#define BUCKET_COUNT (EDDY_SHAPE_NUMBER_MAX * 2)
#define CHUNK_SHAPES 64

typedef struct chunk {
    eddy_shape shapes[CHUNK_SHAPES]; /* const once its number is in a bucket */
} chunk;

static struct {
    eddy_lock lock;
    uint32_t count; /* lock: lock */
    _Atomic uint32_t buckets
        [BUCKET_COUNT]; /* atomic: stored under the lock (release) after the shape, read acquire */
    _Atomic(chunk *)
        chunks[EDDY_SHAPE_NUMBER_MAX /
               CHUNK_SHAPES]; /* atomic: stored under the lock before any number in it */
} table;

static eddy_shape *shape_of(uint32_t number) {
    return &eddy_load_acquire(&table.chunks[(number - 1) / CHUNK_SHAPES])
                ->shapes[(number - 1) % CHUNK_SHAPES];
}

/* The number in the probe sequence of `hash`, or 0 with *bucket at the free place. */
static uint32_t find(uint64_t hash, int32_t rank, const int64_t *dims, uint32_t *bucket) {
    for (uint32_t b = (uint32_t)hash % BUCKET_COUNT;; b = (b + 1) % BUCKET_COUNT) {
        uint32_t number = eddy_load_acquire(&table.buckets[b]);
        if (number == 0) {
            *bucket = b;
            return 0;
        }
        const eddy_shape *shape = shape_of(number);
        if (eddy_shape_equal(shape->rank, shape->dims, rank, dims))
            return number;
    }
}

static uint32_t add_locked(uint32_t bucket, int32_t rank, const int64_t *dims) {
    if (table.count == EDDY_SHAPE_NUMBER_MAX)
        return 0;
    _Atomic(chunk *) *place = &table.chunks[table.count / CHUNK_SHAPES];
    if (!eddy_load_relaxed(place)) {
        chunk *fresh = eddy_memory_acquire_zeroed(sizeof(chunk), EDDY_MEMORY_CACHE);
        if (!fresh)
            return 0;
        eddy_store_release(place, fresh);
    }
    uint32_t number = ++table.count;
    eddy_shape *shape = shape_of(number);
    shape->rank = rank;
    for (int32_t d = 0; d < rank; d++)
        shape->dims[d] = dims[d];
    eddy_store_release(&table.buckets[bucket], number);
    return number;
}

uint32_t eddy_shape_table_intern(int32_t rank, const int64_t *dims) {
    uint64_t hash = eddy_hash_64(dims, (size_t)rank * sizeof(*dims), (uint64_t)rank);
    uint32_t bucket;
    uint32_t number = find(hash, rank, dims, &bucket);
    if (number != 0)
        return number;
    eddy_lock_acquire(&table.lock);
    number = find(hash, rank, dims, &bucket);
    if (number == 0)
        number = add_locked(bucket, rank, dims);
    eddy_lock_release(&table.lock);
    return number;
}

bool eddy_shape_table_find(uint32_t number, eddy_shape *shape) {
    if (number == 0)
        return false;
    *shape = *shape_of(number);
    return true;
}

void eddy_shape_table_fork_child(void) {
    table.lock = (eddy_lock){0};
}
