/* What the kernel of the fake library of products (tests/fake_cuda/blas) is given. Matrices lie column by column, as the library has them. Plain C. */
#ifndef EDDY_TESTS_FAKE_CUDA_KERNELS_BLAS_PRODUCT_H
#define EDDY_TESTS_FAKE_CUDA_KERNELS_BLAS_PRODUCT_H

#include <stdint.h>

/* In elements: from column to column, and from batch to batch. */
typedef struct fake_blas_matrix {
    int64_t leading, batch;
} fake_blas_matrix;

/* How it sums. */
enum {
    FAKE_BLAS_AT_ONCE,
    FAKE_BLAS_IN_PARTS, /* the second half of the depth by way of the workspace, in the type of sums */
    FAKE_BLAS_IN_ROUNDED_PARTS, /* the same, in the type of elements: what Eddy's products may not be */
};

typedef struct fake_blas_product {
    const void *a, *b, *c; /* c: NULL where beta is 0 */
    const void *bias;      /* NULL: none */
    void *d, *workspace;
    uint64_t workspace_bytes; /* that are used */
    int64_t rows, columns, depth, batches;
    fake_blas_matrix a_of, b_of, c_of, d_of;
    double alpha, beta;
    int32_t type; /* EDDY_BLAS_F32 and the like */
    int32_t is_a_transposed, is_b_transposed;
    int32_t how;
    int32_t is_tf32; /* what is multiplied is rounded to it */
    int32_t padding;
} fake_blas_product;

#endif
