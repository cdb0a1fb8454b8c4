/* Optimiser steps and the clipping of gradients on a CUDA device: the CPU's bits, whatever the lists. On the fake driver (tests/fake_cuda). */
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <tests/functional/random.h>
#include <tests/functional/twin.h>
#include <tests/rounds.h>

static const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};

#define ITEMS_MOST 1200
enum { PARAMS, GRADS, FIRST, SECOND, LISTS };

/* The same lists on both devices. */
typedef struct lists {
    eddy_tensor *here[LISTS][ITEMS_MOST], *there[LISTS][ITEMS_MOST];
    twin step;
    int64_t items;
} lists;

/* ---- lists ---- */

static void put(lists *to, int list, int64_t item, twin tensors) {
    to->here[list][item] = tensors.here;
    to->there[list][item] = tensors.there;
}

/* One of the layouts that items have: most lie alike in all lists. Squares of gradients are not negative. */
static twin some_tensor(eddy_dtype dtype, eddy_shape shape, int list, bool is_plain) {
    bool is_written = list != GRADS;
    twin made = random_below(12) == 0 ? twin_random(dtype, shape, is_written)
                                      : twin_numbers(dtype, shape, is_written);
    if (is_plain)
        made = (twin){eddy_contiguous(made.here), eddy_contiguous(made.there)};
    if (list == SECOND)
        made = (twin){eddy_mul(made.here, made.here), eddy_mul(made.there, made.there)};
    return made;
}

static eddy_shape some_shape(void) {
    switch (random_below(8)) {
    case 0:
        return EDDY_SHAPE(1 + random_below(9000));
    case 1:
        return EDDY_SHAPE(random_below(3), 1 + random_below(300));
    default:
        return twin_shape(3, 7);
    }
}

/* Some gradients are missing. */
static lists *lists_create(int64_t items, bool is_short) {
    lists *made = calloc(1, sizeof(*made));
    made->items = items;
    for (int64_t i = 0; i < items; i++) {
        eddy_dtype dtype = floats[random_below(4)];
        eddy_shape shape = is_short ? EDDY_SHAPE(1 + random_below(3)) : some_shape();
        bool is_plain = random_below(3) > 0;
        for (int l = 0; l < LISTS; l++)
            put(made, l, i, some_tensor(dtype, shape, l, is_plain));
        if (random_below(10) == 0)
            put(made, GRADS, i, (twin){EDDY_NONE, EDDY_NONE});
    }
    int64_t step = random_below(4) == 0 ? random_below(100000) : random_below(9);
    made->step = twin_of(&step, (eddy_shape){0}, EDDY_I64);
    return made;
}

static void expect_equal(const char *what, const lists *l) {
    for (int list = 0; list < LISTS; list++)
        for (int64_t i = 0; i < l->items; i++)
            if (l->here[list][i] != EDDY_NONE)
                twin_expect_equal(what, l->here[list][i], l->there[list][i]);
    twin_expect_equal("step", l->step.here, l->step.there);
}

static eddy_list list_of(eddy_tensor *const *tensors, int64_t items) {
    return (eddy_list){tensors, items};
}

/* ---- steps ---- */

typedef struct numbers {
    double lr, momentum, decay, beta1, beta2, eps;
    bool is_nesterov;
} numbers;

static numbers some_numbers(void) {
    return (numbers){.lr = 1e-3 * (double)random_below(300),
                     .momentum = 1e-2 * (double)random_below(100),
                     .decay = random_below(2) == 0 ? 0 : 1e-3 * (double)random_below(100),
                     .beta1 = 1e-2 * (double)(1 + random_below(99)),
                     .beta2 = 1 - 1e-3 * (double)(1 + random_below(100)),
                     .eps = random_below(3) == 0 ? 1e-3 : 1e-8,
                     .is_nesterov = random_below(2)};
}

typedef enum optimiser { SGD, MOMENTUM, ADAM, ADAMW, OPTIMISERS } optimiser;
static const char *const names[] = {"sgd_step", "sgd_momentum_step", "adam_step", "adamw_step"};

static eddy_status step(optimiser which, const numbers *n, eddy_tensor *const (*of)[ITEMS_MOST],
                        eddy_tensor *steps, int64_t items) {
    eddy_list all[LISTS];
    for (int l = 0; l < LISTS; l++)
        all[l] = list_of(of[l], items);
    eddy_scalar lr = eddy_scalar_float(n->lr);
    switch (which) {
    case SGD:
        return eddy_sgd_step(all[0], all[1], lr, EDDY_OPTIONS(sgd_step, .weight_decay = n->decay));
    case MOMENTUM:
        return eddy_sgd_momentum_step(all[0], all[1], all[2], lr, eddy_scalar_float(n->momentum),
                                      EDDY_OPTIONS(sgd_momentum_step, .weight_decay = n->decay,
                                                   .is_nesterov = n->is_nesterov));
    case ADAM:
        return eddy_adam_step(all[0], all[1], all[2], all[3], steps, lr,
                              EDDY_OPTIONS(adam_step, .beta1 = n->beta1, .beta2 = n->beta2,
                                           .eps = n->eps, .weight_decay = n->decay));
    default:
        return eddy_adamw_step(all[0], all[1], all[2], all[3], steps, lr,
                               EDDY_OPTIONS(adamw_step, .beta1 = n->beta1, .beta2 = n->beta2,
                                            .eps = n->eps, .weight_decay = n->decay));
    }
}

