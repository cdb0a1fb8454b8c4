#include <base/clock.h>
#include <base/log.h>
#include <base/memory.h>
#include <base/sleep.h>
#include <base/thread.h>
#include <base/trace.h>
#include <criterion/criterion.h>
#include <eddy/log.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tests/asleep.h>
#include <tests/trace/events.h>
#include <trace/tracer.h>
#include <unistd.h>

#define ORIGIN ((eddy_origin){"test", NULL})

static char path[64];

static eddy_status start_at(const char *at, int64_t limit) {
    eddy_tracer_settings settings = {
        .path = at, .limit_bytes = limit, .phases = EDDY_TRACE_ALL_PHASES};
    return eddy_tracer_start(&settings, ORIGIN);
}

static void start(void) {
    snprintf(path, sizeof(path), "/tmp/eddy_tracer_%d.json", (int)getpid());
    cr_assert_eq(start_at(path, 1 << 30), EDDY_OK);
}

static void stop(void) {
    cr_assert_eq(eddy_tracer_stop(EDDY_CLOCK_FOREVER, ORIGIN), EDDY_OK);
    cr_assert_not(eddy_trace_is_on());
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_TRACE).blocks, 0);
}

static json_t *read_all(void) {
    json_t *events = events_read(path);
    unlink(path);
    events_must_fit(events);
    cr_assert_str_eq(event_arg_text(events_find(events, "i", "trace", "end"), "why"), "stopped");
    return events;
}

/* A kernel that has run, and what it waited for. */
static void run(const char *op, uint64_t sequence, uint64_t after) {
    eddy_trace_span issue = EDDY_TRACE_BEGIN(ISSUE, .op = op);
    eddy_trace_span schedule = EDDY_TRACE_BEGIN(SCHEDULE, .op = op, .sequence = sequence);
    if (after)
        EDDY_TRACE_AT(SCHEDULE, .op = op, .sequence = sequence, .origin = after);
    EDDY_TRACE_END(schedule, .op = op, .sequence = sequence);
    eddy_trace_span kernel = EDDY_TRACE_BEGIN(KERNEL, .op = op, .sequence = sequence, .bytes = 64);
    EDDY_TRACE_END(kernel, .op = op, .sequence = sequence);
    EDDY_TRACE_END(issue, .op = op, .sequence = sequence);
}

static void *run_behind(void *context) {
    run("mul", 2, 1);
    return context;
}

Test(tracer, events_are_in_the_file_with_what_was_known_at_their_end) {
    start();
    pthread_t thread;
    run("add", 1, 0);
    cr_assert_eq(pthread_create(&thread, NULL, run_behind, NULL), 0);
    pthread_join(thread, NULL);
    run("sub", 3, 1);
    EDDY_TRACE_AT(ALLOCATOR, .op = "take", .bytes = 4096);
    eddy_trace_span range = EDDY_TRACE_BEGIN(RANGE, .op = "step");
    EDDY_TRACE_END(range, .op = "step");
    stop();
    json_t *events = read_all();
    cr_assert_eq(events_count(events, "X", "kernel", NULL), 3);
    cr_assert_eq(event_arg(events_find(events, "X", "issue", "mul"), "n"), 2);
    for (int i = 0; i < 2; i++) {
        const json_t *schedule = events_find(events, "X", "schedule", i == 0 ? "mul" : "sub");
        const json_t *after = json_object_get(json_object_get(schedule, "args"), "after");
        cr_assert_eq(json_array_size(after), 1);
        cr_assert_eq(json_integer_value(json_array_get(after, 0)), 1);
    }
    cr_assert_eq(event_arg(events_find(events, "X", "kernel", "mul"), "bytes"), 64);
    cr_assert_eq(event_arg(events_find(events, "i", "allocator", "take"), "bytes"), 4096);
    cr_assert_eq(events_count(events, "X", "range", "step"), 1);
    cr_assert_eq(events_count(events, "s", "edge", NULL), 1);
    cr_assert_eq(events_count(events, "f", "edge", NULL), 1);
    cr_assert_eq(event_arg(events_find(events, "i", "trace", "end"), "dropped"), 0);
    json_decref(events);
}

