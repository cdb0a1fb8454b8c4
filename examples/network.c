#include "network.h"

#include <math.h>

#define SIDE 28
/* Pixels of a channel after two pools, each of which halves the side. */
#define PIXELS_LEFT ((SIDE / 4) * (SIDE / 4))

/* Weights of each layer, by model. */
static const eddy_shape weights[][NETWORK_LAYERS] = {
    [NETWORK_MLP] = {{2, {256, NETWORK_INPUTS}}, {2, {128, 256}}, {2, {NETWORK_CLASSES, 128}}},
    [NETWORK_CNN] = {{4, {32, 1, 3, 3}},
                     {4, {64, 32, 3, 3}},
                     {2, {NETWORK_CLASSES, 64 * PIXELS_LEFT}}},
};

/* Mean and standard deviation of Fashion-MNIST's pixels, which are 0 to 255. */
#define PIXEL_MEAN 72.94
#define PIXEL_DEVIATION 90.02

/* A parameter in the dtype of the layers. Its gradient goes back through the cast, to f32. */
static eddy_tensor *taken(const network *net, eddy_tensor *parameter) {
    return net->dtype == EDDY_F32 ? parameter : eddy_cast(parameter, net->dtype);
}

static eddy_tensor *weight(const network *net, int layer) {
    return taken(net, net->parameters[2 * layer]);
}

static eddy_tensor *bias(const network *net, int layer) {
    return taken(net, net->parameters[2 * layer + 1]);
}

/* Uniform in [-bound, bound). */
static eddy_tensor *random_tensor(eddy_shape shape, double bound) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *unit = eddy_rand(shape, EDDY_F32, NULL);
    eddy_tensor *result = eddy_sub_s(eddy_mul_s(unit, EDDY_S(2 * bound)), EDDY_S(bound));
    result = eddy_scope_return(scope, result);
    eddy_scope_end(scope);
    return result;
}

bool network_init(network *net, network_model model, eddy_dtype dtype) {
    *net = (network){.model = model, .dtype = dtype};
    for (int layer = 0; layer < NETWORK_LAYERS; layer++) {
        const eddy_shape *shape = &weights[model][layer];
        int64_t inputs = 1;
        for (int32_t d = 1; d < shape->rank; d++)
            inputs *= shape->dims[d];
        net->parameters[2 * layer] = random_tensor(*shape, 1 / sqrt((double)inputs));
        net->parameters[2 * layer + 1] =
            random_tensor(EDDY_SHAPE(shape->dims[0]), 1 / sqrt((double)inputs));
    }
    net->step = eddy_zeros(EDDY_SHAPE(), EDDY_I64, NULL);
    bool is_whole = net->step != NULL;
    for (int i = 0; i < NETWORK_PARAMETERS; i++) {
        net->m[i] = eddy_zeros_like(net->parameters[i], NULL);
        net->v[i] = eddy_zeros_like(net->parameters[i], NULL);
        is_whole = is_whole && net->m[i] && net->v[i] &&
                   eddy_requires_grad_set(net->parameters[i], true) == EDDY_OK;
    }
    return is_whole;
}

void network_fini(network *net) {
    for (int i = 0; i < NETWORK_PARAMETERS; i++) {
        eddy_release(&net->parameters[i]);
        eddy_release(&net->m[i]);
        eddy_release(&net->v[i]);
    }
    eddy_release(&net->step);
}

static eddy_tensor *normalised(eddy_tensor *images) {
    eddy_tensor *pixels = eddy_cast(images, EDDY_F32);
    return eddy_mul_s(eddy_sub_s(pixels, EDDY_S(PIXEL_MEAN)), EDDY_S(1 / PIXEL_DEVIATION));
}

static eddy_tensor *linear_layer(const network *net, int layer, eddy_tensor *x) {
    return eddy_relu(eddy_linear(x, weight(net, layer), bias(net, layer)));
}

