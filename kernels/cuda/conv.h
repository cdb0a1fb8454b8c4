/* Convolutions on CUDA devices: which kernels there are (conv.cu), what they are given, and the host's side (conv.c). Plain C.
 *
 * All three ops are products of a matrix that lies in memory, with rows for the channels of a group's result, and one whose elements are those of x at a place and a tap of the
 * window there. Of conv2d and conv_transpose2d (in phases, kernels/conv.h) terms are taps, and columns places; of the gradient of the weights terms are places, and columns
 * taps. */
#ifndef EDDY_KERNELS_CUDA_CONV_H
#define EDDY_KERNELS_CUDA_CONV_H

#include <kernels/conv.h>
#include <kernels/cuda/planes.h>

/* Dtype, name and enumerator: eddy_conv_tiled_<dtype>, eddy_conv_join_<dtype>, eddy_conv_direct_<dtype>. */
#define EDDY_CUDA_CONVS(row) row(f32, F32) row(f64, F64) row(f16, F16) row(bf16, BF16)

/* Rows and columns of a tile; terms that are staged at once, and threads of a block (kernels/cuda/tile.cuh). */
#define EDDY_CUDA_CONV_TILE 64
#define EDDY_CUDA_CONV_DEPTH 16
#define EDDY_CUDA_CONV_THREADS 256

/* Where the rows of a group begin, and from one to the next: bytes. */
typedef struct eddy_cuda_conv_rows {
    void *data;
    int64_t group, step;
} eddy_cuda_conv_rows;

typedef struct eddy_cuda_conv {
    eddy_cuda_gate gate;
    eddy_cuda_planes from, to; /* x; the result, or its gradient */
    void *weight;
    int64_t weight_group, weight_to, weight_from, weight_row, weight_column; /* strides in bytes */
    const void *bias;                                                        /* or NULL */
    int64_t bias_step;
    eddy_cuda_conv_rows left, out; /* the matrix in memory, and the product */
    void *
        partials; /* of each split, in the compute type: [split][group][phase][row][column]; NULL: there is one split */
    int64_t groups, from_channels, to_channels; /* channels of a group */
    eddy_conv_window rows, columns;
    int64_t row_phases, column_phases;
    int64_t row_tiles, column_tiles,
        width; /* of a phase with the most columns, of which there are `width` */
    int64_t splits, split_terms;
    bool is_transposed;
    bool sums_places;   /* terms are places, and columns taps */
    bool channels_last; /* taps count channels fastest */
    bool left_along,
        right_along; /* neighbouring threads read neighbouring terms of the left, of the right matrix */
    uint32_t lanes; /* eddy_conv_direct: threads that sum up one element, 1 or all of a block */
} eddy_cuda_conv;

#endif
