#include <base/log.h>

#include <base/atomic.h>
#include <base/sleep.h>
#include <eddy/log.h>
#include <stdarg.h>
#include <stdio.h>

#define LINE_SIZE 2048

static struct {
    eddy_lock lock;
    eddy_log_sink *sink;       /* lock: lock */
    void *context;             /* lock: lock */
    _Atomic bool is_set;       /* atomic: relaxed; a hint that spares formatting */
    eddy_sleep_word under_way; /* atomic: lines being delivered; entered under the lock, left with release */
} log_state;

/* <calling thread> only: a sink that makes the library speak gets no line about it. */
static _Thread_local bool is_inside_sink;

void eddy_set_log(eddy_log_sink *sink, void *context) {
    eddy_lock_acquire(&log_state.lock);
    log_state.sink = sink;
    log_state.context = context;
    eddy_store_relaxed(&log_state.is_set, sink != NULL);
    eddy_lock_release(&log_state.lock);
    if (is_inside_sink)
        return;
    uint32_t count;
    while ((count = eddy_load_acquire(&log_state.under_way)) != 0)
        eddy_sleep_wait(&log_state.under_way, count, EDDY_SLEEP_FOREVER);
}

bool eddy_log_is_set(void) {
    return eddy_load_relaxed(&log_state.is_set);
}

void eddy_log_line(const char *format, ...) {
    if (!eddy_log_is_set() || is_inside_sink)
        return;
    char line[LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);

    eddy_lock_acquire(&log_state.lock);
    eddy_log_sink *sink = log_state.sink;
    void *context = log_state.context;
    if (sink)
        eddy_add_relaxed(&log_state.under_way, 1u);
    eddy_lock_release(&log_state.lock);
    if (!sink)
        return;
    is_inside_sink = true;
    sink(context, line);
    is_inside_sink = false;
    if (eddy_sub_release(&log_state.under_way, 1u) == 1)
        eddy_sleep_wake_all(&log_state.under_way);
}
