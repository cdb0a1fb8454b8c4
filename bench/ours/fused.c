/* The rows replay_fused_<ops>_<elements>: a chain of cheap elementwise ops as a program. Passes may turn it into one loop over its elements; the same
 * program without passes (EDDY_PASSES=none) reads and writes memory for each op.
 *
 *     fused replay_fused_10_704512 [samples]     us that a run of ten ops on 704,512 floats takes, replayed
 *     fused calls_fused_10_704512 [samples]      the same by calls */
#include <bench/ours/bits.h>
#include <bench/ours/path.h>
#include <bench/sample.h>
#include <eddy/eddy.h>

#define SAMPLE_NS 2e7

typedef struct chain {
    int ops;
    eddy_tensor *x, *other;
    eddy_program *program; /* NULL: the chain is called */
} chain;

static eddy_tensor *op(const chain *c, int i, eddy_tensor *x) {
    switch (i % 5) {
    case 0:
        return eddy_mul_s(x, EDDY_S(0.75));
    case 1:
        return eddy_add(x, c->other);
    case 2:
        return eddy_relu(x);
    case 3:
        return eddy_sub(x, c->other);
    default:
        return eddy_abs(x);
    }
}

static eddy_tensor *call(const chain *c) {
    eddy_tensor *x = eddy_retain(c->x);
    for (int i = 0; i < c->ops; i++) {
        eddy_tensor *next = must_tensor(op(c, i, x));
        eddy_release(&x);
        x = next;
    }
    return x;
}

static eddy_tensor *run(const chain *c) {
    eddy_tensor *last;
    if (!c->program)
        return call(c);
    must(eddy_program_run(c->program, EDDY_LIST(c->x), &last));
    return last;
}

static eddy_tensor *random_tensor(int64_t count, uint32_t *random) {
    float *values = bench_random_floats(random, (size_t)count);
    eddy_tensor *tensor = must_tensor(eddy_from_data(values, EDDY_SHAPE(count), EDDY_F32, NULL));
    free(values);
    return tensor;
}

/* Ends the program if a run has other bits than the calls that were recorded. */
static void record(chain *c) {
    must(eddy_record_begin(NULL));
    eddy_tensor *called = call(c);
    c->program = eddy_record_end(
        EDDY_BINDINGS({"x", c->x, EDDY_ROLE_INPUT}, {"last", called, EDDY_ROLE_OUTPUT}));
    if (!c->program)
        must_fail();
    eddy_tensor *replayed = run(c);
    if (!bits_are_equal(called, replayed)) {
        fprintf(stderr, "fused: the replay and the calls have other bits\n");
        exit(1);
    }
    eddy_release(&called);
    eddy_release(&replayed);
}

static double ns_per_run(const chain *c, int runs) {
    double began = bench_now_ns();
    for (int i = 0; i < runs; i++) {
        eddy_tensor *last = run(c);
        must(eddy_wait(last, EDDY_FOREVER));
        eddy_release(&last);
    }
    return (bench_now_ns() - began) / runs;
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2);
    long long elements = 0;
    chain c = {.ops = 0};
    bool is_replay = sscanf(row, "replay_fused_%d_%lld", &c.ops, &elements) == 2;
    if ((!is_replay && sscanf(row, "calls_fused_%d_%lld", &c.ops, &elements) != 2) || c.ops < 1 ||
        elements < 1) {
        fprintf(stderr, "fused: no such row: %s\n", row);
        return 2;
    }
    uint32_t random = 1;
    c.x = random_tensor(elements, &random);
    c.other = random_tensor(elements, &random);
    if (is_replay)
        record(&c);
    int runs = 1 + (int)(SAMPLE_NS / ns_per_run(&c, 3));
    bench_samples samples = {.count = 0};
    path_counts before = path_now();
    for (int i = 0; i < count; i++)
        bench_samples_push(&samples, ns_per_run(&c, runs) / 1e3);
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    eddy_program_release(&c.program);
    eddy_release(&c.x);
    eddy_release(&c.other);
    bench_print_row(row, "us", eddy_version_text(), path, &samples);
    return 0;
}
