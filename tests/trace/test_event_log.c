/* Lines about what the library does, by room and level. */
#include <base/clock.h>
#include <base/log.h>
#include <base/memory.h>
#include <base/sleep.h>
#include <base/thread.h>
#include <base/trace.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <trace/event_log.h>
#include <unistd.h>

static void must(eddy_status status) {
    eddy_error error = {0};
    if (status != EDDY_OK)
        (void)eddy_error_take(&error);
    cr_assert_eq(status, EDDY_OK, "%s", error.message);
}

static char text[1 << 16];
static _Atomic int line_count;

/* On one thread only. */
static void keep(void *context, const char *line) {
    size_t used = strlen(text);
    (void)context;
    snprintf(text + used, sizeof(text) - used, "%s\n", line);
    eddy_add_release(&line_count, 1);
}

static void compute(void) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(4), EDDY_F32, NULL);
    must(eddy_wait(eddy_add(x, x), EDDY_FOREVER));
    eddy_scope_end(scope);
}

static void begin(const char *levels) {
    eddy_runtime *runtime =
        eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = 1, .uses_full_path = true));
    must(eddy_runtime_use(runtime));
    eddy_log_set(keep, NULL);
    text[0] = '\0';
    must(eddy_log_levels_set(levels));
}

static void end(void) {
    must(eddy_log_levels_set(NULL));
    eddy_event_log_end(EDDY_CLOCK_FOREVER);
    eddy_log_set(NULL, NULL);
    cr_assert_not(eddy_trace_is_on());
}

Test(event_log, rooms_say_what_they_are_asked_to) {
    begin("vm:1");
    compute();
    end();
    cr_assert_not_null(strstr(text, "add(f32[4], f32[4]) runs\n"), "%s", text);
    cr_assert_null(strstr(text, "is ready"));
    cr_assert_null(strstr(text, "interpreter:"));
    begin("vm:2,interpreter:1");
    compute();
    end();
    cr_assert_not_null(strstr(text, "interpreter: add is instruction "), "%s", text);
    cr_assert_not_null(strstr(text, "add is scheduled\n"));
    cr_assert_not_null(strstr(text, "add is over"));
    cr_assert_null(strstr(text, "inferred"));
    cr_assert_null(strstr(text, "streams:"));
    begin("interpreter:2,streams:2");
    must(eddy_wait(eddy_zeros(EDDY_SHAPE(1 << 21), EDDY_F32, NULL), EDDY_FOREVER));
    end();
    cr_assert_not_null(strstr(text, "interpreter: zeros: its dtypes and shapes are inferred\n"));
    cr_assert_not_null(strstr(text, "streams: memory: take "), "%s", text);
    cr_assert_null(strstr(text, "vm:"));
}

Test(event_log, failures_name_their_root) {
    begin("vm:1");
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL);
    eddy_tensor *index = eddy_full(EDDY_SHAPE(1), EDDY_S(9), EDDY_I64, NULL);
    eddy_tensor *y = eddy_exp(eddy_index_select(x, index, 0));
    cr_assert_eq(eddy_wait(y, EDDY_FOREVER), EDDY_OUT_OF_RANGE);
    end();
    unsigned failed = 0, blamed = 0;
    cr_assert_eq(sscanf(strstr(text, "index_select failed") - 4, "%*[^0-9]%u", &failed), 1, "%s",
                 text);
    cr_assert_eq(
        sscanf(strstr(text, "exp does not run, as "), "exp does not run, as %u failed", &blamed),
        1);
    cr_assert_eq(failed, blamed);
    eddy_error_take(NULL);
}

Test(event_log, what_is_no_room_or_level_is_refused_with_those_that_are) {
    static const char *const wrong[] = {"vmm:1",           "vm", "vm:3", "vm:", "vm:1x", ":1",
                                        "vm:1,interpreter"};
    eddy_error error;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        cr_assert_eq(eddy_log_levels_set(wrong[i]), EDDY_INVALID_ARGUMENT, "%s", wrong[i]);
        cr_assert_eq(eddy_error_take(&error), EDDY_INVALID_ARGUMENT);
        cr_assert_not_null(
            strstr(error.message, "rooms are interpreter, program, streams, vm, levels 0 to 2"),
            "%s", error.message);
    }
    must(eddy_log_levels_set("vm:1,,"));
    must(eddy_log_levels_set("vm:0"));
    cr_assert_not(eddy_trace_is_on());
    cr_assert_null(eddy_runtime_create(EDDY_OPTIONS(runtime, .log = "error")));
    cr_assert_eq(eddy_error_take(&error), EDDY_INVALID_ARGUMENT);
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .log = "program:1"));
    cr_assert_not_null(runtime);
    cr_assert(eddy_trace_is_on());
    must(eddy_log_levels_set(""));
    eddy_runtime_release(&runtime);
}

