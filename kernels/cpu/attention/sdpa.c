/* Scaled dot product attention: softmax(q k^T * scale + mask) v. It works in blocks of rows and columns, so that no matrix
 * of scores is ever stored whole. For each row it keeps the largest score so far and the sum of exponentials relative to
 * it. When a block brings a larger score, the sum and the accumulated output are scaled down (M. Milakov, N. Gimelshein,
 * "Online normalizer calculation for softmax", 2018; T. Dao et al., "FlashAttention", 2022). The gradient recomputes the
 * scores from q, k and the rows' sums. */
#include <base/atomic.h>
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cpu/attention/sdpa_block.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/matrix/gemm.h>
#include <kernels/cpu/random/random_block.h>
#include <kernels/cpu/walk.h>
#include <kernels/random.h>
#include <math.h>

/* Rows of q and rows of k in a block, at most. The scores of a block stay in the second-level cache, and its products are
 * large enough for the matrix libraries. */
#define ROWS_MAX 128
#define COLUMNS_MAX 512
/* Numbers that one call of the generator draws, and space for the numbers of one row of a block, at any offset within a
 * draw. */
#define DRAWN (4 * EDDY_RANDOM_BLOCKS)
#define NUMBERS_MAX ((COLUMNS_MAX / DRAWN + 1) * DRAWN)
/* Parts take tasks, one after the other, and each part has its own buffers. A part that starts late finds no task left.
 * There are enough parts for any team if their buffers take no more memory than the outputs do, and at least PARTS_MIN in
 * any case. */
#define PARTS_MAX 64
#define PARTS_MIN 8

/* Operands. The walk over batches has the FORWARD_OPERANDS in the forward op, and all operands in the gradient. */
enum { Q, K, V, MASK, OUT, FORWARD_OPERANDS, GRAD = FORWARD_OPERANDS, DQ, DK, DV, OPERANDS };

/* Buffers of a part. Each holds a block, except those from DQ_ROWS on, which hold all rows of a batch. */
enum {
    Q_ROWS,
    K_ROWS,
    V_ROWS,
    SCORES,
    OUT_ROWS,
    LARGEST,
    SUMS,
    GRAD_ROWS,
    SLOPES,
    DK_ROWS,
    DV_ROWS,
    DQ_ROWS,
    ALL_LARGEST,
    ALL_SUMS,
    PRODUCTS,
    BUFFERS
};

/* The plan; the walk over batches follows it in memory. */
typedef struct sdpa_plan {
    int64_t batch_count, rows, columns, width, value_width; /* L, S, D, E */
    int64_t block_rows, block_columns;                      /* of a block */
    int64_t tasks, parts;
    size_t part_bytes, at[BUFFERS]; /* offset of each buffer in a part */
    double scale;
    union {
        eddy_gemm_f32_fn *f32;
        eddy_gemm_f64_fn *f64;
    } multiply;
    eddy_dtype compute;
    uint32_t
        in_rows; /* a bit for each operand: products read or write its rows in place, without packing them */
    bool is_causal;
} sdpa_plan;

_Static_assert(sizeof(sdpa_plan) + EDDY_WALK_WORDS_MOST(OPERANDS) * sizeof(int64_t) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "room for batches over all dims");

typedef struct sdpa {
    const eddy_kernel_call *call;
    const sdpa_plan *plan;
    const eddy_op_view *views[OPERANDS]; /* NULL if absent */
    eddy_attributes_sdpa attributes;
    eddy_dtype compute;
    const eddy_sdpa_ops *ops;
    eddy_walk batches;
    _Atomic int64_t taken; /* atomic: number of the next task; parts add 1 to take it (relaxed) */
} sdpa;

static int64_t row_blocks(const sdpa_plan *plan) {
    return (plan->rows + plan->block_rows - 1) / plan->block_rows;
}

/* Rows of a matrix, row-major in the compute type: in place, or packed into a buffer. */
typedef struct matrix {
    const void *data;
    int64_t stride;
} matrix;

/* The same for rows that are written. */
typedef struct target {
    void *data;
    int64_t stride;
    bool is_packed; /* for store_rows */
} target;

/* c[m, n] = scale a b, or with `adds` c += scale a b */
static void multiply(const sdpa *work, bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                     int64_t k, double scale, matrix a, matrix b, bool adds, target c) {
    if (m == 0 || n == 0 || (k == 0 && adds))
        return;
    bool is_made;
    if (work->compute == EDDY_F64)
        is_made = work->plan->multiply.f64(transpose_a, transpose_b, m, n, k, scale, a.data,
                                           a.stride, b.data, b.stride, adds, c.data, c.stride);
    else
        is_made = work->plan->multiply.f32(transpose_a, transpose_b, m, n, k, (float)scale, a.data,
                                           a.stride, b.data, b.stride, adds, c.data, c.stride);
    if (!is_made)
        eddy_kernel_fail(work->call, EDDY_OUT_OF_MEMORY, 0, 0, 0);
}

