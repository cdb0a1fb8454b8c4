/* Scaled dot product attention: softmax(q k^T * scale + mask) v, in blocks of rows and columns so that no matrix of scores is
 * ever whole: the softmax of a row is kept as its largest score so far and the sum of exponentials over it, and what has been
 * added up is scaled down when a larger one comes (M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax",
 * 2018; T. Dao et al., "FlashAttention", 2022). The gradient makes the scores again from q, k and the rows' sums. */
#include <base/atomic.h>
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/matrix/gemm.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/random/random_block.h>
#include <kernels/cpu/attention/sdpa_block.h>
#include <kernels/cpu/walk.h>
#include <math.h>

/* Rows of q and rows of k in a block, at most: its scores stay in the second-level cache, and its products are large enough for
 * the library. */
#define ROWS_MAX 128
#define COLUMNS_MAX 512
/* Numbers that one call draws, and room for those of a row of a block wherever it begins among them. */
#define DRAWN (4 * EDDY_RANDOM_BLOCKS)
#define NUMBERS_MAX ((COLUMNS_MAX / DRAWN + 1) * DRAWN)
/* Parts that take tasks, one after the other, each with buffers of its own: who comes late finds none left. As many as suffice for any
 * team where that takes no more memory than the outputs do, and some in any case. */
#define PARTS_MAX 64
#define PARTS_MIN 8

/* Operands of the walk over batches. */
enum { Q, K, V, MASK, OUT, GRAD, DQ, DK, DV, OPERANDS };

typedef struct sdpa {
    const eddy_kernel_call *call;
    const eddy_op_view *views[OPERANDS]; /* NULL where there is none */
    eddy_walk batches;
    int64_t batch_count, rows, columns, width, value_width; /* L, S, D, E */
    int64_t block_rows, block_columns;                      /* of a block */
    bool is_causal;
    double scale, dropout;
    uint64_t seed, counter;
    eddy_dtype compute;
    int64_t bytes; /* of a number of the compute type */
    const eddy_sdpa_ops *ops;
    eddy_gemm_provider provider;
    int64_t tasks, parts;
    size_t part_bytes;
    _Atomic int64_t taken; /* atomic: parts take a task each (relaxed) */
} sdpa;

/* ---- the problem ---- */

/* Strides of a view's batch dims under the joint ones. */
static void add_operand(sdpa *work, const eddy_op_view *view) {
    int64_t strides[EDDY_RANK_MAX] = {0};
    int32_t rank = view ? view->rank - 2 : 0;
    for (int32_t d = 0; d < rank; d++)
        if (view->shape[d] != 1)
            strides[work->batches.rank - rank + d] = view->strides[d];
    eddy_walk_add(&work->batches, strides, 1);
}

/* The outputs have all batch dims. */
static void sdpa_prepare(sdpa *work, const eddy_kernel_call *call, const eddy_op_view *like,
                         const eddy_attributes_sdpa *attributes) {
    const eddy_op_view *q = work->views[Q], *v = work->views[V];
    work->call = call;
    work->rows = q->shape[q->rank - 2];
    work->width = q->shape[q->rank - 1];
    work->columns = v->shape[v->rank - 2];
    work->value_width = v->shape[v->rank - 1];
    work->is_causal = attributes->causal;
    work->scale = attributes->scale != 0 ? attributes->scale : 1 / sqrt((double)eddy_max_i64(1, work->width));
    work->dropout = attributes->dropout;
    work->seed = attributes->seed;
    work->counter = attributes->counter;
    work->compute = eddy_chunk_compute_dtype(q->dtype);
    work->bytes = work->compute == EDDY_F64 ? 8 : 4;
    work->ops = work->compute == EDDY_F64 ? &eddy_cpu_sdpa_blocks()->f64 : &eddy_cpu_sdpa_blocks()->f32;
    /* Lower blocks lose less to what a causal mask hides. */
    work->block_rows = eddy_min_i64(work->is_causal ? ROWS_MAX / 2 : ROWS_MAX, eddy_max_i64(1, work->rows));
    work->block_columns = eddy_min_i64(COLUMNS_MAX, eddy_max_i64(1, work->columns));
    work->provider = eddy_gemm_choose(eddy_isa_chosen(), work->compute, work->block_rows, work->block_columns,
                                      eddy_max_i64(1, work->width));
    eddy_walk_init(&work->batches, like->rank - 2, like->shape);
    work->batch_count = eddy_walk_count(&work->batches);
    for (int o = 0; o < OPERANDS; o++)
        add_operand(work, work->views[o]);
    eddy_walk_collapse(&work->batches);
}

