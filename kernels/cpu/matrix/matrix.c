/* matmul and linear. Floats go to a matrix library (gemm.h): each operand in place if its layout allows that, else packed
 * into the workspace. Integers are in matrix_integer.c. */
#include <base/dtype.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/matrix/add_product.h>
#include <kernels/cpu/matrix/matrix_integer.h>
#include <kernels/cpu/matrix/matrix_plan.h>
#include <kernels/cpu/move/copy.h>

#define INLINE static inline __attribute__((always_inline))

/* Work (m * n * k) of a slice of batches, at least. */
#define SLICE_WORK 2e6
/* The same for products with a vector, which take as long as reading their matrix. */
#define SLICE_VECTOR_WORK 1e5

/* The plan: the product as it is computed, from packed copies if there are any. The packing follows it in memory if there
 * is one, else the walk over batches if there are several. */
typedef struct product {
    int64_t rows, columns, depth; /* of a batch */
    eddy_matrix_leading left,
        right; /* a and b; if the product is turned, the transposes of b and a */
    int64_t out_stride, bias_stride; /* of the result's rows, of the bias' elements */
    eddy_gemm_cut cut;
    int64_t batch_count;
    int64_t grain; /* tasks of a slice: tiles of batches */
    union {
        eddy_gemm_f32_fn *f32;
        eddy_gemm_f64_fn *f64;
    } multiply;
    bool
        is_turned; /* out is column-major: its transpose is computed, as the product of the transposes of b and a */
    bool is_wide; /* f64 */
    bool has_bias;
    bool goes_on; /* sums begin with what the output holds */
} product;

/* An operand that may be replaced by a packed copy, which is row-major in the compute type. */
typedef struct packed_operand {
    size_t at; /* offset in the workspace */
    int64_t
        copy; /* offset of the copy's words from the packing, in words; 0: the operand is used in place, without a copy */
} packed_operand;

/* The packed operands, one batch at a time. The walk over batches follows it in memory, then the words of the copies. */
typedef struct packing {
    packed_operand a, b, out, bias;
} packing;

_Static_assert(sizeof(product) + sizeof(packing) +
                       (EDDY_WALK_WORDS_MOST(3) + 4 * EDDY_COPY_WORDS(2)) * sizeof(int64_t) <=
                   EDDY_MATRIX_BYTES_MOST,
               "room for batches over all dims and for copies of all operands");

/* ---- running ---- */

typedef struct running {
    const eddy_kernel_call *call;
    const product *product;
    const char *left, *right, *bias; /* bias: NULL if absent */
    char *out;
    int64_t offsets[3]; /* a, b, out: offsets of the batch that is cut into tiles */
    eddy_walk batches;  /* a, b, out; set if there are several */
} running;

static int64_t tile_count(const product *p) {
    return p->cut.row_tiles * p->cut.column_tiles;
}

INLINE void add_elements(bool is_wide, void *restrict row, const void *restrict bias,
                         int64_t stride, int64_t count) {
    for (int64_t j = 0; j < count; j++)
        if (is_wide)
            ((double *)row)[j] += ((const double *)bias)[j * stride];
        else
            ((float *)row)[j] += ((const float *)bias)[j * stride];
}

INLINE void add_number(bool is_wide, void *row, double number, int64_t count) {
    for (int64_t j = 0; j < count; j++)
        if (is_wide)
            ((double *)row)[j] += number;
        else
            ((float *)row)[j] += (float)number;
}

INLINE double number_at(bool is_wide, const void *from, int64_t at) {
    return is_wide ? ((const double *)from)[at] : (double)((const float *)from)[at];
}

/* Adds the bias to the rows of `to`: along each row or, if the product is turned, one element of the bias to each row. */
INLINE void add_bias(bool is_wide, const product *p, char *to, int64_t rows, int64_t columns,
                     const char *bias) {
    int64_t stride = p->bias_stride, bytes = is_wide ? sizeof(double) : sizeof(float);
    for (int64_t i = 0; i < rows; i++, to += p->out_stride * bytes)
        if (p->is_turned)
            add_number(is_wide, to, number_at(is_wide, bias, i * stride), columns);
        else if (stride == 1)
            add_elements(is_wide, to, bias, 1, columns);
        else
            add_elements(is_wide, to, bias, stride, columns);
}