/* Several steps, as the states of one are what the next begins with. */
static void check_steps(optimiser which, int64_t items, bool is_short) {
    eddy_scope *scope = eddy_scope_begin();
    lists *l = lists_create(items, is_short);
    for (int k = 0; k < 3; k++) {
        numbers n = some_numbers();
        cr_assert_eq(step(which, &n, l->here, l->step.here, items), EDDY_OK);
        cr_assert_eq(step(which, &n, l->there, l->step.there, items), EDDY_OK);
        expect_equal(names[which], l);
    }
    free(l);
    eddy_scope_end(scope);
}

Test(cuda_optimise, steps_over_lists_of_every_kind, .timeout = 300) {
    for (int round = 0; round < ROUNDS_OF(60); round++)
        check_steps((optimiser)(round % OPTIMISERS), random_below(12), false);
    twin_expect_no_findings();
}

/* Around what one launch takes, and of a dtype each. */
Test(cuda_optimise, steps_over_more_items_than_a_launch_takes, .timeout = 300) {
    static const int64_t counts[] = {79, 80, 81, 160, 161, 330};
    for (int round = 0; round < 6; round++)
        check_steps((optimiser)(round % OPTIMISERS), counts[round], true);
    twin_expect_no_findings();
}

/* Around a chunk, and more than one of them. */
Test(cuda_optimise, steps_over_long_items, .timeout = 300) {
    static const int64_t counts[] = {4095, 4096, 4097, 12289, 70001};
    for (int which = 0; which < OPTIMISERS; which++)
        for (int c = 0; c < 5; c++) {
            eddy_scope *scope = eddy_scope_begin();
            lists *l = lists_create(2, true);
            for (int list = 0; list < LISTS; list++)
                put(l, list, 1,
                    some_tensor(floats[(which + c) % 4], EDDY_SHAPE(counts[c]), list, c % 2 == 0));
            numbers n = some_numbers();
            cr_assert_eq(step((optimiser)which, &n, l->here, l->step.here, 2), EDDY_OK);
            cr_assert_eq(step((optimiser)which, &n, l->there, l->step.there, 2), EDDY_OK);
            expect_equal(names[which], l);
            free(l);
            eddy_scope_end(scope);
        }
    twin_expect_no_findings();
}

/* ---- clipping ---- */

static void clip(lists *l, double most) {
    eddy_dtype dtype = floats[random_below(4)];
    twin norm = {EDDY_NONE, EDDY_NONE};
    if (random_below(4) > 0)
        norm = twin_random(dtype, (eddy_shape){0}, true);
    cr_assert_eq(
        eddy_clip_grad_norm(list_of(l->here[PARAMS], l->items), norm.here, eddy_scalar_float(most)),
        EDDY_OK);
    cr_assert_eq(eddy_clip_grad_norm(list_of(l->there[PARAMS], l->items), norm.there,
                                     eddy_scalar_float(most)),
                 EDDY_OK);
    if (norm.here != EDDY_NONE)
        twin_expect_equal("norm", norm.here, norm.there);
    expect_equal("clip_grad_norm", l);
}

