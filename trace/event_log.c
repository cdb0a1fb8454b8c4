#include <trace/event_log.h>

#include <base/clock.h>
#include <base/log.h>
#include <base/memory.h>
#include <base/process.h>
#include <base/sleep.h>
#include <base/status.h>
#include <base/thread.h>
#include <base/trace.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINE_BYTES 256
#define LINES_MOST 4096

static struct {
    eddy_lock control;                           /* who sets levels */
    _Atomic uint8_t levels[EDDY_LOG_ROOM_COUNT]; /* atomic: relaxed */
    bool is_heard, has_thread, watches_forks;    /* lock: control */
    uint32_t place;                              /* lock: control; of the listener */
    eddy_thread thread;
    /* ---- lines for the program's sink ---- */
    eddy_lock lock;
    char (*lines)[LINE_BYTES]; /* const once there is a listener */
    uint32_t first, count;     /* lock: lock */
    uint64_t dropped;          /* lock: lock; since the last line that said so */
    eddy_sleep_word word; /* atomic: release; changes with each line, and when one was delivered */
    _Atomic bool is_delivering; /* atomic: acq_rel */
} event_log = {.control = EDDY_LOCK_OF(EDDY_RANK_NONE), .lock = EDDY_LOCK_OF(EDDY_RANK_LISTENER)};

static const char *const rooms[] = {
#define EDDY_LOG_ROOM_ROW(enumerator, name) #name,
    EDDY_LOG_ROOM_LIST(EDDY_LOG_ROOM_ROW)
#undef EDDY_LOG_ROOM_ROW
};

/* ---- lines ---- */

static void queue(const char *line) {
    eddy_lock_acquire(&event_log.lock);
    if (event_log.count < LINES_MOST)
        snprintf(event_log.lines[(event_log.first + event_log.count++) % LINES_MOST], LINE_BYTES,
                 "%s", line);
    else
        event_log.dropped++;
    eddy_lock_release(&event_log.lock);
    eddy_add_release(&event_log.word, 1u);
    eddy_sleep_wake_one(&event_log.word);
}

static void say(eddy_log_room room, uint8_t level, const char *format, ...) EDDY_PRINTF(3, 4);

static void say(eddy_log_room room, uint8_t level, const char *format, ...) {
    char line[LINE_BYTES];
    if (eddy_load_relaxed(&event_log.levels[room]) < level)
        return;
    int length = snprintf(line, sizeof(line), "%s: ", rooms[room]);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + length, sizeof(line) - (size_t)length, format, arguments);
    va_end(arguments);
    if (eddy_log_is_programs())
        queue(line);
    else
        eddy_log_to_stderr(line);
}

/* ---- events ---- */

static void say_kernel(const eddy_trace_event *event) {
    char call[128] = "";
    if (event->instruction && event->describe)
        (void)event->describe(event->instruction, call, sizeof(call));
    say(EDDY_LOG_VM, 1, "%llu %s runs", (unsigned long long)event->sequence,
        *call ? call : event->op);
}

static void say_begin(const eddy_trace_event *event) {
    unsigned long long n = event->sequence;
    if (event->phase == EDDY_TRACE_KERNEL)
        say_kernel(event);
    else if (event->phase == EDDY_TRACE_INFER)
        say(EDDY_LOG_INTERPRETER, 2, "%s: its dtypes and shapes are inferred", event->op);
    else if (event->phase == EDDY_TRACE_PROGRAM)
        say(EDDY_LOG_PROGRAM, 1, "%llu %s runs", n, event->op);
    else if (event->phase == EDDY_TRACE_WAIT)
        say(EDDY_LOG_VM, 1, "%s waits for %s", event->op, event->detail);
    else if (event->phase == EDDY_TRACE_SCHEDULE)
        say(EDDY_LOG_VM, 2, "%llu %s is scheduled", n, event->op);
    else if (event->phase == EDDY_TRACE_DISPATCH)
        say(EDDY_LOG_VM, 2, "%llu %s is ready", n, event->op);
    else if (event->phase == EDDY_TRACE_SLICE)
        say(EDDY_LOG_STREAMS, 2, "%llu %s: a thread helps", n, event->op);
}

