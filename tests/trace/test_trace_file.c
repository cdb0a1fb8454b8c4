/* eddy_trace_start, EDDY_TRACE: what a program's calls leave in the file. */
#include <base/call_site.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tests/asleep.h>
#include <tests/trace/events.h>
#include <unistd.h>

static char path[64];

static void must(eddy_status status) {
    eddy_error error = {0};
    if (status != EDDY_OK)
        (void)eddy_error_take(&error);
    cr_assert_eq(status, EDDY_OK, "%s", error.message);
}

static void start(void) {
    snprintf(path, sizeof(path), "/tmp/eddy_trace_%d.json", (int)getpid());
    must(eddy_trace_start(path, NULL));
}

static json_t *stop(void) {
    must(eddy_trace_stop(EDDY_FOREVER));
    json_t *events = events_read(path);
    unlink(path);
    events_must_fit(events);
    return events;
}

static eddy_counters counters_now(void) {
    eddy_counters counters = {.size = sizeof(counters)};
    must(eddy_counters_read(&counters));
    return counters;
}

/* A diamond of calls, again and again, with a wait in between: 5 instructions and a read. */
#define ROUNDS 40
#define CALLS 4

static double compute(void) {
    double sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        eddy_scope *scope = eddy_scope_begin();
        must(eddy_range_push("round"));
        eddy_tensor *x = eddy_full(EDDY_SHAPE(8, 8), EDDY_S(0.5), EDDY_F32, NULL);
        eddy_tensor *y = eddy_add(eddy_exp(x), eddy_matmul(x, x));
        sum += eddy_item_f64(eddy_sum(y, EDDY_ALL_AXES, NULL), NULL);
        must(eddy_range_pop());
        eddy_scope_end(scope);
    }
    return sum;
}

static const struct {
    const char *name;
    eddy_runtime_options options;
} ways[] = {
    {"caller", {0}},
    {"scheduler", {.uses_full_path = true}},
    {"workers", {.uses_worker_path = true}},
    {"one thread", {.uses_one_thread = true}},
};
enum { WAYS = sizeof(ways) / sizeof(*ways) };

static eddy_runtime *begin_way(int way) {
    eddy_runtime_options options = ways[way].options;
    options.size = sizeof(options);
    options.threads = 2;
    eddy_runtime *runtime = eddy_runtime_create(&options);
    must(eddy_runtime_use(runtime));
    return runtime;
}

static void end_way(eddy_runtime *runtime) {
    must(eddy_runtime_use(NULL));
    eddy_runtime_release(&runtime);
}

/* Instructions that ran as kernels are in the file as often as they were counted, each once in each phase, with the number that its call has. */
Test(trace_file, each_instruction_is_there_once_on_each_way) {
    for (int way = 0; way < WAYS; way++) {
        eddy_runtime *runtime = begin_way(way);
        start();
        eddy_counters before = counters_now();
        (void)compute();
        must(eddy_sync(EDDY_FOREVER));
        eddy_counters after = counters_now();
        json_t *events = stop();
        int64_t run = after.caller_run + after.scheduler_run + after.worker_run -
                      before.caller_run - before.scheduler_run - before.worker_run;
        size_t kernels = events_count(events, "X", "kernel", NULL);
        cr_assert_eq(kernels, ROUNDS * (CALLS + 1), "%s", ways[way].name);
        cr_assert_geq(run, (int64_t)kernels, "%s", ways[way].name);
        cr_assert_eq(events_count(events, "X", "range", "round"), ROUNDS);
        cr_assert_eq(event_arg(events_find(events, "i", "trace", "end"), "dropped"), 0);
        char *seen = calloc((size_t)after.submitted + 2, 3);
        for (size_t i = 0; i < json_array_size(events); i++) {
            const json_t *event = json_array_get(events, i);
            const char *category = event_text(event, "cat");
            int phase = strcmp(category, "issue") == 0     ? 0
                        : strcmp(category, "kernel") == 0  ? 1
                        : strcmp(category, "release") == 0 ? 2
                                                           : -1;
            int64_t number = event_arg(event, "n");
            if (phase < 0 || number == 0)
                continue;
            cr_assert(number > 0 && number <= after.submitted);
            cr_assert_eq(seen[3 * number + phase]++, 0, "%s: %s %d", ways[way].name, category,
                         (int)number);
        }
        for (int64_t n = 1; n <= after.submitted; n++)
            if (seen[3 * n + 1])
                cr_assert(seen[3 * n] && seen[3 * n + 2], "%s: %d", ways[way].name, (int)n);
        free(seen);
        json_decref(events);
        end_way(runtime);
    }
}

