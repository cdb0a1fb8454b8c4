/* One network a process. */
#include "mlp_step.h"

#include <bench/ours/must.h>
#include <bench/sample.h>
#include <bench/shapes.h>
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

void mlp_step_init(int rows) {
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

void mlp_step_fini(void) {
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

eddy_tensor *mlp_step(bool with_adam) {
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
