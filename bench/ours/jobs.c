/* The row replay_jobs: instructions of two programs in a row, an op on 16 floats each, the second on what the first one has computed.
 *
 *     jobs count_replay_jobs N       one program, of both runs in one recording; makes N runs and prints nothing: for callgrind
 *     jobs count_jobs_runs N         a run of each
 *     jobs count_jobs_named N        a run by name of each
 *     jobs count_jobs_stored N       the same, handed on through a store */
#include "must.h"
#include <eddy/eddy.h>
#include <stdlib.h>
#include <string.h>

static eddy_tensor *input;
static eddy_program *first, *second, *both;
static eddy_tensor_store *store;

static eddy_program *must_program(eddy_program *program) {
    if (!program)
        must_fail();
    return program;
}

static eddy_program *record(const char *in, const char *out) {
    eddy_tensor *x = must_tensor(eddy_ones(EDDY_SHAPE(16), EDDY_F32, NULL)), *y;
    must(eddy_record_begin(NULL));
    y = must_tensor(eddy_add(x, input));
    return must_program(
        eddy_record_end(EDDY_BINDINGS({in, x, EDDY_ROLE_INPUT}, {out, y, EDDY_ROLE_OUTPUT})));
}

static eddy_program *record_both(void) {
    eddy_tensor *x = must_tensor(eddy_ones(EDDY_SHAPE(16), EDDY_F32, NULL)), *h, *y;
    must(eddy_record_begin(NULL));
    must(eddy_program_run(first, EDDY_LIST(x), &h));
    must(eddy_program_run(second, EDDY_LIST(h), &y));
    return must_program(
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT})));
}

static void run_both(void) {
    eddy_tensor *y;
    must(eddy_program_run(both, EDDY_LIST(input), &y));
    eddy_release(&y);
}

static void run_each(void) {
    eddy_tensor *h, *y;
    must(eddy_program_run(first, EDDY_LIST(input), &h));
    must(eddy_program_run(second, EDDY_LIST(h), &y));
    eddy_release(&h);
    eddy_release(&y);
}

static void run_named(void) {
    eddy_tensor *h, *y;
    must(eddy_program_run_named(first, EDDY_FEEDS({"x", input}), EDDY_FETCHES({"h", &h}), NULL));
    must(eddy_program_run_named(second, EDDY_FEEDS({"h", h}), EDDY_FETCHES({"y", &y}), NULL));
    eddy_release(&h);
    eddy_release(&y);
}

static void run_stored(void) {
    eddy_tensor *y;
    must(eddy_program_run_named(first, EDDY_FEEDS({"x", input}), (eddy_fetches){0},
                                EDDY_OPTIONS(program_run_named, .output_store = store)));
    must(eddy_program_run_named(second, (eddy_feeds){0}, EDDY_FETCHES({"y", &y}),
                                EDDY_OPTIONS(program_run_named, .defaults = store)));
    eddy_release(&y);
}

static const struct {
    const char *row;
    void (*run)(void);
} rows[] = {{"count_replay_jobs", run_both},
            {"count_jobs_runs", run_each},
            {"count_jobs_named", run_named},
            {"count_jobs_stored", run_stored}};

int main(int argc, char **argv) {
    const char *row_name = argc > 1 ? argv[1] : "";
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_one_thread = true));
    must(runtime ? eddy_runtime_use(runtime) : EDDY_OUT_OF_MEMORY);
    eddy_scope *scope = eddy_scope_begin();
    input = must_tensor(eddy_ones(EDDY_SHAPE(16), EDDY_F32, NULL));
    store = eddy_tensor_store_create(NULL);
    first = record("x", "h");
    second = record("h", "y");
    both = record_both();
    must(eddy_sync(EDDY_FOREVER));
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        if (strcmp(rows[r].row, row_name) != 0)
            continue;
        eddy_scope *inner = eddy_scope_begin();
        for (int i = argc > 2 ? atoi(argv[2]) : 1; i > 0; i--)
            rows[r].run();
        eddy_scope_end(inner);
        must(eddy_sync(EDDY_FOREVER));
        eddy_scope_end(scope);
        return 0;
    }
    fprintf(stderr, "jobs: no such row: %s\n", row_name);
    return 2;
}
