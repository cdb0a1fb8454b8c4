/* The pass `subbatch` on random code: gradients of random networks, with other instructions between. Numbers are integers that f64 holds exactly, so that all bits are those of the calls. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <program/program.h>
#include <stdlib.h>
#include <string.h>
#include <tests/program/outcome.h>
#include <tests/program/parts.h>
#include <tests/program/taped.h>
#include <tests/rounds.h>

#define ROUNDS ROUNDS_OF(400)
#define VALUES 48
#define WEIGHTS 12
#define OUTPUTS_MOST 40
#define CHANNELS 4
#define SIDE 8
#define WIDTH (CHANNELS * SIDE * SIDE)

static uint32_t random_state;

static uint32_t below(uint32_t bound) {
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % bound;
}

/* From -1 to 1. */
static eddy_tensor *integers(eddy_shape shape) {
    int64_t count = 1, seed = below(1000);
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    eddy_tensor *all =
        eddy_arange(EDDY_S(seed), EDDY_S(seed + 7 * count), EDDY_S(7), EDDY_I64, NULL);
    all = eddy_sub_s(
        eddy_remainder_s(eddy_remainder_s(eddy_mul(all, all), EDDY_S(1009)), EDDY_S(3)), EDDY_S(1));
    return eddy_reshape(eddy_cast(all, EDDY_F64), shape);
}

typedef struct net {
    int64_t batch;
    bool has_loss;                              /* the backward pass needs all items */
    eddy_tensor *x, *buffer, *weights[WEIGHTS]; /* [N, C, S, S], [C, S, S] */
    int weight_count;
    eddy_tensor *values[VALUES]; /* [N, C, S, S], or [N, C * S * S] */
    int value_count;
    eddy_tensor *outputs[OUTPUTS_MOST];
    int output_count;
} net;

/* The sign of a zero is that of the order in which a product adds up. */
static void put_out(net *n, eddy_tensor *x) {
    if (n->output_count < OUTPUTS_MOST)
        n->outputs[n->output_count++] = eddy_add_s(eddy_detach(x), EDDY_S(0.0));
}

/* One of the last three, which depend on weights. */
static eddy_tensor *any(const net *n) {
    int back = 1 + (int)below(3);
    return n->values[back < n->value_count ? n->value_count - back : n->value_count - 1];
}

static eddy_tensor *as_images(const net *n, eddy_tensor *x) {
    return eddy_reshape(x, EDDY_SHAPE(n->batch, CHANNELS, SIDE, SIDE));
}

static eddy_tensor *as_rows(const net *n, eddy_tensor *x) {
    return eddy_reshape(x, EDDY_SHAPE(n->batch, WIDTH));
}

/* Weights are made before the recording. */
static eddy_tensor *weight(net *n, int *used, bool is_matrix) {
    while (*used < n->weight_count && (eddy_rank_of(n->weights[*used]) == 2) != is_matrix)
        ++*used;
    return *used < n->weight_count ? n->weights[(*used)++] : NULL;
}

static eddy_tensor *layer(net *n, int *used) {
    eddy_tensor *a = any(n), *b = any(n), *w;
    switch (below(3) ? below(8) : below(16)) {
    case 0:
    case 1:
        w = weight(n, used, false);
        return w ? eddy_conv2d(as_images(n, a), w, EDDY_NONE,
                               EDDY_OPTIONS(conv2d, .padding = {1, 1}))
                 : eddy_neg(a);
    case 2:
    case 3:
        w = weight(n, used, true);
        return w ? eddy_linear(as_rows(n, a), w, EDDY_NONE) : eddy_relu(a);
    case 4:
        return eddy_relu(a);
    case 5:
        return eddy_add(as_rows(n, a), as_rows(n, b));
    case 6:
        return eddy_neg(eddy_sub(as_images(n, a), as_images(n, b)));
    case 7: /* images of half the size, added up again */
        w = eddy_max_pool2d(as_images(n, a), EDDY_PAIR(2, 2), NULL);
        return eddy_reshape(eddy_cat(EDDY_LIST(w, w, w, w), 1),
                            EDDY_SHAPE(n->batch, CHANNELS, SIDE, SIDE));
    case 8: /* channels last, for a time */
        w = eddy_contiguous(eddy_permute(as_images(n, a), EDDY_AXES(0, 2, 3, 1)));
        return eddy_contiguous(eddy_permute(eddy_neg(w), EDDY_AXES(0, 3, 1, 2)));
    case 9: /* the batch is not the outermost dim */
        w = eddy_contiguous(eddy_transpose(as_rows(n, a), 0, 1));
        return eddy_contiguous(eddy_transpose(eddy_neg(w), 0, 1));
    case 10: /* items meet */
        return eddy_sub(as_rows(n, a), eddy_sum(as_rows(n, b), EDDY_AXES(0), NULL));
    case 11: /* each item with the next one */
        w = as_rows(n, a);
        return eddy_cat(EDDY_LIST(eddy_narrow(w, 0, 1, n->batch - 1), eddy_narrow(w, 0, 0, 1)), 0);
    case 12: /* two halves of each item */
        w = as_rows(n, a);
        return eddy_cat(EDDY_LIST(eddy_neg(eddy_narrow(w, 1, WIDTH / 2, WIDTH / 2)),
                                  eddy_narrow(w, 1, 0, WIDTH / 2)),
                        1);
    case 13:
        return eddy_add(as_images(n, a), n->buffer);
    case 14:
        put_out(n, a);
        return eddy_mul_s(a, EDDY_S(2));
    default: { /* what others have is written */
        eddy_tensor *sum = eddy_sum(as_images(n, eddy_detach(a)), EDDY_AXES(0), NULL);
        must(eddy_copy_into(eddy_remainder_s(eddy_add(n->buffer, sum), EDDY_S(3)), n->buffer));
        return eddy_relu(a);
    }
    }
}