static void say_end(const eddy_trace_event *event) {
    const char *place = event->address ? eddy_call_site_place(event->address) : NULL;
    unsigned long long n = event->sequence;
    if (event->phase == EDDY_TRACE_ISSUE && n)
        say(EDDY_LOG_INTERPRETER, 1, "%s is instruction %llu%s%s", event->op, n,
            place ? ", at " : "", place ? place : "");
    else if (event->phase == EDDY_TRACE_ISSUE)
        say(EDDY_LOG_INTERPRETER, 1, "%s is no instruction%s%s", event->op, place ? ", at " : "",
            place ? place : "");
    else if (event->phase == EDDY_TRACE_RELEASE)
        say(EDDY_LOG_VM, 2, "%llu %s is over, its operands are let go", n, event->op);
    else if (event->phase == EDDY_TRACE_PROGRAM)
        say(EDDY_LOG_PROGRAM, 1, "%llu %s has run", n, event->op);
}

static void say_moment(const eddy_trace_event *event) {
    unsigned long long n = event->sequence;
    if (event->phase == EDDY_TRACE_SCHEDULE)
        say(EDDY_LOG_VM, 2, "%llu %s waits for %llu", n, event->op,
            (unsigned long long)event->origin);
    else if (event->phase == EDDY_TRACE_POISON && event->origin == n)
        say(EDDY_LOG_VM, 1, "%llu %s failed", n, event->op);
    else if (event->phase == EDDY_TRACE_POISON)
        say(EDDY_LOG_VM, 1, "%llu %s does not run, as %llu failed", n, event->op,
            (unsigned long long)event->origin);
    else if (event->phase == EDDY_TRACE_COPY)
        say(EDDY_LOG_INTERPRETER, 2, "%llu copies %lld bytes", n, (long long)event->bytes);
    else if (event->phase == EDDY_TRACE_DEVICE)
        say(EDDY_LOG_STREAMS, 2, "%llu %s is done by the device", n, event->op);
    else if (event->phase == EDDY_TRACE_ALLOCATOR)
        say(EDDY_LOG_STREAMS, strcmp(event->op, "take") == 0 ? 2 : 1, "memory: %s %lld bytes",
            event->op, (long long)event->bytes);
}

static void hear(void *context, const eddy_trace_event *event) {
    (void)context;
    if (event->kind == EDDY_TRACE_BEGINS)
        say_begin(event);
    else if (event->kind == EDDY_TRACE_ENDS)
        say_end(event);
    else
        say_moment(event);
}

/* ---- delivery ---- */

/* One line, or what was dropped; false: there is none. */
static bool deliver_one(void) {
    char line[LINE_BYTES];
    eddy_lock_acquire(&event_log.lock);
    bool has_line = event_log.count > 0, has_dropped = !has_line && event_log.dropped > 0;
    if (has_line) {
        memcpy(line, event_log.lines[event_log.first], LINE_BYTES);
        event_log.first = (event_log.first + 1) % LINES_MOST;
        event_log.count--;
    } else if (has_dropped) {
        snprintf(line, sizeof(line), "log: %llu lines came faster than the sink took them",
                 (unsigned long long)event_log.dropped);
        event_log.dropped = 0;
    }
    if (has_line || has_dropped)
        eddy_store_relaxed(&event_log.is_delivering, true);
    eddy_lock_release(&event_log.lock);
    if (!has_line && !has_dropped)
        return false;
    eddy_log_to_program(line);
    eddy_store_release(&event_log.is_delivering, false);
    eddy_add_release(&event_log.word, 1u);
    eddy_sleep_wake_all(&event_log.word);
    return true;
}

static void deliver_lines(void *context) {
    (void)context;
    for (;;) {
        uint32_t seen = eddy_load_acquire(&event_log.word);
        if (!deliver_one())
            (void)eddy_sleep_wait(&event_log.word, seen, EDDY_CLOCK_FOREVER);
    }
}

void eddy_event_log_end(int64_t deadline_ns) {
    for (;;) {
        uint32_t seen = eddy_load_acquire(&event_log.word);
        eddy_lock_acquire(&event_log.lock);
        bool is_over = event_log.count == 0 && event_log.dropped == 0 &&
                       !eddy_load_acquire(&event_log.is_delivering);
        eddy_lock_release(&event_log.lock);
        if (is_over || eddy_clock_ns() >= deadline_ns)
            return;
        (void)eddy_sleep_wait(&event_log.word, seen, deadline_ns);
    }
}

/* ---- levels ---- */

