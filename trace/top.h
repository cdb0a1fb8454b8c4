/* The page that `eddy top` shows (tools/eddy/top.c): memory of the process, which a tool of the same user finds by /proc/PID/fd and maps. It is gone with the process, however that ends. */
#ifndef EDDY_TRACE_TOP_H
#define EDDY_TRACE_TOP_H

#include <base/assert.h>
#include <base/call_site.h>
#include <eddy/status.h>
#include <trace/tracer.h>

/* The name of the memory, as readlink of /proc/PID/fd/N shows it: "/memfd:eddy-top (deleted)". */
#define EDDY_TOP_NAME "eddy-top"
#define EDDY_TOP_BYTES 32768
#define EDDY_TOP_PERIOD_NS 100000000

/* Its begin: magic, 8 bytes; a number, 4, odd while the text changes; the length of the text, 4. Behind it, from byte 64 on, the text: lines "group TAB name TAB value", values of the same
 * kind under one group. A reader copies the text between two looks at the number, which are equal and even. */
#define EDDY_TOP_MAGIC "eddytop1"
#define EDDY_TOP_TEXT_AT 64

/* From now on a thread writes the page ten times a second: what `sample` tells, and the ops that took longest where they are counted (times.h). Once for the process. Any thread. OUT_OF_MEMORY, INTERNAL, recorded. */
EDDY_MUST_USE eddy_status eddy_top_begin(eddy_tracer_sample *sample, eddy_origin origin);

#endif