static const eddy_op_view *present(const eddy_op_view *view) {
    return eddy_view_is_absent(view) ? NULL : view;
}

static int64_t row_blocks(const sdpa *work) {
    return (work->rows + work->block_rows - 1) / work->block_rows;
}

/* Rows of a matrix, row-major in the compute type: where they lie, or packed into a buffer. */
typedef struct matrix {
    const void *data;
    int64_t stride;
} matrix;

/* The same to be written. */
typedef struct target {
    void *data;
    int64_t stride;
    bool is_packed; /* for store_rows */
} target;

/* c[m, n] = scale a b, or with `adds` c += scale a b */
static void multiply(const sdpa *work, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                     double scale, matrix a, matrix b, bool adds, target c) {
    if (m == 0 || n == 0 || (k == 0 && adds))
        return;
    if (work->compute == EDDY_F64)
        eddy_gemm_provider_f64(work->provider)(transpose_a, transpose_b, m, n, k, scale, a.data, a.stride, b.data,
                                               b.stride, adds, c.data, c.stride);
    else
        eddy_gemm_provider_f32(work->provider)(transpose_a, transpose_b, m, n, k, (float)scale, a.data, a.stride,
                                               b.data, b.stride, adds, c.data, c.stride);
}

static void *place(const sdpa *work, int operand, const int64_t *offsets, int64_t row) {
    const eddy_op_view *view = work->views[operand];
    return eddy_chunk_at(view->data, view->dtype, offsets[operand] + row * view->strides[view->rank - 2]);
}

/* Whether a product can take rows of it, or put them, where they lie. */
static bool lies_in_rows(const sdpa *work, const eddy_op_view *view) {
    int64_t width = view->shape[view->rank - 1], stride = view->strides[view->rank - 2];
    bool is_dense = view->strides[view->rank - 1] == 1 || width == 1;
    return width > 0 && view->dtype == work->compute && is_dense && stride >= width;
}

/* Rows row .. of an operand of a batch. */
static matrix rows_of(const sdpa *work, int operand, const int64_t *offsets, int64_t row, int64_t count, void *buffer) {
    const eddy_op_view *view = work->views[operand];
    int64_t width = view->shape[view->rank - 1];
    if (lies_in_rows(work, view))
        return (matrix){place(work, operand, offsets, row), view->strides[view->rank - 2]};
    for (int64_t r = 0; r < count && width > 0; r++)
        eddy_chunk_load(work->compute, eddy_chunk_at(buffer, work->compute, r * width), view->dtype,
                        place(work, operand, offsets, row + r), view->strides[view->rank - 1], width);
    return (matrix){buffer, eddy_max_i64(1, width)};
}

/* Where rows row .. of an output come together. */
static target target_of(const sdpa *work, int operand, const int64_t *offsets, int64_t row, void *buffer) {
    const eddy_op_view *view = work->views[operand];
    if (lies_in_rows(work, view))
        return (target){place(work, operand, offsets, row), view->strides[view->rank - 2], false};
    return (target){buffer, eddy_max_i64(1, view->shape[view->rank - 1]), true};
}

static void *target_row(const sdpa *work, target of, int64_t row) {
    return eddy_chunk_at(of.data, work->compute, row * of.stride);
}

static void clear_rows(const sdpa *work, target of, int64_t row, int64_t count, int64_t width) {
    for (int64_t r = row; r < row + count; r++)
        work->ops->fill(target_row(work, of, r), 0, width);
}

