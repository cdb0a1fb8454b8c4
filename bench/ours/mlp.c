/* The rows mlp_*, and replay_mlp_* for the step as a recorded function: one training step op by op; the backward pass is written in ops, without the tape. Each step computes the
 * loss, and each sample waits for it once. */
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <bench/sample.h>
#include <bench/shapes.h>
#include <eddy/eddy.h>
#include <math.h>

#define LAYERS 3
#define PARAMETERS (2 * LAYERS)

static const int64_t widths[LAYERS + 1] = {BENCH_MLP_INPUTS, BENCH_MLP_HIDDEN1, BENCH_MLP_HIDDEN2,
                                           BENCH_MLP_CLASSES};

static eddy_tensor *parameters[PARAMETERS], *first_moments[PARAMETERS], *second_moments[PARAMETERS],
    *step_count, *one;
static eddy_tensor *images, *labels;

static eddy_tensor *random_tensor(eddy_shape shape, float scale, uint32_t *random) {
    int64_t count = 1;
    for (int d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    float *values = malloc((size_t)count * sizeof(float));
    if (!values)
        exit(1);
    for (int64_t i = 0; i < count; i++)
        values[i] = bench_random_float(random, scale);
    eddy_tensor *tensor = must_tensor(eddy_from_data(values, shape, EDDY_F32, NULL));
    free(values);
    return tensor;
}

static void make_network(int rows) {
    uint32_t random = 1;
    int64_t *classes = malloc((size_t)rows * sizeof(int64_t));
    if (!classes)
        exit(1);
    for (int i = 0; i < rows; i++)
        classes[i] = bench_random(&random) % BENCH_MLP_CLASSES;
    labels = must_tensor(eddy_from_data(classes, EDDY_SHAPE(rows), EDDY_I64, NULL));
    free(classes);
    images = random_tensor(EDDY_SHAPE(rows, widths[0]), 1, &random);
    for (int l = 0; l < LAYERS; l++) {
        parameters[2 * l] = random_tensor(EDDY_SHAPE(widths[l + 1], widths[l]),
                                          1 / sqrtf((float)widths[l]), &random);
        parameters[2 * l + 1] = must_tensor(eddy_zeros(EDDY_SHAPE(widths[l + 1]), EDDY_F32, NULL));
    }
    for (int i = 0; i < PARAMETERS; i++) {
        first_moments[i] = must_tensor(eddy_zeros_like(parameters[i], NULL));
        second_moments[i] = must_tensor(eddy_zeros_like(parameters[i], NULL));
    }
    step_count = must_tensor(eddy_zeros(EDDY_SHAPE(), EDDY_I64, NULL));
    one = must_tensor(eddy_ones(EDDY_SHAPE(), EDDY_F32, NULL));
}

static void free_network(void) {
    for (int i = 0; i < PARAMETERS; i++) {
        eddy_release(&parameters[i]);
        eddy_release(&first_moments[i]);
        eddy_release(&second_moments[i]);
    }
    eddy_release(&step_count);
    eddy_release(&one);
    eddy_release(&images);
    eddy_release(&labels);
}

static void update(eddy_tensor **gradients, bool with_adam) {
    eddy_list values = {parameters, PARAMETERS}, slopes = {gradients, PARAMETERS};
    if (with_adam)
        must(eddy_adam_step(values, slopes, (eddy_list){first_moments, PARAMETERS},
                            (eddy_list){second_moments, PARAMETERS}, step_count,
                            EDDY_S(BENCH_ADAM_RATE), NULL));
    else
        must(eddy_sgd_step(values, slopes, EDDY_S(BENCH_MLP_RATE), NULL));
}

/* Issues a step. Returns its loss, which the caller owns. */
static eddy_tensor *step(bool with_adam) {
    eddy_tensor *inputs[LAYERS], *gradients[PARAMETERS];
    eddy_scope *scope = eddy_scope_begin();
    inputs[0] = images;
    for (int l = 1; l < LAYERS; l++)
        inputs[l] =
            eddy_relu(eddy_linear(inputs[l - 1], parameters[2 * l - 2], parameters[2 * l - 1]));
    eddy_tensor *logits =
        eddy_linear(inputs[LAYERS - 1], parameters[PARAMETERS - 2], parameters[PARAMETERS - 1]);
    eddy_tensor *loss = eddy_cross_entropy(logits, labels, NULL);
    eddy_tensor *gradient = eddy_cross_entropy_backward(one, logits, labels, NULL);
    for (int l = LAYERS - 1; l >= 0; l--) {
        gradients[2 * l] = eddy_matmul(eddy_t(gradient), inputs[l]);
        gradients[2 * l + 1] = eddy_sum(gradient, EDDY_AXES(0), NULL);
        if (l)
            gradient = eddy_relu_backward(eddy_matmul(gradient, parameters[2 * l]), inputs[l]);
    }
    update(gradients, with_adam);
    loss = eddy_scope_return(scope, loss);
    eddy_scope_end(scope);
    return must_tensor(loss);
}

static eddy_status run_step(void *context, eddy_recorded_call *call) {
    call->outputs[0] = step(*(bool *)context);
    return EDDY_OK;
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "", *step_name = row;
    bool is_replayed = strncmp(row, "replay_", 7) == 0;
    if (is_replayed)
        step_name += 7;
    int count = bench_sample_count(argc, argv, 2), rows = 0;
    bool with_adam = !strncmp(step_name, "mlp_adam_", 9);
    if (sscanf(step_name, with_adam ? "mlp_adam_b%d_" : "mlp_b%d_", &rows) != 1 || rows < 1) {
        fprintf(stderr, "mlp: no such row: %s\n", row);
        return 2;
    }
    make_network(rows);
    eddy_recorded *recorded =
        is_replayed ? eddy_recorded_create(run_step, &with_adam, 1, NULL) : NULL;
    bench_samples samples = {.count = 0};
    path_counts before = path_now();
    int steps = 6400 / rows;
    for (int i = -2; i < count; i++) {
        eddy_tensor *loss = NULL;
        double began = bench_now_ns(), value = 0;
        for (int s = 0; s < steps; s++) {
            eddy_release(&loss);
            if (recorded)
                must(eddy_recorded_run(recorded, (eddy_list){0}, (eddy_scalars){0}, &loss));
            else
                loss = step(with_adam);
        }
        must(eddy_read_f64(loss, &value, NULL));
        must(eddy_sync(EDDY_FOREVER));
        if (i >= 0)
            bench_samples_push(&samples, (bench_now_ns() - began) / steps / 1e6);
        eddy_release(&loss);
        if (!isfinite(value)) {
            fprintf(stderr, "mlp: the loss is not finite\n");
            return 1;
        }
    }
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    eddy_recorded_release(&recorded);
    free_network();
    bench_print_row(row, "ms", eddy_version_text(), path, &samples);
    return 0;
}
