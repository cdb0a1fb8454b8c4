#include <base/dtype.h>
#include <kernels/cuda/gemm.h>
#include <string.h>

/* The library counts batches by them; it refuses longer dims itself. */
#define BATCHES_MOST INT32_MAX

/* A factor is copied if each of its elements is multiplied so often. */
#define COPIED_LEAST 16

/* Whether one step leads from each batch to the next. */
static bool has_one_step(const eddy_walk *batches, int operand, int64_t *step) {
    const int64_t *strides = batches->strides[operand];
    *step = batches->rank > 0 ? strides[batches->rank - 1] : 0;
    for (int32_t d = batches->rank - 1; d > 0; d--)
        if (strides[d - 1] != strides[d] * batches->dims[d])
            return false;
    return *step >= 0;
}

static bool lies(const eddy_matrix *matrix, const eddy_walk *batches, int operand, int64_t *step) {
    eddy_matrix_leading leading;
    return has_one_step(batches, operand, step) && eddy_matrix_leading_of(matrix, &leading);
}

static void make_dense(eddy_matrix *matrix, const eddy_walk *batches, int64_t *step) {
    matrix->row_stride = matrix->columns;
    matrix->column_stride = 1;
    *step = batches->rank > 0 ? matrix->rows * matrix->columns : 0;
}

static eddy_cuda_gemm_matrix matrix_of(const eddy_matrix *matrix, int64_t step,
                                       uint32_t *is_transposed) {
    eddy_matrix_leading leading;
    bool is_taken = eddy_matrix_leading_of(matrix, &leading);
    EDDY_ASSERT(is_taken);
    *is_transposed = leading.is_transposed;
    return (eddy_cuda_gemm_matrix){leading.stride, step};
}

static void swap(eddy_matrix *a, eddy_matrix *b, int64_t *a_step, int64_t *b_step) {
    eddy_matrix turned = eddy_matrix_transposed(b);
    int64_t step = *b_step;
    *b = eddy_matrix_transposed(a);
    *b_step = *a_step;
    *a = turned;
    *a_step = step;
}

bool eddy_cuda_gemm_plan(const eddy_matrix_plan *matrices, eddy_cuda_gemm *gemm, uint32_t *steps) {
    const eddy_walk *batches = &matrices->batches;
    eddy_matrix a = matrices->a, b = matrices->b, out = matrices->out;
    int64_t a_step, b_step, out_step;
    uint32_t is_turned;
    if (!eddy_dtype_is_float(out.dtype) || out.rows == 0 || out.columns == 0 || a.columns == 0 ||
        matrices->batch_count == 0 || matrices->batch_count > BATCHES_MOST ||
        !lies(&out, batches, 2, &out_step))
        return false;
    *steps = 0;
    if (!lies(&a, batches, 0, &a_step)) {
        if (out.columns < COPIED_LEAST)
            return false;
        make_dense(&a, batches, &a_step);
        *steps |= EDDY_CUDA_GEMM_COPIES_A;
    }
    if (!lies(&b, batches, 1, &b_step)) {
        if (out.rows < COPIED_LEAST)
            return false;
        make_dense(&b, batches, &b_step);
        *steps |= EDDY_CUDA_GEMM_COPIES_B;
    }
    memset(gemm, 0, sizeof(*gemm));
    gemm->out = matrix_of(&out, out_step, &is_turned);
    if (is_turned) {
        *steps |= EDDY_CUDA_GEMM_TURNS;
        swap(&a, &b, &a_step, &b_step);
    }
    gemm->rows = a.rows;
    gemm->depth = a.columns;
    gemm->columns = b.columns;
    gemm->batches = matrices->batch_count;
    gemm->a = matrix_of(&a, a_step, &gemm->is_a_transposed);
    gemm->b = matrix_of(&b, b_step, &gemm->is_b_transposed);
    gemm->dtype = out.dtype;
    return true;
}

bool eddy_cuda_gemm_add(eddy_cuda_gemm *gemm, int64_t row_stride, int64_t column_stride,
                        double beta) {
    if (column_stride != 1 && gemm->columns > 1)
        return false;
    if (row_stride == 0 && beta == 1) {
        gemm->addend = EDDY_CUDA_GEMM_ROW;
        return true;
    }
    if (gemm->batches > 1 || (row_stride < gemm->columns && gemm->rows > 1))
        return false;
    gemm->addend = EDDY_CUDA_GEMM_MATRIX;
    gemm->c.leading = gemm->rows > 1 ? row_stride : gemm->columns;
    return true;
}

void eddy_cuda_gemm_add_out(eddy_cuda_gemm *gemm) {
    gemm->addend = EDDY_CUDA_GEMM_MATRIX;
    gemm->c = gemm->out;
}
