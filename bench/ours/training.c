/* The rows cnn_* and transformer_*, and with replay_ before them for the step as a recorded function: a training step of the examples'
 * networks (examples/network.h, examples/transformer.h), with gradients by the tape. Each sample waits for the loss once. */
#include <bench/ours/decoder.h>
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <bench/sample.h>
#include <bench/shapes.h>
#include <examples/network.h>
#include <math.h>

typedef struct training {
    network cnn;
    transformer decoder;
    bool is_cnn;
    eddy_tensor *inputs, *labels; /* labels: used by the cnn only */
    eddy_recorded *recorded;      /* or NULL */
} training;

static void make_cnn(training *t, int rows) {
    uint32_t random = 1;
    if (!network_init(&t->cnn, NETWORK_CNN, EDDY_F32))
        must_fail();
    eddy_tensor *pixels = decoder_integers((int64_t)rows * NETWORK_INPUTS, 256, &random);
    eddy_tensor *narrow = must_tensor(eddy_cast(pixels, EDDY_U8));
    t->inputs = must_tensor(eddy_reshape(narrow, EDDY_SHAPE(rows, NETWORK_INPUTS)));
    t->labels = decoder_integers(rows, NETWORK_CLASSES, &random);
    eddy_release(&narrow);
    eddy_release(&pixels);
}

static void make_transformer(training *t, int rows) {
    decoder_init(&t->decoder);
    t->inputs = decoder_numbers(rows, BENCH_TRANSFORMER_SEQUENCE + 1);
}

static eddy_status run_step(void *context, eddy_recorded_call *call) {
    training *t = context;
    eddy_tensor *const *inputs = call->inputs.items;
    call->outputs[0] =
        must_tensor(t->is_cnn ? network_train(&t->cnn, inputs[0], inputs[1], call->scalars[0])
                              : transformer_train(&t->decoder, inputs[0], call->scalars[0]));
    return EDDY_OK;
}

static eddy_tensor *step(training *t) {
    eddy_list inputs = {(eddy_tensor *[]){t->inputs, t->labels}, t->is_cnn ? 2 : 1};
    eddy_scalars rate = EDDY_SCALARS(EDDY_S(BENCH_ADAM_RATE));
    eddy_tensor *loss;
    if (t->recorded) {
        must(eddy_recorded_run(t->recorded, inputs, rate, &loss));
    } else {
        eddy_recorded_call call = {.inputs = inputs, .scalars = rate.items, .outputs = &loss};
        must(run_step(t, &call));
    }
    return loss;
}

static double sample(training *t, int steps) {
    double began = bench_now_ns(), value = 0;
    eddy_tensor *loss = NULL;
    for (int s = 0; s < steps; s++) {
        eddy_release(&loss);
        loss = step(t);
    }
    must(eddy_read_f64(loss, &value, NULL));
    must(eddy_sync(EDDY_FOREVER));
    eddy_release(&loss);
    if (!isfinite(value)) {
        fprintf(stderr, "training: the loss is not finite\n");
        exit(1);
    }
    return (bench_now_ns() - began) / steps;
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "", *step_name = row;
    bool is_replayed = strncmp(row, "replay_", 7) == 0;
    if (is_replayed)
        step_name += 7;
    int count = bench_sample_count(argc, argv, 2), rows = 0;
    bool is_cnn = sscanf(step_name, "cnn_b%d_", &rows) == 1;
    if ((!is_cnn && sscanf(step_name, "transformer_b%d_", &rows) != 1) || rows < 1) {
        fprintf(stderr, "training: no such row: %s\n", row);
        return 2;
    }
    training t = {.is_cnn = is_cnn};
    if (is_cnn)
        make_cnn(&t, rows);
    else
        make_transformer(&t, rows);
    if (is_replayed)
        t.recorded = eddy_recorded_create(run_step, &t, 1, NULL);
    sample(&t, 4); /* the third call of a recorded function may still be recorded */
    bench_samples samples = {.count = 0};
    path_counts before = path_now();
    for (int i = 0; i < count; i++)
        bench_samples_push(&samples, sample(&t, BENCH_TRAINING_STEPS) / 1e6);
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    eddy_recorded_release(&t.recorded);
    network_fini(&t.cnn);
    transformer_fini(&t.decoder);
    eddy_release(&t.inputs);
    eddy_release(&t.labels);
    bench_print_row(row, "ms", eddy_version_text(), path, &samples);
    return 0;
}