/* Computes a tile of the batch at these offsets (a, b, out). */
static void multiply_tile(const running *work, int64_t tile, const int64_t *offsets) {
    const product *p = work->product;
    const eddy_gemm_cut *cut = &p->cut;
    int64_t row = tile / cut->column_tiles * cut->rows,
            column = tile % cut->column_tiles * cut->columns;
    int64_t rows = eddy_min_i64(cut->rows, p->rows - row);
    int64_t columns = eddy_min_i64(cut->columns, p->columns - column);
    int64_t bytes = p->is_wide ? sizeof(double) : sizeof(float);
    const char *left = work->left, *right = work->right;
    if (p->depth > 0) { /* otherwise the data may be NULL */
        left +=
            bytes * (offsets[p->is_turned] + (p->left.is_transposed ? row : row * p->left.stride));
        right += bytes * (offsets[!p->is_turned] +
                          (p->right.is_transposed ? column * p->right.stride : column));
    }
    char *out = work->out + bytes * (offsets[2] + row * p->out_stride + column);
    const char *bias =
        work->bias ? work->bias + bytes * p->bias_stride * (p->is_turned ? row : column) : NULL;
    bool is_made;
    int beta = p->goes_on;
    if (p->is_wide)
        is_made =
            p->multiply.f64(p->left.is_transposed, p->right.is_transposed, rows, columns, p->depth,
                            1, (const double *)left, p->left.stride, (const double *)right,
                            p->right.stride, beta, (double *)out, p->out_stride);
    else
        is_made =
            p->multiply.f32(p->left.is_transposed, p->right.is_transposed, rows, columns, p->depth,
                            1, (const float *)left, p->left.stride, (const float *)right,
                            p->right.stride, (float)beta, (float *)out, p->out_stride);
    if (!is_made)
        eddy_kernel_fail(work->call, EDDY_OUT_OF_MEMORY, 0, 0, 0);
    else if (bias && p->is_wide)
        add_bias(true, p, out, rows, columns, bias);
    else if (bias)
        add_bias(false, p, out, rows, columns, bias);
}

/* Tasks are tiles of one batch. */
static void multiply_tiles(void *context, int64_t begin, int64_t end) {
    const running *work = context;
    for (int64_t tile = begin; tile < end; tile++)
        multiply_tile(work, tile, work->offsets);
}

/* Tasks are tiles of batches. */
static void multiply_batches(void *context, int64_t begin, int64_t end) {
    const running *work = context;
    int64_t tiles = tile_count(work->product);
    for (int64_t task = begin; task < end; task++) {
        eddy_walk_cursor cursor;
        eddy_walk_seek(&work->batches, &cursor, task / tiles);
        multiply_tile(work, task % tiles, cursor.offsets);
    }
}

static void run_tasks(const eddy_kernel_call *call, running *work, int64_t tasks,
                      void (*slice)(void *, int64_t, int64_t)) {
    if (tasks <= work->product->grain)
        slice(work, 0, tasks);
    else
        call->team->parallel_for(call->team, tasks, work->product->grain, slice, work);
}

/* views: a, b, bias of linear, out */
static void begin_running(running *work, const eddy_kernel_call *call) {
    const product *p = call->plan;
    work->call = call;
    work->product = p;
    work->left = call->views[p->is_turned].data;
    work->right = call->views[!p->is_turned].data;
    work->bias = p->has_bias ? call->views[2].data : NULL;
    work->out = call->views[call->view_count - 1].data;
    work->offsets[0] = work->offsets[1] = work->offsets[2] = 0;
}

static void matrix_run(const eddy_kernel_call *call) {
    const product *p = call->plan;
    running work;
    begin_running(&work, call);
    if (p->batch_count == 1) {
        run_tasks(call, &work, tile_count(p), multiply_tiles);
        return;
    }
    eddy_walk_read(&work.batches, (const int64_t *)(const void *)(p + 1));
    run_tasks(call, &work, p->batch_count * tile_count(p), multiply_batches);
}

/* ---- running with packed operands ---- */

/* Copies between an operand, whose batch begins at `offset`, and its copy in the workspace. */
static void copy_operand(const eddy_kernel_call *call, const packing *packs,
                         const packed_operand *operand, const eddy_op_view *view, int64_t offset) {
    const int64_t *words = (const int64_t *)(const void *)packs + operand->copy;
    char *copy = (char *)call->workspace + operand->at;
    /* The data of an operand without elements may be NULL. */
    void *lies = view->data ? eddy_chunk_at(view->data, view->dtype, offset) : NULL;
    if (operand == &packs->out)
        eddy_copy_run(words, call->team, copy, lies);
    else
        eddy_copy_run(words, call->team, lies, copy);
}

