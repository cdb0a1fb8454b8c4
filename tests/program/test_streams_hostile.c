/* Programs with several streams where somebody means harm: waits that time out, lends that stay, processes that end or fork in the middle, failing allocations. */
#include <base/atomic.h>
#include <base/memory.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <tests/program/towers.h>
#include <unistd.h>

#define WIDTH 32
#define TOWERS 4
#define THREADS 4

static eddy_tensor *matrix(double value) {
    return eddy_full(EDDY_SHAPE(WIDTH, WIDTH), EDDY_S(value), EDDY_F32, NULL);
}

typedef struct towers {
    eddy_tensor *weights[TOWERS];
    int depth;
} towers;

static towers towers_of(int depth) {
    towers t = {.depth = depth};
    for (int i = 0; i < TOWERS; i++)
        t.weights[i] = matrix(0.011 + 0.001 * i);
    return t;
}

/* Towers that take turns with what the others have: as many waits as there may be. */
static eddy_tensor *compute(const towers *t, eddy_tensor *x) {
    eddy_tensor *h[TOWERS];
    for (int i = 0; i < TOWERS; i++)
        h[i] = eddy_add_s(x, EDDY_S(i));
    for (int d = 0; d < t->depth; d++) {
        eddy_tensor *next[TOWERS];
        for (int i = 0; i < TOWERS; i++)
            next[i] = eddy_add(towers_grow(h[i], t->weights[i], 1), h[(i + 1 + d) % TOWERS]);
        memcpy(h, next, sizeof(h));
    }
    return eddy_cat(EDDY_LIST(h[0], h[1], h[2], h[3]), 0);
}

static eddy_program *record(const towers *t, eddy_tensor *x) {
    eddy_scope *scope = eddy_scope_begin();
    must(eddy_record_begin(NULL));
    eddy_tensor *y = compute(t, x);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    eddy_scope_end(scope);
    return program;
}

#define FORCED(count, ...)                                                                         \
    EDDY_OPTIONS(runtime, .threads = 4, .program_streams = count, __VA_ARGS__)

/* ---- waits and lends ---- */

Test(streams_hostile, waits_that_time_out) {
    eddy_runtime *runtime = towers_enter(FORCED(4, .uses_worker_path = true));
    eddy_scope *scope = eddy_scope_begin();
    towers t = towers_of(12);
    eddy_program *program = record(&t, matrix(0.5));
    for (int i = 0; i < 300; i++) {
        eddy_scope *turn = eddy_scope_begin();
        eddy_tensor *x = matrix(0.01 * i), *y;
        must(eddy_program_run(program, EDDY_LIST(x), &y));
        while (eddy_wait(y, i % 3 * 1000) == EDDY_TIMED_OUT)
            eddy_error_take(NULL);
        must_have_same_bits(y, compute(&t, x), "waited");
        eddy_scope_end(turn);
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    towers_leave(&runtime);
}

/* A run that waits for a lend does not begin; what it has given is lent while others run. */
Test(streams_hostile, lends_of_what_is_captured_and_given) {
    eddy_runtime *runtime = towers_enter(FORCED(3, .uses_worker_path = true));
    eddy_scope *scope = eddy_scope_begin();
    towers t = towers_of(6);
    eddy_tensor *x = matrix(0.5), *state = matrix(0), *y;
    must(eddy_record_begin(NULL));
    y = compute(&t, x);
    must(eddy_add_into(state, eddy_narrow(y, 0, 0, WIDTH), state));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    eddy_tensor *wanted = matrix(0), *one = compute(&t, x);
    must(eddy_copy_into(matrix(0), state));
    for (int i = 0; i < 48; i++) {
        eddy_tensor *lent = i % 4 == 0 ? state : i % 4 == 1 ? t.weights[1] : i % 4 == 2 ? x : y;
        bool waits = i % 8 == 0; /* to write what is lent */
        cr_assert_not_null(eddy_map(lent, i % 8 < 4 ? EDDY_READ : EDDY_WRITE, EDDY_FOREVER));
        must(eddy_program_run(program, EDDY_LIST(x), &y));
        if (waits || (i % 8 >= 4 && i % 8 < 7)) {
            cr_assert_eq(eddy_wait(y, EDDY_FOREVER), EDDY_WOULD_DEADLOCK, "%d", i);
            eddy_error_take(NULL);
        }
        must(eddy_unmap(lent));
        must(eddy_wait(y, EDDY_FOREVER));
        must_have_same_bits(y, one, "lent");
        must(eddy_add_into(wanted, eddy_narrow(one, 0, 0, WIDTH), wanted));
        must_have_same_bits(state, wanted, "state");
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    towers_leave(&runtime);
}

/* ---- ends ---- */

static towers shared;
static eddy_program *shared_program;
static eddy_runtime *shared_runtime;
static eddy_tensor *shared_x;
static _Atomic bool is_over;
static _Atomic int64_t run_count;

/* Runs until the runtime is shut down, or it is over. */
static void *run_on(void *context) {
    (void)context;
    eddy_status status = eddy_runtime_use(shared_runtime);
    while (status == EDDY_OK && !eddy_load_acquire(&is_over)) {
        eddy_tensor *y = NULL;
        status = eddy_program_run(shared_program, EDDY_LIST(shared_x), &y);
        if (status == EDDY_OK && eddy_add_relaxed(&run_count, INT64_C(1)) % 3 == 0)
            status = eddy_wait(y, EDDY_FOREVER);
        eddy_release(&y);
    }
    eddy_error_take(NULL);
    (void)eddy_runtime_use(NULL);
    return context;
}

static void start(pthread_t *threads, int count) {
    shared_runtime = towers_enter(FORCED(3, .exits_silently = true));
    shared = towers_of(8);
    shared_x = matrix(0.5);
    shared_program = record(&shared, shared_x);
    eddy_store_release(&is_over, false);
    eddy_store_relaxed(&run_count, INT64_C(0));
    for (int i = 0; i < count; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, run_on, NULL), 0);
}

static void await_runs(int64_t count) {
    while (eddy_load_relaxed(&run_count) < count)
        usleep(100);
}

static void stop(pthread_t *threads, int count) {
    eddy_store_release(&is_over, true);
    for (int i = 0; i < count; i++)
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < TOWERS; i++)
        eddy_release(&shared.weights[i]);
    eddy_release(&shared_x);
    eddy_program_release(&shared_program);
    towers_leave(&shared_runtime);
}