/* [n, channels, side, side] -> [n, more channels, side / 2, side / 2], channels-last, which is fastest for pools and convolutions.
 * ReLU and the max pool commute. The pool goes first, so that ReLU and its gradient process a quarter of the elements. */
static eddy_tensor *convolution_layer(const network *net, int layer, eddy_tensor *x) {
    x = eddy_conv2d(x, weight(net, layer), bias(net, layer),
                    EDDY_OPTIONS(conv2d, .padding = {1, 1}, .is_channels_last = true));
    return eddy_relu(eddy_max_pool2d(x, EDDY_PAIR(2, 2), NULL));
}

/* [n, channels, side, side] -> [n, features], in the order of memory, so that nothing is copied. */
static eddy_tensor *features(eddy_tensor *x) {
    return eddy_flatten(eddy_permute(x, EDDY_AXES(0, 2, 3, 1)), 1, -1);
}

eddy_tensor *network_logits(const network *net, eddy_tensor *images) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = taken(net, normalised(images));
    if (net->model == NETWORK_CNN)
        x = eddy_reshape(x, EDDY_SHAPE(-1, 1, SIDE, SIDE));
    for (int layer = 0; layer < NETWORK_LAYERS - 1; layer++)
        x = net->model == NETWORK_CNN ? convolution_layer(net, layer, x)
                                      : linear_layer(net, layer, x);
    if (net->model == NETWORK_CNN)
        x = features(x);
    x = eddy_linear(x, weight(net, NETWORK_LAYERS - 1), bias(net, NETWORK_LAYERS - 1));
    x = eddy_scope_return(scope, net->dtype == EDDY_F32 ? x : eddy_cast(x, EDDY_F32));
    eddy_scope_end(scope);
    return x;
}

static eddy_status take_step(network *net, eddy_tensor *loss, eddy_scalar lr) {
    eddy_list parameters = {net->parameters, NETWORK_PARAMETERS};
    eddy_tensor *gradients[NETWORK_PARAMETERS];
    eddy_status status = eddy_backward(loss);
    for (int i = 0; i < NETWORK_PARAMETERS && status == EDDY_OK; i++)
        gradients[i] = eddy_grad_of(net->parameters[i]);
    if (status == EDDY_OK)
        status = eddy_adam_step(parameters, (eddy_list){gradients, NETWORK_PARAMETERS},
                                (eddy_list){net->m, NETWORK_PARAMETERS},
                                (eddy_list){net->v, NETWORK_PARAMETERS}, net->step, lr, NULL);
    return status == EDDY_OK ? eddy_grads_zero(parameters) : status;
}

eddy_tensor *network_train(network *net, eddy_tensor *images, eddy_tensor *labels, eddy_scalar lr) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *loss = eddy_cross_entropy(network_logits(net, images), labels, NULL);
    /* The detached loss does not keep the tape alive. */
    loss = take_step(net, loss, lr) == EDDY_OK ? eddy_scope_return(scope, eddy_detach(loss)) : NULL;
    eddy_scope_end(scope);
    return loss;
}

bool network_recover(network *net) {
    return eddy_recover((eddy_list){net->parameters, NETWORK_PARAMETERS}) == EDDY_OK &&
           eddy_recover((eddy_list){net->m, NETWORK_PARAMETERS}) == EDDY_OK &&
           eddy_recover((eddy_list){net->v, NETWORK_PARAMETERS}) == EDDY_OK &&
           eddy_recover(EDDY_LIST(net->step)) == EDDY_OK;
}

eddy_tensor *network_correct(const network *net, eddy_tensor *images, eddy_tensor *labels) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_no_grad_begin();
    eddy_tensor *classes = eddy_argmax(network_logits(net, images), EDDY_AXES(1), NULL);
    eddy_tensor *correct =
        eddy_scope_return(scope, eddy_sum(eddy_eq(classes, labels), EDDY_ALL_AXES, NULL));
    eddy_no_grad_end();
    eddy_scope_end(scope);
    return correct;
}