/* Replaces packed operands by their copies in the workspace. */
static void begin_packed(running *work, const eddy_kernel_call *call, const packing *packs) {
    bool is_turned = work->product->is_turned;
    char *workspace = call->workspace;
    if (packs->a.copy)
        *(is_turned ? &work->right : &work->left) = workspace + packs->a.at;
    if (packs->b.copy)
        *(is_turned ? &work->left : &work->right) = workspace + packs->b.at;
    if (packs->out.copy)
        work->out = workspace + packs->out.at;
    if (packs->bias.copy) {
        copy_operand(call, packs, &packs->bias, &call->views[2], 0);
        work->bias = workspace + packs->bias.at;
    }
}

/* The workspace holds one batch at a time. A copy that the next batch shares is kept. */
static void matrix_run_packed(const eddy_kernel_call *call) {
    const product *p = call->plan;
    const packing *packs = (const packing *)(const void *)(p + 1);
    const eddy_op_view *views = call->views, *out = &views[call->view_count - 1];
    running work;
    begin_running(&work, call);
    begin_packed(&work, call, packs);
    eddy_walk_read(&work.batches, (const int64_t *)(const void *)(packs + 1));
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work.batches, &cursor, 0);
    int64_t a_packed = 0, b_packed = 0;
    for (int64_t batch = 0; batch < p->batch_count; batch++) {
        const int64_t *at = cursor.offsets;
        if (packs->a.copy && (batch == 0 || a_packed != at[0]))
            copy_operand(call, packs, &packs->a, &views[0], at[0]);
        if (packs->b.copy && (batch == 0 || b_packed != at[1]))
            copy_operand(call, packs, &packs->b, &views[1], at[1]);
        a_packed = at[0];
        b_packed = at[1];
        work.offsets[0] = packs->a.copy ? 0 : at[0];
        work.offsets[1] = packs->b.copy ? 0 : at[1];
        work.offsets[2] = packs->out.copy ? 0 : at[2];
        run_tasks(call, &work, tile_count(p), multiply_tiles);
        if (packs->out.copy)
            copy_operand(call, packs, &packs->out, out, at[2]);
        eddy_walk_next(&work.batches, &cursor, work.batches.rank);
    }
}

/* ---- planning ---- */

/* Which operands are packed. */
typedef struct packed_set {
    bool a, b, out, bias;
} packed_set;

/* The packed copy of a matrix. */
static eddy_matrix packed(const eddy_matrix *matrix, eddy_dtype compute) {
    return (eddy_matrix){.rows = matrix->rows,
                         .columns = matrix->columns,
                         .row_stride = eddy_max_i64(1, matrix->columns),
                         .column_stride = 1,
                         .dtype = compute};
}

/* oneDNN packs a transposed second factor again for each block of rows, and more slowly than one that is not transposed.
 * From ROWS_TURNED rows on it is therefore transposed first, once. Larger factors are left as they are, since the copy
 * would double their memory. A column-major result is excluded: it is computed as the product of the transposes, with the
 * factors exchanged. */
#define ROWS_TURNED 128
#define BYTES_TURNED_MOST (16 << 20)

static bool is_turned_first(const product *p, eddy_gemm_provider provider) {
    return provider == EDDY_GEMM_DNNL && !p->is_turned && p->right.is_transposed &&
           p->rows >= ROWS_TURNED && p->batch_count == 1 &&
           p->columns * p->depth <= BYTES_TURNED_MOST / (int64_t)sizeof(float);
}

/* Whether an operand has to be packed. *leading describes the operand itself, or its packed copy. */
static bool is_packed(const eddy_matrix *matrix, eddy_dtype compute, eddy_matrix_leading *leading) {
    if (matrix->dtype == compute && eddy_matrix_leading_of(matrix, leading))
        return false;
    *leading =
        (eddy_matrix_leading){.stride = eddy_max_i64(1, matrix->columns), .is_transposed = false};
    return true;
}

/* Turns the product into the product of the transposes; out_stride is set already. */
static void turn(product *p, const eddy_matrix_plan *matrices, const packed_set *packs) {
    eddy_matrix a = packs->a ? packed(&matrices->a, matrices->compute) : matrices->a;
    eddy_matrix b = packs->b ? packed(&matrices->b, matrices->compute) : matrices->b;
    a = eddy_matrix_transposed(&a);
    b = eddy_matrix_transposed(&b);
    eddy_matrix_leading_of(&b, &p->left);
    eddy_matrix_leading_of(&a, &p->right);
    p->rows = matrices->out.columns;
    p->columns = matrices->out.rows;
}

