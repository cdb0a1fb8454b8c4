/* The observe_* rows: what an event (base/trace.h) costs where somebody listens: what an add of 16 floats takes more, over its events.
 *
 *     observe_listener       a listener that does nothing
 *     observe_nvtx_listener  a tool that does nothing (nvtx_nothing.c), by way of NVTX */
#include "must.h"
#include <base/trace.h>
#include <bench/sample.h>
#include <eddy/eddy.h>
#include <stdlib.h>
#include <string.h>

#define CALLS 20000

static eddy_tensor *x;

/* Nanoseconds of an add. */
static double add_ns(void) {
    double began = bench_now_ns();
    for (int i = 0; i < CALLS; i++) {
        eddy_tensor *y = eddy_add(x, x);
        eddy_release(&y);
    }
    must(eddy_sync(EDDY_FOREVER));
    return (bench_now_ns() - began) / CALLS;
}

static long heard;

static void count_event(void *context, const eddy_trace_event *event) {
    (void)context;
    (void)event;
    heard++;
}

static void hear_nothing(void *context, const eddy_trace_event *event) {
    (void)context;
    (void)event;
}

static uint32_t listen_by(void (*hear)(void *context, const eddy_trace_event *event)) {
    uint32_t place;
    eddy_trace_listener listener = {hear, NULL, EDDY_TRACE_ALL_PHASES};
    must(eddy_trace_add(&listener, &place));
    return place;
}

static double events_of_an_add(void) {
    uint32_t place = listen_by(count_event);
    heard = 0;
    (void)add_ns();
    eddy_trace_remove(place);
    return (double)heard / CALLS;
}

/* NVTX asks once: a tool is there from now on. */
static void inject_tool(void) {
    setenv("NVTX_INJECTION64_PATH", NVTX_NOTHING, 1);
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    must(runtime ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    eddy_runtime_release(&runtime);
}

static double least_unheard(int count) {
    double least = add_ns();
    for (int i = 0; i < count; i++) {
        double ns = add_ns();
        least = ns < least ? ns : least;
    }
    return least;
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    bool is_nvtx = strcmp(row, "observe_nvtx_listener") == 0;
    int count = bench_sample_count(argc, argv, 2);
    bench_samples samples = {.count = 0};
    if (!is_nvtx && strcmp(row, "observe_listener") != 0) {
        fprintf(stderr, "observed: no such row\n");
        return 2;
    }
    if (is_nvtx && !*NVTX_NOTHING) {
        fprintf(stderr, "observed: this build has no NVTX\n");
        return 3;
    }
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_one_thread = true));
    must(runtime ? eddy_runtime_use(runtime) : EDDY_INVALID_ARGUMENT);
    x = eddy_ones(EDDY_SHAPE(16), EDDY_F32, NULL);
    double unheard = least_unheard(count), events = events_of_an_add();
    if (is_nvtx)
        inject_tool();
    else
        (void)listen_by(hear_nothing);
    (void)add_ns();
    for (int i = 0; i < count; i++)
        bench_samples_push(&samples, (add_ns() - unheard) / events);
    bench_print_row(row, "ns", eddy_version_text(), "caller", &samples);
    return eddy_error_take(NULL) != EDDY_OK;
}
