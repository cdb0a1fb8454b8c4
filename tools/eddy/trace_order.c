#include "trace_order.h"

#include "memory.h"
#include <stdlib.h>

#define COMPARE(a, b) ((a) < (b) ? -1 : (a) > (b))

static int by_row(const void *a, const void *b) {
    const trace_kernel *left = a, *right = b;
    if (left->row != right->row)
        return COMPARE(left->row, right->row);
    if (left->begin_ns != right->begin_ns)
        return COMPARE(left->begin_ns, right->begin_ns);
    return COMPARE(right->end_ns, left->end_ns);
}

static int by_wait_row(const void *a, const void *b) {
    const trace_wait *left = a, *right = b;
    if (left->row != right->row)
        return COMPARE(left->row, right->row);
    return COMPARE(left->begin_ns, right->begin_ns);
}

static int by_call(const void *a, const void *b) {
    return COMPARE(((const trace_call *)a)->n, ((const trace_call *)b)->n);
}

static int by_target(const void *a, const void *b) {
    const trace_edge *left = a, *right = b;
    return left->to != right->to ? COMPARE(left->to, right->to) : COMPARE(left->from, right->from);
}

static int by_time(const void *a, const void *b) {
    return COMPARE(*(const int64_t *)a, *(const int64_t *)b);
}

static int by_number(const void *a, const void *b, void *kernels) {
    const trace_kernel *left = (const trace_kernel *)kernels + *(const uint32_t *)a;
    const trace_kernel *right = (const trace_kernel *)kernels + *(const uint32_t *)b;
    if (left->n != right->n)
        return COMPARE(left->n, right->n);
    /* What a device does is over later than its launch. */
    if (left->kind != right->kind)
        return COMPARE(right->kind, left->kind);
    /* Rounds of a program, and the launches of a late call, have one number: the last of them is its end. */
    return COMPARE(right->end_ns, left->end_ns);
}

static void sort(trace_list *list, size_t bytes, int (*compare)(const void *a, const void *b)) {
    if (list->count > 1)
        qsort(list->items, list->count, bytes, compare);
}

void trace_order_init(trace_order *order, trace_model *model) {
    sort(&model->kernels, sizeof(trace_kernel), by_row);
    sort(&model->calls, sizeof(trace_call), by_call);
    sort(&model->edges, sizeof(trace_edge), by_target);
    sort(&model->waits, sizeof(trace_wait), by_wait_row);
    sort(&model->refusals, sizeof(int64_t), by_time);
    *order = (trace_order){.model = model,
                           .kernels = model->kernels.items,
                           .kernel_count = model->kernels.count,
                           .calls = model->calls.items,
                           .edges = model->edges.items,
                           .waits = model->waits.items,
                           .refusals = model->refusals.items};
    order->by_number = tool_calloc(order->kernel_count, sizeof(*order->by_number));
    for (size_t k = 0; k < order->kernel_count; k++)
        if (order->kernels[k].n && order->kernels[k].kind != TRACE_KERNEL_ON_STREAM)
            order->by_number[order->numbered_count++] = (uint32_t)k;
    qsort_r(order->by_number, order->numbered_count, sizeof(*order->by_number), by_number,
            order->kernels);
}

void trace_order_fini(trace_order *order) {
    free(order->by_number);
}

/* The first of `count` for which is_before is false. */
#define FIND(found, count, is_before)                                                              \
    do {                                                                                           \
        size_t low_ = 0, high_ = (count);                                                          \
        while (low_ < high_) {                                                                     \
            (found) = low_ + (high_ - low_) / 2;                                                   \
            if (is_before)                                                                         \
                low_ = (found) + 1;                                                                \
            else                                                                                   \
                high_ = (found);                                                                   \
        }                                                                                          \
        (found) = low_;                                                                            \
    } while (0)

const trace_kernel *trace_order_kernel(const trace_order *order, int64_t n) {
    size_t found = 0;
    FIND(found, order->numbered_count, order->kernels[order->by_number[found]].n < n);
    if (found == order->numbered_count || order->kernels[order->by_number[found]].n != n)
        return NULL;
    return &order->kernels[order->by_number[found]];
}

const trace_call *trace_order_call(const trace_order *order, int64_t n) {
    size_t found = 0, count = order->model->calls.count;
    FIND(found, count, order->calls[found].n < n);
    return found < count && order->calls[found].n == n ? &order->calls[found] : NULL;
}

const trace_edge *trace_order_edges(const trace_order *order, int64_t n, size_t *edge_count) {
    size_t found = 0, count = order->model->edges.count;
    FIND(found, count, order->edges[found].to < n);
    *edge_count = 0;
    while (found + *edge_count < count && order->edges[found + *edge_count].to == n &&
           *edge_count < TRACE_AFTER_MOST)
        ++*edge_count;
    return order->edges + found;
}

/* Waits of one row do not overlap, but for those within each other. */
#define LOOK_BACK 8

const trace_wait *trace_order_wait(const trace_order *order, uint32_t row, int64_t begin_ns,
                                   int64_t end_ns) {
    const trace_wait *longest = NULL;
    int64_t most_ns = 0;
    size_t found = 0, count = order->model->waits.count;
    FIND(found, count,
         order->waits[found].row < row ||
             (order->waits[found].row == row && order->waits[found].begin_ns < begin_ns));
    for (size_t w = found > LOOK_BACK ? found - LOOK_BACK : 0; w < count; w++) {
        const trace_wait *wait = &order->waits[w];
        if (wait->row > row || (wait->row == row && wait->begin_ns >= end_ns))
            break;
        if (wait->row != row)
            continue;
        int64_t from = wait->begin_ns > begin_ns ? wait->begin_ns : begin_ns;
        int64_t to = wait->end_ns < end_ns ? wait->end_ns : end_ns;
        if (to - from > most_ns) {
            most_ns = to - from;
            longest = wait;
        }
    }
    return longest;
}

bool trace_order_was_refused(const trace_order *order, int64_t begin_ns, int64_t end_ns) {
    size_t found = 0, count = order->model->refusals.count;
    FIND(found, count, order->refusals[found] < begin_ns);
    return found < count && order->refusals[found] < end_ns;
}
