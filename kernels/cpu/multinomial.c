/* Draws from the distributions that rows of weights are. With replacement: a number in the running sum of the row. Without:
 * every element has an exponential variable with its weight as rate, and the smallest come first (P. Efraimidis, P. Spirakis,
 * "Weighted random sampling with a reservoir", 2006). */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/math.h>
#include <kernels/philox.h>
#include <math.h>

#define SLICE_ELEMENTS 16384

/* An element with its variable: the place in the heap of those chosen so far. */
typedef struct candidate {
    double key;
    int64_t index;
} candidate;

typedef struct multinomial {
    const eddy_kernel_call *call;
    const eddy_attributes_multinomial *attributes;
    const eddy_kernel_view *weights, *out;
    int64_t rows, classes;
} multinomial;

/* 53 bits of block `number`, in [0, 1). */
static double uniform(const multinomial *work, uint64_t number) {
    uint32_t words[4];
    eddy_philox(work->attributes->seed, work->attributes->counter, number, words);
    return (double)(((uint64_t)words[0] << 32 | words[1]) >> 11) * 0x1p-53;
}

static double weight_at(const multinomial *work, int64_t row, int64_t class) {
    const eddy_kernel_view *view = work->weights;
    int64_t offset = class * view->strides[view->rank - 1] + (view->rank == 2 ? row * view->strides[0] : 0);
    return eddy_dtype_load_f64(view->dtype, eddy_chunk_at(view->data, view->dtype, offset));
}

static int64_t *out_at(const multinomial *work, int64_t row, int64_t draw) {
    const eddy_kernel_view *view = work->out;
    int64_t offset = draw * view->strides[view->rank - 1] + (view->rank == 2 ? row * view->strides[0] : 0);
    return eddy_chunk_at(view->data, EDDY_I64, offset);
}

static void refuse(const multinomial *work, int64_t row) {
    eddy_kernel_fail(work->call, EDDY_INVALID_ARGUMENT, row, 0, 0);
}

/* ---- with replacement ---- */

static void draw_again(const multinomial *work, int64_t row) {
    double *sums = (double *)work->call->workspace + row * work->classes, sum = 0;
    int64_t last = 0; /* of those that can be drawn */
    for (int64_t c = 0; c < work->classes; c++) {
        double w = weight_at(work, row, c);
        if (!(w >= 0 && w < INFINITY)) {
            refuse(work, row);
            return;
        }
        sum += w;
        sums[c] = sum;
        last = w > 0 ? c : last;
    }
    if (!(sum > 0 && sum < INFINITY)) {
        refuse(work, row);
        return;
    }
    for (int64_t d = 0; d < work->attributes->count; d++) {
        double at = uniform(work, (uint64_t)(row * work->attributes->count + d)) * sum;
        int64_t low = 0, high = last; /* the first whose running sum is above `at` */
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (sums[middle] > at)
                high = middle;
            else
                low = middle + 1;
        }
        *out_at(work, row, d) = low;
    }
}

/* ---- without ---- */

static bool comes_before(candidate a, candidate b) {
    return a.key < b.key || (a.key == b.key && a.index < b.index);
}

/* Lets the candidate at the root of a heap (the last one on top) sink to its place. */
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

static void draw_once(const multinomial *work, int64_t row) {
    int64_t wanted = work->attributes->count, kept = 0;
    candidate *heap = (candidate *)work->call->workspace + row * wanted;
    for (int64_t c = 0; c < work->classes; c++) {
        double w = weight_at(work, row, c);
        if (!(w >= 0 && w < INFINITY)) {
            refuse(work, row);
            return;
        }
        if (w == 0)
            continue;
        double u = 1 - uniform(work, (uint64_t)(row * work->classes + c)); /* (0, 1] */
        candidate next = {.key = -eddy_log_f64(u) / w, .index = c};
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
    for (int64_t row = begin; row < end; row++)
        if (work->attributes->replacement)
            draw_again(work, row);
        else
            draw_once(work, row);
}

static void prepare(multinomial *work, const eddy_kernel_call *call) {
    *work =
        (multinomial){.call = call, .attributes = call->attributes, .weights = &call->views[0], .out = &call->views[1]};
    work->rows = work->weights->rank == 2 ? work->weights->shape[0] : 1;
    work->classes = work->weights->shape[work->weights->rank - 1];
}

static void multinomial_run(const eddy_kernel_call *call) {
    multinomial work;
    prepare(&work, call);
    if (work.attributes->count == 0)
        return;
    int64_t grain = eddy_max_i64(1, SLICE_ELEMENTS / eddy_max_i64(1, work.classes));
    if (work.rows <= grain)
        draw_slice(&work, 0, work.rows);
    else
        call->team->parallel_for(call->team, work.rows, grain, draw_slice, &work);
}

static size_t multinomial_workspace(const eddy_kernel_call *call) {
    multinomial work;
    prepare(&work, call);
    return work.attributes->replacement ? (size_t)(work.rows * work.classes) * sizeof(double)
                                        : (size_t)(work.rows * work.attributes->count) * sizeof(candidate);
}

/* A walk through the weights, and draws that search. */
static int64_t multinomial_cost(const eddy_kernel_call *call) {
    multinomial work;
    prepare(&work, call);
    int64_t element_ps = work.attributes->replacement ? 5000 : 25000;
    return 100000 + work.rows * (work.classes * element_ps + work.attributes->count * 100000);
}

const eddy_kernel eddy_cpu_multinomial = {.name = "multinomial",
                                          .run = multinomial_run,
                                          .workspace = multinomial_workspace,
                                          .cost_base_ps = 100000,
                                          .cost_element_ps = 60000,
                                          .cost = multinomial_cost};