static eddy_lock of_program;

/* A sink may wait for what the program has: nothing of the library waits for the sink. */
static void keep_with_lock(void *context, const char *line) {
    eddy_lock_acquire(&of_program);
    keep(context, line);
    eddy_lock_release(&of_program);
}

Test(event_log, a_sink_that_waits_holds_up_nothing_and_what_it_misses_is_counted) {
    begin("vm:2");
    eddy_log_set(keep_with_lock, NULL);
    eddy_lock_acquire(&of_program);
    for (int i = 0; i < 2000; i++)
        compute();
    eddy_lock_release(&of_program);
    end();
    cr_assert_not_null(strstr(text, "vm: "));
    /* The queue, one that was being delivered, and the line that counts the rest. */
    cr_assert_leq(eddy_load_acquire(&line_count), 4096 + 2);
    cr_assert_geq(eddy_load_acquire(&line_count), 4096);
}

Test(event_log, without_memory_or_a_thread_there_is_none) {
    eddy_memory_fail_at(EDDY_MEMORY_TRACE, 0, 1);
    cr_assert_eq(eddy_log_levels_set("vm:1"), EDDY_OUT_OF_MEMORY);
    eddy_thread_fail_at(0, 1);
    cr_assert_eq(eddy_log_levels_set("vm:1"), EDDY_INTERNAL);
    cr_assert_not(eddy_trace_is_on());
    must(eddy_log_levels_set("vm:1"));
    must(eddy_log_levels_set(NULL));
    eddy_error_take(NULL);
}

static _Atomic bool is_over;

static void *come_and_go(void *context) {
    while (!eddy_load_acquire(&is_over)) {
        must(eddy_log_levels_set("vm:2,interpreter:2,streams:2,program:2"));
        sched_yield();
        must(eddy_log_levels_set(NULL));
    }
    return context;
}

static void count_lines(void *context, const char *line) {
    (void)context, (void)line;
    eddy_add_relaxed(&line_count, 1);
}

Test(event_log, levels_may_change_at_any_moment) {
    pthread_t threads[2];
    eddy_log_set(count_lines, NULL);
    for (int t = 0; t < 2; t++)
        cr_assert_eq(pthread_create(&threads[t], NULL, come_and_go, NULL), 0);
    for (int i = 0; i < 300; i++)
        compute();
    eddy_store_release(&is_over, true);
    for (int t = 0; t < 2; t++)
        pthread_join(threads[t], NULL);
    end();
}

/* ---- stderr ---- */

#ifndef __SANITIZE_THREAD__ /* which starts no thread behind a fork */
static void read_stderr_of(const char *levels, void (*run)(void)) {
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        setenv("EDDY_LOG", levels, 1);
        run();
        exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t count; (count = read(ends[0], text + used, sizeof(text) - 1 - used)) > 0;)
        used += (size_t)count;
    text[used] = '\0';
    close(ends[0]);
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", text);
}

static void expect_refusal(void) {
    eddy_error error;
    cr_assert_null(eddy_ones(EDDY_SHAPE(4), EDDY_F32, NULL));
    cr_assert_eq(eddy_error_take(&error), EDDY_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(error.message, "EDDY_LOG: vmm:2 is no room"), "%s", error.message);
}

Test(event_log, a_variable_alone_writes_to_stderr) {
    read_stderr_of("error,vm:1", compute);
    cr_assert_not_null(strstr(text, "eddy: vm: "), "%s", text);
    cr_assert_not_null(strstr(text, "add(f32[4], f32[4]) runs\n"), "%s", text);
    read_stderr_of("vmm:2", expect_refusal);
    cr_assert_null(strstr(text, "vm:"), "%s", text);
}
#endif
