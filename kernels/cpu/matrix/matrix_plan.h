/* A matrix product as the kernels see it: batches of [m, k] x [k, n], and which operands must be packed. */
#ifndef EDDY_KERNELS_CPU_MATRIX_PLAN_H
#define EDDY_KERNELS_CPU_MATRIX_PLAN_H

#include <kernels/cpu/matrix/gemm.h>
#include <kernels/cpu/walk.h>

typedef struct eddy_matrix {
    void *data;
    int64_t rows, columns;
    int64_t row_stride, column_stride;
    eddy_dtype dtype;
} eddy_matrix;

typedef struct eddy_matrix_plan {
    eddy_matrix a, b, out; /* of the first batch */
    eddy_matrix bias;      /* one row; data NULL and columns 0 without a bias */
    eddy_walk batches;     /* a, b, out */
    int64_t batch_count;
    eddy_dtype compute; /* f32 or f64; i64 for integers, which are never packed */
    bool packs_a, packs_b, packs_out, packs_bias;
    size_t a_at, b_at, out_at, bias_at; /* offsets in the workspace */
    size_t workspace_bytes;
} eddy_matrix_plan;

/* matmul: a, b, out. Needs shapes, strides and dtypes; takes data pointers as they are. Where `out` has fewer dims than
 * a and b give, the missing ones have size 1. */
void eddy_matrix_plan_matmul(eddy_matrix_plan *plan, const eddy_op_view *a, const eddy_op_view *b,
                             const eddy_op_view *out);
/* linear: x, w (its rows are the output's columns), bias or absent, out. */
void eddy_matrix_plan_linear(eddy_matrix_plan *plan, const eddy_op_view *x, const eddy_op_view *w,
                             const eddy_op_view *bias, const eddy_op_view *out);

/* The stride of the rows where a matrix lies as a library takes it (row-major, or column-major as a transpose). */
typedef struct eddy_matrix_leading {
    bool is_transposed;
    int64_t stride;
} eddy_matrix_leading;
/* False when it has to be packed. */
bool eddy_matrix_leading_of(const eddy_matrix *matrix, eddy_matrix_leading *leading);

/* The matrix [columns, rows] over the same memory. */
static inline eddy_matrix eddy_matrix_transposed(const eddy_matrix *matrix) {
    eddy_matrix turned = *matrix;
    turned.rows = matrix->columns;
    turned.columns = matrix->rows;
    turned.row_stride = matrix->column_stride;
    turned.column_stride = matrix->row_stride;
    return turned;
}

#endif
