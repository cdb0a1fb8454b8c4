/* A trace in memory, as far as summaries need it: totals of all events, and the kernels, calls, dependencies and waits one by one, up to a number that is known. */
#ifndef TOOLS_EDDY_TRACE_MODEL_H
#define TOOLS_EDDY_TRACE_MODEL_H

#include "text_table.h"
#include "trace_reader.h"

/* What is kept one by one: a gigabyte in all. Further ones are in the totals alone. */
#define MODEL_KERNELS_MOST (1 << 23)
#define MODEL_CALLS_MOST (1 << 23)
#define MODEL_EDGES_MOST (1 << 24)
#define MODEL_WAITS_MOST (1 << 20)
#define MODEL_ROWS_MOST 4096
#define MODEL_GROUPS_MOST 8192

/* Durations in classes, 16 for each doubling: percentiles within 1/16 half way, 4 %. */
#define MODEL_CLASSES (60 * 16)

typedef struct trace_group {
    int64_t count, total_ns, most_ns; /* total_ns: at most INT64_MAX */
    uint32_t *classes;                /* MODEL_CLASSES */
} trace_group;

/* A group for each text; the last stands for those that there was no room for. */
typedef struct trace_groups {
    text_table texts;
    trace_group *groups;
    uint32_t room;
} trace_groups;

typedef enum trace_kernel_kind {
    TRACE_KERNEL_ON_THREAD,
    TRACE_KERNEL_LAUNCH, /* of one on a device, likewise on a thread */
    TRACE_KERNEL_ON_DEVICE,
    TRACE_KERNEL_ON_STREAM, /* one on a thread once more, in the row of its stream */
} trace_kernel_kind;

typedef struct trace_kernel {
    int64_t begin_ns, end_ns;
    int64_t n;
    uint32_t row, op, place;
    trace_kernel_kind kind;
} trace_kernel;

typedef struct trace_call {
    int64_t n, begin_ns;
    uint32_t row;
} trace_call;

typedef struct trace_edge {
    int64_t to, from;
} trace_edge;

typedef struct trace_wait {
    int64_t begin_ns, end_ns;
    uint32_t row, op, reason, place;
} trace_wait;

typedef struct trace_row {
    int64_t process, thread;
    uint32_t name; /* in `texts`; 0: none */
    bool
        is_rest; /* the last that there is room for: also of all further threads, whose events tell nothing of each other */
} trace_row;

/* A vector that grows up to a bound. */
typedef struct trace_list {
    void *items;
    size_t count, room, most;
    int64_t left_out;
} trace_list;

typedef struct trace_model {
    trace_file file;
    text_table texts;
    int64_t begin_ns, end_ns; /* of all events with a time */
    int64_t event_count, dropped;
    char why[TRACE_TEXT_BYTES]; /* the trace ended; "": it does not say */
    trace_groups by_op, by_phase, by_thread, by_stream, by_place;
    trace_list kernels, calls, edges, waits, rows,
        refusals;      /* refusals: int64_t, when memory was refused */
    uint32_t last_row; /* that was asked for */
    int64_t most_live;
    uint32_t most_live_op, most_live_place;
    int64_t most_live_ns;
} trace_model;

/* False: model->file.error says why. What is there is freed by trace_model_free in each case, and also of a model that is all 0. */
bool trace_model_read(trace_model *model, const char *path);
bool trace_model_read_source(trace_model *model, trace_source *source);
void trace_model_free(trace_model *model);

/* From the first to the last event; 0: there are none with a time. */
int64_t trace_model_duration(const trace_model *model);
/* "0.5": the median. */
int64_t trace_group_percentile(const trace_group *group, double share);
/* The name of a row: "worker 1", or its numbers. */
void trace_row_name(const trace_model *model, uint32_t row, char *buffer, size_t size);

#endif
