/* The table of commands. */
#include "command.h"

#include <stddef.h>

#define JSON                                                                                       \
    { "--json", NULL, NULL, "Print JSON." }
#define END                                                                                        \
    { NULL, NULL, NULL, NULL }

static const tool_option summary_options[] = {
    {"--by", "WHAT", "op|phase|thread|stream|place",
     "One table alone: by op, phase, thread, stream, or place of the call."},
    {"--top", "N", NULL, "Rows of each table; 20."},
    JSON,
    END,
};

static const tool_option svg_options[] = {
    {"--output", "FILE", NULL, "Where to write the picture; else to standard output."},
    {"--from", "MS", NULL, "Begin so many milliseconds after the trace's begin."},
    {"--to", "MS", NULL, "End there."},
    {"--width", "PIXELS", NULL, "Of the picture; 1200."},
    END,
};

static const tool_option diff_options[] = {
    {"--by", "WHAT", "op|phase|place", "What is compared; op."},
    {"--top", "N", NULL, "Rows of the table; 20."},
    JSON,
    END,
};

const tool_command tool_commands[] = {
    {"trace summary", "FILE", 1, 1, "Say what a trace's time went to",
     "Reads a trace (EDDY_TRACE, eddy_trace_start), or any file in the Trace Event Format, also "
     "one that is compressed or was cut off. Prints count, total, mean, median, 99th percentile "
     "and share; "
     "the gaps of each thread that runs kernels, with what ended them; the critical path; the "
     "longest waits; op and place at the peak of memory. Percentiles are within 4 %.",
     summary_options, tool_trace_summary},
    {"trace svg", "FILE", 1, 1, "Draw a trace as a timeline",
     "One row for each thread and each stream of a device; what takes less than a pixel is drawn "
     "together.",
     svg_options, tool_trace_svg},
    {"trace diff", "A B", 2, 2, "Say what takes longer in the second of two traces",
     "Compares the totals, the most different first.", diff_options, tool_trace_diff},
    {NULL, NULL, 0, 0, NULL, NULL, NULL, NULL},
};