/* Address of a row. NULL if the operand has no elements: its data may then be NULL. */
static void *place(const sdpa *work, int operand, const int64_t *offsets, int64_t row) {
    const eddy_op_view *view = work->views[operand];
    int64_t offset = offsets[operand] + row * view->strides[view->rank - 2];
    return view->data ? eddy_chunk_at(view->data, view->dtype, offset) : NULL;
}

static bool lies_in_rows(const sdpa *work, int operand) {
    return work->plan->in_rows >> operand & 1;
}

/* Rows row .. row + count - 1 of an operand in a batch. */
static matrix rows_of(const sdpa *work, int operand, const int64_t *offsets, int64_t row,
                      int64_t count, void *buffer) {
    const eddy_op_view *view = work->views[operand];
    int64_t width = view->shape[view->rank - 1];
    if (lies_in_rows(work, operand))
        return (matrix){place(work, operand, offsets, row), view->strides[view->rank - 2]};
    for (int64_t r = 0; r < count && width > 0; r++)
        eddy_chunk_load(work->compute, eddy_chunk_at(buffer, work->compute, r * width), view->dtype,
                        place(work, operand, offsets, row + r), view->strides[view->rank - 1],
                        width);
    return (matrix){buffer, eddy_max_i64(1, width)};
}

/* Memory where the rows of an output from `row` on are accumulated: the output itself, or the buffer. */
static target target_of(const sdpa *work, int operand, const int64_t *offsets, int64_t row,
                        void *buffer) {
    const eddy_op_view *view = work->views[operand];
    if (lies_in_rows(work, operand))
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

/* Copies rows that were accumulated in a buffer to the output. */
static void store_rows(const sdpa *work, int operand, const int64_t *offsets, int64_t row,
                       int64_t count, target from) {
    const eddy_op_view *view = work->views[operand];
    int64_t width = view->shape[view->rank - 1];
    for (int64_t r = 0; r < count && width > 0 && from.is_packed; r++)
        eddy_chunk_store(view->dtype, place(work, operand, offsets, row + r),
                         view->strides[view->rank - 1], work->compute, target_row(work, from, r),
                         width);
}

/* Number of columns that rows up to `row` may attend to. */
static int64_t columns_seen(const sdpa *work, int64_t row) {
    return work->plan->is_causal ? eddy_min_i64(work->plan->columns, row + 1) : work->plan->columns;
}

/* Adds the mask to the scores of a block. A score is -infinity if the row may not attend to the column. */
static void mask_scores(const sdpa *work, const int64_t *offsets, void *scores, int64_t row,
                        int64_t rows, int64_t column, int64_t columns) {
    const eddy_op_view *mask = work->views[MASK];
    _Alignas(64) char line[COLUMNS_MAX * 8];
    if (!mask && columns_seen(work, row) >= column + columns)
        return;
    for (int64_t r = 0; r < rows; r++) {
        void *at = eddy_chunk_at(scores, work->compute, r * work->plan->block_columns);
        int64_t seen = eddy_min_i64(columns, eddy_max_i64(0, columns_seen(work, row + r) - column));
        if (mask && seen > 0) {
            int64_t offset = offsets[MASK];
            int64_t row_stride =
                mask->shape[mask->rank - 2] == 1 ? 0 : mask->strides[mask->rank - 2];
            int64_t stride = mask->shape[mask->rank - 1] == 1 ? 0 : mask->strides[mask->rank - 1];
            offset += (row + r) * row_stride + column * stride;
            const void *from = eddy_chunk_at(mask->data, mask->dtype, offset);
            eddy_chunk_load(mask->dtype == EDDY_BOOL ? EDDY_BOOL : work->compute, line, mask->dtype,
                            from, stride, seen);
            if (mask->dtype == EDDY_BOOL)
                work->ops->hide(at, (const unsigned char *)line, seen);
            else
                work->ops->add(at, line, seen);
        }
        work->ops->fill(eddy_chunk_at(at, work->compute, seen), -INFINITY, columns - seen);
    }
}

/* Random numbers first .. first + count - 1 of the sequence that dropout assigns to the weights of all batches. */
typedef struct numbers {
    uint64_t first;
    int64_t count;
    float drawn[NUMBERS_MAX];
} numbers;

/* Nothing is drawn yet. (An initialiser would clear the array too.) */
static void forget(numbers *x) {
    x->first = 0;
    x->count = 0;
}

/* The random numbers of row `row` of batch `batch`, from a column on. If rows are short, an earlier draw into x may hold
 * them already. */
static const float *draw_row(const sdpa *work, int64_t batch, int64_t row, int64_t column,
                             int64_t count, numbers *x) {
    uint64_t first = (uint64_t)((batch * work->plan->rows + row) * work->plan->columns + column);
    if (first < x->first || first + (uint64_t)count > x->first + (uint64_t)x->count) {
        x->first = first - first % 4;
        for (x->count = 0; x->first + (uint64_t)x->count < first + (uint64_t)count;
             x->count += DRAWN)
            eddy_cpu_random_blocks()->uniform_f32(x->drawn + x->count, EDDY_DROP_BITS,
                                                  work->attributes.seed, work->attributes.counter,
                                                  (x->first + (uint64_t)x->count) / 4);
    }
    return x->drawn + (first - x->first);
}

static void drop(const sdpa *work, void *weights, const float *drawn, int64_t count) {
    work->ops->drop(weights, drawn, eddy_random_drop_least(work->attributes.dropout),
                    eddy_random_drop_scale(work->attributes.dropout), count);
}

static void *buffer_of(const sdpa *work, int64_t part, int buffer) {
    return (char *)work->call->workspace + (size_t)part * work->plan->part_bytes +
           work->plan->at[buffer];
}

/* ---- forward ---- */

typedef struct forward_buffers {
    void *q, *k, *v, *scores, *out;
    double *largest, *sums;
} forward_buffers;

static forward_buffers forward_buffers_of(const sdpa *work, int64_t part) {
    return (forward_buffers){.q = buffer_of(work, part, Q_ROWS),
                             .k = buffer_of(work, part, K_ROWS),
                             .v = buffer_of(work, part, V_ROWS),
                             .scores = buffer_of(work, part, SCORES),
                             .out = buffer_of(work, part, OUT_ROWS),
                             .largest = buffer_of(work, part, LARGEST),
                             .sums = buffer_of(work, part, SUMS)};
}

static target scores_of(const sdpa *work, void *buffer) {
    return (target){buffer, work->plan->block_columns, false};
}

static matrix values_of(target of) {
    return (matrix){of.data, of.stride};
}

/* Scores of a block of rows and columns: -infinity if the row may not attend to the column. */
static void take_scores(const sdpa *work, const int64_t *offsets, matrix q, matrix k, int64_t row,
                        int64_t rows, int64_t column, int64_t columns, void *scores) {
    multiply(work, false, true, rows, columns, work->plan->width, work->plan->scale, q, k, false,
             scores_of(work, scores));
    mask_scores(work, offsets, scores, row, rows, column, columns);
}

static void begin_rows(const forward_buffers *b, int64_t rows) {
    for (int64_t r = 0; r < rows; r++) {
        b->largest[r] = -INFINITY;
        b->sums[r] = 0;
    }
}

/* Merges a block of scores into the rows' sums. The scores become exponentials relative to the largest score so far. The
 * output accumulated so far in *out (NULL: none yet) is scaled down accordingly. */
static void join_scores(const sdpa *work, const forward_buffers *b, int64_t rows, int64_t columns,
                        const target *out) {
    for (int64_t r = 0; r < rows; r++) {
        void *at = target_row(work, scores_of(work, b->scores), r);
        double largest = work->ops->max(at, columns), before = b->largest[r];
        largest = before > largest || before != before ? before : largest;
        if (largest == -INFINITY) { /* no column attended to so far */
            work->ops->fill(at, 0, columns);
            continue;
        }
        double down = before == largest ? 1 : exp(before - largest);
        b->sums[r] = b->sums[r] * down + work->ops->exp_sum(at, largest, columns);
        b->largest[r] = largest;
        if (out && down != 1)
            work->ops->scale(target_row(work, *out, r), down, work->plan->value_width);
    }
}

/* Dropout leaves the sums of rows unchanged: they are the sums of all weights. */
static void drop_scores(const sdpa *work, const forward_buffers *b, int64_t batch, int64_t row,
                        int64_t rows, int64_t column, int64_t columns) {
    numbers x;
    forget(&x);
    for (int64_t r = 0; r < rows; r++)
        drop(work, eddy_chunk_at(b->scores, work->compute, r * work->plan->block_columns),
             draw_row(work, batch, row + r, column, columns, &x), columns);
}

/* A block of rows of one batch. */
static void forward_task(const sdpa *work, int64_t task, const forward_buffers *b) {
    int64_t batch = task / row_blocks(work->plan);
    int64_t row = task % row_blocks(work->plan) * work->plan->block_rows,
            rows = eddy_min_i64(work->plan->block_rows, work->plan->rows - row);
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->batches, &cursor, batch);
    matrix q = rows_of(work, Q, cursor.offsets, row, rows, b->q);
    target out = target_of(work, OUT, cursor.offsets, row, b->out);
    begin_rows(b, rows);
    int64_t seen = columns_seen(work, row + rows - 1);
    for (int64_t column = 0; column < seen; column += work->plan->block_columns) {
        int64_t columns = eddy_min_i64(work->plan->block_columns, seen - column);
        matrix k = rows_of(work, K, cursor.offsets, column, columns, b->k);
        matrix v = rows_of(work, V, cursor.offsets, column, columns, b->v);
        take_scores(work, cursor.offsets, q, k, row, rows, column, columns, b->scores);
        join_scores(work, b, rows, columns, column > 0 ? &out : NULL);
        if (work->attributes.dropout != 0)
            drop_scores(work, b, batch, row, rows, column, columns);
        multiply(work, false, false, rows, work->plan->value_width, columns, 1,
                 values_of(scores_of(work, b->scores)), v, column > 0, out);
    }
    if (seen == 0)
        clear_rows(work, out, 0, rows, work->plan->value_width);
    for (int64_t r = 0; r < rows; r++) /* a row that attends to no column is 0 */
        if (b->sums[r] != 0)
            work->ops->scale(target_row(work, out, r), 1 / b->sums[r], work->plan->value_width);
    store_rows(work, OUT, cursor.offsets, row, rows, out);
}

