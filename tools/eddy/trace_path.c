#include "trace_path.h"

#include "memory.h"
#include <stddef.h>
#include <stdlib.h>

typedef struct before {
    const trace_kernel *kernel; /* NULL: none */
    bool is_edge;
} before;

/* An order in which what a kernel came after is before it, also where both take no time: nothing is walked twice. */
static bool is_before(const trace_kernel *kernel, const trace_kernel *than) {
    bool is_long = kernel->end_ns > kernel->begin_ns, is_than_long = than->end_ns > than->begin_ns;
    if (kernel->end_ns > than->begin_ns)
        return false;
    if (kernel->begin_ns != than->begin_ns)
        return kernel->begin_ns < than->begin_ns;
    return is_long != is_than_long ? is_than_long : kernel < than;
}

/* Kernels of a row that lie within each other are few. */
#define LOOK_BACK 8

static const trace_kernel *before_in_row(const trace_order *order, const trace_kernel *kernel) {
    const trace_kernel *found = NULL;
    size_t room = (size_t)(kernel - order->kernels);
    if (((const trace_row *)order->model->rows.items)[kernel->row].is_rest)
        return NULL;
    for (size_t i = 1; i <= LOOK_BACK && i <= room && kernel[-(ptrdiff_t)i].row == kernel->row;
         i++) {
        const trace_kernel *one = kernel - i;
        if (is_before(one, kernel) && (!found || one->end_ns > found->end_ns))
            found = one;
    }
    return found;
}

/* What ended last of all that it came after: those that it waited for, and the one before it in its row. */
static before latest(const trace_order *order, const trace_kernel *kernel) {
    size_t count = 0;
    before found = {before_in_row(order, kernel), false};
    const trace_edge *edges = kernel->n ? trace_order_edges(order, kernel->n, &count) : NULL;
    for (size_t e = 0; e < count; e++) {
        const trace_kernel *source = trace_order_kernel(order, edges[e].from);
        if (source && is_before(source, kernel) &&
            (!found.kernel || source->end_ns >= found.kernel->end_ns))
            found = (before){source, true};
    }
    return found;
}

static int by_total(const void *a, const void *b) {
    const trace_path_step *left = a, *right = b;
    return left->total_ns > right->total_ns ? -1 : left->total_ns < right->total_ns;
}

static void add(trace_path *path, uint32_t *step_of, const trace_kernel *kernel) {
    if (step_of[kernel->op] == 0) {
        path->steps = tool_realloc(path->steps, path->step_count + 1, sizeof(*path->steps));
        path->steps[path->step_count++] = (trace_path_step){.op = kernel->op};
        step_of[kernel->op] = (uint32_t)path->step_count;
    }
    trace_path_step *step = &path->steps[step_of[kernel->op] - 1];
    step->count++;
    step->total_ns += kernel->end_ns - kernel->begin_ns;
    path->kernel_count++;
    path->kernel_ns += kernel->end_ns - kernel->begin_ns;
}

/* The time between two of the path: what came last of call and predecessor is what it waited for. */
static void count_gap(trace_path *path, const trace_order *order, before from,
                      const trace_kernel *kernel) {
    const trace_call *call = kernel->n ? trace_order_call(order, kernel->n) : NULL;
    int64_t ns = kernel->begin_ns - from.kernel->end_ns;
    if (call && call->begin_ns > from.kernel->end_ns && call->begin_ns <= kernel->begin_ns) {
        path->call_ns += call->begin_ns - from.kernel->end_ns;
        ns = kernel->begin_ns - call->begin_ns;
    }
    if (from.is_edge)
        path->edge_ns += ns;
    else
        path->thread_ns += ns;
}

void trace_path_find(trace_path *path, const trace_order *order) {
    const trace_kernel *kernel = NULL;
    *path = (trace_path){0};
    for (size_t k = 0; k < order->kernel_count; k++)
        if (order->kernels[k].kind != TRACE_KERNEL_ON_STREAM &&
            (!kernel || order->kernels[k].end_ns > kernel->end_ns))
            kernel = &order->kernels[k];
    if (!kernel)
        return;
    uint32_t *step_of = tool_calloc(order->model->texts.count, sizeof(*step_of));
    path->end_ns = kernel->end_ns;
    for (;;) {
        add(path, step_of, kernel);
        path->begin_ns = kernel->begin_ns;
        before from = latest(order, kernel);
        if (!from.kernel)
            break;
        count_gap(path, order, from, kernel);
        kernel = from.kernel;
    }
    if (path->step_count > 1)
        qsort(path->steps, path->step_count, sizeof(*path->steps), by_total);
    free(step_of);
}

void trace_path_fini(trace_path *path) {
    free(path->steps);
}
