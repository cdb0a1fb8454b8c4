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
    JSON,
    END,
};

static const tool_option diff_options[] = {
    {"--by", "WHAT", "op|phase|place", "What is compared; op."},
    {"--top", "N", NULL, "Rows of the table; 20."},
    JSON,
    END,
};

static const tool_option top_options[] = {
    {"--interval", "SECONDS", NULL, "Between two screens; 1."},
    {"--once", NULL, NULL, "One screen, of the time until then."},
    JSON,
    END,
};

static const tool_option bench_options[] = {
    {"--list", NULL, NULL, "Names and units of the rows, and nothing is measured."},
    {"--samples", "N", NULL, "Of each row; 11."},
    JSON,
    END,
};

static const tool_option json_options[] = {
    JSON,
    END,
};

static const tool_option print_options[] = {
    {"--plan", NULL, NULL,
     "Also what runs each instruction, where its operands lie, and the time by estimate."},
    JSON,
    END,
};

static const tool_option run_options[] = {
    {"--input", "NAME=FILE.npy...", NULL,
     "An input's elements; may come again. Else floats are random, from 0 to 1, and all others 0."},
    {"--output", "NAME=FILE.npy...", NULL,
     "Where to write an output of the last run; may come again."},
    {"--times", "N", NULL, "Runs; 1."},
    {"--seed", "N", NULL, "Of random inputs and of what the program draws."},
    JSON,
    END,
};

static const tool_option plan_options[] = {
    {"--output", "FILE.svg", NULL, "Where to write the picture; else to standard output."},
    JSON,
    END,
};

const tool_command tool_commands[] = {
    {"bench", "[ROW]...", 0, TOOL_OPERANDS_MOST, "Measure how fast the installed library is",
     "Runs the measuring programs that are installed with it: overhead of calls and replays, "
     "training "
     "steps, single ops. Without a name it measures some of each, which takes some seconds. NAME* "
     "takes "
     "all rows that begin so. Programs of one thread run on one processor. best is the least "
     "sample, median their median, spread the width of the middle 80 % over the median. Variables "
     "of the environment that would change how a program runs are not passed on.",
     bench_options, tool_bench},
    {"dot", "FILE", 1, 1, "Draw a saved program as a graph, for Graphviz",
     "Instructions are boxes, values the lines between them. Inputs, state, constants, captured "
     "tensors and outputs have "
     "shapes and colours of their own; branches, loops and groups that run as one are frames. "
     "Lines with dashes go to the next step of a loop, "
     "and to what was there before the run and is written. Such as: eddy dot FILE | dot -Tsvg.",
     json_options, tool_dot},
    {"info", "", 0, 0, "Say what the library is, runs on and stands on",
     "Version, threads, instruction set, the options of a runtime with their values and where "
     "these come from, devices "
     "and their memory, libraries and their versions.",
     json_options, tool_info},
    {"ops", "[NAME]", 0, 1, "List the ops, or say all of one",
     "With a name: the call, operands, attributes with their defaults, dtypes, gradient, accuracy, "
     "errors and functions.",
     json_options, tool_ops},
    {"plan", "FILE", 1, 1, "Draw where a saved program's values lie in memory",
     "Instructions go across, addresses of the arena up; each value that lies there is a "
     "rectangle, coloured by its op, "
     "from the middle of the instruction that makes it to that of the last that uses it. "
     "Workspaces are not shown, and of a program of several streams the order is that of its text.",
     plan_options, tool_plan},
    {"print", "FILE", 1, 1, "Print the text of a saved program",
     "As the passes of this library leave it; with EDDY_PASSES=none as it was saved.",
     print_options, tool_print},
    {"run", "FILE", 1, 1, "Run a saved program",
     "Prints how long the first run took, mean and least of the others, what a run takes, and of "
     "each output dtype, "
     "shape, and least, greatest and mean element. Of an output with a shape that depends on data "
     "the shape is that of the last run. State goes on from run to run, and is not saved.",
     run_options, tool_run},
    {"top", "PID", 1, 1, "Watch the counters of a process that runs",
     "The process was started with EDDY_TOP=1, by the same user. Shows rates, queues, memory and, "
     "with EDDY_TIMES=1, the busiest ops, until q is pressed or the process ends.",
     top_options, tool_top},
    {"trace summary", "FILE", 1, 1, "Say what a trace's time went to",
     "Reads a trace (EDDY_TRACE, eddy_trace_start), or any file in the Trace Event Format, also "
     "one that is compressed or was cut off. Prints count, total, mean, median, 99th percentile "
     "and share; "
     "the gaps of each thread and stream that runs kernels, with what ended them; the critical "
     "path; the "
     "longest waits; op and place at the peak of memory. Percentiles are within 4 %.",
     summary_options, tool_trace_summary},
    {"trace svg", "FILE", 1, 1, "Draw a trace as a timeline",
     "One row for each thread, ordered stream and stream of a device; what takes less than a pixel "
     "is drawn "
     "together. With --json the same, as lanes of ranges.",
     svg_options, tool_trace_svg},
    {"trace diff", "A B", 2, 2, "Say what takes longer in the second of two traces",
     "Compares the totals, the most different first.", diff_options, tool_trace_diff},
    {NULL, NULL, 0, 0, NULL, NULL, NULL, NULL},
};