/* The same bits, by the same ways, in the same order. */
Test(trace_file, what_is_traced_runs_as_it_does_untraced) {
    for (int way = 0; way < WAYS; way++) {
        eddy_runtime *runtime = begin_way(way);
        double first = compute();
        must(eddy_sync(EDDY_FOREVER));
        eddy_counters a = counters_now();
        double untraced = compute();
        must(eddy_sync(EDDY_FOREVER));
        eddy_counters b = counters_now();
        start();
        double traced = compute();
        must(eddy_sync(EDDY_FOREVER));
        eddy_counters c = counters_now();
        json_decref(stop());
        cr_assert(first == untraced && untraced == traced);
        cr_assert_eq(c.errors_made, b.errors_made);
        /* Elsewhere a read may find its result there, or wait for it by an instruction. */
        if (ways[way].options.uses_one_thread) {
            cr_assert_eq(c.submitted - b.submitted, b.submitted - a.submitted);
            cr_assert_eq(c.caller_run - b.caller_run, b.caller_run - a.caller_run);
            cr_assert_eq(c.nodes_made - b.nodes_made, b.nodes_made - a.nodes_made);
        }
        end_way(runtime);
    }
}

/* Arrows go from call to kernel, and along dependencies where one waits for another. */
Test(trace_file, arrows_follow_calls_and_dependencies) {
    eddy_runtime *runtime = begin_way(2);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(512, 512), EDDY_F32, NULL);
    must(eddy_wait(x, EDDY_FOREVER));
    start();
    eddy_tensor *y = x;
    for (int i = 0; i < 20; i++)
        y = eddy_matmul(y, x);
    must(eddy_wait(y, EDDY_FOREVER));
    json_t *events = stop();
    size_t edges = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        const json_t *after = json_object_get(json_object_get(event, "args"), "after");
        if (!after)
            continue;
        cr_assert_str_eq(event_text(event, "cat"), "schedule");
        cr_assert_eq(json_array_size(after), 1);
        cr_assert_eq(json_integer_value(json_array_get(after, 0)), event_arg(event, "n") - 1);
        edges++;
    }
    cr_assert(edges > 0 && edges <= 20, "%zu", edges); /* that of the wait, too */
    cr_assert_leq(events_count(events, "s", "edge", NULL), edges);
    int calls = 0;
    double caller = event_number(events_find(events, "X", "issue", "matmul"), "tid");
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *kernel = json_array_get(events, i);
        if (strcmp(event_text(kernel, "cat"), "kernel") != 0)
            continue;
        cr_assert_str_eq(event_arg_text(kernel, "of"), "f32[512, 512], f32[512, 512]");
        calls += event_number(kernel, "tid") != caller;
    }
    cr_assert_eq(calls, (int)events_count(events, "s", "call", NULL));
    cr_assert_gt(calls, 0);
    json_decref(events);
    eddy_scope_end(scope);
    end_way(runtime);
}

Test(trace_file, phases_are_chosen_by_name) {
    eddy_error error;
    start();
    (void)compute();
    json_t *all = stop();
    snprintf(path, sizeof(path), "/tmp/eddy_trace_%d.json", (int)getpid());
    must(eddy_trace_start(path, EDDY_OPTIONS(trace, .phases = "kernel,range")));
    (void)compute();
    json_t *some = stop();
    cr_assert_gt(events_count(all, "X", "issue", NULL), 0);
    cr_assert_eq(events_count(some, "X", "issue", NULL), 0);
    cr_assert_eq(events_count(some, "X", "kernel", NULL), events_count(all, "X", "kernel", NULL));
    cr_assert_eq(events_count(some, "X", "range", NULL), ROUNDS);
    cr_assert_eq(eddy_trace_start(path, EDDY_OPTIONS(trace, .phases = "kernel,kern")),
                 EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_error_take(&error), EDDY_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(error.message, "kern is no phase; there are issue, infer"), "%s",
                       error.message);
    cr_assert_eq(eddy_trace_start(NULL, NULL), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_trace_start(path, EDDY_OPTIONS(trace, .limit_bytes = 1000)),
                 EDDY_INVALID_ARGUMENT);
    eddy_error_take(NULL);
    json_decref(all);
    json_decref(some);
}

