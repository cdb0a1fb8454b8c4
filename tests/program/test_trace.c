/* Events (base/trace.h) of what an instruction's own way does not raise: inference, slices, callbacks, copies, programs and their steps, memory. */
#include <base/trace.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <unistd.h>

static _Atomic int heard[EDDY_TRACE_PHASE_COUNT]; /* begins and moments */
static _Atomic int sines;
static _Atomic int64_t taken_bytes; /* at once, at most, from the system */

static void count(void *context, const eddy_trace_event *event) {
    (void)context;
    if (event->kind == EDDY_TRACE_ENDS)
        return;
    eddy_add_relaxed(&heard[event->phase], 1);
    if (event->phase == EDDY_TRACE_KERNEL && event->op && strcmp(event->op, "sin") == 0)
        eddy_add_relaxed(&sines, 1);
    if (event->phase == EDDY_TRACE_ALLOCATOR && strcmp(event->op, "take") == 0 &&
        event->bytes > eddy_load_relaxed(&taken_bytes))
        eddy_store_relaxed(&taken_bytes, event->bytes);
}

static uint32_t listen_to_all(void) {
    uint32_t place;
    eddy_trace_listener listener = {count, NULL, EDDY_TRACE_ALL_PHASES};
    must(eddy_trace_add(&listener, &place));
    return place;
}

static int count_of(eddy_trace_phase phase) {
    return eddy_load_relaxed(&heard[phase]);
}

static void note(void *context, const void *data, int64_t bytes, const eddy_error *error) {
    (void)context, (void)data, (void)bytes, (void)error;
}

Test(trace, calls_callbacks_copies_and_memory_are_heard) {
    eddy_scope *scope = eddy_scope_begin();
    uint32_t place = listen_to_all();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(8, 8), EDDY_F32, NULL);
    eddy_tensor *y = eddy_matmul(x, x);
    cr_assert_gt(count_of(EDDY_TRACE_INFER), 0);
    must(eddy_read_async(y, note, NULL));
    must(eddy_sync(EDDY_FOREVER));
    must(eddy_sync_deleters(EDDY_FOREVER));
    cr_assert_gt(count_of(EDDY_TRACE_CALLBACK), 0);
    eddy_tensor *there =
        eddy_ones(EDDY_SHAPE(4), EDDY_F32, EDDY_OPTIONS(ones, .device = EDDY_FAR(0)));
    cr_assert_eq(eddy_item_f64(eddy_sum(there, EDDY_ALL_AXES, NULL), NULL), 4);
    cr_assert_gt(count_of(EDDY_TRACE_COPY), 0);
    must(eddy_wait(eddy_zeros(EDDY_SHAPE(1 << 21), EDDY_F32, NULL), EDDY_FOREVER));
    cr_assert_geq(eddy_load_relaxed(&taken_bytes), 4 << 21);
    eddy_trace_remove(place);
    eddy_scope_end(scope);
}

/* As soon as a helper comes; on the host, since the simulated device's threads work alone. */
Test(trace, slices_are_heard_where_they_run) {
    alarm(60);
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = 3));
    must(eddy_runtime_use(runtime));
    uint32_t place = listen_to_all();
    while (count_of(EDDY_TRACE_SLICE) == 0) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x =
            eddy_zeros(EDDY_SHAPE(1 << 22), EDDY_F32, EDDY_OPTIONS(zeros, .device = EDDY_CPU));
        must(eddy_wait(eddy_exp(x), EDDY_FOREVER));
        eddy_scope_end(scope);
    }
    eddy_trace_remove(place);
    eddy_runtime_release(&runtime);
}

#define LENGTH 20

/* Two chains that do not depend on each other. */
static eddy_program *record_chains(eddy_tensor *x) {
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "none")));
    eddy_tensor *a = x, *b = x;
    for (int i = 0; i < LENGTH; i++) {
        a = eddy_sin(a);
        b = eddy_sin(b);
    }
    return end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"a", a, EDDY_ROLE_OUTPUT},
                             {"b", b, EDDY_ROLE_OUTPUT}));
}

/* Also where several threads run them. */
Test(trace, each_step_of_a_program_is_a_kernel) {
    for (int streams = 1; streams <= 2; streams++) {
        eddy_runtime *runtime =
            eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = 2, .program_streams = streams));
        must(eddy_runtime_use(runtime));
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = eddy_full(EDDY_SHAPE(64), EDDY_S(0.5), EDDY_F32, NULL), *plain[2],
                    *seen[2];
        eddy_program *program = record_chains(x);
        must(eddy_program_run(program, EDDY_LIST(x), plain));
        must(eddy_sync(EDDY_FOREVER));
        uint32_t place = listen_to_all();
        int before = eddy_load_relaxed(&sines), runs = count_of(EDDY_TRACE_PROGRAM);
        must(eddy_program_run(program, EDDY_LIST(x), seen));
        must(eddy_sync(EDDY_FOREVER));
        eddy_trace_remove(place);
        cr_assert_eq(eddy_load_relaxed(&sines) - before, 2 * LENGTH);
        cr_assert_eq(count_of(EDDY_TRACE_PROGRAM), runs + 1);
        must_have_same_bits(plain[0], seen[0], "heard");
        must_have_same_bits(plain[1], seen[1], "heard");
        eddy_program_release(&program);
        eddy_scope_end(scope);
        must(eddy_runtime_use(NULL));
        eddy_runtime_release(&runtime);
    }
}

static _Atomic bool is_over;

static void *come_and_go(void *context) {
    while (!eddy_load_acquire(&is_over)) {
        uint32_t place = listen_to_all();
        sched_yield();
        eddy_trace_remove(place);
    }
    return context;
}

/* Between any two lines of calls, waits, maps, ranges and the end of a runtime. */
Test(trace, listeners_may_come_and_go_at_any_moment) {
    pthread_t threads[2];
    for (int t = 0; t < 2; t++)
        cr_assert_eq(pthread_create(&threads[t], NULL, come_and_go, NULL), 0);
    for (int round = 0; round < 30; round++) {
        eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = 2));
        must(eddy_runtime_use(runtime));
        eddy_scope *scope = eddy_scope_begin();
        must(eddy_range_push("round"));
        eddy_tensor *x = eddy_full(EDDY_SHAPE(64), EDDY_S(0.5), EDDY_F32, NULL), *results[2];
        eddy_program *program = record_chains(x);
        for (int i = 0; i < 10; i++) {
            must(eddy_program_run(program, EDDY_LIST(x), results));
            must(eddy_read_async(results[i % 2], note, NULL));
            must(eddy_add_s_inplace(x, EDDY_S(0.25)));
        }
        cr_assert_not_null(eddy_map(x, EDDY_READ, EDDY_FOREVER));
        must(eddy_unmap(x));
        must(eddy_range_pop());
        eddy_program_release(&program);
        eddy_scope_end(scope);
        must(eddy_runtime_shutdown(runtime, EDDY_FOREVER));
        must(eddy_runtime_use(NULL));
        eddy_runtime_release(&runtime);
    }
    eddy_store_release(&is_over, true);
    for (int t = 0; t < 2; t++)
        pthread_join(threads[t], NULL);
    cr_assert_not(eddy_trace_is_on());
}
