#include <interpreter/note.h>

#include <base/atomic.h>
#include <base/hash.h>
#include <base/memory.h>
#include <base/shape.h>
#include <base/sleep.h>

#define BUCKET_COUNT (EDDY_NOTE_MAX * 2)
#define CHUNK_SHAPES 64

typedef struct chunk {
    eddy_shape shapes[CHUNK_SHAPES]; /* const once its note is in a bucket */
} chunk;

static struct {
    eddy_lock lock;
    uint32_t count;                         /* lock: lock */
    _Atomic uint32_t buckets[BUCKET_COUNT]; /* atomic: stored under the lock (release) after the shape, read acquire */
    _Atomic(chunk *) chunks[EDDY_NOTE_MAX / CHUNK_SHAPES]; /* atomic: stored under the lock before any note in it */
} table;

static eddy_shape *shape_of(uint32_t note) {
    return &eddy_load_acquire(&table.chunks[(note - 1) / CHUNK_SHAPES])->shapes[(note - 1) % CHUNK_SHAPES];
}

/* The note in the probe sequence of `hash`, or 0 with *bucket at the free place. */
static uint32_t find(uint64_t hash, int32_t rank, const int64_t *dims, uint32_t *bucket) {
    for (uint32_t b = (uint32_t)hash % BUCKET_COUNT;; b = (b + 1) % BUCKET_COUNT) {
        uint32_t note = eddy_load_acquire(&table.buckets[b]);
        if (note == 0) {
            *bucket = b;
            return 0;
        }
        const eddy_shape *shape = shape_of(note);
        if (eddy_shape_equal(shape->rank, shape->dims, rank, dims))
            return note;
    }
}

static uint32_t add_locked(uint32_t bucket, int32_t rank, const int64_t *dims) {
    if (table.count == EDDY_NOTE_MAX)
        return 0;
    _Atomic(chunk *) *place = &table.chunks[table.count / CHUNK_SHAPES];
    if (!eddy_load_relaxed(place)) {
        chunk *fresh = eddy_memory_acquire_zeroed(sizeof(chunk), EDDY_MEMORY_CACHE);
        if (!fresh)
            return 0;
        eddy_store_release(place, fresh);
    }
    uint32_t note = ++table.count;
    eddy_shape *shape = shape_of(note);
    shape->rank = rank;
    for (int32_t d = 0; d < rank; d++)
        shape->dims[d] = dims[d];
    eddy_store_release(&table.buckets[bucket], note);
    return note;
}

uint32_t eddy_note_intern(int32_t rank, const int64_t *dims) {
    uint64_t hash = eddy_hash64(dims, (size_t)rank * sizeof(*dims), (uint64_t)rank);
    uint32_t bucket;
    uint32_t note = find(hash, rank, dims, &bucket);
    if (note != 0)
        return note;
    eddy_lock_acquire(&table.lock);
    note = find(hash, rank, dims, &bucket);
    if (note == 0)
        note = add_locked(bucket, rank, dims);
    eddy_lock_release(&table.lock);
    return note;
}

bool eddy_note_shape(uint32_t note, eddy_shape *shape) {
    if (note == 0)
        return false;
    *shape = *shape_of(note);
    return true;
}

void eddy_note_fork_child(void) {
    table.lock = (eddy_lock){0};
}