static int64_t grain_of(const product *p, eddy_gemm_provider provider) {
    double each = (double)p->rows * (double)p->columns * (double)p->depth / (double)tile_count(p);
    double slice = provider == EDDY_GEMM_VECTOR ? SLICE_VECTOR_WORK : SLICE_WORK;
    return eddy_max_i64(1, each >= slice ? 1 : (int64_t)(slice / (each + 1)));
}

/* Plans the product as it is computed, and which operands are packed for it. */
static void plan_product(product *p, packed_set *packs, const eddy_matrix_plan *matrices,
                         bool *has_started) {
    eddy_dtype compute = matrices->compute;
    eddy_matrix_leading out;
    packs->a = is_packed(&matrices->a, compute, &p->left);
    packs->b = is_packed(&matrices->b, compute, &p->right);
    packs->out = is_packed(&matrices->out, compute, &out);
    packs->bias = matrices->bias.columns > 0 && matrices->bias.dtype != compute;
    p->is_turned = out.is_transposed;
    p->is_wide = compute == EDDY_F64;
    p->has_bias = matrices->bias.columns > 0;
    p->goes_on = false;
    p->rows = matrices->out.rows;
    p->columns = matrices->out.columns;
    p->depth = matrices->a.columns;
    p->out_stride = out.stride;
    p->bias_stride = packs->bias ? 1 : matrices->bias.column_stride;
    p->batch_count = matrices->batch_count;
    if (p->is_turned)
        turn(p, matrices, packs);
    eddy_gemm_provider provider =
        eddy_gemm_prepare(compute, p->rows, p->columns, p->depth, has_started);
    if (is_turned_first(p, provider)) {
        packs->b = true;
        p->right =
            (eddy_matrix_leading){.stride = eddy_max_i64(1, p->columns), .is_transposed = false};
    }
    if (p->is_wide)
        p->multiply.f64 = eddy_gemm_provider_f64(provider);
    else
        p->multiply.f32 = eddy_gemm_provider_f32(provider);
    p->cut = eddy_gemm_cut_for(p->rows, p->columns, p->depth);
    p->grain = grain_of(p, provider);
}

static eddy_op_view view_of(const eddy_matrix *matrix, int64_t dims[4]) {
    dims[0] = matrix->rows;
    dims[1] = matrix->columns;
    dims[2] = matrix->row_stride;
    dims[3] = matrix->column_stride;
    return (eddy_op_view){.shape = dims, .strides = dims + 2, .dtype = matrix->dtype, .rank = 2};
}

/* Reserves space for an operand's copy in the workspace, and plans the copy at `words`; returns the address behind them. */
static int64_t *plan_copy(eddy_kernel_plan *plan, packed_operand *operand,
                          const eddy_matrix *matrix, eddy_dtype compute, int64_t *words) {
    packing *packs = (packing *)(void *)((product *)plan->memory + 1);
    int64_t lies_dims[4], copy_dims[4];
    eddy_matrix copied = packed(matrix, compute);
    eddy_op_view lies = view_of(matrix, lies_dims), copy = view_of(&copied, copy_dims);
    size_t bytes = (size_t)(matrix->rows * matrix->columns) * eddy_dtype_bytes(compute);
    operand->at = plan->workspace_bytes;
    operand->copy = words - (int64_t *)(void *)packs;
    plan->workspace_bytes += (bytes + 63) / 64 * 64;
    return operand == &packs->out ? eddy_copy_prepare(&copy, &lies, words)
                                  : eddy_copy_prepare(&lies, &copy, words);
}

/* Writes the packing, the walk and the copies' words; returns the address behind them. */
static int64_t *plan_packing(eddy_kernel_plan *plan, const packed_set *set,
                             const eddy_matrix_plan *matrices) {
    packing *packs = (packing *)(void *)((product *)plan->memory + 1);
    int64_t *words = eddy_walk_write(&matrices->batches, (int64_t *)(void *)(packs + 1));
    *packs = (packing){0};
    if (set->a)
        words = plan_copy(plan, &packs->a, &matrices->a, matrices->compute, words);
    if (set->b)
        words = plan_copy(plan, &packs->b, &matrices->b, matrices->compute, words);
    if (set->out)
        words = plan_copy(plan, &packs->out, &matrices->out, matrices->compute, words);
    if (set->bias)
        words = plan_copy(plan, &packs->bias, &matrices->bias, matrices->compute, words);
    plan->run = matrix_run_packed;
    return words;
}

