/* A row of a tensor for softmax and cross-entropy, in padded chunks of the compute type. */
#ifndef EDDY_KERNELS_CPU_SOFTMAX_ROW_H
#define EDDY_KERNELS_CPU_SOFTMAX_ROW_H

#include <kernels/cpu/softmax/softmax_block.h>
#include <kernels/kernel.h>

/* A chunk: f32 or f64, depending on the ops in use. */
typedef union eddy_softmax_chunk {
    _Alignas(64) float f32[EDDY_SOFTMAX_CHUNK];
    double f64[EDDY_SOFTMAX_CHUNK];
} eddy_softmax_chunk;

typedef struct eddy_softmax_row {
    const void *data;
    int64_t stride;
    int64_t count;
    eddy_dtype dtype;
} eddy_softmax_row;

static inline eddy_dtype eddy_softmax_compute_dtype(eddy_dtype dtype) {
    return dtype == EDDY_F64 ? EDDY_F64 : EDDY_F32;
}

const eddy_softmax_ops *eddy_softmax_ops_for(eddy_dtype dtype);

/* The number of rows, of `count` elements with stride `stride`, that are used in place at a time: they fit the first-level
 * cache. 0 unless rows are contiguous, short and of the compute type. */
static inline int64_t eddy_softmax_direct_rows(eddy_dtype dtype, int64_t stride, int64_t count) {
    if (stride != 1 || dtype != eddy_softmax_compute_dtype(dtype) || count > EDDY_SOFTMAX_CHUNK)
        return 0;
    /* Most rows are short, and a division takes longer than the rest of this function. */
    return count * EDDY_SOFTMAX_ROWS <= EDDY_SOFTMAX_CHUNK ? EDDY_SOFTMAX_ROWS
                                                           : EDDY_SOFTMAX_CHUNK / count;
}

/* Loads a chunk of the row, from element `begin` on, and pads it with `padding`. Returns the padded count. */
int64_t eddy_softmax_load(const eddy_softmax_row *row, int64_t begin, double padding,
                          eddy_softmax_chunk *chunk);
/* Stores the chunk as elements of the row from `begin` on, without the padding. */
void eddy_softmax_store(const eddy_softmax_row *row, int64_t begin, const eddy_softmax_chunk *chunk,
                        void *target, int64_t stride, eddy_dtype dtype);

/* A row of at most one chunk remains in *chunk as exp(x - max); of a longer row the last chunk does. */
eddy_softmax_total eddy_softmax_row_total(const eddy_softmax_ops *ops, const eddy_softmax_row *row,
                                          eddy_softmax_chunk *chunk);

#endif