/* A name of the user's is copied. Deep ranges are counted as missing. */
Test(tracer, names_may_change_and_ranges_lie_deep) {
    char name[32];
    eddy_trace_span spans[80];
    start();
    for (int i = 0; i < 80; i++) {
        snprintf(name, sizeof(name), "range %d", i);
        spans[i] = EDDY_TRACE_BEGIN(RANGE, .op = name);
    }
    for (int i = 80; i-- > 0;)
        EDDY_TRACE_END(spans[i], .op = "?");
    stop();
    json_t *events = read_all();
    cr_assert_eq(events_count(events, "X", "range", NULL), 64);
    cr_assert_eq(events_count(events, "X", "range", "range 63"), 1);
    cr_assert_eq(event_arg(events_find(events, "i", "trace", "end"), "dropped"), 16);
    json_decref(events);
}

Test(tracer, ranges_that_are_open_end_with_the_trace) {
    start();
    eddy_trace_span epoch = EDDY_TRACE_BEGIN(RANGE, .op = "epoch");
    eddy_trace_span step = EDDY_TRACE_BEGIN(RANGE, .op = "step");
    stop();
    EDDY_TRACE_END(step, .op = "step");
    json_t *events = read_all();
    cr_assert_eq(events_count(events, "X", "range", NULL), 2);
    json_decref(events);
    /* And are not in the next one. */
    start();
    EDDY_TRACE_END(epoch, .op = "epoch");
    run("add", 1, 0);
    stop();
    events = read_all();
    cr_assert_eq(events_count(events, "X", "range", NULL), 0);
    cr_assert_eq(events_count(events, "X", "kernel", NULL), 1);
    json_decref(events);
}

Test(tracer, one_trace_is_written_at_a_time) {
    eddy_error error;
    cr_assert_eq(eddy_tracer_stop(0, ORIGIN), EDDY_OK);
    start();
    cr_assert(eddy_tracer_is_on());
    cr_assert_eq(start_at("/tmp/other.json", 1 << 30), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_error_take(&error), EDDY_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(error.message, path));
    stop();
    cr_assert_not(eddy_tracer_is_on());
    json_decref(read_all());
}

