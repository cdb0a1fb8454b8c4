/* The rows replay_growing_*: recorded functions at sizes that are new to them, in us a size.
 *
 *     growing replay_growing_decode     a token of a sequence that grows by one: all sizes up to the largest follow, and share a plan (most_size)
 *     growing replay_growing_gru        the same for a step of training whose batch grows by one
 *     growing exact_growing_decode      each size is foretold and built in full (foretells_shapes alone)
 *     growing calls_growing_decode      calls */
#include <bench/ours/decoder.h>
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <bench/ours/trainee.h>
#include <bench/programs.h>
#include <bench/sample.h>
#include <bench/shapes.h>
#include <eddy/eddy.h>
#include <string.h>

#define LARGEST 64
#define FIRST_NEW 4 /* smaller ones, and the largest, are recorded before */

typedef struct growing {
    transformer model;
    trainee net;
    int calls;
} growing;

/* ---- what grows ---- */

static void decode_init(growing *g) {
    decoder_init(&g->model);
}

static eddy_list decode_inputs(growing *g, int64_t size, eddy_tensor **inputs) {
    (void)g;
    inputs[0] = decoder_numbers(1, size);
    return (eddy_list){inputs, 1};
}

/* The number that follows those of its input. */
static eddy_status decode_step(void *context, eddy_recorded_call *call) {
    growing *g = context;
    eddy_scope *scope = eddy_scope_begin();
    g->calls++;
    eddy_no_grad_begin();
    eddy_tensor *logits = transformer_logits(&g->model, call->inputs.items[0]);
    eddy_tensor *last = eddy_select(eddy_select(logits, 0, 0), 0, -1);
    call->outputs[0] = must_tensor(eddy_scope_return(scope, eddy_argmax(last, EDDY_AXES(0), NULL)));
    eddy_no_grad_end();
    eddy_scope_end(scope);
    return EDDY_OK;
}

static void gru_init(growing *g) {
    g->net.random = 1;
    trainee_add(&g->net, EDDY_SHAPE(3 * BENCH_GRU_HIDDEN, BENCH_GRU_INPUTS));
    trainee_add(&g->net, EDDY_SHAPE(3 * BENCH_GRU_HIDDEN, BENCH_GRU_HIDDEN));
    trainee_add(&g->net, EDDY_SHAPE(BENCH_MLP_CLASSES, BENCH_GRU_HIDDEN));
}

static eddy_list gru_inputs(growing *g, int64_t size, eddy_tensor **inputs) {
    uint32_t random = 1;
    inputs[0] = trainee_floats(&g->net, EDDY_SHAPE(BENCH_GRU_STEPS, size, BENCH_GRU_INPUTS), 1);
    inputs[1] = decoder_integers(size, BENCH_MLP_CLASSES, &random);
    return (eddy_list){inputs, 2};
}

static eddy_tensor *part(eddy_tensor *gates, int64_t which) {
    return eddy_slice(gates, 1, which * BENCH_GRU_HIDDEN, (which + 1) * BENCH_GRU_HIDDEN, 1);
}

static eddy_status gru_step(void *context, eddy_recorded_call *call) {
    growing *g = context;
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor **p = g->net.parameters, *x = call->inputs.items[0];
    eddy_tensor *h = eddy_zeros(EDDY_SHAPE(eddy_dim_of(x, 1), BENCH_GRU_HIDDEN), EDDY_F32, NULL);
    g->calls++;
    for (int64_t t = 0; t < BENCH_GRU_STEPS; t++) {
        eddy_tensor *from_x = eddy_linear(eddy_select(x, 0, t), p[0], EDDY_NONE),
                    *from_h = eddy_linear(h, p[1], EDDY_NONE);
        eddy_tensor *reset = eddy_sigmoid(eddy_add(part(from_x, 0), part(from_h, 0)));
        eddy_tensor *update = eddy_sigmoid(eddy_add(part(from_x, 1), part(from_h, 1)));
        eddy_tensor *fresh = eddy_tanh(eddy_add(part(from_x, 2), eddy_mul(reset, part(from_h, 2))));
        h = eddy_add(fresh, eddy_mul(update, eddy_sub(h, fresh)));
    }
    eddy_tensor *loss = must_tensor(
        eddy_cross_entropy(eddy_linear(h, p[2], EDDY_NONE), call->inputs.items[1], NULL));
    trainee_learn(&g->net, loss);
    call->outputs[0] = must_tensor(eddy_scope_return(scope, eddy_detach(loss)));
    eddy_scope_end(scope);
    return EDDY_OK;
}

