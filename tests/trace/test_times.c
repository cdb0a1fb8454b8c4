/* The option takes_times: how often and how long. */
#include <base/trace.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

static void must(eddy_status status) {
    eddy_error error = {0};
    if (status != EDDY_OK)
        (void)eddy_error_take(&error);
    cr_assert_eq(status, EDDY_OK, "%s", error.message);
}

static eddy_counters read_counters(void) {
    eddy_counters counters = {.size = sizeof(counters)};
    must(eddy_counters_read(&counters));
    return counters;
}

static eddy_runtime *begin(eddy_runtime_options options) {
    options.size = sizeof(options);
    eddy_runtime *runtime = eddy_runtime_create(&options);
    cr_assert_not_null(runtime);
    must(eddy_runtime_use(runtime));
    return runtime;
}

#define CALLS 50

static void compute(void) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_full(EDDY_SHAPE(64, 64), EDDY_S(0.5), EDDY_F32, NULL);
    for (int i = 0; i < CALLS; i++)
        must(eddy_wait(eddy_exp(eddy_matmul(x, x)), EDDY_FOREVER));
    eddy_scope_end(scope);
    must(eddy_sync(EDDY_FOREVER));
}

static const eddy_op_counters *find(const eddy_op_counters *all, int64_t count, const char *name) {
    for (int64_t i = 0; i < count; i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    return NULL;
}

Test(times, kernels_are_counted_by_op_and_phase) {
    eddy_op_counters ops[16];
    begin((eddy_runtime_options){.threads = 2, .uses_full_path = true, .takes_times = true});
    eddy_counters before = read_counters();
    compute();
    eddy_counters after = read_counters();
    int64_t count = eddy_op_counters_read(ops, 16);
    cr_assert_eq(count, 3);
    const eddy_op_counters *product = find(ops, count, "matmul"),
                           *exponent = find(ops, count, "exp");
    cr_assert(product && product->count == CALLS && exponent && exponent->count == CALLS);
    cr_assert_eq(product->bytes, CALLS * 3 * 64 * 64 * 4);
    cr_assert(product->most_ns > 0 && product->most_ns <= product->total_ns);
    cr_assert_geq(ops[0].total_ns, ops[1].total_ns);
    cr_assert_geq(ops[1].total_ns, ops[2].total_ns);
    cr_assert_eq(after.kernel_count - before.kernel_count, 2 * CALLS + 1);
    cr_assert_eq(after.kernel_ns - before.kernel_ns,
                 ops[0].total_ns + ops[1].total_ns + ops[2].total_ns);
    cr_assert_geq(after.issue_count, 2 * CALLS);
    cr_assert_geq(after.schedule_count, 2 * CALLS);
    cr_assert_gt(after.memory_taken, 0);
    cr_assert_eq(after.failed_run + after.poisoned_run, 0);
    /* Of as many as there is room for. */
    ops[1].count = -1;
    cr_assert_eq(eddy_op_counters_read(ops, 1), 3);
    cr_assert_eq(ops[1].count, -1);
    cr_assert_eq(eddy_op_counters_read(NULL, 5), 3);
}

static const eddy_stream_counters *find_stream(const eddy_stream_counters *all, int64_t count,
                                               const char *name) {
    for (int64_t i = 0; i < count; i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    return NULL;
}

/* Kernels of the host, and no step of a device's; what a device does, from its launch until it is done. */
Test(times, streams_are_busy_with_what_is_on_them) {
    eddy_stream_counters streams[8];
    begin((eddy_runtime_options){.threads = 2, .takes_times = true});
    compute();
    eddy_stream *loader =
        eddy_stream_create(EDDY_CPU, EDDY_OPTIONS(stream, .is_ordered = true, .name = "loader"));
    must(eddy_stream_scope_begin(loader));
    compute();
    eddy_stream_scope_end();
    eddy_counters host = read_counters();
    cr_assert_eq(eddy_stream_counters_read(streams, 8), 2);
    const eddy_stream_counters *plain = find_stream(streams, 2, "stream 0"),
                               *named = find_stream(streams, 2, "loader");
    cr_assert(plain && plain->count == 2 * CALLS + 1);
    cr_assert(named && named->count == 2 * CALLS + 1);
    cr_assert_eq(plain->busy_ns + named->busy_ns, host.kernel_ns);
    cr_assert_geq(streams[0].busy_ns, streams[1].busy_ns);
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(64), EDDY_F32, EDDY_OPTIONS(ones, .device = EDDY_FAR(0)));
    for (int i = 0; i < CALLS; i++) {
        eddy_tensor *y = eddy_exp(x);
        eddy_release(&x);
        x = y;
    }
    cr_assert_gt(eddy_item_f64(eddy_narrow(x, 0, 0, 1), NULL), 0);
    must(eddy_sync(EDDY_FOREVER));
    int64_t count = eddy_stream_counters_read(streams, 8);
    const eddy_stream_counters *computes = find_stream(streams, count, "far:0, compute"),
                               *copies = find_stream(streams, count, "far:0, copies to the host");
    cr_assert(computes && computes->count == CALLS + 1 && computes->busy_ns > 0);
    cr_assert(copies && copies->count == 1 && copies->busy_ns > 0);
    eddy_release(&x);
    eddy_stream_release(&loader);
    streams[1].count = -1;
    cr_assert_eq(eddy_stream_counters_read(streams, 1), count);
    cr_assert_eq(streams[1].count, -1);
    cr_assert_eq(eddy_stream_counters_read(NULL, 5), count);
}

/* There are places for 256 of them. */
Test(times, streams_beyond_the_places_are_counted_together) {
    enum { STREAMS = 300 };
    static eddy_stream_counters streams[STREAMS];
    begin((eddy_runtime_options){.threads = 1, .takes_times = true});
    for (int s = 0; s < STREAMS; s++) {
        eddy_stream *stream =
            eddy_stream_create(EDDY_CPU, EDDY_OPTIONS(stream, .is_ordered = true));
        cr_assert(stream);
        must(eddy_stream_scope_begin(stream));
        eddy_tensor *x = eddy_ones(EDDY_SHAPE(4), EDDY_F32, NULL);
        must(eddy_wait(x, EDDY_FOREVER));
        eddy_release(&x);
        eddy_stream_scope_end();
        eddy_stream_release(&stream);
    }
    must(eddy_sync(EDDY_FOREVER));
    int64_t count = eddy_stream_counters_read(streams, STREAMS), sum = 0;
    cr_assert_eq(count, 257);
    for (int64_t i = 0; i < count; i++)
        sum += streams[i].count;
    cr_assert_eq(sum, STREAMS);
    cr_assert_eq(find_stream(streams, count, "(others)")->count, STREAMS - 256);
}

Test(times, failures_are_counted_with_what_they_poison) {
    begin((eddy_runtime_options){.threads = 2, .takes_times = true});
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL);
    eddy_tensor *index = eddy_full(EDDY_SHAPE(1), EDDY_S(9), EDDY_I64, NULL);
    eddy_tensor *y = eddy_exp(eddy_neg(eddy_index_select(x, index, 0)));
    cr_assert_eq(eddy_wait(y, EDDY_FOREVER), EDDY_OUT_OF_RANGE);
    eddy_counters counters = read_counters();
    cr_assert_eq(counters.failed_run, 1);
    cr_assert_eq(counters.poisoned_run, 2);
    eddy_error_take(NULL);
}