static void plan_floats(const eddy_matrix_plan *matrices, eddy_kernel_plan *plan) {
    product *p = plan->memory;
    int64_t *words = (int64_t *)(void *)(p + 1);
    packed_set set;
    plan_product(p, &set, matrices, &plan->has_started_library);
    if (set.a || set.b || set.out || set.bias)
        words = plan_packing(plan, &set, matrices);
    else if (p->batch_count > 1)
        words = eddy_walk_write(&matrices->batches, words);
    plan->bytes = (size_t)((const char *)words - (const char *)p);
}

/* Overhead of each batch of a product of matrices, however small. */
#define BATCH_PS 300000

static bool has_vector(const eddy_matrix_plan *matrices) {
    return matrices->out.rows == 1 || matrices->out.columns == 1;
}

/* Picoseconds of a multiplication and an addition. In a product with a vector, each element of the matrix is read for only
 * one of them. */
static double product_ps(const eddy_matrix_plan *matrices) {
    if (matrices->compute != EDDY_F32 && matrices->compute != EDDY_F64)
        return 1000;
    return (has_vector(matrices) ? 90 : 25) * (matrices->compute == EDDY_F64 ? 2 : 1);
}

/* The work does not follow from the elements of the largest operand. */
static int64_t cost_of(const eddy_kernel_call *call, const eddy_matrix_plan *matrices) {
    const eddy_matrix *out = &matrices->out;
    double batches = (double)matrices->batch_count;
    double products =
        batches * (double)out->rows * (double)out->columns * (double)matrices->a.columns;
    double total =
        products * product_ps(matrices) + (has_vector(matrices) ? 0 : batches * BATCH_PS);
    return call->kernel->cost_base_ps + (int64_t)(total < 1e15 ? total : 1e15) +
           eddy_cost_far_views_ps(call);
}

static void matrix_run_nothing(const eddy_kernel_call *call) {
    (void)call;
}

static eddy_status matrix_prepare(const eddy_kernel_call *call, const eddy_matrix_plan *matrices,
                                  eddy_kernel_plan *plan) {
    plan->cost_ps = cost_of(call, matrices);
    if (matrices->out.rows == 0 || matrices->out.columns == 0 || matrices->batch_count == 0)
        plan->run = matrix_run_nothing;
    else if (matrices->compute == EDDY_I64)
        eddy_matrix_integer_prepare(matrices, plan);
    else
        plan_floats(matrices, plan);
    return EDDY_OK;
}

static eddy_status matmul_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    eddy_matrix_plan matrices;
    eddy_matrix_plan_matmul(&matrices, &call->views[0], &call->views[1], &call->views[2]);
    return matrix_prepare(call, &matrices, plan);
}

static eddy_status matmul_onto_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    eddy_matrix_plan matrices;
    eddy_matrix_leading leading;
    eddy_matrix_plan_matmul(&matrices, &call->views[0], &call->views[1], &call->views[2]);
    if (matrices.compute == EDDY_I64 || is_packed(&matrices.out, matrices.compute, &leading))
        return EDDY_UNSUPPORTED;
    plan->run = matrix_run;
    eddy_status status = matrix_prepare(call, &matrices, plan);
    if (status == EDDY_OK && plan->run != matrix_run_nothing)
        ((product *)plan->memory)->goes_on = true;
    return status;
}

static eddy_status linear_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    eddy_matrix_plan matrices;
    eddy_matrix_plan_linear(&matrices, &call->views[0], &call->views[1], &call->views[2],
                            &call->views[3]);
    return matrix_prepare(call, &matrices, plan);
}

const eddy_kernel eddy_cpu_matmul = {.name = "matmul",
                                     .run = matrix_run,
                                     .prepare = matmul_prepare,
                                     .cost_base_ps = 150000,
                                     .cost_element_ps = 3000};
const eddy_kernel eddy_cpu_linear = {.name = "linear",
                                     .run = matrix_run,
                                     .prepare = linear_prepare,
                                     .cost_base_ps = 150000,
                                     .cost_element_ps = 3000};
const eddy_kernel eddy_cpu_matmul_onto = {.name = "matmul_onto",
                                          .run = matrix_run,
                                          .prepare = matmul_onto_prepare,
                                          .cost_base_ps = 150000,
                                          .cost_element_ps = 3000};
