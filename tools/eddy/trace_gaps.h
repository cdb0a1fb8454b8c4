/* Why threads that run kernels, and streams, did not run any for a while. */
#ifndef TOOLS_EDDY_TRACE_GAPS_H
#define TOOLS_EDDY_TRACE_GAPS_H

#include "trace_order.h"

/* What ended a gap: reason, what it means. */
#define TRACE_GAP_LIST(row)                                                                        \
    row(NO_WORK, "no work", "the next call came only then")                                        \
        row(EDGE, "an edge", "the next one waited for another")                                    \
            row(LEND, "a lend",                                                                    \
                "the next one waited for what is no kernel: a lend, a callback, a copy")           \
                row(MARK, "a mark", "its caller was held back, as too much was in flight")         \
                    row(MEMORY, "memory", "memory was refused, and had to be found")               \
                        row(WAIT, "a wait", "the thread waited itself, for a result")              \
                            row(HAND_OVER, "hand-over", "it was ready, and not begun")

typedef enum trace_gap {
#define TRACE_GAP_ROW(enumerator, name, meaning) TRACE_GAP_##enumerator,
    TRACE_GAP_LIST(TRACE_GAP_ROW)
#undef TRACE_GAP_ROW
        TRACE_GAP_COUNT
} trace_gap;

typedef struct trace_gap_sum {
    int64_t count, total_ns, most_ns;
} trace_gap_sum;

const char *trace_gap_name(trace_gap gap);
const char *trace_gap_meaning(trace_gap gap);

/* sums: TRACE_GAP_COUNT for each row of the model, zero before. */
void trace_gaps_sum(const trace_order *order, trace_gap_sum *sums);

#endif