/* Held back at the mark: the waits are among the waits, and no shorter than nothing. */
Test(times, callers_that_are_held_back_are_counted) {
    begin((eddy_runtime_options){
        .threads = 2, .uses_worker_path = true, .in_flight_high = 4, .takes_times = true});
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_full(EDDY_SHAPE(256, 256), EDDY_S(0.001), EDDY_F32, NULL), *y = x;
    for (int i = 0; i < 100; i++)
        y = eddy_matmul(y, x);
    must(eddy_wait(y, EDDY_FOREVER));
    eddy_counters counters = read_counters();
    cr_assert_gt(counters.throttle_count, 0);
    cr_assert_gt(counters.throttle_ns, 0);
    cr_assert_leq(counters.throttle_count, counters.wait_count);
    cr_assert_leq(counters.throttle_ns, counters.wait_ns);
    eddy_scope_end(scope);
}

static void hear_nothing(void *context, const eddy_trace_event *event) {
    (void)context, (void)event;
}

/* Each refusal leaves nothing behind: hooks for forks are few. */
Test(times, runtimes_that_are_refused_for_want_of_a_listener_leave_nothing) {
    const eddy_trace_listener listener = {hear_nothing, NULL, 1u << EDDY_TRACE_RANGE};
    uint32_t place;
    while (eddy_trace_add(&listener, &place) == EDDY_OK) {
    }
    for (int i = 0; i < 100; i++) {
        eddy_runtime *runtime =
            eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = 1, .takes_times = true));
        cr_assert_null(runtime);
        cr_assert_eq(eddy_error_take(NULL), EDDY_OUT_OF_MEMORY);
    }
    eddy_trace_remove(place < EDDY_TRACE_LISTENERS_MOST ? place : 0);
    begin((eddy_runtime_options){.threads = 1, .takes_times = true});
}

