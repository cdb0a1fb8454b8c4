/* A row of a tensor as softmax and cross-entropy see it, in padded chunks of the compute type. */
#ifndef EDDY_KERNELS_CPU_SOFTMAX_ROW_H
#define EDDY_KERNELS_CPU_SOFTMAX_ROW_H

#include <kernels/cpu/softmax/softmax_block.h>
#include <kernels/kernel.h>

/* A chunk; f32 or f64 by the ops in use. */
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

/* What log-sum-exp needs: exp(x - max) adds up to sum. */
typedef struct eddy_softmax_total {
    double max, sum;
} eddy_softmax_total;

static inline eddy_dtype eddy_softmax_compute_dtype(eddy_dtype dtype) {
    return dtype == EDDY_F64 ? EDDY_F64 : EDDY_F32;
}

const eddy_softmax_ops *eddy_softmax_ops_for(eddy_dtype dtype);

/* Loads elements begin .. of the row, at most a chunk, and pads with `padding`. Returns the padded count. */
int64_t eddy_softmax_load(const eddy_softmax_row *row, int64_t begin, double padding, eddy_softmax_chunk *chunk);
/* Stores what belongs to elements begin .. of the row from the chunk. */
void eddy_softmax_store(const eddy_softmax_row *row, int64_t begin, const eddy_softmax_chunk *chunk, void *target,
                        int64_t stride, eddy_dtype dtype);

/* A row of at most one chunk stays in *chunk as exp(x - max); of a longer one the last chunk does. */
eddy_softmax_total eddy_softmax_row_total(const eddy_softmax_ops *ops, const eddy_softmax_row *row,
                                          eddy_softmax_chunk *chunk);

#endif
