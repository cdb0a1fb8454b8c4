/* Records as lines of JSON, in the Trace Event Format that Chrome's viewer and Perfetto read ("Trace Event Format", Google, 2016): an array of events, one a line. */
#ifndef EDDY_TRACE_JSON_H
#define EDDY_TRACE_JSON_H

#include <trace/arrows.h>
#include <trace/output.h>
#include <trace/record.h>

/* Processes of the file, which group its rows: EDDY_JSON_THREADS has one for each thread. */
#define EDDY_JSON_THREADS 1
#define EDDY_JSON_DEVICES 2 /* one for each stream of a device */
#define EDDY_JSON_STREAMS 3 /* one for each ordered stream of the host */

typedef struct eddy_json {
    eddy_output *output;
    int64_t begin_ns; /* times in the file are since then */
    uint32_t named;   /* a bit for each process that has its name */
} eddy_json;

/* The instructions that one waits for; further ones are left out. */
#define EDDY_JSON_AFTER_MOST 32
typedef struct eddy_json_after {
    uint32_t count;
    uint64_t sequences[EDDY_JSON_AFTER_MOST];
} eddy_json_after;

/* The first lines: whose trace it is. */
void eddy_json_begin(eddy_json *json);
/* The name of a row, from now on. */
void eddy_json_thread(eddy_json *json, uint32_t row, const char *name, uint64_t thread);
/* A span or a moment; `text` as in record.h; after: may be NULL. */
void eddy_json_record(eddy_json *json, uint32_t row, const eddy_record *record, const char *text,
                      const eddy_json_after *after);
/* From the end of a kernel to the begin of another, or from a call to its kernel. */
void eddy_json_arrow(eddy_json *json, bool is_call, const eddy_arrow_end *from,
                     const eddy_arrow_end *to);
/* A row of a stream, "far:0, stream 3", of EDDY_JSON_DEVICES or EDDY_JSON_STREAMS. */
void eddy_json_stream(eddy_json *json, uint32_t process, uint32_t row, const char *name);
/* What was done there. */
void eddy_json_done(eddy_json *json, uint32_t process, uint32_t row, const eddy_record *record,
                    const char *text);
/* One value of a curve. */
void eddy_json_counter(eddy_json *json, int64_t at_ns, const char *name, const char *series,
                       int64_t value);
/* The last line, which says why, and what is missing; the end of the file. */
void eddy_json_end(eddy_json *json, int64_t at_ns, const char *why, int64_t dropped);

#endif
