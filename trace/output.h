/* A file that is written from its begin to its end, as text or compressed, up to a limit. One thread. */
#ifndef EDDY_TRACE_OUTPUT_H
#define EDDY_TRACE_OUTPUT_H

#include <base/assert.h>
#include <base/call_site.h>
#include <eddy/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest line. */
#define EDDY_OUTPUT_LINE_BYTES 6144

struct eddy_gzip;

typedef enum eddy_output_state {
    EDDY_OUTPUT_OPEN,
    EDDY_OUTPUT_FULL,   /* one more line might go beyond the limit */
    EDDY_OUTPUT_FAILED, /* `error` says why */
} eddy_output_state;

typedef struct eddy_output {
    int fd; /* -1: closed */
    eddy_output_state state;
    int error;              /* errno of the write that failed */
    struct eddy_gzip *gzip; /* NULL: text */
    char *buffer;
    size_t used;
    bool is_held; /* a compressor may have some of what was handed over */
    int64_t limit, written;
} eddy_output;

/* Makes or empties the file; one whose name ends in .gz is compressed. IO, OUT_OF_MEMORY, UNSUPPORTED (built without zlib). Blocks as opening does. */
EDDY_MUST_USE eddy_status eddy_output_open(eddy_output *output, const char *path, int64_t limit,
                                           eddy_origin origin);
/* Room for one line. What is put there counts after _commit, with its end. Nothing is written any more unless the output is open, but for _end. */
char *eddy_output_line(eddy_output *output);
void eddy_output_commit(eddy_output *output, const char *end);
/* Hands what there is to the system. Blocks as the file does. is_whole: a reader gets all of it then, also of a compressed file, which grows by each time. */
void eddy_output_flush(eddy_output *output, bool is_whole);
/* A last line, for which there is room beyond the limit, and the end. */
void eddy_output_end(eddy_output *output, const char *line, size_t bytes);
/* In a forked child: nothing is written. */
void eddy_output_forget(eddy_output *output);

#endif
