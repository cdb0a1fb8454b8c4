#include <base/range.h>

#include <base/call_site.h>
#include <base/status.h>
#include <base/trace.h>
#include <eddy/trace.h>
#include <stdio.h>

#define SHOWN_MOST 16

typedef struct range {
    const char *name;
    eddy_trace_span span;
} range;

static __thread __attribute__((tls_model("initial-exec"))) struct {
    uint32_t depth;
    range shown[SHOWN_MOST];
} ranges;

eddy_status eddy_range_push(const char *name) {
    if (!name)
        return eddy_fail(EDDY_INVALID_ARGUMENT, EDDY_ORIGIN("range_push"), "a range has a name");
    uint32_t depth = ranges.depth++;
    if (depth < SHOWN_MOST)
        ranges.shown[depth] = (range){name, EDDY_TRACE_BEGIN(RANGE, .op = name)};
    return EDDY_OK;
}

eddy_status eddy_range_pop(void) {
    if (ranges.depth == 0)
        return eddy_fail(EDDY_INVALID_ARGUMENT, EDDY_ORIGIN("range_pop"), "no range is open");
    const range *last = &ranges.shown[--ranges.depth];
    if (ranges.depth < SHOWN_MOST)
        EDDY_TRACE_END(last->span, .op = last->name);
    return EDDY_OK;
}

void eddy_mark(const char *name) {
    EDDY_TRACE_AT(RANGE, .op = name);
}

void eddy_range_describe(char *buffer, size_t size) {
    size_t length = 0;
    uint32_t shown = ranges.depth < SHOWN_MOST ? ranges.depth : SHOWN_MOST;
    buffer[0] = '\0';
    for (uint32_t i = 0; i < shown && length < size; i++)
        length += (size_t)snprintf(buffer + length, size - length, "%s%s", i == 0 ? " (in " : ", ",
                                   ranges.shown[i].name);
    if (shown > 0 && length + 1 < size)
        snprintf(buffer + length, size - length, ")");
    else
        buffer[0] = '\0';
}
