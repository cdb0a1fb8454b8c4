/* Events of a file in the Trace Event Format, one after the other: Eddy's own traces, and those of others. In bounded memory, whatever is in the file. */
#ifndef TOOLS_EDDY_TRACE_READER_H
#define TOOLS_EDDY_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_TEXT_BYTES 160 /* longer texts are cut, between two characters */
#define TRACE_AFTER_MOST 32
#define TRACE_SERIES_MOST 8

/* Fields that an event lacks are 0 and "". Texts are clean (screen.h). A range of "B" and "E" comes as "B" and then, whole, as "X" (trace_ranges.h). */
typedef struct trace_event {
    char kind; /* "ph" */
    char name[TRACE_TEXT_BYTES], category[TRACE_TEXT_BYTES];
    int64_t process, thread;
    int64_t at_ns, took_ns; /* took_ns is not negative */
    bool has_time;
    /* args of Eddy's */
    int64_t n, runtime, bytes, live, stream, launch, part, root,
        dropped;                   /* n and after are the keys of runtime and number */
    char reason[TRACE_TEXT_BYTES]; /* "for" */
    char place[TRACE_TEXT_BYTES];  /* "at" */
    char on[TRACE_TEXT_BYTES];     /* the stream's name */
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

typedef void trace_take(void *context, const trace_event *event);

/* Where the bytes come from. */
enum { TRACE_SOURCE_CUT = -1, TRACE_SOURCE_FAILED = -2 };
typedef struct trace_source {
    const char *name;
    void *context;
    /* Up to `most` bytes: how many; 0: the end; or of the above: it ends too early, or `error` says what is wrong. */
    int (*read)(struct trace_source *source, unsigned char *to, int most);
    char error[120];
} trace_source;

/* Calls `take` for each event; false: file->error says why. */
bool trace_read_source(trace_source *source, trace_take *take, void *context, trace_file *file);
/* A file, compressed or not; "-" is standard input. */
bool trace_read(const char *path, trace_take *take, void *context, trace_file *file);

#endif