/* "file:line" of calls. */
Test(trace_file, places_are_there_where_they_were_noted) {
    start();
    eddy_call_site_set("train.c:12");
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(4), EDDY_F32, NULL);
    must(eddy_wait(x, EDDY_FOREVER));
    json_t *events = stop();
    cr_assert_str_eq(event_arg_text(events_find(events, "X", "kernel", "ones"), "at"),
                     "train.c:12");
    json_decref(events);
    eddy_release(&x);
}

Test(trace_file, what_failed_and_what_did_not_run_for_it_is_there) {
    for (int way = 0; way < WAYS; way++) {
        eddy_runtime *runtime = begin_way(way);
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = eddy_ones(EDDY_SHAPE(2, 3), EDDY_F32, NULL);
        eddy_tensor *index = eddy_full(EDDY_SHAPE(1), EDDY_S(99), EDDY_I64, NULL);
        start();
        eddy_tensor *y = eddy_exp(eddy_neg(eddy_index_select(x, index, 0)));
        cr_assert_eq(eddy_wait(y, EDDY_FOREVER), EDDY_OUT_OF_RANGE);
        json_t *events = stop();
        const json_t *root = events_find(events, "i", "poison", "index_select");
        cr_assert_eq(events_count(events, "i", "poison", NULL), 3, "%s", ways[way].name);
        cr_assert_eq(event_arg(root, "root"), event_arg(root, "n"));
        cr_assert_eq(event_arg(events_find(events, "i", "poison", "exp"), "root"),
                     event_arg(root, "n"));
        cr_assert_eq(events_count(events, "X", "kernel", "exp"), 0);
        json_decref(events);
        eddy_scope_end(scope);
        eddy_error_take(NULL);
        (void)eddy_sync(EDDY_FOREVER);
        eddy_error_take(NULL);
        end_way(runtime);
    }
}

/* From its launch, or from the end of what was before it, until it was noticed to be done. */
static int rows_named(const json_t *events, const char *name) {
    int count = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        const json_t *said = json_object_get(json_object_get(event, "args"), "name");
        if (strcmp(event_text(event, "name"), "thread_name") == 0 && said)
            count += strcmp(json_string_value(said), name) == 0;
    }
    return count;
}

/* Of the host it is in the kernels, of a device it names the row. A name stays when its stream is gone. */
Test(trace_file, streams_have_their_names) {
    eddy_stream *loader = eddy_stream_create(
                    EDDY_CPU, EDDY_OPTIONS(stream, .is_ordered = true, .name = "loader \"1\"")),
                *side = eddy_stream_create(EDDY_FAR(0), EDDY_OPTIONS(stream, .name = "side")),
                *other = eddy_stream_create(EDDY_FAR(0), NULL);
    eddy_stream *const streams[] = {loader, side, other};
    cr_assert(loader && side && other);
    start();
    for (int s = 0; s < 3; s++) {
        must(eddy_stream_scope_begin(streams[s]));
        eddy_tensor *x = eddy_ones(EDDY_SHAPE(64), EDDY_F32,
                                   EDDY_OPTIONS(ones, .device = s ? EDDY_FAR(0) : EDDY_CPU));
        eddy_tensor *y = eddy_exp(x);
        must(eddy_wait(y, EDDY_FOREVER));
        eddy_release(&x);
        eddy_release(&y);
        eddy_stream_scope_end();
    }
    eddy_stream_release(&loader);
    eddy_stream_release(&side);
    eddy_stream_release(&other);
    must(eddy_sync(EDDY_FOREVER));
    json_t *events = stop();
    int on_loader = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        const json_t *on = json_object_get(json_object_get(event, "args"), "on");
        if (!on || strcmp(event_text(event, "name"), "exp") != 0)
            continue;
        cr_assert_str_eq(json_string_value(on), "loader \"1\"");
        cr_assert_str_eq(event_text(event, "cat"), "kernel");
        on_loader++;
    }
    cr_assert_eq(on_loader, 1);
    cr_assert_eq(rows_named(events, "far:0, side"), 1);
    cr_assert_eq(rows_named(events, "far:0, stream 6"), 1);
    json_decref(events);
}