/* The number of a task that no part has taken yet; `tasks` or more if none is left. Tasks write disjoint elements, so the
 * result does not depend on which part takes a task. */
static int64_t take_task(sdpa *work) {
    return eddy_add_relaxed(&work->taken, 1);
}

static void forward_parts(void *context, int64_t begin, int64_t end) {
    sdpa *work = context;
    for (int64_t part = begin; part < end; part++) {
        forward_buffers buffers = forward_buffers_of(work, part);
        for (int64_t task = take_task(work); task < work->plan->tasks; task = take_task(work))
            forward_task(work, task, &buffers);
    }
}

/* ---- backward ---- */

typedef struct backward_buffers {
    forward_buffers forward;           /* of a block */
    void *grad, *slopes, *dk, *dv;     /* of a block */
    void *dq;                          /* of all rows */
    double *largest, *sums, *products; /* of all rows; products: see take_products */
} backward_buffers;

static backward_buffers backward_buffers_of(const sdpa *work, int64_t part) {
    return (backward_buffers){.forward = forward_buffers_of(work, part),
                              .grad = buffer_of(work, part, GRAD_ROWS),
                              .slopes = buffer_of(work, part, SLOPES),
                              .dk = buffer_of(work, part, DK_ROWS),
                              .dv = buffer_of(work, part, DV_ROWS),
                              .dq = buffer_of(work, part, DQ_ROWS),
                              .largest = buffer_of(work, part, ALL_LARGEST),
                              .sums = buffer_of(work, part, ALL_SUMS),
                              .products = buffer_of(work, part, PRODUCTS)};
}