static void call(net *n, int layers) {
    int used = 0;
    n->value_count = n->output_count = 0;
    n->values[n->value_count++] = n->x;
    n->values[n->value_count++] =
        eddy_conv2d(n->x, n->weights[used++], EDDY_NONE, EDDY_OPTIONS(conv2d, .padding = {1, 1}));
    for (int i = 0; i < layers; i++) {
        n->values[n->value_count] = layer(n, &used);
        n->value_count++;
    }
    eddy_tensor *y = as_rows(n, n->values[n->value_count - 1]), *grads[WEIGHTS], *seed;
    seed = n->has_loss ? eddy_sign(eddy_sub(y, eddy_max(y, EDDY_ALL_AXES, NULL))) : y;
    must(eddy_backward_to(EDDY_LIST(y), (eddy_list){n->weights, n->weight_count},
                          EDDY_LIST(eddy_detach(eddy_sign(seed))), NULL, grads));
    for (int i = 0; i < n->weight_count; i++)
        if (grads[i] != EDDY_NONE)
            put_out(n, grads[i]);
}

/* Whether the pass has done something. */
static bool try(uint32_t seed, const char *passes) {
    static const char *const names[OUTPUTS_MOST] = {
        "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "b0", "b1", "b2", "b3",
        "b4", "b5", "b6", "b7", "b8", "b9", "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7",
        "c8", "c9", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9"};
    static const int64_t batches[] = {6, 8, 9, 24, 36};
    eddy_scope *scope = eddy_scope_begin();
    random_state = seed;
    net n = {.batch = batches[below(5)], .has_loss = below(8) > 0};
    n.x = integers(EDDY_SHAPE(n.batch, CHANNELS, SIDE, SIDE));
    n.buffer = integers(EDDY_SHAPE(CHANNELS, SIDE, SIDE));
    for (n.weight_count = 0; n.weight_count < 4; n.weight_count++)
        n.weights[n.weight_count] = leaf(integers(
            n.weight_count % 2 ? EDDY_SHAPE(WIDTH, WIDTH) : EDDY_SHAPE(CHANNELS, CHANNELS, 3, 3)));
    eddy_tensor *before = eddy_clone(n.buffer), *out[OUTPUTS_MOST];
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes)));
    call(&n, 4 + (int)below(8));
    eddy_binding bindings[1 + OUTPUTS_MOST] = {{"x", n.x, EDDY_ROLE_INPUT}};
    for (int i = 0; i < n.output_count; i++)
        bindings[1 + i] = (eddy_binding){names[i], n.outputs[i], EDDY_ROLE_OUTPUT};
    eddy_program *program = eddy_record_end(&(eddy_bindings){bindings, 1 + n.output_count});
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    eddy_tensor *after = eddy_clone(n.buffer);
    char what[64];
    snprintf(what, sizeof(what), "seed %u, %s", seed, passes);
    for (int run = 0; run < 2; run++) {
        must(eddy_copy_into(before, n.buffer));
        must(eddy_program_run(program, EDDY_LIST(n.x), out));
        for (int i = 0; i < n.output_count; i++)
            must_have_same_bits(out[i], n.outputs[i], what);
        must_have_same_bits(n.buffer, after, what);
    }
    bool is_split = most_parts_of(program) > 1;
    eddy_program_release(&program);
    eddy_scope_end(scope);
    return is_split;
}

Test(subbatch, random_networks) {
    int split = 0;
    for (uint32_t seed = 0; seed < ROUNDS; seed++)
        split += try(seed, seed % 3 == 0   ? "subbatch"
                           : seed % 3 == 1 ? "all,subbatch"
                                           : "all,fast,subbatch");
    cr_assert_gt(split, ROUNDS / 16, "%d", split);
}
