/* Sums are accumulated in u64: modulo 2^64, hence correct modulo any narrower width. */
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/matrix/matrix_integer.h>
#include <string.h>

/* Columns of the result that are computed at a time, and rows that share a loaded row of B. */
#define WIDTH 128
#define HEIGHT 8
#define SLICE_WORK 200000

/* The plan; the walk over batches follows it in memory. */
typedef struct integer_product {
    eddy_matrix a, b, out, bias;
    int64_t bands; /* of HEIGHT rows in a matrix */
    int64_t task_count, grain;
} integer_product;

_Static_assert(sizeof(integer_product) + EDDY_WALK_WORDS_MOST(3) * sizeof(int64_t) <=
                   EDDY_MATRIX_BYTES_MOST,
               "room for batches over all dims");

typedef struct running {
    const integer_product *product;
    const void *a, *b, *bias;
    void *out;
    eddy_walk batches; /* a, b, out */
} running;

static void load(const eddy_matrix *matrix, const void *data, int64_t offset, int64_t stride,
                 int64_t count, int64_t *to) {
    eddy_chunk_load(EDDY_I64, to, matrix->dtype, eddy_chunk_at(data, matrix->dtype, offset), stride,
                    count);
}

static void multiply_block(const running *work, const int64_t *offsets, int64_t row, int64_t rows,
                           int64_t column, int64_t columns) {
    const integer_product *product = work->product;
    const eddy_matrix *a = &product->a, *b = &product->b, *out = &product->out,
                      *bias = &product->bias;
    uint64_t sums[HEIGHT][WIDTH];
    memset(sums, 0, sizeof(sums));
    int64_t factors[HEIGHT], line[WIDTH];
    for (int64_t p = 0; p < a->columns; p++) {
        load(b, work->b, offsets[1] + p * b->row_stride + column * b->column_stride,
             b->column_stride, columns, line);
        load(a, work->a, offsets[0] + row * a->row_stride + p * a->column_stride, a->row_stride,
             rows, factors);
        for (int64_t i = 0; i < rows; i++) {
            uint64_t factor = (uint64_t)factors[i];
            for (int64_t j = 0; j < columns; j++)
                sums[i][j] += factor * (uint64_t)line[j];
        }
    }
    if (bias->columns > 0) {
        load(bias, work->bias, column * bias->column_stride, bias->column_stride, columns, line);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++)
                sums[i][j] += (uint64_t)line[j];
    }
    for (int64_t i = 0; i < rows; i++)
        eddy_chunk_store(
            out->dtype,
            eddy_chunk_at(work->out, out->dtype,
                          offsets[2] + (row + i) * out->row_stride + column * out->column_stride),
            out->column_stride, EDDY_I64, sums[i], columns);
}

static void multiply_slice(void *context, int64_t begin, int64_t end) {
    const running *work = context;
    const eddy_matrix *out = &work->product->out;
    int64_t bands = work->product->bands;
    for (int64_t task = begin; task < end; task++) {
        eddy_walk_cursor cursor;
        eddy_walk_seek(&work->batches, &cursor, task / bands);
        int64_t row = task % bands * HEIGHT, rows = eddy_min_i64(HEIGHT, out->rows - row);
        for (int64_t column = 0; column < out->columns; column += WIDTH)
            multiply_block(work, cursor.offsets, row, rows, column,
                           eddy_min_i64(WIDTH, out->columns - column));
    }
}

static void matrix_integer_run(const eddy_kernel_call *call) {
    const integer_product *product = call->plan;
    const eddy_op_view *views = call->views;
    running work;
    work.product = product;
    work.a = views[0].data;
    work.b = views[1].data;
    work.bias = product->bias.columns > 0 ? views[2].data : NULL;
    work.out = views[call->view_count - 1].data;
    eddy_walk_read(&work.batches, (const int64_t *)(const void *)(product + 1));
    if (product->task_count <= product->grain)
        multiply_slice(&work, 0, product->task_count);
    else
        call->team->parallel_for(call->team, product->task_count, product->grain, multiply_slice,
                                 &work);
}

void eddy_matrix_integer_prepare(const eddy_matrix_plan *matrices, eddy_kernel_plan *plan) {
    integer_product *product = plan->memory;
    double band =
        (double)HEIGHT * (double)matrices->out.columns * (double)(matrices->a.columns + 1);
    product->a = matrices->a;
    product->b = matrices->b;
    product->out = matrices->out;
    product->bias = matrices->bias;
    product->bands = (matrices->out.rows + HEIGHT - 1) / HEIGHT;
    product->task_count = matrices->batch_count * product->bands;
    product->grain = band >= SLICE_WORK ? 1 : (int64_t)(SLICE_WORK / band);
    const int64_t *end = eddy_walk_write(&matrices->batches, (int64_t *)(void *)(product + 1));
    plan->bytes = (size_t)((const char *)end - (const char *)product);
    plan->run = matrix_integer_run;
}