/* The dot product of each row's gradient and its output: the sum over columns of probability times the probability's
 * gradient. */
static void take_products(const sdpa *work, const int64_t *offsets, const backward_buffers *b) {
    for (int64_t row = 0; row < work->plan->rows; row += work->plan->block_rows) {
        int64_t rows = eddy_min_i64(work->plan->block_rows, work->plan->rows - row);
        matrix grad = rows_of(work, GRAD, offsets, row, rows, b->grad);
        matrix out = rows_of(work, OUT, offsets, row, rows, b->forward.out);
        for (int64_t r = 0; r < rows; r++)
            b->products[row + r] = work->ops->dot(
                eddy_chunk_at(grad.data, work->compute, r * grad.stride),
                eddy_chunk_at(out.data, work->compute, r * out.stride), work->plan->value_width);
    }
}

/* Whether a block holds all scores of a row. The row's largest score and sum are then computed where they are needed. */
static bool is_row_whole(const sdpa *work) {
    return work->plan->columns <= work->plan->block_columns;
}

/* The largest score of each row, and the sum of exponentials relative to it. */
static void take_sums(const sdpa *work, const int64_t *offsets, const backward_buffers *b) {
    for (int64_t row = 0; row < work->plan->rows; row += work->plan->block_rows) {
        int64_t rows = eddy_min_i64(work->plan->block_rows, work->plan->rows - row),
                seen = columns_seen(work, row + rows - 1);
        forward_buffers f = b->forward;
        f.largest = b->largest + row;
        f.sums = b->sums + row;
        matrix q = rows_of(work, Q, offsets, row, rows, f.q);
        begin_rows(&f, rows);
        for (int64_t column = 0; column < seen; column += work->plan->block_columns) {
            int64_t columns = eddy_min_i64(work->plan->block_columns, seen - column);
            matrix k = rows_of(work, K, offsets, column, columns, f.k);
            take_scores(work, offsets, q, k, row, rows, column, columns, f.scores);
            join_scores(work, &f, rows, columns, NULL);
        }
    }
}

