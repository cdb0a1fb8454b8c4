/* Matrix products on CUDA devices, in any layout: which kernels there are, and what they get (product.cu, product.c). Plain C.
 *
 * A block of threads computes a square tile of the result. Each element is summed in the order of the depth by one thread, so that its bits do not depend on the tile. */
#ifndef EDDY_KERNELS_CUDA_PRODUCT_H
#define EDDY_KERNELS_CUDA_PRODUCT_H

#include <kernels/cuda/parameters.h>

/* Element, and the type of sums. Integers wrap around, whatever the width of sums beyond theirs. */
#define EDDY_CUDA_PRODUCTS(row)                                                                    \
    row(f32, F32, float) row(f64, F64, double) row(f16, F16, float) row(bf16, BF16, float)         \
        row(i8, I8, uint32_t) row(u8, U8, uint32_t) row(i16, I16, uint32_t)                        \
            row(i32, I32, uint32_t) row(i64, I64, uint64_t)

/* Threads of a block, along each side; the kernels eddy_product_<element>_large and _small have so many elements of the result for each thread, along each side. */
#define EDDY_CUDA_PRODUCT_SIDE 16
#define EDDY_CUDA_PRODUCT_LARGE 4
#define EDDY_CUDA_PRODUCT_SMALL 1

/* The dims of [rows, depth] x [depth, columns] that an operand has a stride for. */
typedef struct eddy_cuda_product_matrix {
    int64_t row, column; /* strides in elements */
} eddy_cuda_product_matrix;

enum {
    EDDY_CUDA_PRODUCT_A,
    EDDY_CUDA_PRODUCT_B,
    EDDY_CUDA_PRODUCT_OUT,
    EDDY_CUDA_PRODUCT_MATRICES
};

/* out = a b, then alpha * out if it is scaled, then out + in, or out + beta * in if it is scaled. */
typedef struct eddy_cuda_product {
    eddy_cuda_gate gate;
    void *data[EDDY_CUDA_PRODUCT_MATRICES]; /* of the first batch */
    const void *in;                         /* NULL: absent. All batches share it. */
    int64_t rows, depth, columns, batches;
    eddy_cuda_product_matrix matrices[EDDY_CUDA_PRODUCT_MATRICES];
    eddy_cuda_product_matrix in_strides;
    uint32_t is_scaled;
    uint32_t rank; /* of the batches; dims outermost first */
    double alpha, beta;
    uint64_t integer_alpha, integer_beta; /* for integers */
    int64_t dims[EDDY_CUDA_RANK_MAX];
    int64_t strides[EDDY_CUDA_PRODUCT_MATRICES][EDDY_CUDA_RANK_MAX]; /* in elements */
} eddy_cuda_product;

#endif
