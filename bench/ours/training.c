/* The rows cnn_* and transformer_*: a training step of the examples' networks (examples/network.h, examples/transformer.h), with
 * gradients by the tape. Each sample waits for the loss once. */
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
    eddy_tensor *inputs, *labels; /* labels: used by the cnn only */
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

static eddy_tensor *step(training *t, bool is_cnn) {
    return must_tensor(is_cnn ? network_train(&t->cnn, t->inputs, t->labels, BENCH_ADAM_RATE)
                              : transformer_train(&t->decoder, t->inputs, BENCH_ADAM_RATE));
}

static double sample(training *t, bool is_cnn, int steps) {
    double began = bench_now_ns(), value = 0;
    eddy_tensor *loss = NULL;
    for (int s = 0; s < steps; s++) {
        eddy_release(&loss);
        loss = step(t, is_cnn);
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
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2), rows = 0;
    bool is_cnn = sscanf(row, "cnn_b%d_", &rows) == 1;
    if ((!is_cnn && sscanf(row, "transformer_b%d_", &rows) != 1) || rows < 1) {
        fprintf(stderr, "training: no such row: %s\n", row);
        return 2;
    }
    training t = {0};
    if (is_cnn)
        make_cnn(&t, rows);
    else
        make_transformer(&t, rows);
    sample(&t, is_cnn, 2);
    bench_samples samples = {.count = 0};
    path_counts before = path_now();
    for (int i = 0; i < count; i++)
        bench_samples_push(&samples, sample(&t, is_cnn, BENCH_TRAINING_STEPS) / 1e6);
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    network_fini(&t.cnn);
    transformer_fini(&t.decoder);
    eddy_release(&t.inputs);
    eddy_release(&t.labels);
    bench_print_row(row, "ms", eddy_version_text(), path, &samples);
    return 0;
}
