#include "transformer.h"

#include <math.h>
#include <stdio.h>

#define DEVIATION 0.02
#define NORM_MAX 1.0

enum { ATTENTION_NORM, QUERY_KEY_VALUE, ATTENTION_OUTPUT, SWIGLU_NORM, GATE, UP, DOWN };

static eddy_tensor *embedding(const transformer *net) {
    return net->parameters[0];
}

static eddy_tensor *of_layer(const transformer *net, int64_t layer, int which) {
    return net->parameters[1 + layer * TRANSFORMER_LAYER_PARAMETERS + which];
}

static eddy_tensor *last_norm(const transformer *net) {
    return net->parameters[net->count - 2];
}

static eddy_tensor *output(const transformer *net) {
    return net->parameters[net->count - 1];
}

/* ---- life ---- */

static void add_matrix(transformer *net, int64_t rows, int64_t columns, double deviation) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *normal = eddy_randn(EDDY_SHAPE(rows, columns), EDDY_F32, NULL);
    net->parameters[net->count++] = eddy_scope_return(scope, eddy_mul_s(normal, EDDY_S(deviation)));
    eddy_scope_end(scope);
}

static void add_norm(transformer *net) {
    net->parameters[net->count++] = eddy_ones(EDDY_SHAPE(net->size.width), EDDY_F32, NULL);
}

/* Weights whose products are added to the residual stream start smaller with more layers (Radford and others, 2019). */
static void add_layer(transformer *net) {
    int64_t width = net->size.width, hidden = net->size.hidden;
    double residual = DEVIATION / sqrt(2.0 * (double)net->size.layers);
    add_norm(net);
    add_matrix(net, 3 * width, width, DEVIATION);
    add_matrix(net, width, width, residual);
    add_norm(net);
    add_matrix(net, hidden, width, DEVIATION);
    add_matrix(net, hidden, width, DEVIATION);
    add_matrix(net, width, hidden, residual);
}

bool transformer_init(transformer *net, const struct transformer_size *size) {
    *net = (transformer){.size = *size};
    add_matrix(net, size->vocabulary, size->width, DEVIATION);
    for (int64_t layer = 0; layer < size->layers; layer++)
        add_layer(net);
    add_norm(net);
    add_matrix(net, size->vocabulary, size->width, DEVIATION);
    net->step = eddy_zeros(EDDY_SHAPE(), EDDY_I64, NULL);
    net->positions = eddy_arange(EDDY_S(0), EDDY_S(size->sequence), EDDY_S(1), EDDY_I64, NULL);
    bool is_whole = net->step && net->positions;
    for (int64_t i = 0; i < net->count; i++) {
        net->m[i] = eddy_zeros_like(net->parameters[i], NULL);
        net->v[i] = eddy_zeros_like(net->parameters[i], NULL);
        is_whole = is_whole && net->m[i] && net->v[i] &&
                   eddy_requires_grad_set(net->parameters[i], true) == EDDY_OK;
    }
    return is_whole;
}

void transformer_fini(transformer *net) {
    for (int64_t i = 0; i < net->count; i++) {
        eddy_release(&net->parameters[i]);
        eddy_release(&net->m[i]);
        eddy_release(&net->v[i]);
    }
    eddy_release(&net->step);
    eddy_release(&net->positions);
}

int64_t transformer_weights(const transformer *net) {
    int64_t weights = 0;
    for (int64_t i = 0; i < net->count; i++)
        weights += eddy_count_of(net->parameters[i]);
    return weights;
}

void transformer_name(const transformer *net, int64_t number, char *name, size_t size) {
    static const char *const of_layers[TRANSFORMER_LAYER_PARAMETERS] = {
        [ATTENTION_NORM] = "attention_norm",
        [QUERY_KEY_VALUE] = "query_key_value",
        [ATTENTION_OUTPUT] = "attention_output",
        [SWIGLU_NORM] = "swiglu_norm",
        [GATE] = "gate",
        [UP] = "up",
        [DOWN] = "down"};
    int64_t inner = number - 1;
    if (number == 0)
        snprintf(name, size, "embedding");
    else if (number >= net->count - 2)
        snprintf(name, size, "%s", number == net->count - 2 ? "norm" : "output");
    else
        snprintf(name, size, "layers.%lld.%s", (long long)(inner / TRANSFORMER_LAYER_PARAMETERS),
                 of_layers[inner % TRANSFORMER_LAYER_PARAMETERS]);
}

/* ---- forward ---- */