/* Brings what came together in a buffer to its place. */
static void store_rows(const sdpa *work, int operand, const int64_t *offsets, int64_t row, int64_t count, target from) {
    const eddy_op_view *view = work->views[operand];
    int64_t width = view->shape[view->rank - 1];
    for (int64_t r = 0; r < count && width > 0 && from.is_packed; r++)
        eddy_chunk_store(view->dtype, place(work, operand, offsets, row + r), view->strides[view->rank - 1],
                         work->compute, target_row(work, from, r), width);
}

/* Columns that rows up to `row` may look at. */
static int64_t columns_seen(const sdpa *work, int64_t row) {
    return work->is_causal ? eddy_min_i64(work->columns, row + 1) : work->columns;
}

/* Scores of a block: products, plus the mask; -infinity where a row may not look. */
static void mask_scores(const sdpa *work, const int64_t *offsets, void *scores, int64_t row, int64_t rows,
                        int64_t column, int64_t columns) {
    const eddy_op_view *mask = work->views[MASK];
    _Alignas(64) char line[COLUMNS_MAX * 8];
    if (!mask && columns_seen(work, row) >= column + columns)
        return;
    for (int64_t r = 0; r < rows; r++) {
        void *at = eddy_chunk_at(scores, work->compute, r * work->block_columns);
        int64_t seen = eddy_min_i64(columns, eddy_max_i64(0, columns_seen(work, row + r) - column));
        if (mask && seen > 0) {
            int64_t offset = offsets[MASK];
            int64_t row_stride = mask->shape[mask->rank - 2] == 1 ? 0 : mask->strides[mask->rank - 2];
            int64_t stride = mask->shape[mask->rank - 1] == 1 ? 0 : mask->strides[mask->rank - 1];
            offset += (row + r) * row_stride + column * stride;
            const void *from = eddy_chunk_at(mask->data, mask->dtype, offset);
            eddy_chunk_load(mask->dtype == EDDY_BOOL ? EDDY_BOOL : work->compute, line, mask->dtype, from, stride,
                            seen);
            if (mask->dtype == EDDY_BOOL)
                work->ops->hide(at, (const unsigned char *)line, seen);
            else
                work->ops->add(at, line, seen);
        }
        work->ops->fill(eddy_chunk_at(at, work->compute, seen), -INFINITY, columns - seen);
    }
}

/* Numbers first .. first + count - 1 of those that dropout takes for the elements of the whole matrices of weights. */
typedef struct numbers {
    uint64_t first;
    int64_t count;
    float drawn[NUMBERS_MAX];
} numbers;

/* Nothing is drawn yet. (An initialiser would clear the numbers too.) */
static void forget(numbers *x) {
    x->first = 0;
    x->count = 0;
}

/* Those of row `row` of batch number `batch`, from a column on: in x already where short rows follow each other. */
static const float *draw_row(const sdpa *work, int64_t batch, int64_t row, int64_t column, int64_t count, numbers *x) {
    uint64_t first = (uint64_t)((batch * work->rows + row) * work->columns + column);
    if (first < x->first || first + (uint64_t)count > x->first + (uint64_t)x->count) {
        x->first = first - first % 4;
        for (x->count = 0; x->first + (uint64_t)x->count < first + (uint64_t)count; x->count += DRAWN)
            eddy_cpu_random_blocks()->uniform_f32(x->drawn + x->count, EDDY_DROP_BITS, work->seed, work->counter,
                                                  (x->first + (uint64_t)x->count) / 4);
    }
    return x->drawn + (first - x->first);
}

static void drop(const sdpa *work, void *weights, const float *drawn, int64_t count) {
    work->ops->drop(weights, drawn, eddy_drop_least(work->dropout), eddy_drop_scale(work->dropout), count);
}

/* A part of the workspace that is handed out piece by piece; without base it is only measured. */
typedef struct room {
    char *base;
    size_t used;
} room;

