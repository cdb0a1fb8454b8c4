#include <base/range.h>

#include <stdio.h>

__thread const eddy_ranges *eddy_ranges_own;

void eddy_ranges_push(eddy_ranges *ranges, const char *name) {
    uint64_t depth = ranges->depth++;
    if (depth < EDDY_RANGES_SHOWN)
        ranges->shown[depth] = (eddy_range){name, EDDY_TRACE_BEGIN(RANGE, .op = name)};
}

void eddy_ranges_pop(eddy_ranges *ranges) {
    uint64_t depth = --ranges->depth;
    if (depth < EDDY_RANGES_SHOWN)
        EDDY_TRACE_END(ranges->shown[depth].span, .op = ranges->shown[depth].name);
}

void eddy_ranges_describe(const eddy_ranges *ranges, char *buffer, size_t size) {
    size_t length = 0;
    uint64_t shown = ranges->depth < EDDY_RANGES_SHOWN ? ranges->depth : EDDY_RANGES_SHOWN;
    buffer[0] = '\0';
    for (uint64_t i = 0; i < shown && length < size; i++)
        length += (size_t)snprintf(buffer + length, size - length, "%s%s", i == 0 ? " (in " : ", ",
                                   ranges->shown[i].name);
    if (shown > 0 && length + 1 < size)
        snprintf(buffer + length, size - length, ")");
    else
        buffer[0] = '\0';
}