/* Turns the scores of a block into probabilities, and the gradients of the probabilities into gradients of the scores. */
static void take_slopes(const sdpa *work, int64_t batch, const backward_buffers *b, int64_t row,
                        int64_t rows, int64_t column, int64_t columns) {
    numbers x;
    forget(&x);
    for (int64_t r = 0; r < rows; r++) {
        void *scores = target_row(work, scores_of(work, b->forward.scores), r);
        void *slopes = target_row(work, scores_of(work, b->slopes), r);
        double largest = is_row_whole(work) ? work->ops->max(scores, columns) : b->largest[row + r],
               factor = 1;
        if (largest == -INFINITY) { /* a row that attends to no column */
            work->ops->fill(scores, 0, columns);
        } else {
            double sum = work->ops->exp_sum(scores, largest, columns);
            factor = 1 / (is_row_whole(work) ? sum : b->sums[row + r]);
        }
        const float *drawn = work->attributes.dropout != 0
                                 ? draw_row(work, batch, row + r, column, columns, &x)
                                 : NULL;
        if (drawn)
            drop(work, slopes, drawn, columns);
        work->ops->slope(slopes, scores, factor, b->products[row + r], columns);
        if (drawn)
            drop(work, scores, drawn, columns);
    }
}

/* Accumulators of the gradients: dq for all rows, dk and dv for a block of columns. */
typedef struct gradients {
    target dq, dk, dv;
} gradients;

/* Adds the contribution of rows row .. and columns column .. to the gradients. With `begins`, dk and dv are overwritten
 * instead. */
static void add_block(const sdpa *work, int64_t batch, const int64_t *offsets,
                      const backward_buffers *b, int64_t row, int64_t column, int64_t columns,
                      matrix k, matrix v, bool begins, const gradients *to) {
    int64_t rows = eddy_min_i64(work->plan->block_rows, work->plan->rows - row),
            width = work->plan->width;
    matrix q = rows_of(work, Q, offsets, row, rows, b->forward.q);
    matrix grad = rows_of(work, GRAD, offsets, row, rows, b->grad);
    take_scores(work, offsets, q, k, row, rows, column, columns, b->forward.scores);
    multiply(work, false, true, rows, columns, work->plan->value_width, 1, grad, v, false,
             scores_of(work, b->slopes));
    take_slopes(work, batch, b, row, rows, column, columns);
    matrix weights = values_of(scores_of(work, b->forward.scores)),
           slopes = values_of(scores_of(work, b->slopes));
    target dq = {target_row(work, to->dq, row), to->dq.stride, false};
    multiply(work, true, false, columns, work->plan->value_width, rows, 1, weights, grad, !begins,
             to->dv);
    multiply(work, true, false, columns, width, rows, work->plan->scale, slopes, q, !begins,
             to->dk);
    multiply(work, false, false, rows, width, columns, work->plan->scale, slopes, k, column > 0,
             dq);
}

/* All rows with one block of columns. The last rows come first: with a causal mask they attend to the most columns. */
static void add_columns(const sdpa *work, int64_t batch, const int64_t *offsets,
                        const backward_buffers *b, int64_t column, gradients *to) {
    int64_t columns = eddy_min_i64(work->plan->block_columns, work->plan->columns - column),
            begun = 0;
    matrix k = rows_of(work, K, offsets, column, columns, b->forward.k);
    matrix v = rows_of(work, V, offsets, column, columns, b->forward.v);
    to->dk = target_of(work, DK, offsets, column, b->dk);
    to->dv = target_of(work, DV, offsets, column, b->dv);
    for (int64_t block = row_blocks(work->plan) - 1; block >= 0; block--) {
        int64_t row = block * work->plan->block_rows,
                last = eddy_min_i64(work->plan->rows, row + work->plan->block_rows) - 1;
        int64_t seen = eddy_min_i64(columns, columns_seen(work, last) - column);
        if (seen <= 0)
            break;
        add_block(work, batch, offsets, b, row, column, seen, k, v, begun == 0, to);
        begun = eddy_max_i64(begun, seen);
    }
    clear_rows(work, to->dk, begun, columns - begun, work->plan->width);
    clear_rows(work, to->dv, begun, columns - begun, work->plan->value_width);
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
    for (int64_t column = 0; column < work->plan->columns; column += work->plan->block_columns)
        add_columns(work, batch, cursor.offsets, b, column, &to);
    if (work->plan->columns == 0)
        clear_rows(work, to.dq, 0, work->plan->rows, work->plan->width);
    store_rows(work, DQ, cursor.offsets, 0, work->plan->rows, to.dq);
}