static void *take(room *from, size_t bytes) {
    void *taken = from->base ? from->base + from->used : NULL;
    from->used += (bytes + 63) / 64 * 64;
    return taken;
}

/* Room to pack so many rows of an operand; none where they are taken, or put, where they lie. */
static void *take_rows(const sdpa *work, room *from, int operand, int64_t rows) {
    const eddy_op_view *view = work->views[operand];
    int64_t width = lies_in_rows(work, view) ? 0 : view->shape[view->rank - 1];
    return take(from, (size_t)(rows * width * work->bytes));
}

/* part_bytes: of one part's buffers; output_bytes: of what the call makes. */
static void deal(sdpa *work, size_t part_bytes, int64_t output_bytes) {
    int64_t affordable = output_bytes / eddy_max_i64(1, (int64_t)part_bytes);
    work->part_bytes = part_bytes;
    work->parts = eddy_min_i64(work->tasks, eddy_min_i64(PARTS_MAX, eddy_max_i64(PARTS_MIN, affordable)));
}

static room part_of(const sdpa *work, int64_t part) {
    return (room){.base = (char *)work->call->workspace + (size_t)part * work->part_bytes};
}

/* ---- forward ---- */

typedef struct forward_buffers {
    void *q, *k, *v, *scores, *out;
    double *largest, *sums;
} forward_buffers;

static void lay_forward(const sdpa *work, room *at, forward_buffers *b) {
    b->q = take_rows(work, at, Q, work->block_rows);
    b->k = take_rows(work, at, K, work->block_columns);
    b->v = take_rows(work, at, V, work->block_columns);
    b->scores = take(at, (size_t)(work->block_rows * work->block_columns * work->bytes));
    b->out = take_rows(work, at, OUT, work->block_rows);
    b->largest = take(at, (size_t)work->block_rows * sizeof(double));
    b->sums = take(at, (size_t)work->block_rows * sizeof(double));
}

static target scores_of(const sdpa *work, void *buffer) {
    return (target){buffer, work->block_columns, false};
}

static matrix values_of(target of) {
    return (matrix){of.data, of.stride};
}

/* Scores of a block of rows and columns: -infinity where a row may not look. */
static void take_scores(const sdpa *work, const int64_t *offsets, matrix q, matrix k, int64_t row, int64_t rows,
                        int64_t column, int64_t columns, void *scores) {
    multiply(work, false, true, rows, columns, work->width, work->scale, q, k, false, scores_of(work, scores));
    mask_scores(work, offsets, scores, row, rows, column, columns);
}

static void begin_rows(const forward_buffers *b, int64_t rows) {
    for (int64_t r = 0; r < rows; r++) {
        b->largest[r] = -INFINITY;
        b->sums[r] = 0;
    }
}

/* Takes a block of scores into the rows' sums: scores become exponentials over the largest so far, and what was added up
 * before in *out, unless there is nothing yet (NULL), is scaled down to it. */
static void join_scores(const sdpa *work, const forward_buffers *b, int64_t rows, int64_t columns, const target *out) {
    for (int64_t r = 0; r < rows; r++) {
        void *at = target_row(work, scores_of(work, b->scores), r);
        double largest = work->ops->max(at, columns), before = b->largest[r];
        largest = before > largest || before != before ? before : largest;
        if (largest == -INFINITY) { /* nothing has been looked at */
            work->ops->fill(at, 0, columns);
            continue;
        }
        double down = before == largest ? 1 : exp(before - largest);
        b->sums[r] = b->sums[r] * down + work->ops->exp_sum(at, largest, columns);
        b->largest[r] = largest;
        if (out && down != 1)
            work->ops->scale(target_row(work, *out, r), down, work->value_width);
    }
}

/* The sums of rows stay those of all weights. */
static void drop_scores(const sdpa *work, const forward_buffers *b, int64_t batch, int64_t row, int64_t rows,
                        int64_t column, int64_t columns) {
    numbers x;
    forget(&x);
    for (int64_t r = 0; r < rows; r++)
        drop(work, eddy_chunk_at(b->scores, work->compute, r * work->block_columns),
             draw_row(work, batch, row + r, column, columns, &x), columns);
}

