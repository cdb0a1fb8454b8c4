/* matmul and linear. Floats go to a matrix library (see gemm.h), operand by operand where they lie if their layout allows,
 * otherwise packed into the workspace; integers are in matrix_integer.c. */
#include <base/dtype.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/move/copy.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/matrix/matrix_integer.h>
#include <kernels/cpu/matrix/matrix_plan.h>

/* Work (m * n * k) of a slice of batches, at least. */
#define SLICE_WORK 2e6
/* The same of products with a vector, which take as long as their matrix takes to be read. */
#define SLICE_VECTOR_WORK 1e5

typedef struct product {
    const eddy_matrix_plan *plan;
    eddy_matrix a, b, out, bias; /* in the compute type, as the library takes them; out is row-major */
    eddy_matrix_leading a_lead, b_lead, out_lead;
    bool is_turned; /* out was column-major: its transpose is computed, a and b have changed places */
    eddy_gemm_cut cut;
    eddy_gemm_provider provider;
    int64_t first_batch;
} product;

static void *element(const eddy_matrix *matrix, int64_t row, int64_t column) {
    return eddy_chunk_at(matrix->data, matrix->dtype, row * matrix->row_stride + column * matrix->column_stride);
}

/* Rows row .. of `out` get the bias; along the contiguous side of out, which is its rows, or columns when it is turned. */
#define ADD_BIAS(name, real)                                                                                           \
    static void add_bias_##name(const eddy_matrix *out, const eddy_matrix *bias, int64_t row, int64_t rows,            \
                                int64_t column, int64_t columns, bool is_turned) {                                     \
        const real *from = bias->data;                                                                                 \
        if (is_turned) {                                                                                               \
            for (int64_t i = 0; i < rows; i++) {                                                                       \
                real *to = element(out, row + i, column), value = from[(row + i) * bias->column_stride];               \
                for (int64_t j = 0; j < columns; j++)                                                                  \
                    to[j] += value;                                                                                    \
            }                                                                                                          \
        } else if (bias->column_stride == 1) {                                                                         \
            for (int64_t i = 0; i < rows; i++) {                                                                       \
                real *restrict to = element(out, row + i, column);                                                     \
                const real *restrict at = from + column;                                                               \
                for (int64_t j = 0; j < columns; j++)                                                                  \
                    to[j] += at[j];                                                                                    \
            }                                                                                                          \
        } else {                                                                                                       \
            for (int64_t i = 0; i < rows; i++) {                                                                       \
                real *to = element(out, row + i, column);                                                              \
                for (int64_t j = 0; j < columns; j++)                                                                  \
                    to[j] += from[(column + j) * bias->column_stride];                                                 \
            }                                                                                                          \
        }                                                                                                              \
    }

ADD_BIAS(f32, float)
ADD_BIAS(f64, double)

static void multiply_tile(const product *work, int64_t tile, const int64_t *offsets) {
    const eddy_gemm_cut *cut = &work->cut;
    int64_t row = tile / cut->column_tiles * cut->rows, column = tile % cut->column_tiles * cut->columns;
    int64_t rows = eddy_min_i64(cut->rows, work->out.rows - row);
    int64_t columns = eddy_min_i64(cut->columns, work->out.columns - column);
    int64_t depth = work->a.columns;
    eddy_matrix a = work->a, b = work->b, out = work->out;
    if (depth > 0) { /* otherwise neither side need have data */
        a.data = eddy_chunk_at(element(&a, row, 0), a.dtype, offsets[work->is_turned ? 1 : 0]);
        b.data = eddy_chunk_at(element(&b, 0, column), b.dtype, offsets[work->is_turned ? 0 : 1]);
    }
    out.data = eddy_chunk_at(out.data, out.dtype, offsets[2]);
    void *target = element(&out, row, column);
    if (out.dtype == EDDY_F64)
        eddy_gemm_provider_f64(work->provider)(work->a_lead.is_transposed, work->b_lead.is_transposed, rows, columns,
                                               depth, 1, a.data, work->a_lead.stride, b.data, work->b_lead.stride, 0,
                                               target, work->out_lead.stride);
    else
        eddy_gemm_provider_f32(work->provider)(work->a_lead.is_transposed, work->b_lead.is_transposed, rows, columns,
                                               depth, 1, a.data, work->a_lead.stride, b.data, work->b_lead.stride, 0,
                                               target, work->out_lead.stride);
    if (work->bias.data == NULL)
        return;
    if (out.dtype == EDDY_F64)
        add_bias_f64(&out, &work->bias, row, rows, column, columns, work->is_turned);
    else
        add_bias_f32(&out, &work->bias, row, rows, column, columns, work->is_turned);
}

static int64_t tile_count(const product *work) {
    return work->cut.row_tiles * work->cut.column_tiles;
}