Test(tracer, the_number_of_the_process_may_be_in_the_path) {
    char expected[64], longer[2000];
    snprintf(expected, sizeof(expected), "/tmp/eddy_%d_%d.json", (int)getpid(), (int)getpid());
    cr_assert_eq(start_at("/tmp/eddy_%p_%p.json", 1 << 30), EDDY_OK);
    stop();
    json_decref(events_read(expected));
    unlink(expected);
    memset(longer, 'a', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    cr_assert_eq(start_at(longer, 1 << 30), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(start_at("/nowhere/a.json", 1 << 30), EDDY_IO);
    cr_assert_eq(eddy_error_take(NULL), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_TRACE).blocks, 0);
}

Test(tracer, a_compressed_file_has_the_same) {
    char zipped[64];
    snprintf(zipped, sizeof(zipped), "/tmp/eddy_tracer_%d.json.gz", (int)getpid());
    cr_assert_eq(start_at(zipped, 1 << 30), EDDY_OK);
    for (uint64_t n = 1; n <= 3000; n++)
        run("add", n, n - 1);
    stop();
    struct stat about;
    cr_assert_eq(stat(zipped, &about), 0);
    json_t *events = events_read(zipped);
    unlink(zipped);
    cr_assert_eq(events_count(events, "X", "kernel", NULL), 3000);
    cr_assert_lt(about.st_size, 100 * 3000);
    json_decref(events);
}

/* ---- ends ---- */

static eddy_lock said_lock;
static char said[1024]; /* lock: said_lock */

static void note_line(void *context, const char *line) {
    (void)context;
    eddy_lock_acquire(&said_lock);
    size_t length = strlen(said);
    snprintf(said + length, sizeof(said) - length, "%s\n", line);
    eddy_lock_release(&said_lock);
}

/* The writer tells a program's sink when nobody waits for it any more. */
static void await_said(const char *part) {
    for (bool is_said = false; !is_said; sched_yield()) {
        eddy_lock_acquire(&said_lock);
        is_said = strstr(said, part) != NULL;
        eddy_lock_release(&said_lock);
    }
}

/* The file is whole, and says so; nobody listens any more; the line is in the log. */
Test(tracer, a_file_ends_at_its_limit) {
    eddy_log_set(note_line, NULL);
    snprintf(path, sizeof(path), "/tmp/eddy_tracer_%d.json", (int)getpid());
    cr_assert_eq(start_at(path, 1 << 20), EDDY_OK);
    for (uint64_t n = 1; eddy_trace_is_on(); n++)
        run("add", n, 0);
    cr_assert_eq(eddy_tracer_stop(EDDY_CLOCK_FOREVER, ORIGIN), EDDY_OK);
    struct stat about;
    cr_assert_eq(stat(path, &about), 0);
    cr_assert_leq(about.st_size, 1 << 20);
    cr_assert_gt(about.st_size, 1 << 19);
    json_t *events = events_read(path);
    unlink(path);
    cr_assert_str_eq(event_arg_text(events_find(events, "i", "trace", "end"), "why"), "limit");
    await_said("limit");
    json_decref(events);
    /* One that has ended by itself need not be stopped. */
    cr_assert_eq(start_at(path, 1 << 20), EDDY_OK);
    for (uint64_t n = 1; eddy_trace_is_on(); n++)
        run("add", n, 0);
    eddy_status status;
    do
        status = start_at(path, 1 << 20);
    while (status == EDDY_INVALID_ARGUMENT);
    cr_assert_eq(status, EDDY_OK);
    stop();
    unlink(path);
    eddy_error_take(NULL);
}

Test(tracer, a_full_disk_ends_it_and_says_so) {
    eddy_error error;
    eddy_log_set(note_line, NULL);
    cr_assert_eq(start_at("/dev/full", 1 << 30), EDDY_OK);
    for (uint64_t n = 1; eddy_trace_is_on(); n++)
        run("add", n, 0);
    cr_assert_eq(eddy_tracer_stop(EDDY_CLOCK_FOREVER, ORIGIN), EDDY_IO);
    cr_assert_eq(eddy_error_take(&error), EDDY_IO);
    cr_assert_not_null(strstr(error.message, "No space left"), "%s", error.message);
    await_said("/dev/full");
    start();
    stop();
    unlink(path);
}

static void note_with_lock(void *context, const char *line) {
    eddy_lock_acquire(context);
    note_line(NULL, line);
    eddy_lock_release(context);
}

/* A sink may wait for what the program holds while it stops the trace, and begins another. */
Test(tracer, a_sink_that_waits_for_who_stops_holds_up_nothing) {
    static eddy_lock of_program;
    alarm(60);
    eddy_log_set(note_with_lock, &of_program);
    eddy_lock_acquire(&of_program);
    for (int round = 0; round < 3; round++) {
        cr_assert_eq(start_at("/dev/full", 1 << 30), EDDY_OK);
        for (uint64_t n = 1; eddy_trace_is_on(); n++)
            run("add", n, 0);
        cr_assert_eq(eddy_tracer_stop(EDDY_CLOCK_FOREVER, ORIGIN), EDDY_IO);
    }
    eddy_tracer_await_log(eddy_clock_deadline(1000000));
    eddy_lock_release(&of_program);
    eddy_tracer_await_log(EDDY_CLOCK_FOREVER);
    int lines = 0;
    for (const char *at = said; (at = strstr(at, "No space left")); at++)
        lines++;
    cr_assert_eq(lines, 3, "%s", said);
    eddy_error_take(NULL);
}

/* A pipe whose reader does not read: threads go on, a stop has its deadline, and can come again. */
Test(tracer, a_file_that_takes_nothing_holds_up_the_writer_alone) {
    eddy_log_set(note_line, NULL);
    snprintf(path, sizeof(path), "/tmp/eddy_tracer_%d.pipe", (int)getpid());
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_eq(start_at(path, 1 << 30), EDDY_IO, "nobody reads");
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    cr_assert_eq(start_at(path, 1 << 30), EDDY_OK);
    for (uint64_t n = 1; n <= 20000; n++)
        run("add", n, 0);
    cr_assert_eq(eddy_tracer_stop(eddy_clock_deadline(20000000), ORIGIN), EDDY_TIMED_OUT);
    cr_assert_eq(start_at("/tmp/other.json", 1 << 30), EDDY_INVALID_ARGUMENT);
    char bytes[65536];
    cr_assert_eq(fcntl(reader, F_SETFL, 0), 0);
    while (read(reader, bytes, sizeof(bytes)) > 0) {
    }
    stop();
    await_said("lacks");
    close(reader);
    unlink(path);
    eddy_error_take(NULL);
}

/* Each allocation failed once: it does not start, or lacks what one thread did; the program goes on. */
Test(tracer, without_memory_the_program_goes_on) {
    int failed = 0;
    snprintf(path, sizeof(path), "/tmp/eddy_tracer_%d.json.gz", (int)getpid());
    for (int64_t n = 0;; n++) {
        eddy_memory_fail_at(EDDY_MEMORY_TRACE, n, 1);
        eddy_status status = start_at(path, 1 << 30);
        run("add", 1, 0);
        bool is_whole = status == EDDY_OK && eddy_memory_failures_injected() == 0;
        bool has_failed = eddy_memory_failures_injected() > 0;
        eddy_memory_fail_at(EDDY_MEMORY_TRACE, 0, 0);
        stop();
        if (!has_failed) {
            cr_assert(is_whole);
            break;
        }
        failed++;
        cr_assert(status == EDDY_OK || status == EDDY_OUT_OF_MEMORY);
        json_decref(status == EDDY_OK ? events_read(path) : json_null());
        eddy_error_take(NULL);
    }
    cr_assert_geq(failed, 4);
    eddy_thread_fail_at(0, 1);
    cr_assert_eq(start_at(path, 1 << 30), EDDY_INTERNAL);
    cr_assert_not(eddy_trace_is_on());
    stop();
    unlink(path);
    eddy_error_take(NULL);
}

/* ---- threads ---- */

#define THREADS 4
#define CALLS 500

static void *run_many(void *context) {
    uint64_t first = (uint64_t)(intptr_t)context * CALLS;
    for (uint64_t n = 1; n <= CALLS; n++)
        run("add", first + n, 0);
    return NULL;
}

/* Each thread has a row, also where rings are handed on. */
Test(tracer, threads_that_come_and_go_have_rows_of_their_own) {
    start();
    for (int round = 0; round < 3; round++) {
        pthread_t threads[THREADS];
        for (int t = 0; t < THREADS; t++)
            cr_assert_eq(pthread_create(&threads[t], NULL, run_many,
                                        (void *)(intptr_t)(round * THREADS + t)),
                         0);
        for (int t = 0; t < THREADS; t++)
            pthread_join(threads[t], NULL);
    }
    stop();
    json_t *events = read_all();
    cr_assert_eq(events_count(events, "X", "kernel", NULL), 3 * THREADS * CALLS);
    cr_assert_eq(events_count(events, "M", NULL, "thread_name"), 3 * THREADS);
    json_decref(events);
}

static _Atomic bool is_over;
static _Atomic int64_t
    left; /* calls of a round: however long that takes, the file is read in a moment */

static void *run_on(void *context) {
    for (uint64_t n = 1; !eddy_load_acquire(&is_over); n++)
        if (eddy_sub_relaxed(&left, 1) > 0)
            run("add", n, n - 1);
        else
            sched_yield();
    return context;
}

/* Traces begin and end between any two lines of threads at work; each is whole. */
Test(tracer, traces_begin_and_end_while_threads_work) {
    pthread_t threads[2];
    for (int t = 0; t < 2; t++)
        cr_assert_eq(pthread_create(&threads[t], NULL, run_on, NULL), 0);
    eddy_log_set(note_line, NULL);
    for (int round = 0; round < 30; round++) {
        eddy_store_relaxed(&left, 2000);
        start();
        for (int i = 0; i < round; i++)
            sched_yield();
        stop();
        json_t *events = events_read(path);
        cr_assert_not_null(events_find(events, "i", "trace", "end"));
        json_decref(events);
    }
    eddy_store_release(&is_over, true);
    for (int t = 0; t < 2; t++)
        pthread_join(threads[t], NULL);
    unlink(path);
}

static void *stop_too(void *context) {
    *(eddy_status *)context = eddy_tracer_stop(EDDY_CLOCK_FOREVER, ORIGIN);
    return NULL;
}

Test(tracer, several_threads_may_stop_it) {
    for (int round = 0; round < 20; round++) {
        pthread_t threads[2];
        eddy_status statuses[2];
        start();
        run("add", 1, 0);
        for (int t = 0; t < 2; t++)
            cr_assert_eq(pthread_create(&threads[t], NULL, stop_too, &statuses[t]), 0);
        stop();
        for (int t = 0; t < 2; t++) {
            pthread_join(threads[t], NULL);
            cr_assert_eq(statuses[t], EDDY_OK);
        }
        json_decref(read_all());
    }
}

#ifndef __SANITIZE_THREAD__ /* which starts no thread behind a fork */
/* The child's events are not in the parent's file; it may write one of its own. */
Test(tracer, a_forked_child_has_none) {
    char own[64];
    start();
    run("add", 1, 0);
    snprintf(own, sizeof(own), "/tmp/eddy_tracer_child_%d.json", (int)getpid());
    await_safe_fork();
    pid_t child = fork();
    if (child == 0) {
        bool is_right = !eddy_trace_is_on() && !eddy_tracer_is_on();
        run("mul", 2, 0);
        is_right &= eddy_tracer_stop(0, ORIGIN) == EDDY_OK;
        is_right &= start_at(own, 1 << 30) == EDDY_OK;
        run("sub", 3, 0);
        is_right &= eddy_tracer_stop(EDDY_CLOCK_FOREVER, ORIGIN) == EDDY_OK;
        _exit(is_right ? 0 : 1);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    run("div", 2, 0);
    stop();
    json_t *events = read_all();
    cr_assert_eq(events_count(events, "X", "kernel", NULL), 2);
    json_decref(events);
    events = events_read(own);
    unlink(own);
    cr_assert_eq(events_count(events, "X", "kernel", NULL), 1);
    cr_assert_eq(events_count(events, "X", "kernel", "sub"), 1);
    json_decref(events);
}

/* What was written by then can be read up to its last whole line. */
Test(tracer, a_crash_leaves_what_was_written) {
    snprintf(path, sizeof(path), "/tmp/eddy_tracer_%d.json", (int)getpid());
    pid_t child = fork();
    if (child == 0) {
        struct stat about = {0};
        (void)!start_at(path, 1 << 30);
        for (uint64_t n = 1; about.st_size < 100000; n++) {
            run("add", n, 0);
            (void)stat(path, &about);
        }
        raise(SIGKILL);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status));
    json_t *events = events_read_cut(path);
    unlink(path);
    cr_assert_geq(events_count(events, "X", "kernel", "add"), 100);
    cr_assert_eq(events_count(events, "i", "trace", "end"), 0);
    json_decref(events);
}
#endif
