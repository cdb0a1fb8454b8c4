#include <base/log.h>

#include <base/atomic.h>
#include <base/environment.h>
#include <base/sleep.h>
#include <eddy/log.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define LINE_SIZE 2048

/* The levels of EDDY_LOG; each includes those before it. A program's sink gets all but errors. */
typedef enum log_level { LEVEL_OFF, LEVEL_ERROR, LEVEL_WARNING, LEVEL_ALL } log_level;

static struct {
    eddy_lock lock;
    eddy_log_sink *sink; /* lock: lock */
    void *context;       /* lock: lock */
    _Atomic bool
        is_read; /* atomic: stored (release) under the lock once EDDY_LOG was looked at, read acquire */
    _Atomic uint32_t
        level; /* atomic: relaxed; log_level of the sink; a hint that spares formatting */
    eddy_sleep_word
        under_way; /* atomic: lines being delivered; entered under the lock, left with release */
} log_state;

/* <calling thread> only: lines that a sink itself causes are dropped. */
static _Thread_local bool is_inside_sink;

/* ---- EDDY_LOG ---- */

/* One write, without stdio's buffers: a line may come from any thread, or from a failing call. */
static void write_to_stderr(void *context, const char *line) {
    (void)context;
    char text[LINE_SIZE + 8];
    int length = snprintf(text, sizeof(text), "eddy: %s\n", line);
    int errno_before = errno;
    ssize_t written = write(STDERR_FILENO, text, (size_t)length);
    (void)written; /* a failure cannot be reported */
    errno = errno_before;
}

static log_level level_of(const char *word) {
    static const struct {
        const char *word;
        log_level level;
    } levels[] = {{"error", LEVEL_ERROR},
                  {"warning", LEVEL_WARNING},
                  {"info", LEVEL_ALL},
                  {"stderr", LEVEL_ALL}};
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        if (strcasecmp(word, levels[i].word) == 0)
            return levels[i].level;
    bool is_on;
    if (eddy_environment_parse_bool(word, &is_on))
        return is_on ? LEVEL_ALL : LEVEL_OFF;
    char line[256];
    snprintf(line, sizeof(line),
             "EDDY_LOG is %.64s, not stderr, info, warning, error or 0; stderr is taken", word);
    write_to_stderr(NULL, line);
    return LEVEL_ALL;
}

/* Of a list of words, the last counts; rooms with levels (trace/event_log.h) are somebody else's. */
static log_level level_of_list(const char *list) {
    log_level level = LEVEL_OFF;
    char word[80];
    while (list && *list) {
        size_t length = strcspn(list, ",");
        snprintf(word, sizeof(word), "%.*s", (int)(length < 79 ? length : 79), list);
        if (*word && !strchr(word, ':'))
            level = level_of(word);
        list += length + (list[length] == ',');
    }
    return level;
}

static void read_environment(void) {
    if (eddy_load_acquire(&log_state.is_read))
        return;
    eddy_lock_acquire(&log_state.lock);
    if (!eddy_load_relaxed(&log_state.is_read)) {
        log_level level = level_of_list(eddy_environment_string("EDDY_LOG"));
        log_state.sink = level > LEVEL_OFF ? write_to_stderr : NULL;
        eddy_store_relaxed(&log_state.level, (uint32_t)level);
        eddy_store_release(&log_state.is_read, true);
    }
    eddy_lock_release(&log_state.lock);
}

static bool is_wanted(log_level level) {
    read_environment();
    return eddy_load_relaxed(&log_state.level) >= (uint32_t)level && !is_inside_sink;
}

/* ---- sinks ---- */

void eddy_log_set(eddy_log_sink *sink, void *context) {
    read_environment();
    eddy_lock_acquire(&log_state.lock);
    log_state.sink = sink;
    log_state.context = context;
    eddy_store_relaxed(&log_state.level, (uint32_t)(sink ? LEVEL_ALL : LEVEL_OFF));
    eddy_lock_release(&log_state.lock);
    if (is_inside_sink)
        return;
    uint32_t count;
    while ((count = eddy_load_acquire(&log_state.under_way)) != 0)
        eddy_sleep_wait(&log_state.under_way, count, EDDY_CLOCK_FOREVER);
}

bool eddy_log_is_set(void) {
    read_environment();
    return eddy_load_relaxed(&log_state.level) == LEVEL_ALL;
}

static void deliver(const char *line) {
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

/* ---- lines ---- */

static void format_and_deliver(const char *format, va_list arguments) {
    char line[LINE_SIZE];
    vsnprintf(line, sizeof(line), format, arguments);
    deliver(line);
}

void eddy_log_line(const char *format, ...) {
    if (!is_wanted(LEVEL_ALL))
        return;
    va_list arguments;
    va_start(arguments, format);
    format_and_deliver(format, arguments);
    va_end(arguments);
}

bool eddy_log_wants_warnings(void) {
    return is_wanted(LEVEL_WARNING);
}

void eddy_log_warning(const char *format, ...) {
    if (!is_wanted(LEVEL_WARNING))
        return;
    va_list arguments;
    va_start(arguments, format);
    format_and_deliver(format, arguments);
    va_end(arguments);
}

void eddy_log_answer(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (is_wanted(LEVEL_ALL)) {
        format_and_deliver(format, arguments);
    } else if (!is_inside_sink) {
        char line[LINE_SIZE];
        vsnprintf(line, sizeof(line), format, arguments);
        write_to_stderr(NULL, line);
    }
    va_end(arguments);
}

bool eddy_log_is_programs(void) {
    read_environment();
    eddy_lock_acquire(&log_state.lock);
    bool is_programs = log_state.sink && log_state.sink != write_to_stderr;
    eddy_lock_release(&log_state.lock);
    return is_programs;
}

void eddy_log_to_program(const char *line) {
    if (!is_inside_sink)
        deliver(line);
}

void eddy_log_to_stderr(const char *line) {
    write_to_stderr(NULL, line);
}

/* ---- errors ---- */

bool eddy_log_wants_errors(void) {
    if (!is_wanted(LEVEL_ERROR))
        return false;
    eddy_lock_acquire(&log_state.lock);
    bool is_own = log_state.sink == write_to_stderr;
    eddy_lock_release(&log_state.lock);
    return is_own;
}

void eddy_log_error(const eddy_error *error) {
    char line[LINE_SIZE];
    snprintf(line, sizeof(line), "%s%s%s (%s)", error->place, *error->place ? ": " : "",
             error->message, eddy_status_name(error->status));
    write_to_stderr(NULL, line);
}
