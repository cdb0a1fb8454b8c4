/* Writing and adding elements to the places that indices name, on CUDA devices: which kernels there are, and what they get (scatter.cu, scatter.c). Plain C.
 *
 * As on the host, elements for one place come in the order of the index: a thread has some places of the output to itself, goes through all indices that may name one of
 * them, and puts what is for its own. */
#ifndef EDDY_KERNELS_CUDA_SCATTER_H
#define EDDY_KERNELS_CUDA_SCATTER_H

#include <kernels/cuda/parameters.h>

/* How an element is put, and the dtypes of places and elements (kernels/cpu/element.h): eddy_scatter_<how>_<place>_<element>. */
#define EDDY_CUDA_SCATTERS(row)                                                                    \
    row(set, i8, i8) row(set, i16, i16) row(set, i32, i32) row(set, i64, i64) row(add, i8, i8)     \
        row(add, i16, i16) row(add, i32, i32) row(add, i64, i64) row(add, f32, f32)                \
            row(add, f64, f64) row(add, truth, truth) row(add, f32, f16) row(add, f32, bf16)

/* What a dim has a stride for. The number is the index's in row-major order, for errors. */
enum {
    EDDY_CUDA_SCATTER_OUT,
    EDDY_CUDA_SCATTER_SOURCE,
    EDDY_CUDA_SCATTER_INDEX,
    EDDY_CUDA_SCATTER_NUMBER,
    EDDY_CUDA_SCATTER_OPERANDS
};

#define EDDY_CUDA_SCATTER_IS_WIDE 1u  /* indices are i64; else i32 */
#define EDDY_CUDA_SCATTER_FROM_END 2u /* negative indices count from the end */

/* Dims outermost first; strides in bytes. */
typedef struct eddy_cuda_scatter_dims {
    int32_t rank;
    int64_t dims[EDDY_CUDA_RANK_MAX];
    int64_t strides[EDDY_CUDA_SCATTER_OPERANDS][EDDY_CUDA_RANK_MAX];
} eddy_cuda_scatter_dims;

typedef struct eddy_cuda_scatter_call {
    eddy_cuda_gate gate;
    void *out;
    const void *source, *index;
    int64_t step, bound; /* bytes of the output from index to index */
    int64_t left_out;    /* an index that puts nothing; negative: none */
    int64_t length;      /* places of `along` */
    int64_t
        places; /* of `rest`; each of these, and each part of the indices' range, has a thread */
    int64_t parts,
        part; /* of the range; indices of one, 0: they are looked at, and nothing is put */
    uint64_t flags;
    eddy_cuda_scatter_dims along,
        rest; /* dims that the index runs through in its order; all others */
} eddy_cuda_scatter_call;

#endif