Test(cuda_optimise, gradients_of_every_kind_are_clipped, .timeout = 300) {
    static const double norms[] = {0, 1e-3, 1, 1e3, 1e9};
    for (int round = 0; round < ROUNDS_OF(60); round++) {
        eddy_scope *scope = eddy_scope_begin();
        lists *l = lists_create(random_below(10), false);
        if (round % 5 == 0 && l->items > 0)
            put(l, PARAMS, random_below(l->items), (twin){EDDY_NONE, EDDY_NONE});
        clip(l, norms[random_below(5)]);
        free(l);
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

/* Around a block of a sum, a slice, and several of them; contiguous, at an odd address, and turned. */
Test(cuda_optimise, long_gradients_are_summed_in_the_same_tree, .timeout = 300) {
    static const int64_t counts[] = {31, 33, 1023, 1025, 15361, 16383, 16384, 16385, 17409, 100003};
    for (int c = 0; c < 10; c++)
        for (int kind = 0; kind < 3; kind++) {
            eddy_scope *scope = eddy_scope_begin();
            lists *l = lists_create(2, true);
            eddy_dtype dtype = floats[(c + kind) % 4];
            twin x = twin_numbers(dtype, EDDY_SHAPE(counts[c] + 1, 1 + (kind == 2)), true);
            if (kind == 2)
                x = (twin){eddy_transpose(x.here, 0, 1), eddy_transpose(x.there, 0, 1)};
            else
                x = (twin){eddy_narrow(x.here, 0, kind, counts[c]),
                           eddy_narrow(x.there, 0, kind, counts[c])};
            put(l, PARAMS, 0, x);
            clip(l, 1);
            free(l);
            eddy_scope_end(scope);
        }
    twin_expect_no_findings();
}

/* More slices than the norm's kernel loads at a time. */
Test(cuda_optimise, many_gradients_are_clipped, .timeout = 300) {
    eddy_scope *scope = eddy_scope_begin();
    lists *l = calloc(1, sizeof(*l));
    l->items = ITEMS_MOST;
    int64_t zero = 0;
    l->step = twin_of(&zero, (eddy_shape){0}, EDDY_I64);
    for (int64_t i = 0; i < l->items; i++) {
        twin x = twin_numbers(floats[random_below(4)], EDDY_SHAPE(1 + random_below(2)), true);
        for (int list = 0; list < LISTS; list++)
            put(l, list, i, list == PARAMS ? x : (twin){EDDY_NONE, EDDY_NONE});
    }
    clip(l, 2);
    free(l);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* ---- training ---- */

/* A net of three parameters that are expanded over the input: gradients go through sums, and dropout draws from a generator of its own. */
typedef struct net {
    eddy_tensor *params[3], *m[3], *v[3], *steps, *norm;
    eddy_generator *generator;
} net;

static net net_create(eddy_device device, eddy_tensor *const *first, uint64_t seed) {
    net made = {.generator = eddy_generator_create(seed)};
    cr_assert_eq(eddy_device_scope_begin(device), EDDY_OK);
    for (int i = 0; i < 3; i++) {
        made.params[i] = eddy_clone(eddy_to_device(first[i], device));
        made.m[i] = eddy_zeros_like(made.params[i], NULL);
        made.v[i] = eddy_zeros_like(made.params[i], NULL);
        cr_assert_eq(eddy_requires_grad_set(made.params[i], true), EDDY_OK);
    }
    made.steps = eddy_zeros((eddy_shape){0}, EDDY_I64, NULL);
    made.norm = eddy_zeros((eddy_shape){0}, EDDY_F32, NULL);
    eddy_device_scope_end();
    return made;
}

static eddy_tensor *train_once(net *n, eddy_tensor *x, eddy_tensor *target) {
    eddy_tensor *hidden = eddy_tanh(eddy_add(eddy_mul(x, n->params[0]), n->params[1]));
    hidden = eddy_dropout(hidden, EDDY_S(0.2), EDDY_OPTIONS(dropout, .generator = n->generator));
    eddy_tensor *y = eddy_sum(eddy_mul(hidden, n->params[2]), EDDY_AXES(1), NULL),
                *off = eddy_sub(y, target),
                *loss = eddy_mean(eddy_mul(off, off), EDDY_ALL_AXES, NULL), *grads[3];
    cr_assert_eq(eddy_backward(loss), EDDY_OK);
    cr_assert_eq(eddy_grads_of(EDDY_ARRAY(n->params), grads), EDDY_OK);
    cr_assert_eq(eddy_clip_grad_norm(EDDY_ARRAY(grads), n->norm, EDDY_S(0.5)), EDDY_OK);
    cr_assert_eq(eddy_adam_step(EDDY_ARRAY(n->params), EDDY_ARRAY(grads), EDDY_ARRAY(n->m),
                                EDDY_ARRAY(n->v), n->steps, EDDY_S(0.05), NULL),
                 EDDY_OK);
    cr_assert_eq(eddy_grads_zero(EDDY_ARRAY(n->params)), EDDY_OK);
    return loss;
}

Test(cuda_optimise, training_gives_the_same_bits, .timeout = 300) {
    for (int round = 0; round < 4; round++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_dtype dtype = round % 2 ? EDDY_F64 : EDDY_F32;
        int64_t rows = 1 + random_below(40), width = 1 + random_below(70);
        twin x = twin_numbers(dtype, EDDY_SHAPE(rows, width), false),
             target = twin_numbers(dtype, EDDY_SHAPE(rows), false);
        eddy_tensor *first[3];
        for (int i = 0; i < 3; i++)
            first[i] = twin_numbers(dtype, EDDY_SHAPE(width), false).here;
        uint64_t seed = random_next();
        net here = net_create(EDDY_CPU, first, seed), there = net_create(TWIN_THERE, first, seed);
        for (int k = 0; k < 8; k++) {
            twin_expect_equal("loss", train_once(&here, x.here, target.here),
                              train_once(&there, x.there, target.there));
            twin_expect_equal("norm", here.norm, there.norm);
            for (int i = 0; i < 3; i++)
                twin_expect_equal("parameter", here.params[i], there.params[i]);
        }
        eddy_generator_release(&here.generator);
        eddy_generator_release(&there.generator);
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}
