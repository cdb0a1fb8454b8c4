/* Draws from distributions; each row of weights is one. With replacement, a random number is searched for in the running
 * sum of the row. Without, every element has an exponential variable with its weight as rate, and the smallest come first
 * (P. Efraimidis, P. Spirakis, "Weighted random sampling with a reservoir", 2006). */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/random/random_block.h>
#include <kernels/math.h>
#include <math.h>

#define SLICE_ELEMENTS 16384
/* Each slice has running sums of its own, so there are no more slices than this. */
#define SLICES 16
/* Rows whose running sums are computed in parallel: within a row, each addition waits for the one before it. */
#define SIDE 4
/* Weights that are loaded at a time. */
#define PIECE 1024

/* An element with its variable, in the heap of the elements chosen so far. */
typedef struct candidate {
    double key;
    int64_t index;
} candidate;

typedef struct multinomial_plan {
    int64_t rows, classes;
    int64_t grain, side; /* rows of a slice, and rows summed in parallel */
} multinomial_plan;

typedef struct multinomial {
    const eddy_kernel_call *call;
    const eddy_attributes_multinomial *attributes;
    const eddy_op_view *weights, *out;
    int64_t rows, classes, grain, side;
} multinomial;

/* Uniform numbers of Philox blocks, made many at a time. */
typedef struct uniforms {
    const eddy_attributes_multinomial *attributes;
    uint64_t first; /* the first block in `made` */
    double made[2 * EDDY_RANDOM_BLOCKS];
} uniforms;

static void uniforms_begin(uniforms *u, const multinomial *work) {
    u->attributes = work->attributes;
    u->first = UINT64_MAX / 2;
}

/* 53 bits of block `number`, in [0, 1). */
static double uniform(uniforms *u, uint64_t number) {
    if (number - u->first >= EDDY_RANDOM_BLOCKS) {
        u->first = number / EDDY_RANDOM_BLOCKS * EDDY_RANDOM_BLOCKS;
        eddy_cpu_random_blocks()->uniform_f64(u->made, u->attributes->seed, u->attributes->counter,
                                              u->first);
    }
    return u->made[2 * (number - u->first)];
}

static void load_weights(const multinomial *work, int64_t row, int64_t class, int64_t count,
                         double *weights) {
    const eddy_op_view *view = work->weights;
    int64_t stride = view->strides[view->rank - 1];
    int64_t offset = class * stride + (view->rank == 2 ? row * view->strides[0] : 0);
    eddy_chunk_load(EDDY_F64, weights, view->dtype, eddy_chunk_at(view->data, view->dtype, offset),
                    stride, count);
}

static int64_t *out_at(const multinomial *work, int64_t row, int64_t draw) {
    const eddy_op_view *view = work->out;
    int64_t offset =
        draw * view->strides[view->rank - 1] + (view->rank == 2 ? row * view->strides[0] : 0);
    return eddy_chunk_at(view->data, EDDY_I64, offset);
}

static void refuse(const multinomial *work, int64_t row) {
    eddy_kernel_fail(work->call, EDDY_INVALID_ARGUMENT, row, 0, 0);
}

/* ---- with replacement ---- */

/* Sums over the weights of a row so far. */
typedef struct total {
    double sum;
    int64_t last; /* the last class that can be drawn */
    int64_t negative;
} total;

/* Checks `count` weights, of the classes from `first` on. */
static void inspect(const double *weights, int64_t first, int64_t count, total *whole) {
    int64_t negative = 0;
    for (int64_t i = 0; i < count; i++)
        negative += weights[i] < 0 ? 1 : 0;
    whole->negative += negative;
    while (count > 0 && !(weights[count - 1] > 0))
        count--;
    whole->last = count > 0 ? first + count - 1 : whole->last;
}

/* Replaces `count` weights of each row by running sums; rows are `apart` elements apart. */
static inline void add_up(double *weights, int64_t apart, int64_t count, int rows, total *totals) {
    double sum[SIDE];
    for (int r = 0; r < rows; r++)
        sum[r] = totals[r].sum;
    for (int64_t c = 0; c < count; c++)
        for (int r = 0; r < rows; r++)
            weights[r * apart + c] = sum[r] += weights[r * apart + c];
    for (int r = 0; r < rows; r++)
        totals[r].sum = sum[r];
}

/* The first class whose running sum is above `at`, or the last class. No branch depends on the numbers. */
static int64_t search(const double *sums, int64_t last, double at) {
    int64_t low = 0, left = last; /* the class is among low .. low + left */
    while (left > 0) {
        int64_t half = (left + 1) / 2;
        low += sums[low + half - 1] > at ? 0 : half;
        left -= half;
    }
    return low;
}

/* Draws for the rows from `row` on, SIDE at most. */
static void draw_again(const multinomial *work, int64_t row, int64_t rows, double *sums,
                       uniforms *u) {
    total totals[SIDE] = {{0}};
    for (int64_t c = 0; c < work->classes; c += PIECE) {
        int64_t count = eddy_min_i64(PIECE, work->classes - c);
        for (int64_t r = 0; r < rows; r++) {
            double *weights = sums + r * work->classes + c;
            load_weights(work, row + r, c, count, weights);
            inspect(weights, c, count, &totals[r]);
            if (rows < SIDE)
                add_up(weights, 0, count, 1, &totals[r]);
        }
        if (rows == SIDE)
            add_up(sums + c, work->classes, count, SIDE, totals);
    }
    for (int64_t r = 0; r < rows; r++) {
        const total *whole = &totals[r];
        /* An infinite weight or a NaN makes the sum infinite or NaN. */
        if (whole->negative > 0 || !(whole->sum > 0 && whole->sum < INFINITY)) {
            refuse(work, row + r);
            continue;
        }
        for (int64_t d = 0; d < work->attributes->count; d++) {
            double at =
                uniform(u, (uint64_t)((row + r) * work->attributes->count + d)) * whole->sum;
            *out_at(work, row + r, d) = search(sums + r * work->classes, whole->last, at);
        }
    }
}

