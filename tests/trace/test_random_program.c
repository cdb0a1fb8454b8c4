/* Random programs of calls, traced: what they depend on has ended when they begin, as the calls alone say; and sums over the trace are what is counted (EDDY_TIMES). */
#include <bench/sample.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tests/trace/events.h>
#include <unistd.h>

#define TENSORS 6
#define CALLS 120
#define STREAMS 3
#define SEEDS 12
#define SIDE 48

static void must(eddy_status status) {
    eddy_error error = {0};
    if (status != EDDY_OK)
        (void)eddy_error_take(&error);
    cr_assert_eq(status, EDDY_OK, "%s", error.message);
}

/* ---- the program ---- */

/* What has touched a tensor since it was written: calls by their index, -1 for none. */
typedef struct touched {
    eddy_tensor *tensor;
    int writer;
    bool readers[CALLS];
} touched;

typedef struct random_program {
    uint32_t state;
    touched tensors[TENSORS];
    eddy_stream *streams[STREAMS];   /* the first is the default one */
    bool must_precede[CALLS][CALLS]; /* [before][after] */
} random_program;

static uint32_t draw(random_program *p, uint32_t count) {
    return (bench_random(&p->state) >> 8) % count;
}

static void read_by(random_program *p, int call, touched *t) {
    if (t->writer >= 0)
        p->must_precede[t->writer][call] = true;
    t->readers[call] = true;
}

/* All of it, in place. */
static void written_by(random_program *p, int call, touched *t) {
    for (int c = 0; c < call; c++)
        if (t->readers[c] || c == t->writer)
            p->must_precede[c][call] = true;
    memset(t->readers, 0, sizeof(t->readers));
    t->writer = call;
}

static void replace(touched *t, int call, eddy_tensor *made) {
    cr_assert_not_null(made);
    eddy_release(&t->tensor);
    memset(t, 0, sizeof(*t));
    t->tensor = made;
    t->writer = call;
}

static void make_call(random_program *p, int call) {
    touched *a = &p->tensors[draw(p, TENSORS)], *b = &p->tensors[draw(p, TENSORS)],
            *to = &p->tensors[draw(p, TENSORS)];
    must(eddy_stream_scope_begin(p->streams[draw(p, STREAMS)]));
    switch (draw(p, 4)) {
    case 0:
        read_by(p, call, a);
        read_by(p, call, b);
        replace(to, call, eddy_add(a->tensor, b->tensor));
        break;
    case 1:
        read_by(p, call, a);
        replace(to, call, eddy_tanh(a->tensor));
        break;
    case 2:
        read_by(p, call, a);
        read_by(p, call, b);
        replace(to, call, eddy_matmul(a->tensor, b->tensor));
        break;
    default:
        if (a == b)
            b = &p->tensors[(b - p->tensors + 1) % TENSORS];
        read_by(p, call, b);
        written_by(p, call, a);
        must(eddy_add_inplace(a->tensor, b->tensor));
    }
    eddy_stream_scope_end();
}

static void begin_program(random_program *p, uint32_t seed) {
    *p = (random_program){.state = seed};
    for (int t = 0; t < TENSORS; t++) {
        p->tensors[t] = (touched){
            .tensor = eddy_full(EDDY_SHAPE(SIDE, SIDE), EDDY_S(0.01 * (t + 1)), EDDY_F32, NULL),
            .writer = -1};
        must(eddy_wait(p->tensors[t].tensor, EDDY_FOREVER));
    }
    for (int s = 1; s < STREAMS; s++)
        p->streams[s] = eddy_stream_create(EDDY_CPU, EDDY_OPTIONS(stream, .is_ordered = true));
}

static void end_program(random_program *p) {
    for (int t = 0; t < TENSORS; t++)
        eddy_release(&p->tensors[t].tensor);
    for (int s = 1; s < STREAMS; s++)
        eddy_stream_release(&p->streams[s]);
    must(eddy_sync(EDDY_FOREVER));
}

/* ---- what the trace says ---- */

/* In nanoseconds. */
typedef struct span {
    int64_t n, begin, end;
} span;

static span span_of(const json_t *event) {
    int64_t begin = (int64_t)(event_number(event, "ts") * 1000 + 0.5);
    return (span){event_arg(event, "n"), begin,
                  begin + (int64_t)(event_number(event, "dur") * 1000 + 0.5)};
}

static bool is_of(const json_t *event, const char *category) {
    return strcmp(event_text(event, "ph"), "X") == 0 &&
           strcmp(event_text(event, "cat"), category) == 0;
}

static int by_begin(const void *a, const void *b) {
    const span *left = a, *right = b;
    return left->begin < right->begin ? -1 : left->begin > right->begin;
}