/* A block of rows of one batch. */
static void forward_task(const sdpa *work, int64_t task, const forward_buffers *b) {
    int64_t batch = task / row_blocks(work);
    int64_t row = task % row_blocks(work) * work->block_rows, rows = eddy_min_i64(work->block_rows, work->rows - row);
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->batches, &cursor, batch);
    matrix q = rows_of(work, Q, cursor.offsets, row, rows, b->q);
    target out = target_of(work, OUT, cursor.offsets, row, b->out);
    begin_rows(b, rows);
    int64_t seen = columns_seen(work, row + rows - 1);
    for (int64_t column = 0; column < seen; column += work->block_columns) {
        int64_t columns = eddy_min_i64(work->block_columns, seen - column);
        matrix k = rows_of(work, K, cursor.offsets, column, columns, b->k);
        matrix v = rows_of(work, V, cursor.offsets, column, columns, b->v);
        take_scores(work, cursor.offsets, q, k, row, rows, column, columns, b->scores);
        join_scores(work, b, rows, columns, column > 0 ? &out : NULL);
        if (work->dropout != 0)
            drop_scores(work, b, batch, row, rows, column, columns);
        multiply(work, false, false, rows, work->value_width, columns, 1, values_of(scores_of(work, b->scores)), v,
                 column > 0, out);
    }
    if (seen == 0)
        clear_rows(work, out, 0, rows, work->value_width);
    for (int64_t r = 0; r < rows; r++) /* a row that looks at nothing is 0 */
        if (b->sums[r] != 0)
            work->ops->scale(target_row(work, out, r), 1 / b->sums[r], work->value_width);
    store_rows(work, OUT, cursor.offsets, row, rows, out);
}

/* The number of a task that nobody has taken yet; `tasks` or more where there is none. What a task writes is its own, so that it does
 * not matter who takes it. */
static int64_t take_task(sdpa *work) {
    return eddy_add_relaxed(&work->taken, 1);
}

static void forward_parts(void *context, int64_t begin, int64_t end) {
    sdpa *work = context;
    for (int64_t part = begin; part < end; part++) {
        forward_buffers buffers;
        room at = part_of(work, part);
        lay_forward(work, &at, &buffers);
        for (int64_t task = take_task(work); task < work->tasks; task = take_task(work))
            forward_task(work, task, &buffers);
    }
}

/* views: q, k, v, mask or absent, out */
static void forward_plan(sdpa *work, const eddy_kernel_call *call) {
    *work = (sdpa){.views = {[Q] = &call->views[0],
                             [K] = &call->views[1],
                             [V] = &call->views[2],
                             [MASK] = present(&call->views[3]),
                             [OUT] = &call->views[4]}};
    sdpa_prepare(work, call, &call->views[4], call->attributes);
    work->tasks = work->batch_count * row_blocks(work);
    forward_buffers buffers;
    room measured = {0};
    lay_forward(work, &measured, &buffers);
    deal(work, measured.used, work->batch_count * work->rows * work->value_width * work->bytes);
}

static void sdpa_run_parts(sdpa *work, void (*parts)(void *, int64_t, int64_t)) {
    if (work->parts <= 1)
        parts(work, 0, work->parts);
    else
        work->call->team->parallel_for(work->call->team, work->parts, 1, parts, work);
}

static void sdpa_run(const eddy_kernel_call *call) {
    sdpa work;
    forward_plan(&work, call);
    if (eddy_view_count(work.views[OUT]) > 0)
        sdpa_run_parts(&work, forward_parts);
}

static size_t sdpa_workspace(const eddy_kernel_call *call) {
    sdpa work;
    forward_plan(&work, call);
    return (size_t)work.parts * work.part_bytes;
}

/* ---- backward ---- */