static void backward_parts(void *context, int64_t begin, int64_t end) {
    sdpa *work = context;
    for (int64_t part = begin; part < end; part++) {
        backward_buffers buffers = backward_buffers_of(work, part);
        for (int64_t batch = take_task(work); batch < work->plan->tasks; batch = take_task(work))
            backward_batch(work, batch, &buffers);
    }
}

/* ---- running ---- */

static const eddy_op_view *present(const eddy_op_view *view) {
    return eddy_kernel_view_is_absent(view) ? NULL : view;
}

/* views: q, k, v, mask or absent, out */
static void find_forward(const eddy_op_view **found, const eddy_op_view *views) {
    found[Q] = &views[0];
    found[K] = &views[1];
    found[V] = &views[2];
    found[MASK] = present(&views[3]);
    found[OUT] = &views[4];
}

/* views: grad, output, q, k, v, mask or absent, dq, dk, dv */
static void find_backward(const eddy_op_view **found, const eddy_op_view *views) {
    found[GRAD] = &views[0];
    found[OUT] = &views[1];
    found[Q] = &views[2];
    found[K] = &views[3];
    found[V] = &views[4];
    found[MASK] = present(&views[5]);
    found[DQ] = &views[6];
    found[DK] = &views[7];
    found[DV] = &views[8];
}

static eddy_attributes_sdpa backward_attributes(const eddy_kernel_call *call) {
    const eddy_attributes_sdpa_backward *given = call->attributes;
    return (eddy_attributes_sdpa){.seed = (uint64_t)given->seed,
                                  .counter = (uint64_t)given->counter,
                                  .dropout = given->dropout,
                                  .scale = given->scale,
                                  .is_causal = given->is_causal};
}

static const eddy_sdpa_ops *ops_of(eddy_dtype compute) {
    return compute == EDDY_F64 ? eddy_cpu_sdpa_f64() : eddy_cpu_sdpa_f32();
}

/* work->views and work->attributes are set. */
static void run_parts(sdpa *work, const eddy_kernel_call *call,
                      void (*parts)(void *, int64_t, int64_t)) {
    const sdpa_plan *plan = call->plan;
    work->call = call;
    work->plan = plan;
    work->compute = plan->compute;
    work->ops = ops_of(plan->compute);
    eddy_walk_read(&work->batches, (const int64_t *)(const void *)(plan + 1));
    eddy_store_relaxed(&work->taken, (int64_t)0);
    if (plan->parts <= 1)
        parts(work, 0, plan->parts);
    else
        call->team->parallel_for(call->team, plan->parts, 1, parts, work);
}

static void sdpa_run(const eddy_kernel_call *call) {
    sdpa work;
    find_forward(work.views, call->views);
    work.attributes = *(const eddy_attributes_sdpa *)call->attributes;
    run_parts(&work, call, forward_parts);
}

static void sdpa_backward_run(const eddy_kernel_call *call) {
    sdpa work;
    find_backward(work.views, call->views);
    work.attributes = backward_attributes(call);
    run_parts(&work, call, backward_parts);
}

static void sdpa_run_nothing(const eddy_kernel_call *call) {
    (void)call;
}

/* ---- planning ---- */

/* Adds a view's batch dims to the walk; they broadcast to the joint batch dims. */
static void add_operand(eddy_walk *batches, const eddy_op_view *view) {
    int64_t strides[EDDY_RANK_MAX] = {0};
    int32_t rank = view ? view->rank - 2 : 0;
    for (int32_t d = 0; d < rank; d++)
        if (view->shape[d] != 1)
            strides[batches->rank - rank + d] = view->strides[d];
    eddy_walk_add(batches, strides, 1);
}