/* Tasks are tiles of batches, from first_batch on. */
static void multiply_slice(void *context, int64_t begin, int64_t end) {
    const product *work = context;
    for (int64_t task = begin; task < end; task++) {
        eddy_walk_cursor cursor;
        eddy_walk_seek(&work->plan->batches, &cursor, work->first_batch + task / tile_count(work));
        if (work->plan->packs_a)
            cursor.offsets[0] = 0;
        if (work->plan->packs_b)
            cursor.offsets[1] = 0;
        if (work->plan->packs_out)
            cursor.offsets[2] = 0;
        multiply_tile(work, task % tile_count(work), cursor.offsets);
    }
}

static eddy_op_view view_of(const eddy_matrix *matrix, int64_t offset, int64_t *dims) {
    dims[0] = matrix->rows;
    dims[1] = matrix->columns;
    dims[2] = matrix->row_stride;
    dims[3] = matrix->column_stride;
    void *data = matrix->data == NULL ? NULL : eddy_chunk_at(matrix->data, matrix->dtype, offset);
    return (eddy_op_view){.data = data, .shape = dims, .strides = dims + 2, .dtype = matrix->dtype, .rank = 2};
}

static void copy_matrix(const eddy_kernel_call *call, const eddy_matrix *from, int64_t from_offset,
                        const eddy_matrix *to, int64_t to_offset) {
    int64_t from_dims[4], to_dims[4];
    eddy_op_view source = view_of(from, from_offset, from_dims), target = view_of(to, to_offset, to_dims);
    eddy_copy_view(call->team, &source, &target);
}

/* A row-major matrix of the compute type in the workspace. */
static eddy_matrix packed(const eddy_kernel_call *call, const eddy_matrix_plan *plan, const eddy_matrix *matrix,
                          size_t at) {
    eddy_matrix place = *matrix;
    place.data = (char *)call->workspace + at;
    place.dtype = plan->compute;
    place.row_stride = eddy_max_i64(1, matrix->columns);
    place.column_stride = 1;
    return place;
}

static void matrix_prepare(product *work, const eddy_kernel_call *call, const eddy_matrix_plan *plan) {
    work->plan = plan;
    work->a = plan->packs_a ? packed(call, plan, &plan->a, plan->a_at) : plan->a;
    work->b = plan->packs_b ? packed(call, plan, &plan->b, plan->b_at) : plan->b;
    work->out = plan->packs_out ? packed(call, plan, &plan->out, plan->out_at) : plan->out;
    work->bias = plan->bias;
    if (plan->packs_bias) {
        work->bias = packed(call, plan, &plan->bias, plan->bias_at);
        copy_matrix(call, &plan->bias, 0, &work->bias, 0);
    }
    eddy_matrix_leading_of(&work->out, &work->out_lead);
    work->is_turned = work->out_lead.is_transposed;
    if (work->is_turned) {
        eddy_matrix a = eddy_matrix_transposed(&work->b), b = eddy_matrix_transposed(&work->a);
        work->out = eddy_matrix_transposed(&work->out);
        work->a = a;
        work->b = b;
    }
    eddy_matrix_leading_of(&work->a, &work->a_lead);
    eddy_matrix_leading_of(&work->b, &work->b_lead);
    int64_t m = work->out.rows, n = work->out.columns, k = work->a.columns;
    work->cut = eddy_gemm_cut_for(m, n, k);
    work->provider = eddy_gemm_choose(eddy_isa_chosen(), plan->compute, m, n, k);
    work->first_batch = 0;
}

static void run_tasks(const eddy_kernel_call *call, product *work, int64_t tasks) {
    double each = (double)work->out.rows * (double)work->out.columns * (double)work->a.columns;
    each /= (double)tile_count(work);
    double slice = work->provider == EDDY_GEMM_VECTOR ? SLICE_VECTOR_WORK : SLICE_WORK;
    int64_t grain = each >= slice ? 1 : (int64_t)(slice / (each + 1));
    grain = eddy_max_i64(1, grain);
    if (tasks <= grain)
        multiply_slice(work, 0, tasks);
    else
        call->team->parallel_for(call->team, tasks, grain, multiply_slice, work);
}

/* With something to pack, the workspace holds one batch at a time; what the next batch shares is kept. */
static void run_packed(const eddy_kernel_call *call, product *work) {
    const eddy_matrix_plan *plan = work->plan;
    eddy_matrix a_place = packed(call, plan, &plan->a, plan->a_at), b_place = packed(call, plan, &plan->b, plan->b_at);
    eddy_walk_cursor cursor;
    eddy_walk_seek(&plan->batches, &cursor, 0);
    int64_t a_packed = -1, b_packed = -1;
    bool is_first = true;
    for (int64_t batch = 0; batch < plan->batch_count; batch++) {
        if (plan->packs_a && (is_first || a_packed != cursor.offsets[0]))
            copy_matrix(call, &plan->a, cursor.offsets[0], &a_place, 0);
        if (plan->packs_b && (is_first || b_packed != cursor.offsets[1]))
            copy_matrix(call, &plan->b, cursor.offsets[1], &b_place, 0);
        a_packed = cursor.offsets[0];
        b_packed = cursor.offsets[1];
        is_first = false;
        work->first_batch = batch;
        run_tasks(call, work, tile_count(work));
        if (plan->packs_out)
            copy_matrix(call, &work->out, 0, &plan->out, cursor.offsets[2]);
        eddy_walk_next(&plan->batches, &cursor, plan->batches.rank);
    }
}

