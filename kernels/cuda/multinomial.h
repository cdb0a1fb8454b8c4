/* multinomial on CUDA devices: what the kernels get (multinomial.cu, multinomial.c). Plain C.
 *
 * The weights are copied as f64 first, whatever they are. With replacement: eddy_multinomial_sum makes running sums of each row, whose additions wait for one
 * another, as they do on the CPU; eddy_multinomial_search draws. Without: eddy_multinomial_keys gives each class its exponential variable; eddy_multinomial_choose finds
 * the smallest of each row, in their order. */
#ifndef EDDY_KERNELS_CUDA_MULTINOMIAL_H
#define EDDY_KERNELS_CUDA_MULTINOMIAL_H

#include <kernels/cuda/parameters.h>

/* Weights that a block of threads sums at a time: of one row or, where rows are short, of up to 32. */
#define EDDY_CUDA_MULTINOMIAL_PIECE 2048
#define EDDY_CUDA_MULTINOMIAL_ABREAST 32

/* Of a row, with replacement. */
typedef struct eddy_cuda_total {
    double sum;
    int64_t last; /* the last class that can be drawn; -1: the row is no distribution */
} eddy_cuda_total;

/* Without replacement, the smallest first; of equals that with the lowest index. */
typedef struct eddy_cuda_candidate {
    uint64_t key; /* bits of a double that is not negative: they have the order of these */
    int64_t index;
} eddy_cuda_candidate;
/* Of a class of weight 0. */
#define EDDY_CUDA_CANDIDATE_NONE UINT64_MAX

typedef struct eddy_cuda_multinomial_call {
    eddy_cuda_gate gate;
    uint64_t seed, counter;
    int64_t rows, classes, draws; /* draws: of each row */
    double *weights;              /* [row][class]; then running sums, or the bits of keys */
    eddy_cuda_total *totals;      /* with replacement: [row] */
    eddy_cuda_candidate *chosen;  /* without: [row][draw] */
    void *out;
    int64_t row_stride, draw_stride; /* of the output, in bytes */
    uint32_t abreast;                /* rows that a block of threads sums at once, a power of two */
} eddy_cuda_multinomial_call;

#endif