static void exp_on(eddy_stream *stream, int count) {
    must(eddy_stream_scope_begin(stream));
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(64), EDDY_F32, NULL);
    for (int i = 0; i < count; i++) {
        eddy_tensor *y = eddy_exp(x);
        eddy_release(&x);
        x = y;
    }
    must(eddy_wait(x, EDDY_FOREVER));
    eddy_release(&x);
    eddy_stream_scope_end();
}

/* Of the row's event of a kernel: its begin and end, as the kernel's own. */
static int kernels_like(const json_t *events, const json_t *in_row) {
    int count = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        count += strcmp(event_text(event, "cat"), "kernel") == 0 &&
                 strcmp(event_text(event, "name"), event_text(in_row, "name")) == 0 &&
                 event_arg(event, "n") == event_arg(in_row, "n") &&
                 event_number(event, "ts") == event_number(in_row, "ts") &&
                 event_number(event, "dur") == event_number(in_row, "dur");
    }
    return count;
}

/* What runs one after another has a row, beside those of the threads that it runs on; the default stream has none. */
Test(trace_file, ordered_streams_of_the_host_have_rows) {
    eddy_stream *streams[] = {
        eddy_stream_create(EDDY_CPU, EDDY_OPTIONS(stream, .is_ordered = true, .name = "loader")),
        eddy_stream_create(EDDY_CPU, EDDY_OPTIONS(stream, .is_ordered = true)),
        eddy_stream_create(EDDY_CPU, EDDY_OPTIONS(stream, .is_ordered = false))};
    start();
    for (int s = 0; s < 3; s++)
        exp_on(streams[s], 3 + s);
    must(eddy_sync(EDDY_FOREVER));
    json_t *events = stop();
    cr_assert_eq(events_count(events, "X", "kernel", "exp"), 3 + 4 + 5);
    cr_assert_eq(events_count(events, "X", "stream", "exp"), 3 + 4);
    cr_assert_eq(events_count(events, "X", "stream", "ones"), 2);
    cr_assert_eq(rows_named(events, "loader"), 1);
    cr_assert_eq(rows_named(events, "stream 2"), 1);
    cr_assert_eq(rows_named(events, "stream 3"), 0);
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (strcmp(event_text(event, "cat"), "stream") != 0)
            continue;
        cr_assert_eq(event_number(event, "pid"), 3);
        cr_assert_eq(kernels_like(events, event), 1);
    }
    json_decref(events);
    for (int s = 0; s < 3; s++)
        eddy_stream_release(&streams[s]);
}

/* Their numbers are the same: rows and arrows are not. */
Test(trace_file, rows_and_numbers_of_two_runtimes_do_not_mix) {
    eddy_runtime *runtimes[2];
    eddy_stream *streams[2];
    for (int r = 0; r < 2; r++) {
        runtimes[r] = eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = 1));
        must(eddy_runtime_use(runtimes[r]));
        streams[r] = eddy_stream_create(EDDY_CPU, EDDY_OPTIONS(stream, .is_ordered = true));
    }
    start();
    for (int r = 0; r < 2; r++) {
        must(eddy_runtime_use(runtimes[r]));
        exp_on(streams[r], 4 + r);
        must(eddy_sync(EDDY_FOREVER));
    }
    json_t *events = stop();
    int on[2] = {0}, rows[2] = {0};
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (strcmp(event_text(event, "cat"), "stream") != 0)
            continue;
        bool is_second = json_object_get(json_object_get(event, "args"), "runtime") != NULL;
        int row = (int)event_number(event, "tid");
        cr_assert(rows[is_second] == 0 || rows[is_second] == row);
        rows[is_second] = row;
        on[is_second] += strcmp(event_text(event, "name"), "exp") == 0;
    }
    cr_assert_eq(on[0], 4);
    cr_assert_eq(on[1], 5);
    cr_assert_neq(rows[0], rows[1]);
    cr_assert_eq(rows_named(events, "stream 1"), 1);
    cr_assert_eq(rows_named(events, "stream 1 of runtime 2"), 1);
    json_decref(events);
    for (int r = 0; r < 2; r++) {
        must(eddy_runtime_use(runtimes[r]));
        eddy_stream_release(&streams[r]);
        must(eddy_runtime_shutdown(runtimes[r], EDDY_FOREVER));
        eddy_runtime_release(&runtimes[r]);
    }
}

