/* The kernels, calls and dependencies of a trace, sorted so that each is found by its number and its row. */
#ifndef TOOLS_EDDY_TRACE_ORDER_H
#define TOOLS_EDDY_TRACE_ORDER_H

#include "trace_model.h"

typedef struct trace_order {
    const trace_model *model;
    trace_kernel *kernels; /* by row and begin */
    size_t kernel_count;
    uint32_t *
        by_number; /* kernels by n, of one on a device that first; those without a number are left out, and ON_STREAM */
    size_t numbered_count;
    trace_call *calls; /* by n */
    trace_edge *edges; /* by `to` */
    trace_wait *waits; /* by row and begin */
    int64_t *refusals; /* by time */
} trace_order;

/* Sorts the model's own lists. */
void trace_order_init(trace_order *order, trace_model *model);
void trace_order_fini(trace_order *order);

/* NULL: it is not there. */
const trace_kernel *trace_order_kernel(const trace_order *order, int64_t n);
const trace_call *trace_order_call(const trace_order *order, int64_t n);
/* The dependencies of an instruction; *count of them, TRACE_AFTER_MOST at most. */
const trace_edge *trace_order_edges(const trace_order *order, int64_t n, size_t *count);
/* The longest wait of a row that overlaps with the time; NULL: none. */
const trace_wait *trace_order_wait(const trace_order *order, uint32_t row, int64_t begin_ns,
                                   int64_t end_ns);

/* Whether memory was refused then. */
bool trace_order_was_refused(const trace_order *order, int64_t begin_ns, int64_t end_ns);

#endif
