#include "trace_gaps.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[][2] = {
#define TRACE_GAP_ROW(enumerator, name, meaning) {name, meaning},
    TRACE_GAP_LIST(TRACE_GAP_ROW)
#undef TRACE_GAP_ROW
};

const char *trace_gap_name(trace_gap gap) {
    return names[gap][0];
}

const char *trace_gap_meaning(trace_gap gap) {
    return names[gap][1];
}

/* When the last of those that it waited for ended; whether one of them is no kernel of the trace. */
static int64_t edges_end(const trace_order *order, int64_t n, bool *has_unknown) {
    size_t count;
    const trace_edge *edges = trace_order_edges(order, n, &count);
    int64_t last_ns = INT64_MIN;
    for (size_t e = 0; e < count; e++) {
        const trace_kernel *source = trace_order_kernel(order, edges[e].from);
        *has_unknown |= !source;
        if (source && source->end_ns > last_ns)
            last_ns = source->end_ns;
    }
    return last_ns;
}

static bool is_room(const trace_order *order, const trace_wait *wait) {
    return wait && strncmp(text_table_text(&order->model->texts, wait->reason), "room", 4) == 0;
}

/* Of the gap between the end of a row's kernel and its next one. */
static trace_gap reason(const trace_order *order, int64_t begin_ns, const trace_kernel *next) {
    const trace_call *call = next->n ? trace_order_call(order, next->n) : NULL;
    const trace_wait *own = trace_order_wait(order, next->row, begin_ns, next->begin_ns);
    bool has_unknown = false;
    int64_t edge_ns = next->n ? edges_end(order, next->n, &has_unknown) : INT64_MIN;
    if (trace_order_was_refused(order, begin_ns, next->begin_ns))
        return TRACE_GAP_MEMORY;
    /* Of what came last. A launch does not wait for the end of what it comes after. */
    if (edge_ns > begin_ns && edge_ns <= next->begin_ns && (!call || edge_ns > call->begin_ns))
        return TRACE_GAP_EDGE;
    if (is_room(order, own) ||
        (call && is_room(order, trace_order_wait(order, call->row, begin_ns, next->begin_ns))))
        return TRACE_GAP_MARK;
    if (own && own->end_ns - own->begin_ns > (next->begin_ns - begin_ns) / 2)
        return TRACE_GAP_WAIT;
    if (call && call->begin_ns > begin_ns)
        return TRACE_GAP_NO_WORK;
    if (has_unknown)
        return TRACE_GAP_LEND;
    return call ? TRACE_GAP_HAND_OVER : TRACE_GAP_NO_WORK;
}

void trace_gaps_sum(const trace_order *order, trace_gap_sum *sums) {
    const trace_row *rows = order->model->rows.items;
    int64_t end_ns = 0;
    for (size_t k = 0; k < order->kernel_count; k++) {
        const trace_kernel *kernel = &order->kernels[k];
        bool is_first = k == 0 || kernel[-1].row != kernel->row || rows[kernel->row].is_rest;
        if (!is_first && kernel->begin_ns > end_ns) {
            trace_gap_sum *sum = &sums[(size_t)kernel->row * TRACE_GAP_COUNT +
                                       (uint32_t)reason(order, end_ns, kernel)];
            int64_t ns = kernel->begin_ns - end_ns;
            sum->count++;
            sum->total_ns += ns;
            sum->most_ns = ns > sum->most_ns ? ns : sum->most_ns;
        }
        end_ns = is_first || kernel->end_ns > end_ns ? kernel->end_ns : end_ns;
    }
}
