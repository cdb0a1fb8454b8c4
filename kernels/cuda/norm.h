/* Normalisations on CUDA devices: which kernels there are (norm.cu, norm_backward.cu, norm_weight.cu), what they are given, and the host's side (norm.c). Plain C.
 *
 * Places and their elements, chunks and lanes are those of the CPU (kernels/cpu/norm/norm_plan.h, kernels/norm.h), so that the bits are. A block of threads brings
 * some chunks into its memory, whatever the layout, where 16 lanes sum each of them in the CPU's order, and all threads make the results of it:
 *
 *   one chunk a place    whole
 *   more                 parts, which leaves the sums of each chunk; join, which makes statistics of them; apply
 *   statistics given     join; apply
 *   a weight's gradient  parts; join; products, where elements in a row share a weight; weights; add */
#ifndef EDDY_KERNELS_CUDA_NORM_H
#define EDDY_KERNELS_CUDA_NORM_H

#include <kernels/cuda/dims.h>
#include <kernels/norm.h>

/* Name and file of each kernel: eddy_norm_<name>_<dtype>. */
#define EDDY_CUDA_NORM_KERNELS(row)                                                                \
    row(whole, norm) row(parts, norm) row(apply, norm) row(join, norm)                             \
        row(back_whole, norm_backward) row(back_parts, norm_backward)                              \
            row(back_apply, norm_backward) row(products, norm_weight) row(weights, norm_weight)    \
                row(add, norm_weight)
#define EDDY_CUDA_NORM_DTYPES(row, ...)                                                            \
    row(f32, F32, __VA_ARGS__) row(f64, F64, __VA_ARGS__) row(f16, F16, __VA_ARGS__)               \
        row(bf16, BF16, __VA_ARGS__)

/* Threads of a block; the most chunks that it works on at once; its memory for their elements, in the type in which is computed: one chunk of f64 and its gradient,
 * or two without it, with the few elements in between. */
#define EDDY_CUDA_NORM_THREADS 256
#define EDDY_CUDA_NORM_ROWS 64
#define EDDY_CUDA_NORM_BYTES (2 * (EDDY_NORM_CHUNK + EDDY_NORM_LANES) * 8)

/* Weights, biases, statistics of the caller. */
typedef struct eddy_cuda_norm_vector {
    void *data;     /* NULL: absent */
    int64_t step;   /* in bytes */
    int32_t is_f32; /* though x has 16 bits */
} eddy_cuda_norm_vector;

/* What the results of a place need, before it is rounded. The last two are the gradient's. */
typedef struct eddy_cuda_norm_statistics {
    double mean, scale, level, slope;
} eddy_cuda_norm_statistics;

/* A task is a place's chunk, those of one number in the order of places. */
typedef struct eddy_cuda_normalisation {
    eddy_cuda_gate gate;
    void *data[EDDY_CUDA_DIMS_OPERANDS]; /* x, then y; x, grad and dx; or x and grad */
    eddy_cuda_norm_vector weight, bias, mean, variance;
    eddy_cuda_norm_vector out;             /* of a weight's gradient */
    eddy_norm_sums *parts;                 /* [chunk][place] */
    eddy_cuda_norm_statistics *statistics; /* [place] */
    double *pieces;   /* [place][run][piece]; NULL: weights belong to single elements */
    double *partials; /* [block][weight] */
    int64_t place_count, element_count, chunk_count, weight_count, block_count;
    int64_t segment;     /* neighbouring elements that share a weight */
    int64_t runs;        /* how many segments a place has */
    int64_t period;      /* places from which on weights repeat */
    int64_t pieces_most; /* pieces of a run: it is cut where chunks end */
    double eps, momentum;
    eddy_cuda_divisor by_segment; /* of divisor 0: it is 2^31 or more */
    uint32_t abreast;             /* chunks at once, a power of two */
    uint32_t lanes;               /* threads that sum a chunk, a power of two up to 16 */
    uint32_t row;                 /* elements from chunk to chunk in a block's memory */
    uint32_t runs_most;           /* runs that a chunk may have a part of */
    /* Bit per operand: elements are contiguous, and each chunk begins at a multiple of 16. */
    uint32_t vectors;
    bool is_across;  /* neighbouring threads are neighbouring places, not neighbouring elements */
    bool is_centred; /* not of rms_norm */
    bool is_given;   /* statistics are the caller's; else those of x are blended into them */
    bool has_grad;
    eddy_cuda_dims places, elements;
} eddy_cuda_normalisation;

#endif