typedef struct backward_buffers {
    forward_buffers forward;           /* of a block */
    void *grad, *slopes, *dk, *dv;     /* of a block */
    void *dq;                          /* of all rows */
    double *largest, *sums, *products; /* of all rows; products: see take_products */
} backward_buffers;

static void lay_backward(const sdpa *work, room *at, backward_buffers *b) {
    lay_forward(work, at, &b->forward);
    b->grad = take_rows(work, at, GRAD, work->block_rows);
    b->slopes = take(at, (size_t)(work->block_rows * work->block_columns * work->bytes));
    b->dk = take_rows(work, at, DK, work->block_columns);
    b->dv = take_rows(work, at, DV, work->block_columns);
    b->dq = take_rows(work, at, DQ, work->rows);
    b->largest = take(at, (size_t)work->rows * sizeof(double));
    b->sums = take(at, (size_t)work->rows * sizeof(double));
    b->products = take(at, (size_t)work->rows * sizeof(double));
}

/* The product of each row's gradient and its output: the sum over columns of probability times the probability's gradient. */
static void take_products(const sdpa *work, const int64_t *offsets, const backward_buffers *b) {
    for (int64_t row = 0; row < work->rows; row += work->block_rows) {
        int64_t rows = eddy_min_i64(work->block_rows, work->rows - row);
        matrix grad = rows_of(work, GRAD, offsets, row, rows, b->grad);
        matrix out = rows_of(work, OUT, offsets, row, rows, b->forward.out);
        for (int64_t r = 0; r < rows; r++)
            b->products[row + r] =
                work->ops->dot(eddy_chunk_at(grad.data, work->compute, r * grad.stride),
                               eddy_chunk_at(out.data, work->compute, r * out.stride), work->value_width);
    }
}

/* Whether a block holds all of a row's scores, so that its largest and its sum are found where they are needed. */
static bool is_row_whole(const sdpa *work) {
    return work->columns <= work->block_columns;
}

/* The largest score of each row, and the sum of exponentials over it. */
static void take_sums(const sdpa *work, const int64_t *offsets, const backward_buffers *b) {
    for (int64_t row = 0; row < work->rows; row += work->block_rows) {
        int64_t rows = eddy_min_i64(work->block_rows, work->rows - row), seen = columns_seen(work, row + rows - 1);
        forward_buffers f = b->forward;
        f.largest = b->largest + row;
        f.sums = b->sums + row;
        matrix q = rows_of(work, Q, offsets, row, rows, f.q);
        begin_rows(&f, rows);
        for (int64_t column = 0; column < seen; column += work->block_columns) {
            int64_t columns = eddy_min_i64(work->block_columns, seen - column);
            matrix k = rows_of(work, K, offsets, column, columns, f.k);
            take_scores(work, offsets, q, k, row, rows, column, columns, f.scores);
            join_scores(work, &f, rows, columns, NULL);
        }
    }
}

/* Scores of a block become probabilities, and what came back to those comes back to the scores. */
static void take_slopes(const sdpa *work, int64_t batch, const backward_buffers *b, int64_t row, int64_t rows,
                        int64_t column, int64_t columns) {
    numbers x;
    forget(&x);
    for (int64_t r = 0; r < rows; r++) {
        void *scores = target_row(work, scores_of(work, b->forward.scores), r);
        void *slopes = target_row(work, scores_of(work, b->slopes), r);
        double largest = is_row_whole(work) ? work->ops->max(scores, columns) : b->largest[row + r], factor = 1;
        if (largest == -INFINITY) { /* a row that looks at nothing */
            work->ops->fill(scores, 0, columns);
        } else {
            double sum = work->ops->exp_sum(scores, largest, columns);
            factor = 1 / (is_row_whole(work) ? sum : b->sums[row + r]);
        }
        const float *drawn = work->dropout != 0 ? draw_row(work, batch, row + r, column, columns, &x) : NULL;
        if (drawn)
            drop(work, slopes, drawn, columns);
        work->ops->slope(slopes, scores, factor, b->products[row + r], columns);
        if (drawn)
            drop(work, scores, drawn, columns);
    }
}

