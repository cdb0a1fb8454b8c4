/* The rows replay_<softmax | layer_norm>_<rows>_<columns>: the formula of single ops as a program, whose reductions of rows run tile by tile with the
 * rest of it; the op of that name is the same in one kernel.
 *
 *     row_formulas replay_softmax_64_1000 [samples]     us that a run takes
 *     row_formulas calls_softmax_64_1000 [samples]      the same by calls of the single ops
 *     row_formulas kernel_softmax_64_1000 [samples]     the op */
#include <bench/ours/bits.h>
#include <bench/ours/path.h>
#include <bench/sample.h>
#include <eddy/eddy.h>
#include <string.h>

#define SAMPLE_NS 2e7

typedef eddy_tensor *formula(eddy_tensor *x);

static eddy_tensor *softmax(eddy_tensor *x) {
    eddy_tensor *most = eddy_max(x, EDDY_AXES(1), EDDY_OPTIONS(max, .keeps_dims = true)),
                *powers = eddy_exp(eddy_sub(x, most));
    return eddy_div(powers, eddy_sum(powers, EDDY_AXES(1), EDDY_OPTIONS(sum, .keeps_dims = true)));
}

static eddy_tensor *softmax_op(eddy_tensor *x) {
    return eddy_softmax(x, 1);
}

static eddy_tensor *layer_norm(eddy_tensor *x) {
    eddy_tensor *apart =
        eddy_sub(x, eddy_mean(x, EDDY_AXES(1), EDDY_OPTIONS(mean, .keeps_dims = true)));
    eddy_tensor *variance =
        eddy_mean(eddy_square(apart), EDDY_AXES(1), EDDY_OPTIONS(mean, .keeps_dims = true));
    return eddy_mul(apart, eddy_rsqrt(eddy_add_s(variance, EDDY_S(1e-5))));
}

static eddy_tensor *layer_norm_op(eddy_tensor *x) {
    return eddy_layer_norm(x, EDDY_NONE, EDDY_NONE, 1, NULL);
}

static const struct {
    const char *name;
    formula *calls, *op;
} formulas[] = {{"softmax", softmax, softmax_op}, {"layer_norm", layer_norm, layer_norm_op}};

typedef struct row {
    formula *compute; /* NULL: the program runs */
    eddy_tensor *x;
    eddy_program *program;
} row;

static eddy_tensor *run(const row *r) {
    eddy_tensor *result;
    if (r->compute)
        return must_tensor(r->compute(r->x));
    must(eddy_program_run(r->program, EDDY_LIST(r->x), &result));
    return result;
}

/* Ends the program if a run has other bits than the calls that were recorded. */
static void record(row *r, formula *calls) {
    must(eddy_record_begin(NULL));
    eddy_tensor *called = must_tensor(calls(r->x)), *replayed;
    r->program = eddy_record_end(
        EDDY_BINDINGS({"x", r->x, EDDY_ROLE_INPUT}, {"result", called, EDDY_ROLE_OUTPUT}));
    if (!r->program)
        must_fail();
    must(eddy_program_run(r->program, EDDY_LIST(r->x), &replayed));
    if (!bits_are_equal(called, replayed)) {
        fprintf(stderr, "row_formulas: the replay and the calls have other bits\n");
        exit(1);
    }
}

static double ns_per_run(const row *r, int runs) {
    double began = bench_now_ns();
    for (int i = 0; i < runs; i++) {
        eddy_scope *scope = eddy_scope_begin();
        must(eddy_wait(run(r), EDDY_FOREVER));
        eddy_scope_end(scope);
    }
    return (bench_now_ns() - began) / runs;
}

/* The program, the calls or the op that the row names; false if it names none. */
static bool find(const char *name, row *r, long long *rows, long long *columns) {
    static const char *const ways[] = {"replay", "calls", "kernel"};
    for (int way = 0; way < 3; way++)
        for (size_t i = 0; i < sizeof(formulas) / sizeof(formulas[0]); i++) {
            char format[64];
            snprintf(format, sizeof(format), "%s_%s_%%lld_%%lld", ways[way], formulas[i].name);
            if (sscanf(name, format, rows, columns) != 2 || *rows < 1 || *columns < 1)
                continue;
            uint32_t random = 1;
            float *values = bench_random_floats(&random, (size_t)(*rows * *columns));
            r->x = must_tensor(eddy_from_data(values, EDDY_SHAPE(*rows, *columns), EDDY_F32, NULL));
            free(values);
            r->compute = way == 1 ? formulas[i].calls : way == 2 ? formulas[i].op : NULL;
            if (way == 0)
                record(r, formulas[i].calls);
            return true;
        }
    return false;
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2);
    long long rows = 0, columns = 0;
    row r = {0};
    eddy_scope *scope = eddy_scope_begin();
    if (!find(name, &r, &rows, &columns)) {
        fprintf(stderr, "row_formulas: no such row: %s\n", name);
        return 2;
    }
    int runs = 1 + (int)(SAMPLE_NS / ns_per_run(&r, 3));
    bench_samples samples = {.count = 0};
    path_counts before = path_now();
    for (int i = 0; i < count; i++)
        bench_samples_push(&samples, ns_per_run(&r, runs) / 1e3);
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    eddy_program_release(&r.program);
    eddy_scope_end(scope);
    bench_print_row(name, "us", eddy_version_text(), path, &samples);
    return 0;
}