static void matrix_run(const eddy_kernel_call *call, const eddy_matrix_plan *plan) {
    if (plan->out.rows == 0 || plan->out.columns == 0 || plan->batch_count == 0)
        return;
    if (plan->compute == EDDY_I64) {
        eddy_matrix_integer_run(call, plan);
        return;
    }
    product work;
    matrix_prepare(&work, call, plan);
    if (plan->packs_a || plan->packs_b || plan->packs_out)
        run_packed(call, &work);
    else
        run_tasks(call, &work, plan->batch_count * tile_count(&work));
}

static void matmul_plan(eddy_matrix_plan *plan, const eddy_kernel_call *call) {
    eddy_matrix_plan_matmul(plan, &call->views[0], &call->views[1], &call->views[2]);
}

static void linear_plan(eddy_matrix_plan *plan, const eddy_kernel_call *call) {
    eddy_matrix_plan_linear(plan, &call->views[0], &call->views[1], &call->views[2], &call->views[3]);
}

static void matmul_run(const eddy_kernel_call *call) {
    eddy_matrix_plan plan;
    matmul_plan(&plan, call);
    matrix_run(call, &plan);
}

static void linear_run(const eddy_kernel_call *call) {
    eddy_matrix_plan plan;
    linear_plan(&plan, call);
    matrix_run(call, &plan);
}

static size_t matmul_workspace(const eddy_kernel_call *call) {
    eddy_matrix_plan plan;
    matmul_plan(&plan, call);
    return plan.workspace_bytes;
}

static size_t linear_workspace(const eddy_kernel_call *call) {
    eddy_matrix_plan plan;
    linear_plan(&plan, call);
    return plan.workspace_bytes;
}

/* Of each batch of a product of matrices, however small. */
#define BATCH_PS 300000

static bool has_vector(const eddy_matrix_plan *plan) {
    return plan->out.rows == 1 || plan->out.columns == 1;
}

/* Picoseconds of a multiplication and an addition. With a vector, each element of the matrix is read for one. */
static double product_ps(const eddy_matrix_plan *plan) {
    if (plan->compute != EDDY_F32 && plan->compute != EDDY_F64)
        return 1000;
    return (has_vector(plan) ? 90 : 25) * (plan->compute == EDDY_F64 ? 2 : 1);
}

/* The elements of the largest operand do not show the work. */
static int64_t plan_cost(const eddy_kernel_call *call, const eddy_matrix_plan *plan) {
    double products =
        (double)plan->batch_count * (double)plan->out.rows * (double)plan->out.columns * (double)plan->a.columns;
    double total = products * product_ps(plan) + (has_vector(plan) ? 0 : (double)plan->batch_count * BATCH_PS);
    return call->kernel->cost_base_ps + (int64_t)(total < 1e15 ? total : 1e15) + eddy_cost_far_views_ps(call);
}

static int64_t matmul_cost(const eddy_kernel_call *call) {
    eddy_matrix_plan plan;
    matmul_plan(&plan, call);
    return plan_cost(call, &plan);
}

static int64_t linear_cost(const eddy_kernel_call *call) {
    eddy_matrix_plan plan;
    linear_plan(&plan, call);
    return plan_cost(call, &plan);
}

/* A product that is computed column by column has changed places with its transpose. */
static bool start_plan(const eddy_matrix_plan *plan) {
    int64_t m = plan->out.rows, n = plan->out.columns, k = plan->a.columns;
    return plan->compute == EDDY_F32 && (eddy_gemm_start(EDDY_F32, m, n, k) | eddy_gemm_start(EDDY_F32, n, m, k));
}

/* Of all batches. */
static double work_of(const eddy_op_view *a, const eddy_op_view *out) {
    return (double)eddy_view_count(out) * (double)(a->rank > 0 ? a->shape[a->rank - 1] : 1);
}

static bool matmul_start(const eddy_kernel_call *call) {
    eddy_matrix_plan plan;
    if (!eddy_gemm_may_start(work_of(&call->views[0], &call->views[2])))
        return false;
    matmul_plan(&plan, call);
    return start_plan(&plan);
}

static bool linear_start(const eddy_kernel_call *call) {
    eddy_matrix_plan plan;
    if (!eddy_gemm_may_start(work_of(&call->views[0], &call->views[3])))
        return false;
    linear_plan(&plan, call);
    return start_plan(&plan);
}

const eddy_kernel eddy_cpu_matmul = {.name = "matmul",
                                     .run = matmul_run,
                                     .workspace = matmul_workspace,
                                     .cost_base_ps = 150000,
                                     .cost_element_ps = 3000,
                                     .cost = matmul_cost,
                                     .start = matmul_start};
const eddy_kernel eddy_cpu_linear = {.name = "linear",
                                     .run = linear_run,
                                     .workspace = linear_workspace,
                                     .cost_base_ps = 150000,
                                     .cost_element_ps = 3000,
                                     .cost = linear_cost,
                                     .start = linear_start};