static const struct {
    const char *name;
    void (*init)(growing *g);
    eddy_list (*inputs)(growing *g, int64_t size, eddy_tensor **inputs);
    eddy_recorded_body *step;
} programs[] = {{"decode", decode_init, decode_inputs, decode_step},
                {"gru", gru_init, gru_inputs, gru_step}};

#define PROGRAMS (sizeof(programs) / sizeof(*programs))

/* ---- one size after the other ---- */

/* ns; recorded: NULL for calls. */
static double run_size(growing *g, size_t at, eddy_recorded *recorded, int64_t size) {
    eddy_tensor *inputs[2], *result;
    eddy_list list = programs[at].inputs(g, size, inputs);
    eddy_recorded_call call = {.inputs = list, .outputs = &result, .output_count = 1};
    must(eddy_sync(EDDY_FOREVER));
    double began = bench_now_ns();
    must(recorded ? eddy_recorded_run(recorded, list, (eddy_scalars){0}, &result)
                  : programs[at].step(g, &call));
    must(eddy_wait(result, EDDY_FOREVER));
    must(eddy_sync(EDDY_FOREVER));
    double spent = bench_now_ns() - began;
    eddy_release(&result);
    for (int64_t i = 0; i < list.count; i++)
        eddy_release(&inputs[i]);
    return spent;
}

/* A function that knows all sizes, and has seen none but those that it was taught with. most: 0 for exact programs. */
static eddy_recorded *taught(growing *g, size_t at, int64_t most) {
    static const int64_t sizes[] = {2, 2, LARGEST, LARGEST, 3};
    eddy_recorded *recorded = eddy_recorded_create(
        programs[at].step, g, 1,
        EDDY_OPTIONS(recorded, .is_strict = true, .foretells_shapes = true, .most_size = most));
    if (!recorded)
        must_fail();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        (void)run_size(g, at, recorded, sizes[i]);
    return recorded;
}

/* us a size. */
static double sample_of(growing *g, size_t at, bool is_recorded, int64_t most) {
    eddy_recorded *recorded = is_recorded ? taught(g, at, most) : NULL;
    double spent = 0;
    int before = g->calls;
    for (int64_t size = FIRST_NEW; size < LARGEST; size++)
        spent += run_size(g, at, recorded, size);
    if (recorded && g->calls > before) {
        fprintf(stderr, "growing: the function ran %d times\n", g->calls - before);
        exit(1);
    }
    eddy_recorded_release(&recorded);
    (void)eddy_trim(); /* programs that were built are kept for others */
    return spent / (LARGEST - FIRST_NEW) / 1e3;
}

/* The program of a row with that prefix. */
static bool find(const char *row, const char *prefix, size_t *at) {
    size_t length = strlen(prefix);
    if (strncmp(row, prefix, length) != 0)
        return false;
    for (*at = 0; *at < PROGRAMS; ++*at)
        if (strcmp(row + length, programs[*at].name) == 0)
            return true;
    return false;
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2);
    size_t at;
    bool is_shared = find(row, "replay_growing_", &at),
         is_exact = !is_shared && find(row, "exact_growing_", &at);
    if (!is_shared && !is_exact && !find(row, "calls_growing_", &at)) {
        fprintf(stderr, "growing: no such row: %s\n", row);
        return 2;
    }
    growing g = {.calls = 0};
    must(eddy_seed(1));
    programs[at].init(&g);
    bench_samples samples = {.count = 0};
    path_counts before = path_now();
    for (int i = -1; i < count; i++) {
        double value = sample_of(&g, at, is_shared || is_exact, is_shared ? LARGEST : 0);
        if (i >= 0)
            bench_samples_push(&samples, value);
    }
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    trainee_fini(&g.net);
    transformer_fini(&g.model);
    bench_print_row(row, "us", eddy_version_text(), path, &samples);
    return 0;
}