Test(times, nothing_is_counted_unless_asked_for) {
    eddy_op_counters ops[4];
    begin((eddy_runtime_options){.threads = 2});
    compute();
    eddy_counters counters = read_counters();
    cr_assert_eq(counters.kernel_count + counters.kernel_ns + counters.issue_count +
                     counters.memory_taken,
                 0);
    cr_assert_eq(eddy_op_counters_read(ops, 4), 0);
    /* An older program's struct ends earlier. */
    counters.kernel_count = 77;
    counters.size = offsetof(eddy_counters, issue_count);
    must(eddy_counters_read(&counters));
    cr_assert_eq(counters.kernel_count, 77);
}

/* ---- what is counted in any case ---- */

static _Atomic int held_count;
static _Atomic bool goes_on;

static eddy_status hold_infer(eddy_op_inference *call) {
    call->outputs[0] = call->inputs[0];
    return EDDY_OK;
}

static eddy_status hold_run(const eddy_op_call *call) {
    (void)call;
    held_count++;
    while (!goes_on)
        sched_yield();
    held_count--;
    return EDDY_OK;
}

static const eddy_op_description hold = {
    .size = sizeof(hold),
    .name = "test.hold",
    .summary = "Runs until it may go on.",
    .operands = (const eddy_operand_description[]){{.name = "x"}},
    .operand_count = 1,
    .outputs = (const char *const[]){"y"},
    .output_count = 1,
    .infer = hold_infer,
    .kernels = (const eddy_op_kernel[]){{.device = EDDY_DEVICE_CPU, .run = hold_run}},
    .kernel_count = 1};

