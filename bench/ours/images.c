/* The rows replay_images_b<batch>_<n>t: a training step of three convolutions and two pools on row-major images, replayed with the pass `layout` (layout/images).
 *
 *     images replay_images_b64_1t [samples]        ms a step as a recorded function; passes as EDDY_PASSES says
 *     images replay_last_images_b64_1t [samples]   the same with images that the first convolution makes channels-last
 *     images images_b64_1t [samples]               the first one by calls */
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <bench/sample.h>
#include <eddy/eddy.h>
#include <stdbool.h>
#include <string.h>

#define SIDE 32
#define COLOURS 3
#define CHANNELS 32
#define CLASSES 10
#define PARAMS 8
#define STEPS 2 /* a sample */

typedef struct net {
    eddy_tensor *params[PARAMS]; /* of each layer weight and bias */
    bool is_last;
} net;

static eddy_tensor *leaf(eddy_shape shape, double deviation) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *made = eddy_scope_return(
        scope, must_tensor(eddy_mul_s(eddy_randn(shape, EDDY_F32, NULL), EDDY_S(deviation))));
    eddy_scope_end(scope);
    must(eddy_requires_grad_set(made, true));
    return made;
}

static net make_net(bool is_last) {
    const int64_t c = CHANNELS, inputs = 2 * c * (SIDE / 4) * (SIDE / 4);
    return (net){.params = {leaf(EDDY_SHAPE(c, COLOURS, 3, 3), 0.1), leaf(EDDY_SHAPE(c), 0.1),
                            leaf(EDDY_SHAPE(2 * c, c, 3, 3), 0.05), leaf(EDDY_SHAPE(2 * c), 0.1),
                            leaf(EDDY_SHAPE(2 * c, 2 * c, 3, 3), 0.05),
                            leaf(EDDY_SHAPE(2 * c), 0.1), leaf(EDDY_SHAPE(CLASSES, inputs), 0.01),
                            leaf(EDDY_SHAPE(CLASSES), 0.1)},
                 .is_last = is_last};
}

static eddy_tensor *convolve(const net *n, int layer, eddy_tensor *x) {
    return eddy_relu(eddy_conv2d(
        x, n->params[2 * layer], n->params[2 * layer + 1],
        EDDY_OPTIONS(conv2d, .padding = {1, 1}, .is_channels_last = n->is_last && layer == 0)));
}

static eddy_status step(void *context, eddy_recorded_call *call) {
    net *n = context;
    eddy_list params = {n->params, PARAMS};
    eddy_tensor *h = convolve(n, 0, call->inputs.items[0]), *grads[PARAMS];
    h = convolve(n, 2, convolve(n, 1, eddy_max_pool2d(h, EDDY_PAIR(2, 2), NULL)));
    h = eddy_flatten(eddy_max_pool2d(h, EDDY_PAIR(2, 2), NULL), 1, 3);
    eddy_tensor *loss =
        eddy_cross_entropy(eddy_linear(h, n->params[6], n->params[7]), call->inputs.items[1], NULL);
    must(eddy_backward(loss));
    must(eddy_grads_of(params, grads));
    eddy_no_grad_begin();
    for (int i = 0; i < PARAMS; i++)
        must(eddy_sub_into(n->params[i], eddy_mul_s(grads[i], EDDY_S(0.01)), n->params[i]));
    eddy_no_grad_end();
    must(eddy_grads_zero(params));
    call->outputs[0] = must_tensor(eddy_detach(loss));
    return EDDY_OK;
}

/* recorded: NULL where the step is called. */
static double sample(net *n, eddy_recorded *recorded, eddy_list inputs, int steps) {
    double began = bench_now_ns(), value = 0;
    for (int s = 0; s < steps; s++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *loss;
        eddy_recorded_call call = {.inputs = inputs, .outputs = &loss};
        must(recorded ? eddy_recorded_run(recorded, inputs, (eddy_scalars){0}, &loss)
                      : step(n, &call));
        must(eddy_read_f64(loss, &value, NULL));
        eddy_scope_end(scope);
    }
    must(eddy_sync(EDDY_FOREVER));
    return (bench_now_ns() - began) / steps / 1e6;
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2), batch = 0;
    bool is_last = sscanf(row, "replay_last_images_b%d_", &batch) == 1,
         is_called = sscanf(row, "images_b%d_", &batch) == 1;
    if ((!is_last && !is_called && sscanf(row, "replay_images_b%d_", &batch) != 1) || batch < 1) {
        fprintf(stderr, "images: no such row: %s\n", row);
        return 2;
    }
    eddy_scope *scope = eddy_scope_begin();
    must(eddy_seed(1));
    net n = make_net(is_last);
    eddy_recorded *recorded = is_called ? NULL : eddy_recorded_create(step, &n, 1, NULL);
    if (!is_called && !recorded)
        must_fail();
    eddy_list inputs = EDDY_LIST(
        must_tensor(eddy_randn(EDDY_SHAPE(batch, COLOURS, SIDE, SIDE), EDDY_F32, NULL)),
        must_tensor(eddy_remainder_s(
            eddy_arange(EDDY_S(0), EDDY_S(batch), EDDY_S(1), EDDY_I64, NULL), EDDY_S(CLASSES))));
    sample(&n, recorded, inputs,
           4); /* the third call of a recorded function may still be recorded */
    bench_samples samples = {.count = 0};
    path_counts before = path_now();
    for (int i = 0; i < count; i++)
        bench_samples_push(&samples, sample(&n, recorded, inputs, STEPS));
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    bench_print_row(row, "ms", eddy_version_text(), path, &samples);
    return 0;
}
