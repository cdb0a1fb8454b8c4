#include <base/dtype.h>
#include <kernels/cuda/gemm.h>
#include <string.h>

/* The library counts batches by them; it refuses longer dims itself. */
#define BATCHES_MOST INT32_MAX

bool eddy_cuda_gemm_plan(const eddy_matrix_plan *matrices, eddy_cuda_gemm *gemm, bool *is_turned) {
    const eddy_walk *batches = &matrices->batches;
    eddy_matrix a = matrices->a, b = matrices->b, out = matrices->out;
    if (!eddy_dtype_is_float(out.dtype) || out.rows == 0 || out.columns == 0 || a.columns == 0 ||
        matrices->batch_count == 0 || matrices->batch_count > BATCHES_MOST || batches->rank > 1)
        return false;
    eddy_matrix_leading of_a, of_b, of_out;
    if (!eddy_matrix_leading_of(&out, &of_out))
        return false;
    *is_turned = of_out.is_transposed;
    if (*is_turned) {
        eddy_matrix turned_b = eddy_matrix_transposed(&b);
        b = eddy_matrix_transposed(&a);
        a = turned_b;
        out = eddy_matrix_transposed(&out);
    }
    if (!eddy_matrix_leading_of(&a, &of_a) || !eddy_matrix_leading_of(&b, &of_b))
        return false;
    int64_t steps[3] = {0};
    for (int k = 0; k < 3 && batches->rank == 1; k++)
        steps[k] = batches->strides[k][0];
    if (steps[0] < 0 || steps[1] < 0 || steps[2] < 0)
        return false;
    *gemm = (eddy_cuda_gemm){.rows = out.rows,
                             .depth = a.columns,
                             .columns = out.columns,
                             .batches = matrices->batch_count,
                             .a = {of_a.stride, steps[*is_turned ? 1 : 0]},
                             .b = {of_b.stride, steps[*is_turned ? 0 : 1]},
                             .out = {of_out.stride, steps[2]},
                             .is_a_transposed = of_a.is_transposed,
                             .is_b_transposed = of_b.is_transposed,
                             .dtype = out.dtype};
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