/* Gradients as they come together: those of q for all rows, those of k and v for a block of columns. */
typedef struct gradients {
    target dq, dk, dv;
} gradients;

/* Adds what rows row .. and columns column .. have to do with each other to the gradients; with `begins`, dk and dv begin so. */
static void add_block(const sdpa *work, int64_t batch, const int64_t *offsets, const backward_buffers *b, int64_t row,
                      int64_t column, int64_t columns, matrix k, matrix v, bool begins, const gradients *to) {
    int64_t rows = eddy_min_i64(work->block_rows, work->rows - row), width = work->width;
    matrix q = rows_of(work, Q, offsets, row, rows, b->forward.q);
    matrix grad = rows_of(work, GRAD, offsets, row, rows, b->grad);
    take_scores(work, offsets, q, k, row, rows, column, columns, b->forward.scores);
    multiply(work, false, true, rows, columns, work->value_width, 1, grad, v, false, scores_of(work, b->slopes));
    take_slopes(work, batch, b, row, rows, column, columns);
    matrix weights = values_of(scores_of(work, b->forward.scores)), slopes = values_of(scores_of(work, b->slopes));
    target dq = {target_row(work, to->dq, row), to->dq.stride, false};
    multiply(work, true, false, columns, work->value_width, rows, 1, weights, grad, !begins, to->dv);
    multiply(work, true, false, columns, width, rows, work->scale, slopes, q, !begins, to->dk);
    multiply(work, false, false, rows, width, columns, work->scale, slopes, k, column > 0, dq);
}

/* All rows with a block of columns. The last rows come first: they see the most of the columns. */
static void add_columns(const sdpa *work, int64_t batch, const int64_t *offsets, const backward_buffers *b,
                        int64_t column, gradients *to) {
    int64_t columns = eddy_min_i64(work->block_columns, work->columns - column), begun = 0;
    matrix k = rows_of(work, K, offsets, column, columns, b->forward.k);
    matrix v = rows_of(work, V, offsets, column, columns, b->forward.v);
    to->dk = target_of(work, DK, offsets, column, b->dk);
    to->dv = target_of(work, DV, offsets, column, b->dv);
    for (int64_t block = row_blocks(work) - 1; block >= 0; block--) {
        int64_t row = block * work->block_rows, last = eddy_min_i64(work->rows, row + work->block_rows) - 1;
        int64_t seen = eddy_min_i64(columns, columns_seen(work, last) - column);
        if (seen <= 0)
            break;
        add_block(work, batch, offsets, b, row, column, seen, k, v, begun == 0, to);
        begun = eddy_max_i64(begun, seen);
    }
    clear_rows(work, to->dk, begun, columns - begun, work->width);
    clear_rows(work, to->dv, begun, columns - begun, work->value_width);
    store_rows(work, DK, offsets, column, columns, to->dk);
    store_rows(work, DV, offsets, column, columns, to->dv);
}

static void backward_batch(const sdpa *work, int64_t batch, const backward_buffers *b) {
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->batches, &cursor, batch);
    gradients to = {.dq = target_of(work, DQ, cursor.offsets, 0, b->dq)};
    take_products(work, cursor.offsets, b);
    if (!is_row_whole(work))
        take_sums(work, cursor.offsets, b);
    for (int64_t column = 0; column < work->columns; column += work->block_columns)
        add_columns(work, batch, cursor.offsets, b, column, &to);
    if (work->columns == 0)
        clear_rows(work, to.dq, 0, work->rows, work->width);
    store_rows(work, DQ, cursor.offsets, 0, work->rows, to.dq);
}

static void backward_parts(void *context, int64_t begin, int64_t end) {
    sdpa *work = context;
    for (int64_t part = begin; part < end; part++) {
        backward_buffers buffers;
        room at = part_of(work, part);
        lay_backward(work, &at, &buffers);
        for (int64_t batch = take_task(work); batch < work->tasks; batch = take_task(work))
            backward_batch(work, batch, &buffers);
    }
}

