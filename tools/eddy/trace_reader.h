/* Events of a file in the Trace Event Format, one after the other: Eddy's own traces, and those of others. In bounded memory, whatever is in the file. */
#ifndef TOOLS_EDDY_TRACE_READER_H
#define TOOLS_EDDY_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_TEXT_BYTES 160 /* longer texts are cut */
#define TRACE_AFTER_MOST 32
#define TRACE_SERIES_MOST 8

/* Fields that an event lacks are 0 and "". */
typedef struct trace_event {
    char kind; /* "ph" */
    char name[TRACE_TEXT_BYTES], category[TRACE_TEXT_BYTES];
    int64_t process, thread;
    int64_t at_ns, took_ns; /* took_ns is not negative */
    bool has_time;
    /* args of Eddy's */
    int64_t n, bytes, live, stream, root, dropped;
    char reason[TRACE_TEXT_BYTES]; /* "for" */
    char place[TRACE_TEXT_BYTES];  /* "at" */
    char label[TRACE_TEXT_BYTES];  /* args.name of metadata, args.why */
    int after_count;
    int64_t after[TRACE_AFTER_MOST];
    int series_count; /* of a counter */
    struct {
        char name[TRACE_TEXT_BYTES];
        double value;
    } series[TRACE_SERIES_MOST];
} trace_event;

typedef struct trace_file {
    int64_t event_count;
    bool is_cut;     /* it ends in the midst of something, or of its compressed form */
    char error[300]; /* why it is no trace */
} trace_file;

/* "-" is standard input. Calls `take` for each event; false: file->error says why. */
bool trace_read(const char *path, void (*take)(void *context, const trace_event *event),
                void *context, trace_file *file);

#endif
