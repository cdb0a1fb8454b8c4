#include <base/trace.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static char story[256];

static void write_begin(void *context, eddy_trace_phase phase, const char *name,
                        uint64_t sequence) {
    cr_assert_eq(context, (void *)story);
    size_t length = strlen(story);
    snprintf(story + length, sizeof(story) - length, "[%s %s %d ", eddy_trace_phase_name(phase),
             name, (int)sequence);
}

static void write_end(void *context, eddy_trace_phase phase, const char *name, uint64_t sequence) {
    (void)context, (void)name, (void)sequence;
    size_t length = strlen(story);
    snprintf(story + length, sizeof(story) - length, "%s]", eddy_trace_phase_name(phase));
}

Test(trace, a_listener_hears_begin_and_end_until_it_leaves) {
    eddy_trace_begin(EDDY_TRACE_KERNEL, "add", 1);
    eddy_trace_listener listener = {write_begin, write_end, story};
    eddy_trace_listen(&listener);
    eddy_trace_begin(EDDY_TRACE_KERNEL, "add", 2);
    eddy_trace_begin(EDDY_TRACE_WAIT, "read", 3);
    eddy_trace_end(EDDY_TRACE_WAIT, "read", 3);
    eddy_trace_end(EDDY_TRACE_KERNEL, "add", 2);
    eddy_trace_listen(NULL);
    eddy_trace_begin(EDDY_TRACE_KERNEL, "add", 4);
    cr_assert_str_eq(story, "[kernel add 2 [wait read 3 wait]kernel]");
    cr_assert_str_eq(eddy_trace_phase_name(EDDY_TRACE_PHASE_COUNT), "?");
}