/* What the host reads is copied on one queue, whichever stream the reader is on. */
Test(trace_file, copies_to_the_host_have_one_row) {
    eddy_stream *side = eddy_stream_create(EDDY_CPU, EDDY_OPTIONS(stream, .is_ordered = true));
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(4), EDDY_F32, EDDY_OPTIONS(ones, .device = EDDY_FAR(0)));
    float read[4];
    start();
    for (int s = 0; s < 2; s++) {
        if (s)
            must(eddy_stream_scope_begin(side));
        must(eddy_read(x, read, sizeof(read), NULL));
        if (s)
            eddy_stream_scope_end();
        eddy_tensor *home = eddy_to_device(x, EDDY_CPU);
        must(eddy_wait(home, EDDY_FOREVER));
        eddy_release(&home);
    }
    must(eddy_sync(EDDY_FOREVER));
    json_t *events = stop();
    cr_assert_eq(rows_named(events, "far:0, copies to the host"), 1);
    cr_assert_geq(events_count(events, "X", "device", NULL), 4);
    json_decref(events);
    eddy_release(&x);
    eddy_stream_release(&side);
}

/* There are rows for 64 of them. */
Test(trace_file, what_has_no_row_is_counted) {
    enum { STREAMS = 70 };
    eddy_stream *streams[STREAMS];
    char name[32];
    start();
    for (int s = 0; s < STREAMS; s++) {
        snprintf(name, sizeof(name), "s%d", s);
        streams[s] = eddy_stream_create(EDDY_FAR(0), EDDY_OPTIONS(stream, .name = name));
        cr_assert(streams[s]);
        must(eddy_stream_scope_begin(streams[s]));
        eddy_tensor *x =
            eddy_ones(EDDY_SHAPE(4), EDDY_F32, EDDY_OPTIONS(ones, .device = EDDY_FAR(0)));
        must(eddy_wait(x, EDDY_FOREVER));
        eddy_release(&x);
        eddy_stream_scope_end();
        eddy_stream_release(&streams[s]);
    }
    must(eddy_sync(EDDY_FOREVER));
    json_t *events = stop();
    cr_assert_eq(events_count(events, "X", "device", "ones"), 64);
    cr_assert_eq(event_arg(events_find(events, "i", "trace", "end"), "dropped"), STREAMS - 64);
    json_decref(events);
}

Test(trace_file, what_a_device_does_has_a_row_for_each_stream) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(64), EDDY_F32, EDDY_OPTIONS(ones, .device = EDDY_FAR(0)));
    must(eddy_wait(x, EDDY_FOREVER));
    start();
    eddy_tensor *y = x;
    for (int i = 0; i < 20; i++)
        y = eddy_exp(eddy_neg(y));
    must(eddy_wait(y, EDDY_FOREVER));
    must(eddy_sync(EDDY_FOREVER));
    json_t *events = stop();
    cr_assert_eq(events_count(events, "X", "kernel", NULL), 40);
    cr_assert_eq(events_count(events, "X", "device", "neg"), 20);
    cr_assert_eq(events_count(events, "X", "device", "exp"), 20);
    cr_assert_eq(rows_named(events, "far:0, compute"), 1);
    cr_assert_geq(event_arg(events_find(events, "X", "kernel", "neg"), "live"), 64 * 4);
    int rows = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        rows += event_number(event, "pid") == 2 &&
                strcmp(event_text(event, "name"), "thread_name") == 0;
        if (strcmp(event_text(event, "cat"), "device") == 0)
            cr_assert_eq(event_number(event, "pid"), 2);
    }
    cr_assert_geq(rows, 1);
    json_decref(events);
    eddy_scope_end(scope);
}

/* Curves begin with what there is. */
Test(trace_file, memory_and_what_is_in_flight_are_curves) {
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(1 << 20), EDDY_F32, NULL);
    must(eddy_wait(x, EDDY_FOREVER));
    start();
    must(eddy_wait(eddy_neg(x), EDDY_FOREVER));
    json_t *events = stop();
    int64_t live = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (strcmp(event_text(event, "name"), "memory of cpu") == 0 &&
            event_arg(event, "live") > live)
            live = event_arg(event, "live");
    }
    cr_assert_geq(live, 4 << 20);
    cr_assert_geq(event_arg(events_find(events, "X", "kernel", "neg"), "live"), 8 << 20);
    static const char *const curves[] = {"in flight", "ready", "running"};
    for (int c = 0; c < 3; c++)
        cr_assert_gt(events_count(events, "C", NULL, curves[c]), 0, "%s", curves[c]);
    json_decref(events);
    eddy_release(&x);
}