/* `like` is an output: outputs have all batch dims. */
static void plan_batches(eddy_walk *batches, const eddy_op_view *like,
                         const eddy_op_view *const *views, int operand_count) {
    eddy_walk_init(batches, like->rank - 2, like->shape);
    for (int o = 0; o < operand_count; o++)
        add_operand(batches, views[o]);
}

static bool can_be_in_rows(const eddy_op_view *view, eddy_dtype compute) {
    int64_t width = view->shape[view->rank - 1], stride = view->strides[view->rank - 2];
    bool is_dense = view->strides[view->rank - 1] == 1 || width == 1;
    return width > 0 && view->dtype == compute && is_dense && stride >= width;
}

static void plan_blocks(sdpa_plan *own, const eddy_op_view *const *views, int operand_count,
                        const eddy_attributes_sdpa *attributes) {
    const eddy_op_view *q = views[Q], *v = views[V];
    own->rows = q->shape[q->rank - 2];
    own->width = q->shape[q->rank - 1];
    own->columns = v->shape[v->rank - 2];
    own->value_width = v->shape[v->rank - 1];
    own->is_causal = attributes->is_causal;
    own->scale =
        attributes->scale != 0 ? attributes->scale : 1 / sqrt((double)eddy_max_i64(1, own->width));
    own->compute = eddy_chunk_compute_dtype(q->dtype);
    /* With a causal mask, blocks of fewer rows compute fewer scores that the mask hides. */
    own->block_rows =
        eddy_min_i64(own->is_causal ? ROWS_MAX / 2 : ROWS_MAX, eddy_max_i64(1, own->rows));
    own->block_columns = eddy_min_i64(COLUMNS_MAX, eddy_max_i64(1, own->columns));
    own->in_rows = 0;
    for (int o = 0; o < operand_count; o++)
        if (views[o] && can_be_in_rows(views[o], own->compute))
            own->in_rows |= UINT32_C(1) << o;
}

/* If scores are products with a vector (one row or one column), their provider passes the other products to a library.
 * That library has to be started before the call runs. */
static void start_others(const sdpa_plan *own, bool is_backward, bool *has_started) {
    int64_t rows = own->block_rows, columns = own->block_columns, width = own->width,
            value_width = own->value_width;
    eddy_gemm_prepare(own->compute, rows, value_width, columns, has_started);
    if (is_backward) {
        eddy_gemm_prepare(own->compute, columns, value_width, rows, has_started);
        eddy_gemm_prepare(own->compute, columns, width, rows, has_started);
        eddy_gemm_prepare(own->compute, rows, width, columns, has_started);
    }
}

/* All products use the provider that the table names for the scores. */
static void plan_products(sdpa_plan *own, bool is_backward, bool *has_started) {
    eddy_gemm_provider provider =
        eddy_gemm_prepare(own->compute, own->block_rows, own->block_columns,
                          eddy_max_i64(1, own->width), has_started);
    if (provider == EDDY_GEMM_VECTOR)
        start_others(own, is_backward, has_started);
    if (own->compute == EDDY_F64)
        own->multiply.f64 = eddy_gemm_provider_f64(provider);
    else
        own->multiply.f32 = eddy_gemm_provider_f32(provider);
}

/* Places a buffer of `bytes` bytes behind the previous ones. */
static void lay(sdpa_plan *own, int buffer, int64_t bytes) {
    own->at[buffer] = own->part_bytes;
    own->part_bytes += ((size_t)bytes + 63) / 64 * 64;
}

/* Space to pack `rows` rows of an operand; none if its rows are read or written in place. */
static void lay_rows(sdpa_plan *own, int buffer, int operand, int64_t rows, int64_t width) {
    lay(own, buffer,
        own->in_rows >> operand & 1 ? 0 : rows * width * eddy_dtype_size(own->compute));
}

static void lay_forward(sdpa_plan *own) {
    own->part_bytes = 0;
    lay_rows(own, Q_ROWS, Q, own->block_rows, own->width);
    lay_rows(own, K_ROWS, K, own->block_columns, own->width);
    lay_rows(own, V_ROWS, V, own->block_columns, own->value_width);
    lay(own, SCORES, own->block_rows * own->block_columns * eddy_dtype_size(own->compute));
    lay_rows(own, OUT_ROWS, OUT, own->block_rows, own->value_width);
    lay(own, LARGEST, own->block_rows * (int64_t)sizeof(double));
    lay(own, SUMS, own->block_rows * (int64_t)sizeof(double));
}

