#include "trace_path.h"

#include <stdlib.h>

typedef struct before {
    const trace_kernel *kernel; /* NULL: none */
    bool is_edge;
} before;

/* What ended last of all that it came after: those that it waited for, and the one before it in its row. */
static before latest(const trace_order *order, const trace_kernel *kernel) {
    size_t count = 0;
    before found = {0};
    if (kernel > order->kernels && kernel[-1].row == kernel->row &&
        kernel[-1].end_ns <= kernel->begin_ns)
        found.kernel = kernel - 1;
    const trace_edge *edges = kernel->n ? trace_order_edges(order, kernel->n, &count) : NULL;
    for (size_t e = 0; e < count; e++) {
        const trace_kernel *source = trace_order_kernel(order, edges[e].from);
        if (source && source->end_ns <= kernel->begin_ns &&
            (!found.kernel || source->end_ns >= found.kernel->end_ns))
            found = (before){source, true};
    }
    return found;
}

static int by_total(const void *a, const void *b) {
    const trace_path_step *left = a, *right = b;
    return left->total_ns > right->total_ns ? -1 : left->total_ns < right->total_ns;
}

static bool add(trace_path *path, uint32_t *step_of, const trace_kernel *kernel) {
    if (step_of[kernel->op] == 0) {
        trace_path_step *steps = realloc(path->steps, (path->step_count + 1) * sizeof(*steps));
        if (!steps)
            return false;
        path->steps = steps;
        steps[path->step_count++] = (trace_path_step){.op = kernel->op};
        step_of[kernel->op] = (uint32_t)path->step_count;
    }
    trace_path_step *step = &path->steps[step_of[kernel->op] - 1];
    step->count++;
    step->total_ns += kernel->end_ns - kernel->begin_ns;
    path->kernel_count++;
    path->kernel_ns += kernel->end_ns - kernel->begin_ns;
    return true;
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

bool trace_path_find(trace_path *path, const trace_order *order) {
    const trace_kernel *kernel = NULL;
    *path = (trace_path){0};
    for (size_t k = 0; k < order->kernel_count; k++)
        if (!kernel || order->kernels[k].end_ns > kernel->end_ns)
            kernel = &order->kernels[k];
    if (!kernel)
        return true;
    uint32_t *step_of = calloc(order->model->texts.count, sizeof(*step_of));
    bool is_there = step_of != NULL;
    path->end_ns = kernel->end_ns;
    /* Each ends before the next begins, or at the same moment: kernels without a duration are not walked for ever. */
    for (size_t left = order->kernel_count; is_there && left > 0; left--) {
        is_there = add(path, step_of, kernel);
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
    return is_there;
}

void trace_path_fini(trace_path *path) {
    free(path->steps);
}