/* Of several runtimes together. */
Test(trace_file, curves_are_of_the_whole_process) {
    eddy_runtime *runtimes[2];
    eddy_tensor *held[2];
    for (int r = 0; r < 2; r++) {
        runtimes[r] = eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = 1));
        must(eddy_runtime_use(runtimes[r]));
        held[r] = eddy_ones(EDDY_SHAPE(1 << 20), EDDY_F32, NULL);
        must(eddy_wait(held[r], EDDY_FOREVER));
    }
    start();
    json_t *events = stop();
    int curves = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        const json_t *live = json_object_get(json_object_get(event, "args"), "live");
        if (strcmp(event_text(event, "name"), "memory of cpu") != 0 || !live)
            continue;
        cr_assert_geq(json_integer_value(live), 8 << 20);
        curves++;
    }
    cr_assert_geq(curves, 1);
    json_decref(events);
    for (int r = 0; r < 2; r++) {
        eddy_release(&held[r]);
        must(eddy_runtime_use(NULL));
        eddy_runtime_release(&runtimes[r]);
    }
}

/* ---- without a call ---- */

#ifndef __SANITIZE_THREAD__ /* which starts no thread behind a fork */
static json_t *of_child(void (*run)(void)) {
    snprintf(path, sizeof(path), "/tmp/eddy_trace_%d.json", (int)getpid());
    pid_t child = fork();
    if (child == 0) {
        setenv("EDDY_TRACE", path, 1);
        run();
        exit(0);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    json_t *events = events_read(path);
    unlink(path);
    events_must_fit(events);
    return events;
}

static void leave_at_once(void) {
    (void)compute();
    for (int i = 0; i < 100; i++) {
        eddy_tensor *x = eddy_ones(EDDY_SHAPE(100), EDDY_F32, NULL);
        eddy_release(&x);
    }
}

static void shut_down_first(void) {
    (void)compute();
    must(eddy_runtime_shutdown(eddy_runtime_current(), EDDY_FOREVER));
}

static void trace_once(void) {
    (void)compute();
    must(eddy_trace_stop(EDDY_FOREVER));
    eddy_runtime *second = eddy_runtime_create(NULL);
    must(eddy_runtime_use(second));
    (void)compute();
    must(eddy_runtime_use(NULL));
    eddy_runtime_release(&second);
}

static void trace_and_fork(void) {
    (void)compute();
    await_safe_fork();
    pid_t child = fork();
    if (child == 0) {
        (void)compute();
        exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        _exit(1);
    (void)compute();
}

/* The first runtime that names a trace begins it; a later one, or a forked child's, does not empty the file. */
Test(trace_file, a_variable_starts_one_trace_of_one_process) {
    json_t *events = of_child(trace_once);
    cr_assert_eq(events_count(events, "X", "kernel", "matmul"), ROUNDS);
    json_decref(events);
    events = of_child(trace_and_fork);
    cr_assert_eq(events_count(events, "X", "kernel", "matmul"), 2 * ROUNDS);
    cr_assert_eq(events_count(events, "i", "trace", "end"), 1);
    json_decref(events);
}

/* What was issued is there, as exit lets it run. */
Test(trace_file, a_variable_starts_it_and_exit_ends_it) {
    json_t *events = of_child(leave_at_once);
    cr_assert_eq(events_count(events, "X", "kernel", "ones"), 100);
    cr_assert_eq(events_count(events, "X", "kernel", "matmul"), ROUNDS);
    cr_assert_eq(events_count(events, "i", "trace", "end"), 1);
    json_decref(events);
    events = of_child(shut_down_first);
    cr_assert_eq(events_count(events, "X", "kernel", "matmul"), ROUNDS);
    json_decref(events);
}

#endif

static void ask_for_nowhere(void) {
    eddy_error error;
    setenv("EDDY_TRACE", "/nowhere/trace.json", 1);
    cr_assert_null(eddy_runtime_current());
    cr_assert_eq(eddy_error_take(&error), EDDY_IO);
    cr_assert_not_null(strstr(error.message, "/nowhere/trace.json"), "%s", error.message);
    cr_assert_not_null(strstr(error.message, "No such file"), "%s", error.message);
}

Test(trace_file, a_path_that_leads_nowhere_is_said_at_once) {
    ask_for_nowhere();
}