/* views: grad, output, q, k, v, mask or absent, dq, dk, dv */
static void backward_plan(sdpa *work, const eddy_kernel_call *call) {
    *work = (sdpa){.views = {[GRAD] = &call->views[0],
                             [OUT] = &call->views[1],
                             [Q] = &call->views[2],
                             [K] = &call->views[3],
                             [V] = &call->views[4],
                             [MASK] = present(&call->views[5]),
                             [DQ] = &call->views[6],
                             [DK] = &call->views[7],
                             [DV] = &call->views[8]}};
    const eddy_attributes_sdpa_backward *given = call->attributes;
    const eddy_attributes_sdpa attributes = {.seed = (uint64_t)given->seed,
                                             .counter = (uint64_t)given->counter,
                                             .dropout = given->dropout,
                                             .scale = given->scale,
                                             .causal = given->causal};
    sdpa_prepare(work, call, &call->views[6], &attributes);
    work->tasks = work->batch_count;
    backward_buffers buffers;
    room measured = {0};
    lay_backward(work, &measured, &buffers);
    int64_t each = work->rows * work->width + work->columns * (work->width + work->value_width);
    deal(work, measured.used, work->batch_count * each * work->bytes);
}

static void sdpa_backward_run(const eddy_kernel_call *call) {
    sdpa work;
    backward_plan(&work, call);
    sdpa_run_parts(&work, backward_parts);
}

static size_t sdpa_backward_workspace(const eddy_kernel_call *call) {
    sdpa work;
    backward_plan(&work, call);
    return (size_t)work.parts * work.part_bytes;
}

/* Picoseconds: products at some 125 GFLOP/s, some exponentials, and the numbers of dropout. */
static int64_t sdpa_cost_of(const sdpa *work, double products) {
    double scores = (double)work->batch_count * (double)work->rows * (double)work->columns;
    double each = work->compute == EDDY_F64 ? 32 : 16, width = (double)(work->width + work->value_width);
    double total =
        scores * (width * products * each + 800 + (work->dropout != 0 ? 700 : 0)) * (work->is_causal ? 0.7 : 1);
    /* Of each batch its tasks, however small. */
    total += (double)work->batch_count * 1.2e6;
    return 500000 + (int64_t)(total < 1e15 ? total : 1e15);
}

static int64_t sdpa_cost(const eddy_kernel_call *call) {
    sdpa work;
    forward_plan(&work, call);
    return sdpa_cost_of(&work, 1);
}

static int64_t sdpa_backward_cost(const eddy_kernel_call *call) {
    sdpa work;
    backward_plan(&work, call);
    return sdpa_cost_of(&work, 3);
}

static bool sdpa_start_of(const sdpa *work) {
    return eddy_gemm_start(work->compute, work->block_rows, work->block_columns, eddy_max_i64(1, work->width));
}

static bool sdpa_start(const eddy_kernel_call *call) {
    sdpa work;
    if (!eddy_gemm_may_start(INFINITY))
        return false;
    forward_plan(&work, call);
    return sdpa_start_of(&work);
}

static bool sdpa_backward_start(const eddy_kernel_call *call) {
    sdpa work;
    if (!eddy_gemm_may_start(INFINITY))
        return false;
    backward_plan(&work, call);
    return sdpa_start_of(&work);
}

const eddy_kernel eddy_cpu_sdpa = {.name = "sdpa",
                                   .run = sdpa_run,
                                   .workspace = sdpa_workspace,
                                   .cost_base_ps = 500000,
                                   .cost_element_ps = 10000,
                                   .cost = sdpa_cost,
                                   .start = sdpa_start};
const eddy_kernel eddy_cpu_sdpa_backward = {.name = "sdpa_backward",
                                            .run = sdpa_backward_run,
                                            .workspace = sdpa_backward_workspace,
                                            .cost_base_ps = 500000,
                                            .cost_element_ps = 30000,
                                            .cost = sdpa_backward_cost,
                                            .start = sdpa_backward_start};
