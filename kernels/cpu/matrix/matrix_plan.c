#include <kernels/cpu/chunk.h>
#include <kernels/cpu/matrix/matrix_plan.h>

static eddy_matrix matrix_of(const eddy_op_view *view, bool is_column) {
    eddy_matrix matrix = {.rows = 1, .columns = 1, .dtype = view->dtype};
    int32_t rank = view->rank;
    if (rank == 1 && is_column) {
        matrix.rows = view->shape[0];
        matrix.row_stride = view->strides[0];
    } else if (rank >= 1) {
        matrix.columns = view->shape[rank - 1];
        matrix.column_stride = view->strides[rank - 1];
    }
    if (rank >= 2) {
        matrix.rows = view->shape[rank - 2];
        matrix.row_stride = view->strides[rank - 2];
    }
    return matrix;
}

/* The strides of dims of size 1 have no meaning: such a matrix gets the strides of a row-major or column-major one. */
static void normalize(eddy_matrix *matrix) {
    if (matrix->rows == 1)
        matrix->row_stride = matrix->column_stride == 1 ? eddy_max_i64(1, matrix->columns) : 1;
    if (matrix->columns == 1)
        matrix->column_stride = matrix->row_stride == 1 ? eddy_max_i64(1, matrix->rows) : 1;
    if (matrix->rows == 1 && matrix->columns == 1)
        matrix->row_stride = matrix->column_stride = 1;
}

bool eddy_matrix_leading_of(const eddy_matrix *matrix, eddy_matrix_leading *leading) {
    if (matrix->column_stride == 1 && matrix->row_stride >= eddy_max_i64(1, matrix->columns)) {
        *leading = (eddy_matrix_leading){.is_transposed = false, .stride = matrix->row_stride};
        return true;
    }
    if (matrix->row_stride == 1 && matrix->column_stride >= eddy_max_i64(1, matrix->rows)) {
        *leading = (eddy_matrix_leading){.is_transposed = true, .stride = matrix->column_stride};
        return true;
    }
    return false;
}

static int32_t batch_rank(const eddy_op_view *view) {
    return view->rank > 2 ? view->rank - 2 : 0;
}

static int64_t batch_stride(const eddy_op_view *view, int32_t from_last) {
    int32_t d = view->rank - 2 - from_last;
    return d < 0 || view->shape[d] == 1 ? 0 : view->strides[d];
}

static void add_batches(eddy_matrix_plan *plan, const eddy_op_view *a, const eddy_op_view *b,
                        const eddy_op_view *out, int32_t out_matrix_rank) {
    int32_t ranks_a = batch_rank(a), ranks_b = batch_rank(b),
            rank = ranks_a > ranks_b ? ranks_a : ranks_b;
    eddy_walk_init(&plan->batches, 0, NULL);
    plan->batches.operand_count = 3;
    plan->batch_count = 1;
    if (rank == 0)
        return;
    for (int32_t from_last = rank; from_last >= 1; from_last--) {
        int32_t d = out->rank - out_matrix_rank - from_last;
        eddy_walk_append(
            &plan->batches, out->shape[d],
            (int64_t[]){batch_stride(a, from_last), batch_stride(b, from_last), out->strides[d]},
            3);
    }
    plan->batch_count = eddy_walk_count(&plan->batches);
    eddy_walk_collapse(&plan->batches);
}

/* Batches of A that share B and follow each other at a constant stride are treated as more rows of A. */
static void fold_batches(eddy_matrix_plan *plan) {
    eddy_walk *batches = &plan->batches;
    while (batches->rank > 0 && plan->batch_count > 0) {
        int32_t inner = batches->rank - 1;
        int64_t a_stride = batches->strides[0][inner], out_stride = batches->strides[2][inner];
        int64_t rows = plan->a.rows;
        if (batches->strides[1][inner] != 0)
            return;
        if (rows == 1) {
            plan->a.row_stride = a_stride;
            plan->out.row_stride = out_stride;
        } else if (a_stride != rows * plan->a.row_stride ||
                   out_stride != rows * plan->out.row_stride) {
            return;
        }
        plan->a.rows = plan->out.rows = rows * batches->dims[inner];
        plan->batch_count /= batches->dims[inner];
        batches->rank--;
    }
}

static void finish(eddy_matrix_plan *plan) {
    fold_batches(plan);
    normalize(&plan->a);
    normalize(&plan->b);
    normalize(&plan->out);
    plan->compute = eddy_chunk_compute_dtype(plan->out.dtype);
}

void eddy_matrix_plan_matmul(eddy_matrix_plan *plan, const eddy_op_view *a, const eddy_op_view *b,
                             const eddy_op_view *out) {
    plan->a = matrix_of(a, false);
    plan->b = matrix_of(b, true);
    plan->bias = (eddy_matrix){0};
    int32_t ranks_a = batch_rank(a), ranks_b = batch_rank(b);
    int32_t matrix_rank = out->rank - (ranks_a > ranks_b ? ranks_a : ranks_b);
    eddy_matrix result = {.rows = plan->a.rows, .columns = plan->b.columns, .dtype = out->dtype};
    bool has_columns =
        matrix_rank == 2 || (matrix_rank == 1 && (result.columns != 1 || b->rank > 1) &&
                             (result.rows == 1 || a->rank == 1));
    if (has_columns)
        result.column_stride = out->strides[out->rank - 1];
    if (matrix_rank == 2)
        result.row_stride = out->strides[out->rank - 2];
    else if (matrix_rank == 1 && !has_columns)
        result.row_stride = out->strides[out->rank - 1];
    plan->out = result;
    add_batches(plan, a, b, out, matrix_rank);
    finish(plan);
}

void eddy_matrix_plan_linear(eddy_matrix_plan *plan, const eddy_op_view *x, const eddy_op_view *w,
                             const eddy_op_view *bias, const eddy_op_view *out) {
    plan->a = matrix_of(x, false);
    eddy_matrix weight = matrix_of(w, false);
    plan->b = eddy_matrix_transposed(&weight);
    plan->bias = (eddy_matrix){0};
    if (bias->rank >= 0)
        plan->bias = matrix_of(bias, false);
    plan->out = matrix_of(out, false);
    add_batches(plan, x, w, out, out->rank >= 2 ? 2 : out->rank);
    finish(plan);
}
