/* Iterates over several strided operands in one index space. Plain values on the stack; any thread. */
#ifndef EDDY_KERNELS_CPU_WALK_H
#define EDDY_KERNELS_CPU_WALK_H

#include <base/number.h>
#include <kernels/cpu/prefetch.h>
#include <kernels/kernel.h>

#define EDDY_WALK_OPERANDS 16

/* Dims outermost first. Strides are in the unit in which they were added (elements or bytes). */
typedef struct eddy_walk {
    int32_t rank;
    int32_t operand_count;
    int64_t dims[EDDY_RANK_MAX];
    int64_t strides[EDDY_WALK_OPERANDS][EDDY_RANK_MAX];
} eddy_walk;

/* A position in a walk: the index, and the offset of every operand there. */
typedef struct eddy_walk_cursor {
    int64_t index[EDDY_RANK_MAX];
    int64_t offsets[EDDY_WALK_OPERANDS];
} eddy_walk_cursor;

/* Starts a walk over `dims` without operands. */
void eddy_walk_init(eddy_walk *walk, int32_t rank, const int64_t *dims);
/* The joint shape of that at *rank and *shape, which has place for EDDY_RANK_MAX dims, and of a view that broadcasts with it. */
void eddy_walk_widen(int32_t *rank, int64_t *shape, const eddy_op_view *view);
/* The same of several views, at `dims`, which has place for EDDY_RANK_MAX; returns the rank. */
int32_t eddy_walk_joint_dims(const eddy_op_view *views, int32_t count, int64_t *dims);
/* Adds an operand: its strides for the walk's dims, each multiplied by `scale` (1, or bytes per element). */
void eddy_walk_add(eddy_walk *walk, const int64_t *strides, int64_t scale);
/* Adds an operand that broadcasts to the walk's dims: leading dims and dims of size 1 get stride 0. */
void eddy_walk_add_broadcast(eddy_walk *walk, const eddy_op_view *view);
/* Appends a dim (before any collapse) with one stride per operand; used to build walks dim by dim. */
void eddy_walk_append(eddy_walk *walk, int64_t dim, const int64_t *strides, int32_t operand_count);

/* Drops dims of size 1, and merges neighbouring dims that every operand passes through with one stride. The order of
 * elements does not change. */
void eddy_walk_collapse(eddy_walk *walk);
/* Reorders dims so that operand 0 walks memory forward, the smallest stride innermost. Only for work whose order does not
 * matter. Collapse afterwards. */
void eddy_walk_sort(eddy_walk *walk);

/* The number of elements; 1 for rank 0. */
int64_t eddy_walk_count(const eddy_walk *walk);

/* For plans (kernels/kernel.h): the words of a walk, and the most words that a walk of `operands` operands takes. */
int64_t eddy_walk_word_count(const eddy_walk *walk);
#define EDDY_WALK_WORDS_MOST(operands) (1 + EDDY_RANK_MAX * (1 + (operands)))
/* Writes the walk; returns the address behind it. */
int64_t *eddy_walk_write(const eddy_walk *walk, int64_t *words);
/* Reads a walk, all of whose members it sets; returns the address behind the words. */
const int64_t *eddy_walk_read(eddy_walk *walk, const int64_t *words);

/* Moves to the element with this flat (row-major) number. */
void eddy_walk_seek(const eddy_walk *walk, eddy_walk_cursor *cursor, int64_t flat);

/* Advances by one in dims 0 .. rank - 1. These may be fewer than the walk's: the inner dims are then the caller's loop. */
static inline void eddy_walk_next(const eddy_walk *walk, eddy_walk_cursor *cursor, int32_t rank) {
    for (int32_t d = rank - 1; d >= 0; d--) {
        if (++cursor->index[d] < walk->dims[d]) {
            for (int32_t o = 0; o < walk->operand_count; o++)
                cursor->offsets[o] += walk->strides[o][d];
            return;
        }
        cursor->index[d] = 0;
        for (int32_t o = 0; o < walk->operand_count; o++)
            cursor->offsets[o] -= (walk->dims[d] - 1) * walk->strides[o][d];
    }
}

/* Moves `count` elements forward within the innermost dim, and to the next row at its end. */
static inline void eddy_walk_advance(const eddy_walk *walk, eddy_walk_cursor *cursor,
                                     int64_t count) {
    int32_t inner = walk->rank - 1;
    if (inner < 0)
        return;
    cursor->index[inner] += count;
    for (int32_t o = 0; o < walk->operand_count; o++)
        cursor->offsets[o] += count * walk->strides[o][inner];
    if (cursor->index[inner] == walk->dims[inner]) {
        cursor->index[inner] = 0;
        for (int32_t o = 0; o < walk->operand_count; o++)
            cursor->offsets[o] -= walk->dims[inner] * walk->strides[o][inner];
        eddy_walk_next(walk, cursor, inner);
    }
}

/* Elements left in the innermost dim from the cursor on. */
static inline int64_t eddy_walk_run(const eddy_walk *walk, const eddy_walk_cursor *cursor) {
    return walk->rank == 0 ? 1 : walk->dims[walk->rank - 1] - cursor->index[walk->rank - 1];
}

static inline int64_t eddy_walk_inner_stride(const eddy_walk *walk, int32_t operand) {
    return walk->rank == 0 ? 1 : walk->strides[operand][walk->rank - 1];
}

/* Whether all operands are contiguous in the order of the walk, which has to be collapsed. */
static inline bool eddy_walk_is_plain(const eddy_walk *walk) {
    bool is_plain = walk->rank <= 1;
    for (int32_t o = 0; o < walk->operand_count; o++)
        is_plain &= eddy_walk_inner_stride(walk, o) == 1;
    return is_plain;
}

/* Runs of fewer bytes are not worth prefetching; for more, the hardware prefetcher suffices. */
#define EDDY_WALK_PREFETCH_LEAST 256
#define EDDY_WALK_PREFETCH_MOST 4096
#define EDDY_WALK_PREFETCH_RUNS 8

/* Prefetches an operand's run that comes EDDY_WALK_PREFETCH_RUNS runs after the cursor's; it may be beyond the last one.
 * Elements of a run are contiguous. Without prefetching, each run that is apart from the one before would be a cache miss. */
__attribute__((always_inline)) static inline void
eddy_walk_prefetch(const eddy_walk *walk, const eddy_walk_cursor *cursor, int32_t operand,
                   const void *data, int64_t element_bytes) {
    int32_t inner = walk->rank - 1;
    int64_t run = inner < 1 ? 0 : walk->dims[inner] * walk->strides[operand][inner] * element_bytes;
    /* The hardware predicts runs that follow one another, and a run that is used again is in the cache. */
    if (run < EDDY_WALK_PREFETCH_LEAST || run > EDDY_WALK_PREFETCH_MOST ||
        walk->strides[operand][inner - 1] == 0 ||
        walk->strides[operand][inner - 1] == walk->dims[inner] * walk->strides[operand][inner])
        return;
    int64_t offset =
        cursor->offsets[operand] + EDDY_WALK_PREFETCH_RUNS * walk->strides[operand][inner - 1];
    eddy_prefetch((uintptr_t)data + (uintptr_t)(offset * element_bytes), run);
}

#endif