/* Of `count` calls all are counted, as ready or as running, which as many are as hold a thread: once the engine has said so, which is soon. */
static void expect_counted(int64_t count) {
    eddy_counters counters = read_counters();
    for (int i = 0; i < 10000; i++) {
        counters = read_counters();
        if (counters.running == held_count && counters.ready == count - counters.running)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    cr_assert_fail("%lld ready, %lld running, %d held", (long long)counters.ready,
                   (long long)counters.running, held_count);
}

/* Five calls for as many threads as take them, and one that depends on all. */
Test(times, what_is_ready_and_what_runs_are_told_apart, .timeout = 60) {
    eddy_tensor *held[5];
    begin((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    must(eddy_op_register(&hold));
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(4), EDDY_F32, NULL);
    must(eddy_wait(x, EDDY_FOREVER));
    for (int i = 0; i < 5; i++)
        must(eddy_call("test.hold", EDDY_LIST(x), EDDY_ATTRIBUTES(), &held[i]));
    (void)eddy_cat((eddy_list){held, 5}, 0);
    while (held_count == 0)
        sched_yield();
    expect_counted(5);
    goes_on = true;
    must(eddy_sync(EDDY_FOREVER));
    expect_counted(0);
    eddy_counters counters = read_counters();
    cr_assert_eq(counters.hops, counters.scheduler_run + 2 * counters.worker_run);
    cr_assert_geq(counters.worker_run, 5);
    eddy_scope_end(scope);
}

/* One thread hands nothing over, not to a device either. */
Test(times, one_thread_hands_nothing_over) {
    begin((eddy_runtime_options){.uses_one_thread = true});
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(4), EDDY_F32, EDDY_OPTIONS(ones, .device = EDDY_FAR(0)));
    must(eddy_wait(x, EDDY_FOREVER));
    eddy_release(&x);
    cr_assert_eq(read_counters().hops, 0);
}

Test(times, what_is_written_again_is_healed) {
    const int64_t places[] = {9};
    begin((eddy_runtime_options){.threads = 2});
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(4), EDDY_F32, NULL),
                *index = eddy_from_data(places, EDDY_SHAPE(1), EDDY_I64, NULL),
                *y = eddy_index_select(x, index, 0);
    cr_assert_eq(eddy_wait(y, EDDY_FOREVER), EDDY_OUT_OF_RANGE);
    must(eddy_error_take(NULL) == EDDY_OUT_OF_RANGE ? EDDY_OK : EDDY_INTERNAL);
    cr_assert_eq(read_counters().healed, 0);
    must(eddy_copy_into(eddy_narrow(x, 0, 0, 1), y));
    must(eddy_wait(y, EDDY_FOREVER));
    cr_assert_eq(read_counters().healed, 1);
    eddy_scope_end(scope);
}

/* A large block, which threads do not keep at hand. */
Test(times, memory_that_is_found_again_is_counted) {
    begin((eddy_runtime_options){.threads = 1});
    int64_t found[4];
    for (int i = 0; i < 4; i++) {
        eddy_tensor *x = eddy_ones(EDDY_SHAPE(1 << 20), EDDY_F32, NULL);
        must(eddy_wait(x, EDDY_FOREVER));
        eddy_release(&x);
        must(eddy_sync(EDDY_FOREVER));
        found[i] = read_counters().memory_found;
    }
    cr_assert_eq(found[2], found[1] + 1);
    cr_assert_eq(found[3], found[2] + 1);
}

Test(times, memory_of_a_device_that_is_found_again_is_counted) {
    begin((eddy_runtime_options){.threads = 1});
    int64_t found[4];
    for (int i = 0; i < 4; i++) {
        eddy_tensor *x =
            eddy_ones(EDDY_SHAPE(1 << 20), EDDY_F32, EDDY_OPTIONS(ones, .device = EDDY_FAR(0)));
        must(eddy_wait(x, EDDY_FOREVER));
        eddy_release(&x);
        must(eddy_sync(EDDY_FOREVER));
        found[i] = read_counters().memory_found;
    }
    cr_assert_eq(found[2], found[1] + 1);
    cr_assert_eq(found[3], found[2] + 1);
}

#if !defined(__SANITIZE_ADDRESS__) &&                                                              \
    !defined(__SANITIZE_THREAD__) /* which need more stack themselves */
static void *read_ops(void *context) {
    eddy_op_counters first;
    *(int64_t *)context = eddy_op_counters_read(&first, 1);
    return NULL;
}

Test(times, a_thread_with_a_small_stack_may_read_them) {
    pthread_t thread;
    pthread_attr_t attributes;
    int64_t count = 0;
    begin((eddy_runtime_options){.threads = 2, .takes_times = true});
    compute();
    pthread_attr_init(&attributes);
    cr_assert_eq(pthread_attr_setstacksize(&attributes, 65536), 0);
    cr_assert_eq(pthread_create(&thread, &attributes, read_ops, &count), 0);
    pthread_join(thread, NULL);
    cr_assert_eq(count, 3);
}
#endif
