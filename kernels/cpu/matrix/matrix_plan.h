/* The operands of a matrix product: batches of [m, k] x [k, n], in any layout and dtype. */
#ifndef EDDY_KERNELS_CPU_MATRIX_PLAN_H
#define EDDY_KERNELS_CPU_MATRIX_PLAN_H

#include <kernels/cpu/matrix/gemm.h>
#include <kernels/cpu/walk.h>

/* The layout of a matrix, from its first element on; strides in elements. */
typedef struct eddy_matrix {
    int64_t rows, columns;
    int64_t row_stride, column_stride;
    eddy_dtype dtype;
} eddy_matrix;

typedef struct eddy_matrix_plan {
    eddy_matrix a, b, out; /* of the first batch */
    eddy_matrix bias;      /* one row; no columns: absent */
    eddy_walk batches;     /* a, b, out */
    int64_t batch_count;
    eddy_dtype compute; /* f32 or f64; i64 for integers */
} eddy_matrix_plan;

/* Bytes of a kernel's plan that matmul takes at most. */
#define EDDY_MATRIX_BYTES_MOST 1152

/* matmul: a, b, out. If `out` has fewer dims than a and b give, the missing ones have size 1. */
void eddy_matrix_plan_matmul(eddy_matrix_plan *plan, const eddy_op_view *a, const eddy_op_view *b,
                             const eddy_op_view *out);
/* linear: x, w (its rows are the output's columns), bias or absent, out. */
void eddy_matrix_plan_linear(eddy_matrix_plan *plan, const eddy_op_view *x, const eddy_op_view *w,
                             const eddy_op_view *bias, const eddy_op_view *out);

/* The layout as a library takes it: row-major, or column-major as a transpose; `stride` is the leading dimension. */
typedef struct eddy_matrix_leading {
    int64_t stride;
    bool is_transposed;
} eddy_matrix_leading;
/* False if the matrix has to be packed. */
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
