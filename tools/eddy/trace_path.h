/* The critical path: back from the kernel that ended last, each time to what it waited for longest. */
#ifndef TOOLS_EDDY_TRACE_PATH_H
#define TOOLS_EDDY_TRACE_PATH_H

#include "trace_order.h"

typedef struct trace_path_step {
    uint32_t op;
    int64_t count, total_ns;
} trace_path_step;

typedef struct trace_path {
    int64_t begin_ns, end_ns;
    int64_t kernel_count, kernel_ns;
    int64_t call_ns;        /* until calls were made that had nothing else to wait for */
    int64_t edge_ns;        /* between the end of one and the begin of one that waited for it */
    int64_t thread_ns;      /* between two kernels of a thread */
    trace_path_step *steps; /* by op, the longest first */
    size_t step_count;
} trace_path;

/* `steps` is freed by trace_path_fini. */
void trace_path_find(trace_path *path, const trace_order *order);
void trace_path_fini(trace_path *path);

#endif