/* x plus the layer's attention. */
static eddy_tensor *attend(const transformer *net, int64_t layer, eddy_tensor *x,
                           eddy_tensor *positions) {
    eddy_scope *scope = eddy_scope_begin();
    int64_t heads = net->size.heads, batch = eddy_dim_of(x, 0), sequence = eddy_dim_of(x, 1);
    eddy_tensor *normed = eddy_rms_norm(x, of_layer(net, layer, ATTENTION_NORM), 1, NULL);
    eddy_tensor *mixed = eddy_linear(normed, of_layer(net, layer, QUERY_KEY_VALUE), EDDY_NONE);
    mixed = eddy_reshape(mixed, EDDY_SHAPE(batch, sequence, 3, heads, net->size.width / heads));
    mixed = eddy_permute(
        mixed,
        EDDY_AXES(2, 0, 3, 1, 4)); /* query, key and value: [B, heads, S, width / heads] each */
    eddy_tensor *q = eddy_rope(eddy_select(mixed, 0, 0), positions, NULL);
    eddy_tensor *k = eddy_rope(eddy_select(mixed, 0, 1), positions, NULL);
    eddy_tensor *seen =
        eddy_sdpa(q, k, eddy_select(mixed, 0, 2), EDDY_NONE, EDDY_OPTIONS(sdpa, .is_causal = true));
    seen = eddy_reshape(eddy_permute(seen, EDDY_AXES(0, 2, 1, 3)),
                        EDDY_SHAPE(batch, sequence, net->size.width));
    x = eddy_add(x, eddy_linear(seen, of_layer(net, layer, ATTENTION_OUTPUT), EDDY_NONE));
    x = eddy_scope_return(scope, x);
    eddy_scope_end(scope);
    return x;
}

/* x plus the layer's SwiGLU. */
static eddy_tensor *think(const transformer *net, int64_t layer, eddy_tensor *x) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *normed = eddy_rms_norm(x, of_layer(net, layer, SWIGLU_NORM), 1, NULL);
    eddy_tensor *gate = eddy_silu(eddy_linear(normed, of_layer(net, layer, GATE), EDDY_NONE));
    eddy_tensor *up = eddy_linear(normed, of_layer(net, layer, UP), EDDY_NONE);
    x = eddy_add(x, eddy_linear(eddy_mul(gate, up), of_layer(net, layer, DOWN), EDDY_NONE));
    x = eddy_scope_return(scope, x);
    eddy_scope_end(scope);
    return x;
}

/* Releases its operand x, so that without gradients only one layer's tensors are alive at a time. */
static eddy_tensor *run_layer(const transformer *net, int64_t layer, eddy_tensor *x,
                              eddy_tensor *positions) {
    eddy_tensor *seen = attend(net, layer, x, positions);
    eddy_release(&x);
    x = think(net, layer, seen);
    eddy_release(&seen);
    return x;
}

eddy_tensor *transformer_logits(const transformer *net, eddy_tensor *numbers) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *positions = eddy_narrow(net->positions, 0, 0, eddy_dim_of(numbers, 1));
    eddy_tensor *x = eddy_embedding(numbers, embedding(net), NULL);
    for (int64_t layer = 0; layer < net->size.layers && x; layer++)
        x = run_layer(net, layer, x, positions);
    x = eddy_linear(eddy_rms_norm(x, last_norm(net), 1, NULL), output(net), EDDY_NONE);
    x = eddy_scope_return(scope, x);
    eddy_scope_end(scope);
    return x;
}

eddy_tensor *transformer_loss(const transformer *net, eddy_tensor *numbers) {
    eddy_scope *scope = eddy_scope_begin();
    int64_t sequence = eddy_dim_of(numbers, 1) - 1;
    eddy_tensor *logits = transformer_logits(net, eddy_narrow(numbers, 1, 0, sequence));
    logits = eddy_reshape(logits, EDDY_SHAPE(-1, net->size.vocabulary));
    eddy_tensor *next = eddy_reshape(eddy_narrow(numbers, 1, 1, sequence), EDDY_SHAPE(-1));
    eddy_tensor *loss = eddy_scope_return(scope, eddy_cross_entropy(logits, next, NULL));
    eddy_scope_end(scope);
    return loss;
}

/* ---- training ---- */

static eddy_status take_step(transformer *net, eddy_tensor *loss, eddy_scalar lr) {
    eddy_list parameters = {net->parameters, net->count};
    eddy_tensor *gradients[TRANSFORMER_PARAMETERS_MAX];
    eddy_status status = eddy_backward(loss);
    for (int64_t i = 0; i < net->count && status == EDDY_OK; i++)
        gradients[i] = eddy_grad_of(net->parameters[i]);
    if (status == EDDY_OK)
        status =
            eddy_clip_grad_norm((eddy_list){gradients, net->count}, EDDY_NONE, EDDY_S(NORM_MAX));
    if (status == EDDY_OK)
        status = eddy_adamw_step(parameters, (eddy_list){gradients, net->count},
                                 (eddy_list){net->m, net->count}, (eddy_list){net->v, net->count},
                                 net->step, lr,
                                 EDDY_OPTIONS(adamw_step, .beta2 = 0.99, .weight_decay = 0.1));
    return status == EDDY_OK ? eddy_grads_zero(parameters) : status;
}

eddy_tensor *transformer_train(transformer *net, eddy_tensor *numbers, eddy_scalar lr) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *loss = transformer_loss(net, numbers);
    loss = take_step(net, loss, lr) == EDDY_OK ? eddy_scope_return(scope, eddy_detach(loss)) : NULL;
    eddy_scope_end(scope);
    return loss;
}
