/* Copying one view into another of the same shape: the copy kernel, and a building block of cat and of packing. */
#ifndef EDDY_KERNELS_CPU_COPY_H
#define EDDY_KERNELS_CPU_COPY_H

#include <kernels/cpu/chunk.h>
#include <kernels/cpu/walk.h>

/* Any dtypes, and layouts that do not overlap. Large copies are cut into slices, unless team is NULL. */
void eddy_copy_view(eddy_kernel_team *team, const eddy_op_view *source, const eddy_op_view *target);

/* The same in two steps, for plans. The first step needs no data; it writes at most EDDY_COPY_WORDS(rank) words and
 * returns the address behind them. The first word is 0 if there is nothing to copy. */
#define EDDY_COPY_WORDS(rank) (7 + 3 * (rank))
#define EDDY_COPY_WORDS_MOST EDDY_COPY_WORDS(EDDY_RANK_MAX)
int64_t *eddy_copy_prepare(const eddy_op_view *source, const eddy_op_view *target, int64_t *words);
void eddy_copy_run(const int64_t *words, eddy_kernel_team *team, const void *source, void *target);

/* Copies all `count` elements, of one dtype, of a walk of two operands, the target first. */
static inline void eddy_copy_part(const eddy_walk *walk, int64_t count, eddy_dtype dtype,
                                  void *target, const void *source) {
    int64_t target_stride = eddy_walk_inner_stride(walk, 0),
            source_stride = eddy_walk_inner_stride(walk, 1);
    if (walk->rank <= 1) {
        eddy_chunk_copy(dtype, target, target_stride, dtype, source, source_stride, count);
        return;
    }
    eddy_walk_cursor cursor;
    eddy_walk_seek(walk, &cursor, 0);
    for (int64_t done = 0, run; done < count; done += run) {
        run = eddy_walk_run(walk, &cursor);
        eddy_chunk_copy(dtype, eddy_chunk_at(target, dtype, cursor.offsets[0]), target_stride,
                        dtype, eddy_chunk_at(source, dtype, cursor.offsets[1]), source_stride, run);
        eddy_walk_advance(walk, &cursor, run);
    }
}

#endif