static void lay_backward(sdpa_plan *own) {
    lay_forward(own);
    lay_rows(own, GRAD_ROWS, GRAD, own->block_rows, own->value_width);
    lay(own, SLOPES, own->block_rows * own->block_columns * eddy_dtype_size(own->compute));
    lay_rows(own, DK_ROWS, DK, own->block_columns, own->width);
    lay_rows(own, DV_ROWS, DV, own->block_columns, own->value_width);
    lay_rows(own, DQ_ROWS, DQ, own->rows, own->width);
    lay(own, ALL_LARGEST, own->rows * (int64_t)sizeof(double));
    lay(own, ALL_SUMS, own->rows * (int64_t)sizeof(double));
    lay(own, PRODUCTS, own->rows * (int64_t)sizeof(double));
}

/* `output_count` is the number of elements of all outputs. */
static void plan_parts(sdpa_plan *own, int64_t tasks, int64_t output_count) {
    int64_t output_bytes = output_count * eddy_dtype_size(own->compute);
    int64_t affordable = output_bytes / eddy_max_i64(1, (int64_t)own->part_bytes);
    own->tasks = tasks;
    own->parts = eddy_min_i64(tasks, eddy_min_i64(PARTS_MAX, eddy_max_i64(PARTS_MIN, affordable)));
}

/* Picoseconds: products at some 125 GFLOP/s, the exponentials, and the random numbers of dropout. */
static int64_t cost_of(const sdpa_plan *own, double products, bool drops) {
    double scores = (double)own->batch_count * (double)own->rows * (double)own->columns;
    double each = own->compute == EDDY_F64 ? 32 : 16,
           width = (double)(own->width + own->value_width);
    double total =
        scores * (width * products * each + 800 + (drops ? 700 : 0)) * (own->is_causal ? 0.7 : 1);
    /* Each batch has the overhead of its tasks, however small they are. */
    total += (double)own->batch_count * 1.2e6;
    return 500000 + (int64_t)(total < 1e15 ? total : 1e15);
}

/* Appends the walk to the plan, and sets the sizes that depend on the parts. */
static void finish_plan(const sdpa_plan *own, eddy_walk *batches, eddy_kernel_plan *plan) {
    eddy_walk_collapse(batches);
    const int64_t *end =
        eddy_walk_write(batches, (int64_t *)(void *)((char *)plan->memory + sizeof(*own)));
    plan->bytes = (size_t)((const char *)end - (const char *)plan->memory);
    plan->workspace_bytes = (size_t)own->parts * own->part_bytes;
}

static eddy_status sdpa_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    sdpa_plan *own = plan->memory;
    const eddy_attributes_sdpa *attributes = call->attributes;
    const eddy_op_view *views[OPERANDS];
    eddy_walk batches;
    find_forward(views, call->views);
    plan_batches(&batches, views[OUT], views, FORWARD_OPERANDS);
    own->batch_count = eddy_walk_count(&batches);
    plan_blocks(own, views, FORWARD_OPERANDS, attributes);
    plan_products(own, false, &plan->has_started_library);
    lay_forward(own);
    plan_parts(own, own->batch_count * row_blocks(own),
               own->batch_count * own->rows * own->value_width);
    finish_plan(own, &batches, plan);
    plan->cost_ps = cost_of(own, 1, attributes->dropout != 0);
    if (eddy_kernel_view_count(views[OUT]) == 0)
        plan->run = sdpa_run_nothing;
    return EDDY_OK;
}

static eddy_status sdpa_backward_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    sdpa_plan *own = plan->memory;
    eddy_attributes_sdpa attributes = backward_attributes(call);
    const eddy_op_view *views[OPERANDS];
    eddy_walk batches;
    find_backward(views, call->views);
    plan_batches(&batches, views[DQ], views, OPERANDS);
    own->batch_count = eddy_walk_count(&batches);
    plan_blocks(own, views, OPERANDS, &attributes);
    plan_products(own, true, &plan->has_started_library);
    lay_backward(own);
    int64_t each = own->rows * own->width + own->columns * (own->width + own->value_width);
    plan_parts(own, own->batch_count, own->batch_count * each);
    finish_plan(own, &batches, plan);
    plan->cost_ps = cost_of(own, 3, attributes.dropout != 0);
    return EDDY_OK;
}

const eddy_kernel eddy_cpu_sdpa = {.name = "sdpa",
                                   .run = sdpa_run,
                                   .prepare = sdpa_prepare,
                                   .cost_base_ps = 500000,
                                   .cost_element_ps = 10000};
const eddy_kernel eddy_cpu_sdpa_backward = {.name = "sdpa_backward",
                                            .run = sdpa_backward_run,
                                            .prepare = sdpa_backward_prepare,
                                            .cost_base_ps = 500000,
                                            .cost_element_ps = 30000};