/* ---- without replacement ---- */

static bool comes_before(candidate a, candidate b) {
    return a.key < b.key || (a.key == b.key && a.index < b.index);
}

/* Moves the candidate at the root of a heap (whose root comes last in order) down to its position. */
static void sink(candidate *heap, int64_t count) {
    candidate moved = heap[0];
    int64_t at = 0;
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= count)
            break;
        if (child + 1 < count && comes_before(heap[child], heap[child + 1]))
            child++;
        if (!comes_before(moved, heap[child]))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

static void rise(candidate *heap, int64_t at) {
    candidate moved = heap[at];
    while (at > 0 && comes_before(heap[(at - 1) / 2], moved)) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = moved;
}

static void draw_once(const multinomial *work, int64_t row, uniforms *u) {
    int64_t wanted = work->attributes->count, kept = 0;
    candidate *heap = (candidate *)work->call->workspace + row * wanted;
    double weights[PIECE];
    for (int64_t c = 0; c < work->classes; c++) {
        if (c % PIECE == 0)
            load_weights(work, row, c, eddy_min_i64(PIECE, work->classes - c), weights);
        double w = weights[c % PIECE];
        if (!(w >= 0 && w < INFINITY)) {
            refuse(work, row);
            return;
        }
        if (w == 0)
            continue;
        double drawn = uniform(u, (uint64_t)(row * work->classes + c));
        /* -log(1 - drawn) is at least `drawn`; its rounding error is much less than the margin of 1e-9. */
        if (kept == wanted && drawn * (1 - 1e-9) > heap[0].key * w)
            continue;
        candidate next = {.key = -eddy_log_f64(1 - drawn) / w, .index = c};
        if (kept < wanted) {
            heap[kept] = next;
            rise(heap, kept++);
        } else if (comes_before(next, heap[0])) {
            heap[0] = next;
            sink(heap, kept);
        }
    }
    if (kept < wanted) {
        refuse(work, row);
        return;
    }
    for (int64_t d = wanted - 1; d >= 0; d--) {
        *out_at(work, row, d) = heap[0].index;
        heap[0] = heap[d];
        sink(heap, d);
    }
}

static void draw_slice(void *context, int64_t begin, int64_t end) {
    const multinomial *work = context;
    uniforms u;
    uniforms_begin(&u, work);
    if (!work->attributes->has_replacement) {
        for (int64_t row = begin; row < end; row++)
            draw_once(work, row, &u);
        return;
    }
    double *sums =
        (double *)work->call->workspace + begin / work->grain * work->side * work->classes;
    for (int64_t row = begin; row < end; row += work->side)
        draw_again(work, row, eddy_min_i64(work->side, end - row), sums, &u);
}

static eddy_status multinomial_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_attributes_multinomial *attributes = call->attributes;
    const eddy_op_view *weights = &call->views[0];
    multinomial_plan *p = plan->memory;
    p->rows = weights->rank == 2 ? weights->shape[0] : 1;
    p->classes = weights->shape[weights->rank - 1];
    int64_t grain =
        eddy_max_i64((p->rows + SLICES - 1) / SLICES, SLICE_ELEMENTS / eddy_max_i64(1, p->classes));
    p->grain = grain > SIDE ? (grain + SIDE - 1) / SIDE * SIDE : eddy_max_i64(1, grain);
    p->side = eddy_min_i64(SIDE, p->grain);
    int64_t slices = (p->rows + p->grain - 1) / p->grain;
    plan->bytes = sizeof(*p);
    plan->workspace_bytes = attributes->has_replacement
                                ? (size_t)(slices * p->side * p->classes) * sizeof(double)
                                : (size_t)(p->rows * attributes->count) * sizeof(candidate);
    /* One pass over the weights, and a search for each draw. */
    int64_t element_ps = attributes->has_replacement ? 1200 : 5000;
    plan->cost_ps = 100000 + p->rows * (p->classes * element_ps + attributes->count * 20000);
    return EDDY_OK;
}

static void multinomial_run(const eddy_kernel_call *call) {
    const multinomial_plan *plan = call->plan;
    multinomial work = {.call = call,
                        .attributes = call->attributes,
                        .weights = &call->views[0],
                        .out = &call->views[1],
                        .rows = plan->rows,
                        .classes = plan->classes,
                        .grain = plan->grain,
                        .side = plan->side};
    if (work.attributes->count == 0)
        return;
    if (plan->rows <= plan->grain)
        draw_slice(&work, 0, plan->rows);
    else
        call->team->parallel_for(call->team, plan->rows, plan->grain, draw_slice, &work);
}

const eddy_kernel eddy_cpu_multinomial = {.name = "multinomial",
                                          .run = multinomial_run,
                                          .prepare = multinomial_prepare,
                                          .cost_base_ps = 100000,
                                          .cost_element_ps = 60000};
