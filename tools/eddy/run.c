/* eddy run */
#include "library_error.h"
#include "memory.h"
#include "program_file.h"
#include "run_feeds.h"
#include "run_report.h"

#include <eddy/file.h>
#include <eddy/runtime.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TIMES_MOST 1000000000

typedef struct run {
    const tool_arguments *arguments;
    eddy_program *program;
    int64_t feed_count, output_count;
    run_feed *feeds;
    eddy_program_binding_info *outputs;
    const char **paths; /* of outputs */
    eddy_tensor **results;
    run_times times;
} run;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- inputs and outputs ---- */

static bool is_input(const eddy_program_binding_info *binding) {
    return binding->role == EDDY_ROLE_INPUT || binding->role == EDDY_ROLE_DONATED;
}

/* The bindings of inputs, or of outputs, in the order of their numbers. */
static eddy_program_binding_info *list(const run *r, bool of_inputs, int64_t *count) {
    eddy_program_info info = {.size = sizeof(info)};
    (void)eddy_program_describe(r->program, &info);
    eddy_program_binding_info *listed = tool_calloc((size_t)info.binding_count, sizeof(*listed));
    *count = 0;
    for (int64_t b = 0; b < info.binding_count; b++) {
        eddy_program_binding_info binding = {.size = sizeof(binding)};
        if (eddy_program_binding_describe(r->program, b, &binding) == EDDY_OK &&
            (of_inputs ? is_input(&binding) : binding.role == EDDY_ROLE_OUTPUT))
            listed[(*count)++] = binding;
    }
    return listed;
}

static bool make_feeds(run *r) {
    int64_t count;
    eddy_program_binding_info *inputs = list(r, true, &count);
    const char **paths = tool_calloc((size_t)count, sizeof(*paths));
    r->feeds = tool_calloc((size_t)count, sizeof(*r->feeds));
    bool is_made = run_paths(r->arguments, "--input", inputs, count, paths);
    for (int64_t i = 0; is_made && i < count; i++) {
        r->feeds[i] = (run_feed){.binding = inputs[i], .path = paths[i]};
        r->feed_count++;
        is_made = run_feed_make(r->arguments, &r->feeds[i]);
    }
    free(inputs);
    free(paths);
    return is_made;
}

static bool list_outputs(run *r) {
    r->outputs = list(r, false, &r->output_count);
    r->paths = tool_calloc((size_t)r->output_count, sizeof(*r->paths));
    r->results = tool_calloc((size_t)r->output_count, sizeof(*r->results));
    return run_paths(r->arguments, "--output", r->outputs, r->output_count, r->paths);
}

static void release_results(run *r) {
    for (int64_t o = 0; r->results && o < r->output_count; o++)
        eddy_release(&r->results[o]);
}

/* ---- runs ---- */

/* What all runs are given, by name: of donated inputs the tensors change. */
typedef struct run_list {
    eddy_feed *feeds;
    eddy_data_feed *data;
    eddy_fetch *fetches;
    int64_t feed_count, data_count;
} run_list;

static bool renew(run *r, run_list *to) {
    to->feed_count = to->data_count = 0;
    for (int64_t i = 0; i < r->feed_count; i++) {
        run_feed *feed = &r->feeds[i];
        const eddy_program_binding_info *binding = &feed->binding;
        if (!run_feed_renew(r->arguments, feed))
            return false;
        if (run_feed_is_data(feed))
            to->data[to->data_count++] = (eddy_data_feed){
                .name = binding->name, feed->data, binding->shape, binding->dtype, NULL};
        else
            to->feeds[to->feed_count++] = (eddy_feed){binding->name, feed->tensor};
    }
    release_results(r);
    return true;
}

static bool run_once(run *r, run_list *to, int64_t number) {
    if (!renew(r, to))
        return false;
    int64_t begin_ns = now_ns();
    eddy_status status =
        eddy_program_run_named(r->program, (eddy_feeds){to->feeds, to->feed_count},
                               (eddy_fetches){to->fetches, r->output_count},
                               EDDY_OPTIONS(program_run_named, .data = {to->data, to->data_count}));
    if (status == EDDY_OK)
        status = eddy_sync(EDDY_FOREVER);
    run_times_add(&r->times, number, now_ns() - begin_ns);
    if (status != EDDY_OK)
        (void)tool_fail_library(r->arguments, NULL);
    return status == EDDY_OK;
}

static bool run_all(run *r, int64_t times) {
    run_list to = {.feeds = tool_calloc((size_t)r->feed_count, sizeof(*to.feeds)),
                   .data = tool_calloc((size_t)r->feed_count, sizeof(*to.data)),
                   .fetches = tool_calloc((size_t)r->output_count, sizeof(*to.fetches))};
    bool is_run = true;
    for (int64_t o = 0; o < r->output_count; o++)
        to.fetches[o] = (eddy_fetch){r->outputs[o].name, &r->results[o]};
    for (int64_t i = 0; is_run && i < times; i++)
        is_run = run_once(r, &to, i);
    free(to.feeds);
    free(to.data);
    free(to.fetches);
    return is_run;
}

static bool save(run *r) {
    for (int64_t o = 0; o < r->output_count; o++)
        if (r->paths[o] && eddy_npy_save(r->results[o], r->paths[o], NULL) != EDDY_OK) {
            (void)tool_fail_library(r->arguments, r->outputs[o].name);
            return false;
        }
    return true;
}

/* ---- the command ---- */

static void fini(run *r) {
    for (int64_t i = 0; i < r->feed_count; i++)
        run_feed_free(&r->feeds[i]);
    free(r->feeds);
    release_results(r);
    free(r->results);
    free(r->outputs);
    free(r->paths);
    eddy_program_release(&r->program);
}

int tool_run(const tool_arguments *arguments) {
    run r = {.arguments = arguments};
    int64_t times = 1, seed = -1;
    if (!tool_integer(arguments, "--times", 1, TIMES_MOST, &times) ||
        !tool_integer(arguments, "--seed", 0, INT64_MAX, &seed))
        return TOOL_USAGE;
    int64_t begin_ns = now_ns();
    r.program = program_file_load(arguments);
    if (!r.program)
        return TOOL_FAILED;
    r.times.load_ns = now_ns() - begin_ns;
    if (seed >= 0)
        (void)eddy_seed((uint64_t)seed);
    bool is_done = list_outputs(&r) && make_feeds(&r) && run_all(&r, times) && save(&r);
    if (is_done)
        is_done = run_report(arguments, r.program, &r.times, r.outputs, r.results, r.output_count);
    fini(&r);
    return is_done ? TOOL_OK : TOOL_FAILED;
}
