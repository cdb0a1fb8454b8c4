#include <bench/ours/images_step.h>

#include <bench/ours/must.h>

#define SIDE 32
#define COLOURS 3
#define CHANNELS 32
#define CLASSES 10

static eddy_tensor *leaf(eddy_shape shape, double deviation) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *made = eddy_scope_return(
        scope, must_tensor(eddy_mul_s(eddy_randn(shape, EDDY_F32, NULL), EDDY_S(deviation))));
    eddy_scope_end(scope);
    must(eddy_requires_grad_set(made, true));
    return made;
}

images_step images_step_make(int batch, bool is_last) {
    const int64_t c = CHANNELS, inputs = 2 * c * (SIDE / 4) * (SIDE / 4);
    return (images_step){
        .params = {leaf(EDDY_SHAPE(c, COLOURS, 3, 3), 0.1), leaf(EDDY_SHAPE(c), 0.1),
                   leaf(EDDY_SHAPE(2 * c, c, 3, 3), 0.05), leaf(EDDY_SHAPE(2 * c), 0.1),
                   leaf(EDDY_SHAPE(2 * c, 2 * c, 3, 3), 0.05), leaf(EDDY_SHAPE(2 * c), 0.1),
                   leaf(EDDY_SHAPE(CLASSES, inputs), 0.01), leaf(EDDY_SHAPE(CLASSES), 0.1)},
        .inputs = {must_tensor(eddy_randn(EDDY_SHAPE(batch, COLOURS, SIDE, SIDE), EDDY_F32, NULL)),
                   must_tensor(eddy_remainder_s(
                       eddy_arange(EDDY_S(0), EDDY_S(batch), EDDY_S(1), EDDY_I64, NULL),
                       EDDY_S(CLASSES)))},
        .is_last = is_last};
}

static eddy_tensor *convolve(const images_step *t, int layer, eddy_tensor *x) {
    return eddy_relu(eddy_conv2d(
        x, t->params[2 * layer], t->params[2 * layer + 1],
        EDDY_OPTIONS(conv2d, .padding = {1, 1}, .is_channels_last = t->is_last && layer == 0)));
}

eddy_status images_step_run(void *context, eddy_recorded_call *call) {
    images_step *t = context;
    eddy_list params = {t->params, IMAGES_PARAMS};
    eddy_tensor *h = convolve(t, 0, call->inputs.items[0]), *grads[IMAGES_PARAMS];
    h = convolve(t, 2, convolve(t, 1, eddy_max_pool2d(h, EDDY_PAIR(2, 2), NULL)));
    h = eddy_flatten(eddy_max_pool2d(h, EDDY_PAIR(2, 2), NULL), 1, 3);
    eddy_tensor *loss =
        eddy_cross_entropy(eddy_linear(h, t->params[6], t->params[7]), call->inputs.items[1], NULL);
    must(eddy_backward(loss));
    must(eddy_grads_of(params, grads));
    eddy_no_grad_begin();
    for (int i = 0; i < IMAGES_PARAMS; i++)
        must(eddy_sub_into(t->params[i], eddy_mul_s(grads[i], EDDY_S(0.01)), t->params[i]));
    eddy_no_grad_end();
    must(eddy_grads_zero(params));
    call->outputs[0] = must_tensor(eddy_detach(loss));
    return EDDY_OK;
}