static eddy_status refuse(const char *text, size_t length, const char *from, eddy_origin origin) {
    char names[128] = "";
    for (int r = 0; r < EDDY_LOG_ROOM_COUNT; r++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, "%s%s", r == 0 ? "" : ", ", rooms[r]);
    }
    return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                     "%s: %.*s is no room and level; rooms are %s, levels 0 to %d: vm:2", from,
                     (int)(length < 64 ? length : 64), text, names, EDDY_LOG_LEVEL_MOST);
}

eddy_status eddy_event_log_parse(const char *text, bool has_words, const char *from,
                                 eddy_origin origin, uint8_t levels[EDDY_LOG_ROOM_COUNT]) {
    memset(levels, 0, EDDY_LOG_ROOM_COUNT);
    for (size_t length; *text; text += length + (text[length] == ',')) {
        length = strcspn(text, ",");
        const char *colon = memchr(text, ':', length);
        if (length == 0 || (!colon && has_words))
            continue;
        if (!colon)
            return refuse(text, length, from, origin);
        int room = 0;
        while (room < EDDY_LOG_ROOM_COUNT &&
               !(strlen(rooms[room]) == (size_t)(colon - text) &&
                 strncmp(rooms[room], text, (size_t)(colon - text)) == 0))
            room++;
        bool is_level =
            colon + 2 == text + length && colon[1] >= '0' && colon[1] <= '0' + EDDY_LOG_LEVEL_MOST;
        if (room == EDDY_LOG_ROOM_COUNT || !is_level)
            return refuse(text, length, from, origin);
        levels[room] = (uint8_t)(colon[1] - '0');
    }
    return EDDY_OK;
}

/* A child has no thread that would deliver: it starts anew. */
static void fork_child(void) {
    eddy_lock_init(&event_log.control, EDDY_RANK_NONE);
    eddy_lock_init(&event_log.lock, EDDY_RANK_LISTENER);
    if (event_log.is_heard)
        eddy_trace_remove(event_log.place);
    event_log.is_heard = event_log.has_thread = false;
    event_log.first = event_log.count = 0;
    event_log.dropped = 0;
    eddy_store_relaxed(&event_log.is_delivering, false);
    for (int r = 0; r < EDDY_LOG_ROOM_COUNT; r++)
        eddy_store_relaxed(&event_log.levels[r], (uint8_t)0);
}

/* Lock: control. What stays for good, from the first time on. */
static eddy_status prepare(eddy_origin origin) {
    if (!event_log.lines)
        event_log.lines = eddy_memory_acquire_zeroed(LINES_MOST * LINE_BYTES, EDDY_MEMORY_TRACE);
    if (!event_log.lines)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory");
    if (!event_log.watches_forks)
        eddy_process_at_fork_child(fork_child);
    event_log.watches_forks = true;
    if (!event_log.has_thread) {
        eddy_status status = eddy_thread_create(&event_log.thread, "eddy-log", deliver_lines, NULL);
        if (status != EDDY_OK)
            return eddy_fail(status, origin, "the system gives no thread for the log");
        event_log.has_thread = true;
    }
    return EDDY_OK;
}

/* Lock: control. */
static eddy_status listen(bool is_wanted, eddy_origin origin) {
    eddy_trace_listener listener = {
        hear, NULL, EDDY_TRACE_ALL_PHASES & ~(1u << EDDY_TRACE_RANGE | 1u << EDDY_TRACE_CALLBACK)};
    eddy_status status = EDDY_OK;
    if (is_wanted == event_log.is_heard)
        return EDDY_OK;
    if (!is_wanted)
        eddy_trace_remove(event_log.place);
    else if ((status = eddy_trace_add(&listener, &event_log.place)) != EDDY_OK)
        return eddy_fail(status, origin, "there are as many listeners as there may be");
    event_log.is_heard = is_wanted;
    return EDDY_OK;
}

eddy_status eddy_event_log_set(const uint8_t levels[EDDY_LOG_ROOM_COUNT], eddy_origin origin) {
    bool is_wanted = false;
    eddy_status status = EDDY_OK;
    for (int r = 0; r < EDDY_LOG_ROOM_COUNT; r++)
        is_wanted |= levels[r] > 0;
    eddy_lock_acquire(&event_log.control);
    if (is_wanted)
        status = prepare(origin);
    for (int r = 0; status == EDDY_OK && r < EDDY_LOG_ROOM_COUNT; r++)
        eddy_store_relaxed(&event_log.levels[r], levels[r]);
    if (status == EDDY_OK)
        status = listen(is_wanted, origin);
    eddy_lock_release(&event_log.control);
    return status;
}