Test(streams_hostile, a_runtime_that_is_shut_down_while_threads_run_a_program) {
    alarm(60);
    for (int round = 0; round < 12; round++) {
        pthread_t threads[THREADS];
        start(threads, THREADS);
        await_runs(5 * round);
        eddy_status status =
            eddy_runtime_shutdown(shared_runtime, round % 2 ? EDDY_FOREVER : INT64_C(20000000000));
        cr_assert_eq(status, EDDY_OK);
        stop(threads, THREADS);
    }
    cr_assert_eq(eddy_live_count(), 0);
}

/* The threads' references are the last ones. */
Test(streams_hostile, a_program_that_is_released_while_it_runs) {
    alarm(60);
    for (int round = 0; round < 40; round++) {
        eddy_runtime *runtime = towers_enter(FORCED(2 + round % 3, .uses_worker_path = true));
        towers t = towers_of(8);
        eddy_tensor *x = matrix(0.5), *y[4];
        eddy_program *program = record(&t, x);
        for (int i = 0; i < 4; i++)
            must(eddy_program_run(program, EDDY_LIST(x), &y[i]));
        eddy_program_release(&program);
        for (int i = 0; i < TOWERS; i++)
            eddy_release(&t.weights[i]);
        eddy_release(&x);
        for (int i = 0; i < 4; i++) {
            must_have_same_bits(y[i], y[0], "released");
            if (i > 0)
                eddy_release(&y[i]);
        }
        eddy_release(&y[0]);
        towers_leave(&runtime);
    }
    cr_assert_eq(eddy_live_count(), 0);
}

#ifndef __SANITIZE_THREAD__ /* it starts no thread behind a fork */

#ifndef __SANITIZE_ADDRESS__ /* whose allocator a fork may find locked */
static void run_in_child(void) {
    eddy_runtime *runtime = towers_enter(FORCED(4, .exits_silently = true));
    eddy_scope *scope = eddy_scope_begin();
    towers t = towers_of(6);
    eddy_tensor *x = matrix(0.25), *y;
    eddy_program *program = record(&t, x);
    for (int i = 0; i < 10; i++) {
        must(eddy_program_run(program, EDDY_LIST(x), &y));
        must_have_same_bits(y, compute(&t, x), "child");
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    towers_leave(&runtime);
}
#endif

/* The child ends as it should. */
static void await_child(pid_t child, int code) {
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == code, "%x", (unsigned)status);
}

#ifndef __SANITIZE_ADDRESS__
Test(streams_hostile, a_process_that_forks_in_the_middle_of_runs) {
    alarm(100);
    pthread_t threads[THREADS];
    start(threads, THREADS);
    for (int i = 0; i < 20; i++) {
        await_runs(eddy_load_relaxed(&run_count) + 3);
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            eddy_tensor *y = NULL;
            if (eddy_program_run(shared_program, EDDY_LIST(shared_x), &y) != EDDY_FORKED)
                _exit(1);
            eddy_program_release(&shared_program);
            run_in_child();
            _exit(7);
        }
        await_child(child, 7);
    }
    stop(threads, THREADS);
}
#endif

Test(streams_hostile, a_process_that_ends_in_the_middle_of_runs) {
    alarm(100);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            pthread_t threads[THREADS];
            start(threads, THREADS);
            await_runs(1 + 3 * i);
            exit(7);
        }
        await_child(child, 7);
    }
}
#endif