/* The kernel of each call: calls are issued one after the other. */
static void find_kernels(const json_t *events, span kernels[CALLS]) {
    static span all[TENSORS + CALLS];
    const span *issued = all + TENSORS; /* behind those that make the tensors */
    int count = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (is_of(event, "issue")) {
            cr_assert_lt(count, TENSORS + CALLS);
            all[count++] = span_of(event);
        }
    }
    cr_assert_eq(count, TENSORS + CALLS);
    qsort(all, TENSORS + CALLS, sizeof(*all), by_begin);
    for (int c = 0; c < CALLS; c++)
        kernels[c] = (span){.n = 0};
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (!is_of(event, "kernel"))
            continue;
        span kernel = span_of(event);
        for (int c = 0; c < CALLS; c++)
            if (issued[c].n == kernel.n)
                kernels[c] = kernel;
    }
    for (int c = 0; c < CALLS; c++) {
        cr_assert_gt(kernels[c].n, 0, "call %d has no kernel", c);
        cr_assert_geq(kernels[c].begin, issued[c].begin);
    }
}

static void check_order(const random_program *p, const json_t *events) {
    span kernels[CALLS];
    int pairs = 0;
    find_kernels(events, kernels);
    for (int before = 0; before < CALLS; before++)
        for (int after = before + 1; after < CALLS; after++) {
            if (!p->must_precede[before][after])
                continue;
            pairs++;
            cr_assert_leq(kernels[before].end, kernels[after].begin,
                          "call %d ends after call %d begins", before, after);
        }
    cr_assert_gt(pairs, CALLS);
}

static void check_sums(const json_t *events, const eddy_counters *before,
                       const eddy_counters *after) {
#define EDDY_COUNTER_ROW(name)                                                                     \
    cr_assert_eq((int64_t)events_count(events, "X", #name, NULL),                                  \
                 after->name##_count - before->name##_count, #name ": %lld, and %lld are counted", \
                 (long long)events_count(events, "X", #name, NULL),                                \
                 (long long)(after->name##_count - before->name##_count));
    EDDY_TIMED_PHASE_LIST(EDDY_COUNTER_ROW)
#undef EDDY_COUNTER_ROW
}

/* ---- the tests ---- */

static eddy_runtime *use_new(eddy_runtime_options options) {
    options.size = sizeof(options);
    options.threads = 2;
    options.takes_times = true;
    eddy_runtime *runtime = eddy_runtime_create(&options);
    must(eddy_runtime_use(runtime));
    return runtime;
}

/* What all runtimes have counted. */
static eddy_counters counted_by(eddy_runtime *observer) {
    eddy_counters counters = {.size = sizeof(counters)};
    must(eddy_runtime_use(observer));
    must(eddy_counters_read(&counters));
    return counters;
}

/* In a runtime of its own, whose threads have ended before anything is counted. */
static void run_traced(uint32_t seed, const eddy_runtime_options *options, eddy_runtime *observer) {
    static random_program p;
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy_random_%d.json", (int)getpid());
    eddy_counters before = counted_by(observer);
    eddy_runtime *runtime = use_new(*options);
    must(eddy_trace_start(path, NULL));
    begin_program(&p, seed);
    for (int call = 0; call < CALLS; call++)
        make_call(&p, call);
    end_program(&p);
    must(eddy_runtime_use(observer));
    eddy_runtime_release(&runtime);
    must(eddy_trace_stop(EDDY_FOREVER));
    eddy_counters after = counted_by(observer);
    json_t *events = events_read(path);
    unlink(path);
    events_must_fit(events);
    cr_assert_eq(event_arg(events_find(events, "i", "trace", "end"), "dropped"), 0);
    check_order(&p, events);
    check_sums(events, &before, &after);
    json_decref(events);
}

static void run_all(eddy_runtime_options options) {
    eddy_runtime *observer = use_new((eddy_runtime_options){.uses_one_thread = true});
    for (uint32_t seed = 1; seed <= SEEDS; seed++)
        run_traced(seed, &options, observer);
    must(eddy_runtime_use(NULL));
    eddy_runtime_release(&observer);
}

Test(random_program, runs_in_order_on_the_caller) {
    run_all((eddy_runtime_options){0});
}

Test(random_program, runs_in_order_on_the_scheduler) {
    run_all((eddy_runtime_options){.uses_full_path = true});
}

Test(random_program, runs_in_order_on_workers) {
    run_all((eddy_runtime_options){.uses_worker_path = true});
}

Test(random_program, runs_in_order_on_one_thread) {
    run_all((eddy_runtime_options){.uses_one_thread = true});
}
