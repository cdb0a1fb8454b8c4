/* Ranges and marks of the user's. */
#include <base/range.h>
#include <base/status.h>
#include <eddy/trace.h>
#include <interpreter/handle/caller.h>

eddy_status eddy_range_push(const char *name) {
    eddy_origin origin = EDDY_ORIGIN("range_push");
    if (!name)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "a range has a name");
    eddy_caller *caller = eddy_caller_get();
    if (!caller)
        return eddy_caller_refuse(caller, origin);
    eddy_ranges_own = &caller->ranges;
    eddy_ranges_push(&caller->ranges, name);
    return EDDY_OK;
}

eddy_status eddy_range_pop(void) {
    eddy_caller *caller = eddy_caller_self;
    if (!caller || caller->ranges.depth == 0)
        return eddy_fail(EDDY_INVALID_ARGUMENT, EDDY_ORIGIN("range_pop"), "no range is open");
    eddy_ranges_pop(&caller->ranges);
    return EDDY_OK;
}

void eddy_mark(const char *name) {
    EDDY_TRACE_AT(RANGE, .op = name);
}
