/* Matrix products by NVIDIA's library, where it can be found. The plan of one follows from shapes, strides and dtypes; streams/cuda/gemm.c asks the library for an algorithm, and launches.
 *
 * The library takes float operands, each row-major or the transpose of such a matrix, and one stride from batch to batch. Factors that lie otherwise are copied first, where each element is used often enough. */
#ifndef EDDY_KERNELS_CUDA_GEMM_H
#define EDDY_KERNELS_CUDA_GEMM_H

#include <kernels/cpu/matrix/matrix_plan.h>

/* What is added to the product. */
typedef enum eddy_cuda_gemm_addend {
    EDDY_CUDA_GEMM_NOTHING,
    EDDY_CUDA_GEMM_MATRIX, /* c, times beta */
    EDDY_CUDA_GEMM_ROW,    /* a contiguous row, to each row of the product */
} eddy_cuda_gemm_addend;

/* In elements. */
typedef struct eddy_cuda_gemm_matrix {
    int64_t leading; /* from row to row; from column to column of one that is transposed */
    int64_t batch;   /* from batch to batch; 0: all share it */
} eddy_cuda_gemm_matrix;

/* out = alpha * a b + addend, for [rows, depth] x [depth, columns], each above 0, as well as `batches`. c and out are not transposed. Without padding: it is compared by its bytes. */
typedef struct eddy_cuda_gemm {
    int64_t rows, depth, columns, batches;
    eddy_cuda_gemm_matrix a, b, c, out; /* c: zero unless it is the addend */
    uint32_t is_a_transposed, is_b_transposed;
    uint32_t dtype;  /* eddy_dtype: of all of them. f16 and bf16 are summed in f32. */
    uint32_t addend; /* eddy_cuda_gemm_addend */
} eddy_cuda_gemm;

/* Of the device. */
typedef struct eddy_cuda_gemm_operands {
    const void *a, *b, *c; /* c: the matrix that is added, `out` is allowed; or the row */
    void *out;
    double alpha, beta;
} eddy_cuda_gemm_operands;

/* What is done to operands first. */
enum {
    EDDY_CUDA_GEMM_TURNS =
        1, /* the transpose of the product is computed: a and b of the operands change places */
    EDDY_CUDA_GEMM_COPIES_A =
        2, /* a, b of the matrices: their batches are copied, one behind the other and row by row */
    EDDY_CUDA_GEMM_COPIES_B = 4,
};

/* Plans the product without an addend. False: the library does not take such operands. `*steps`: what is done first. */
EDDY_MUST_USE bool eddy_cuda_gemm_plan(const eddy_matrix_plan *matrices, eddy_cuda_gemm *gemm,
                                       uint32_t *steps);
/* Adds a matrix of the product's shape and orientation, or its row, with strides in elements (0: broadcast), as it lies. False: as it lies it cannot be added. */
EDDY_MUST_USE bool eddy_cuda_gemm_add(eddy_cuda_gemm *gemm, int64_t row_stride,
                                      int64_t column_stride, double beta);
/* Adds what lies in `out`, and is overwritten by the product. */
void eddy_cuda_gemm_add_out(eddy_cuda_gemm *gemm);

/* Done by streams/cuda/gemm.c. */

/* Whether the library is there; the first call looks for it. *has_started: set to true, if this call has loaded it. For eddy_kernel.prepare. */
bool eddy_cuda_gemm_open(bool *has_started);
/* Whether the library has an algorithm for the product. It is asked once for each geometry, and host code answers. Launching thread. */
bool eddy_cuda_gemm_can(const eddy_kernel_call *call, const eddy_cuda_gemm *gemm,
                        const eddy_cuda_gemm_operands *operands);
/* Launches the product for the call on its queue; what fails is the call's failure, as of eddy_cuda_launch. False: nothing is launched, since the library has no algorithm. Launching
 * thread. */
EDDY_MUST_USE bool eddy_cuda_gemm_launch(const eddy_kernel_call *call, const eddy_cuda_gemm *gemm,
                                         const eddy_cuda_gemm_operands *operands);

#endif
