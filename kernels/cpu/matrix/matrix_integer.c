/* Sums run in u64: modulo 2^64, hence right modulo any narrower width. */
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/matrix/matrix_integer.h>
#include <string.h>

/* Columns of the result at a time, and rows that share a loaded row of B. */
#define WIDTH 128
#define HEIGHT 8
#define SLICE_WORK 200000

typedef struct integer_product {
    const eddy_matrix_plan *plan;
    int64_t bands; /* of HEIGHT rows in a matrix */
} integer_product;

static void load(const eddy_matrix *matrix, int64_t offset, int64_t stride, int64_t count, int64_t *to) {
    eddy_chunk_load(EDDY_I64, to, matrix->dtype, eddy_chunk_at(matrix->data, matrix->dtype, offset), stride, count);
}

static void multiply_block(const eddy_matrix_plan *plan, const int64_t *offsets, int64_t row, int64_t rows,
                           int64_t column, int64_t columns) {
    const eddy_matrix *a = &plan->a, *b = &plan->b, *out = &plan->out;
    uint64_t sums[HEIGHT][WIDTH];
    memset(sums, 0, sizeof(sums));
    int64_t factors[HEIGHT], line[WIDTH];
    for (int64_t p = 0; p < a->columns; p++) {
        load(b, offsets[1] + p * b->row_stride + column * b->column_stride, b->column_stride, columns, line);
        load(a, offsets[0] + row * a->row_stride + p * a->column_stride, a->row_stride, rows, factors);
        for (int64_t i = 0; i < rows; i++) {
            uint64_t factor = (uint64_t)factors[i];
            for (int64_t j = 0; j < columns; j++)
                sums[i][j] += factor * (uint64_t)line[j];
        }
    }
    if (plan->bias.data != NULL) {
        load(&plan->bias, column * plan->bias.column_stride, plan->bias.column_stride, columns, line);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++)
                sums[i][j] += (uint64_t)line[j];
    }
    for (int64_t i = 0; i < rows; i++)
        eddy_chunk_store(out->dtype,
                         eddy_chunk_at(out->data, out->dtype,
                                       offsets[2] + (row + i) * out->row_stride + column * out->column_stride),
                         out->column_stride, EDDY_I64, sums[i], columns);
}

static void multiply_slice(void *context, int64_t begin, int64_t end) {
    const integer_product *work = context;
    const eddy_matrix_plan *plan = work->plan;
    for (int64_t task = begin; task < end; task++) {
        eddy_walk_cursor cursor;
        eddy_walk_seek(&plan->batches, &cursor, task / work->bands);
        int64_t row = task % work->bands * HEIGHT, rows = eddy_min_i64(HEIGHT, plan->out.rows - row);
        for (int64_t column = 0; column < plan->out.columns; column += WIDTH)
            multiply_block(plan, cursor.offsets, row, rows, column, eddy_min_i64(WIDTH, plan->out.columns - column));
    }
}

void eddy_matrix_integer_run(const eddy_kernel_call *call, const eddy_matrix_plan *plan) {
    integer_product work = {.plan = plan, .bands = (plan->out.rows + HEIGHT - 1) / HEIGHT};
    double band = (double)HEIGHT * (double)plan->out.columns * (double)(plan->a.columns + 1);
    int64_t tasks = plan->batch_count * work.bands, grain = band >= SLICE_WORK ? 1 : (int64_t)(SLICE_WORK / band);
    if (tasks <= grain)
        multiply_slice(&work, 0, tasks);
    else
        call->team->parallel_for(call->team, tasks, grain, multiply_slice, &work);
}
