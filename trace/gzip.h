/* A stream of bytes as a .gz file has it (RFC 1952), by zlib. */
#ifndef EDDY_TRACE_GZIP_H
#define EDDY_TRACE_GZIP_H

#include <base/assert.h>
#include <base/call_site.h>
#include <eddy/status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct eddy_gzip eddy_gzip;
typedef void eddy_gzip_write(void *context, const char *bytes, size_t count);

/* OUT_OF_MEMORY; UNSUPPORTED: built without zlib. */
EDDY_MUST_USE eddy_status eddy_gzip_make(eddy_gzip **gzip, eddy_origin origin);
/* is_whole: a reader gets all that was put so far. */
void eddy_gzip_put(eddy_gzip *gzip, const char *bytes, size_t count, bool is_whole,
                   eddy_gzip_write *write, void *context);
void eddy_gzip_end(eddy_gzip *gzip, eddy_gzip_write *write, void *context);
/* NULL is allowed. */
void eddy_gzip_free(eddy_gzip *gzip);

#endif
