/* Recorded functions of many sizes: programs that follow from those of two. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <string.h>
#include <tests/program/outcome.h>

#define WIDE 5
#define CLASSES 3

typedef struct model {
    eddy_tensor *filter, *w, *v; /* leaves */
    int calls;
} model;

static eddy_tensor *leaf(eddy_shape shape) {
    eddy_tensor *made = eddy_randn(shape, EDDY_F32, NULL);
    must(eddy_requires_grad_set(made, true));
    return made;
}

static model make_model(void) {
    must(eddy_seed(5));
    return (model){.filter = leaf(EDDY_SHAPE(2, 1, 3, 3)),
                   .w = leaf(EDDY_SHAPE(WIDE, 2 * 2 * 2)),
                   .v = leaf(EDDY_SHAPE(CLASSES, WIDE))};
}

static eddy_tensor *images(int64_t count, int seed) {
    eddy_tensor *made =
        eddy_arange(EDDY_S(seed), EDDY_S(seed + 36 * count), EDDY_S(1), EDDY_F32, NULL);
    return eddy_sin(eddy_reshape(made, EDDY_SHAPE(count, 1, 6, 6)));
}

static eddy_tensor *labels(int64_t count, int seed) {
    return eddy_remainder_s(
        eddy_arange(EDDY_S(seed), EDDY_S(seed + count), EDDY_S(1), EDDY_I64, NULL),
        EDDY_S(CLASSES));
}

/* A step of training: a convolution and a pool, layers, a draw, two losses of which one divides by the count. */
static eddy_status train(void *context, eddy_recorded_call *call) {
    model *m = context;
    eddy_list params = EDDY_LIST(m->filter, m->w, m->v);
    m->calls++;
    eddy_tensor *h =
        eddy_max_pool2d(eddy_relu(eddy_conv2d(call->inputs.items[0], m->filter, EDDY_NONE, NULL)),
                        EDDY_PAIR(2, 2), NULL);
    h = eddy_flatten(h, 1, 3);
    h = eddy_dropout(eddy_tanh(eddy_linear(h, m->w, EDDY_NONE)), EDDY_S(0.25), NULL);
    eddy_tensor *y = eddy_linear(h, m->v, EDDY_NONE);
    eddy_tensor *loss = eddy_add(eddy_cross_entropy(y, call->inputs.items[1], NULL),
                                 eddy_mean(eddy_square(y), EDDY_ALL_AXES, NULL));
    eddy_status status = eddy_backward(loss);
    eddy_no_grad_begin();
    for (int i = 0; i < 3 && status == EDDY_OK; i++)
        status = eddy_sub_into(params.items[i],
                               eddy_mul_s(eddy_grad_of(params.items[i]), call->scalars[0]),
                               params.items[i]);
    eddy_no_grad_end();
    call->outputs[0] = eddy_detach(loss);
    call->outputs[1] = eddy_argmax(eddy_detach(y), EDDY_AXES(1), NULL);
    return status == EDDY_OK ? eddy_grads_zero(params) : status;
}

/* recorded: NULL for the function itself. */
static void run_step(model *m, eddy_recorded *recorded, int64_t count, int seed, double *loss,
                     double *best) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *outputs[2];
    eddy_scalar rate = EDDY_S(0.125 / (1 + seed % 3));
    eddy_list inputs = EDDY_LIST(images(count, seed), labels(count, seed));
    eddy_recorded_call call = {.size = sizeof(call),
                               .inputs = inputs,
                               .scalars = &rate,
                               .scalar_count = 1,
                               .outputs = outputs,
                               .output_count = 2};
    must(recorded ? eddy_recorded_run(recorded, inputs, EDDY_SCALARS(rate), outputs)
                  : train(m, &call));
    *loss = sum_of(outputs[0]);
    *best = sum_of(eddy_cast(outputs[1], EDDY_F32));
    cr_assert_eq(eddy_dim_of(outputs[1], 0), count);
    eddy_scope_end(scope);
}

static eddy_recorded *make(eddy_recorded_body *body, void *context, int64_t outputs) {
    return eddy_recorded_create(body, context, outputs,
                                EDDY_OPTIONS(recorded, .foretells_shapes = true));
}

static void expect_explained(eddy_recorded *recorded, const char *part, bool is_there) {
    char text[4096];
    cr_assert_gt(eddy_recorded_explain(recorded, text, sizeof(text)), 0);
    cr_assert_eq(strstr(text, part) != NULL, is_there, "%s", text);
}

static void expect_nothing_left(eddy_scope *scope) {
    eddy_scope_end(scope);
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(eddy_live_count(), 0);
}

#define STEPS 20

static eddy_tensor *twofold(void *context, eddy_tensor *gradient) {
    (void)context;
    return eddy_retain(eddy_mul_s(gradient, EDDY_S(2)));
}

/* The losses of all steps, and the sums of the parameters in the end. hooked_at: a gradient is doubled from that step on. */
static void train_all(const int64_t *sizes, int hooked_at, bool is_recorded, double *found,
                      int *calls) {
    model m = make_model();
    eddy_recorded *recorded = is_recorded ? make(train, &m, 2) : NULL;
    must(eddy_seed(9));
    for (int i = 0; i < STEPS; i++) {
        if (i == hooked_at)
            must(eddy_grad_hook_add(m.v, twofold, NULL, NULL));
        run_step(&m, recorded, sizes[i], i, &found[2 * i], &found[2 * i + 1]);
    }
    found[2 * STEPS] = sum_of(m.filter);
    found[2 * STEPS + 1] = sum_of(m.w);
    found[2 * STEPS + 2] = sum_of(eddy_rand(EDDY_SHAPE(4), EDDY_F32, NULL));
    *calls = m.calls;
    eddy_recorded_release(&recorded);
}

/* Returns how often the step itself ran. */
static int compare_steps(const int64_t *sizes, int hooked_at) {
    double calls[2 * STEPS + 3], runs[2 * STEPS + 3];
    int count;
    eddy_scope *scope = eddy_scope_begin();
    train_all(sizes, hooked_at, false, calls, &count);
    train_all(sizes, hooked_at, true, runs, &count);
    for (int i = 0; i < 2 * STEPS + 3; i++)
        cr_assert_eq(calls[i], runs[i], "%d: %.17g and %.17g", i, calls[i], runs[i]);
    expect_nothing_left(scope);
    return count;
}

Test(shapes, a_step_of_training_at_two_sizes_foretells_others) {
    static const int64_t sizes[STEPS] = {8, 8, 16, 16, 13, 13, 9,  14, 8, 10,
                                         9, 3, 3,  4,  40, 25, 16, 13, 7, 39};
    cr_assert_eq(compare_steps(sizes, STEPS), 7, "two of 8, two of 16, and one of 13, 3 and 40");
}

/* Nothing is foretold any more; what is recorded then shows the hook, and is no program. */
Test(shapes, a_hook_that_is_added_is_seen_at_all_sizes) {
    static const int64_t sizes[STEPS] = {8,  8,  16, 16, 13, 13, 9, 14, 10, 11,
                                         12, 10, 8,  16, 13, 9,  8, 16, 13, 11};
    cr_assert_gt(compare_steps(sizes, 8), 8);
}

/* ---- functions of one tensor ---- */

typedef struct counted {
    int calls;
} counted;

/* Rows of f32 that depend on the size in another way than the shapes do. */
static eddy_status has_threshold(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_dim_of(x, 0) == 12 ? eddy_neg(x) : eddy_abs(x);
    return EDDY_OK;
}

static eddy_status halves(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_exp(eddy_narrow(x, 0, 0, eddy_dim_of(x, 0) / 2));
    return EDDY_OK;
}

/* Joined, turned, padded, and a part of a part from behind. */
static eddy_status moves(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    int64_t count = eddy_dim_of(x, 0);
    ((counted *)context)->calls++;
    eddy_tensor *y =
        eddy_cat(EDDY_LIST(x, eddy_full(EDDY_SHAPE(3, 4), EDDY_S(2), EDDY_F32, NULL), x), 0);
    y = eddy_matmul(y, eddy_transpose(y, 0, 1));
    y = eddy_add(eddy_narrow(y, 1, count, count + 3), eddy_narrow(y, 1, count - 1, count + 3));
    call->outputs[0] = eddy_softmax(eddy_flip(y, EDDY_AXES(0)), 1);
    return EDDY_OK;
}

/* Strides are the square of the size. */
static eddy_status cubes(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = eddy_select(call->inputs.items[0], 1, 0);
    int64_t count = eddy_dim_of(x, 0);
    ((counted *)context)->calls++;
    eddy_tensor *y = eddy_mul(eddy_reshape(x, EDDY_SHAPE(count, 1, 1)),
                              eddy_add(eddy_reshape(x, EDDY_SHAPE(1, count, 1)), x));
    call->outputs[0] = eddy_sum(eddy_tanh(y), EDDY_AXES(1), NULL);
    return EDDY_OK;
}

/* Counts nothing: threads share it. */
static eddy_status sums(void *context, eddy_recorded_call *call) {
    counted c = {0};
    (void)context;
    return moves(&c, call);
}

static eddy_tensor *rows(int64_t count, double first) {
    eddy_tensor *made =
        eddy_arange(EDDY_S(first), EDDY_S(first + 4 * count), EDDY_S(1), EDDY_F32, NULL);
    return eddy_mul_s(eddy_reshape(made, EDDY_SHAPE(count, 4)), EDDY_S(0.0625));
}

/* Each size once, in order; the calls of the function in the end. */
static int run_sizes(eddy_recorded_body *body, eddy_recorded *recorded, counted *c,
                     const int64_t *sizes, int count) {
    for (int i = 0; i < count; i++) {
        eddy_scope *scope = eddy_scope_begin();
        counted other = {0};
        eddy_tensor *x = rows(sizes[i], -3 - i), *y, *expected;
        eddy_recorded_call call = {
            .size = sizeof(call), .inputs = EDDY_LIST(x), .outputs = &expected, .output_count = 1};
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
        must(body(&other, &call));
        cr_assert_eq(sum_of(eddy_cast(eddy_eq(y, expected), EDDY_F32)), eddy_count_of(y),
                     "size %lld, call %d", (long long)sizes[i], i);
        cr_assert_eq(eddy_count_of(y), eddy_count_of(expected));
        eddy_scope_end(scope);
    }
    return c->calls;
}

static int try_sizes(eddy_recorded_body *body, const int64_t *sizes, int count,
                     const char *explained, bool is_there) {
    counted c = {0};
    eddy_recorded *recorded = make(body, &c, 1);
    int calls = run_sizes(body, recorded, &c, sizes, count);
    expect_explained(recorded, explained, is_there);
    eddy_recorded_release(&recorded);
    return calls;
}
#define TRY(body, explained, is_there, ...)                                                        \
    try_sizes(body, (const int64_t[]){__VA_ARGS__},                                                \
              (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), explained, is_there)

Test(shapes, views_and_joined_rows_follow) {
    eddy_scope *scope = eddy_scope_begin();
    cr_assert_eq(TRY(moves, "(f32[7, 4]): ran 0 times, replayed 2 times; as programs", true, 6, 6,
                     9, 9, 8, 7, 8, 7),
                 5);
    expect_nothing_left(scope);
}

Test(shapes, products_of_sizes_follow) {
    eddy_scope *scope = eddy_scope_begin();
    cr_assert_eq(TRY(cubes, "(f32[7, 4]): ran 0", true, 6, 6, 9, 9, 8, 7, 8, 7), 5);
    expect_nothing_left(scope);
}

Test(shapes, a_size_that_is_not_as_foretold_ends_it) {
    eddy_scope *scope = eddy_scope_begin();
    cr_assert_eq(
        TRY(has_threshold, "as programs", false, 8, 8, 16, 16, 12, 13, 14, 12, 13, 14, 12, 8),
        2 + 2 + 2 + 2 + 2);
    expect_nothing_left(scope);
}

/* The last of three parts: its rows depend on how the size divides. */
static eddy_status chunks(void *context, eddy_recorded_call *call) {
    eddy_tensor *parts[3];
    int64_t count;
    ((counted *)context)->calls++;
    eddy_status status = eddy_chunk(call->inputs.items[0], 3, 0, parts, 3, &count);
    call->outputs[0] = status == EDDY_OK ? eddy_exp(parts[2]) : NULL;
    return status;
}

/* Three even sizes lie on a line that odd ones do not. */
Test(shapes, sizes_follow_in_the_steps_of_those_recorded) {
    eddy_scope *scope = eddy_scope_begin();
    cr_assert_eq(TRY(chunks, "(f32[7, 4]): ran 2", true, 6, 6, 10, 10, 8, 7, 9, 8, 7), 8);
    expect_nothing_left(scope);
}

/* What follows must be whole numbers. */
Test(shapes, half_of_an_odd_number_is_recorded) {
    eddy_scope *scope = eddy_scope_begin();
    cr_assert_eq(TRY(halves, "(f32[10, 4]): ran 0", true, 8, 8, 16, 16, 12, 14, 13, 13, 13, 10), 8);
    expect_nothing_left(scope);
}

Test(shapes, sizes_of_one_and_none_are_recorded) {
    eddy_scope *scope = eddy_scope_begin();
    cr_assert_eq(TRY(moves, "(f32[1, 4]): ran 2", true, 6, 6, 9, 9, 8, 1, 1, 1, 3, 2), 9);
    cr_assert_eq(TRY(halves, "(f32[0, 4]): ran 2", true, 0, 0, 0, 6, 6, 8, 8, 10, 12), 8);
    expect_nothing_left(scope);
}

/* Nothing follows where nobody has asked for it. */
Test(shapes, it_is_an_option) {
    eddy_scope *scope = eddy_scope_begin();
    static const int64_t sizes[] = {6, 6, 9, 9, 8, 7};
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(moves, &c, 1, NULL);
    cr_assert_eq(run_sizes(moves, recorded, &c, sizes, 6), 6);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

static eddy_status add_own(void *context, eddy_recorded_call *call) {
    call->outputs[0] = eddy_add(call->inputs.items[0], context);
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* An input that was in one place in two recordings is then in another. */
Test(shapes, what_is_recorded_anew_keeps_nothing_of_before) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_recorded *recorded = make(add_own, eddy_ones(EDDY_SHAPE(4), EDDY_F32, NULL), 1);
    for (int place = 0; place < 3; place++) {
        eddy_tensor *x = eddy_full(EDDY_SHAPE(4), EDDY_S(place), EDDY_F32, NULL), *y;
        for (int i = 0; i < 3; i++) {
            must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
            cr_assert_eq(sum_of(y), 4.0 * (place + 1));
        }
    }
    expect_explained(recorded, "ran 6 times, replayed 3 times; missed 2 times", true);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* ---- how much is kept ---- */

static eddy_status negates(void *context, eddy_recorded_call *call) {
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_neg(call->inputs.items[0]);
    return EDDY_OK;
}

/* Tensors of another rank are another class. Returns how often the function ran. */
static int run_rank(eddy_recorded *recorded, counted *c, int32_t rank, const int64_t *rows,
                    int count) {
    int before = c->calls;
    for (int i = 0; i < count; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_shape shape = {.rank = rank, .dims = {rows[i]}};
        for (int32_t d = 1; d < rank; d++)
            shape.dims[d] = 1;
        eddy_tensor *x = eddy_ones(shape, EDDY_F32, NULL), *y;
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
        cr_assert_eq(sum_of(y), -(double)rows[i]);
        eddy_scope_end(scope);
    }
    return c->calls - before;
}

static const int64_t learning[] = {4, 4, 9, 9, 7}, later[] = {6, 8};

Test(shapes, the_class_that_was_learnt_least_recently_makes_room) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    eddy_recorded *recorded = make(negates, &c, 1);
    for (int32_t rank = 1; rank <= 9; rank++)
        cr_assert_eq(run_rank(recorded, &c, rank, learning, 5), 5);
    cr_assert_eq(run_rank(recorded, &c, 1, later, 2), 2, "of nine classes the first is gone");
    for (int32_t rank = 2; rank <= 9; rank++)
        cr_assert_eq(run_rank(recorded, &c, rank, later, 2), 0, "rank %d", rank);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

static void *call_many_sizes(void *context) {
    for (int i = 0; i < 60; i++) {
        eddy_scope *scope = eddy_scope_begin();
        int64_t size = 3 + i % 9;
        eddy_tensor *x = eddy_ones(EDDY_SHAPE(size, 4), EDDY_F32, NULL), *y;
        must(eddy_recorded_run(context, EDDY_LIST(x), (eddy_scalars){0}, &y));
        cr_assert_eq(eddy_dim_of(y, 0), 2 * size + 3);
        cr_assert_float_eq(sum_of(y), (double)(2 * size + 3), 1e-4, "each row sums to 1");
        eddy_scope_end(scope);
    }
    return NULL;
}

Test(shapes, threads_share_what_they_learn) {
    for (int round = 0; round < 10; round++) {
        counted c = {0};
        pthread_t threads[3];
        eddy_recorded *recorded = make(sums, &c, 1);
        for (int i = 0; i < 3; i++)
            cr_assert_eq(pthread_create(&threads[i], NULL, call_many_sizes, recorded), 0);
        for (int i = 0; i < 3; i++)
            cr_assert_eq(pthread_join(threads[i], NULL), 0);
        eddy_recorded_release(&recorded);
    }
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- random functions ---- */

#define TENSORS 24
#define OPS 18

typedef struct random_function {
    uint32_t seed, word;
    eddy_tensor *w; /* a leaf, of 4 */
    bool trains;
    int calls;
    int most_joined; /* tensors of which one is made */
} random_function;

static uint32_t draw(random_function *f, uint32_t count) {
    f->word = f->word * UINT32_C(1664525) + UINT32_C(1013904223);
    return (f->word >> 16) % count;
}

/* All tensors have rows of 4, and as many as the size says, or a multiple of it, or more. */
static eddy_tensor *random_op(random_function *f, eddy_tensor *x, eddy_tensor *y) {
    int64_t n = eddy_dim_of(x, 0), m = eddy_dim_of(y, 0);
    switch (draw(f, 16)) {
    case 0:
        return eddy_cat(EDDY_LIST(x, y), 0);
    case 1:
        return n == m ? eddy_mul(x, y) : eddy_tanh(x);
    case 2:
        return eddy_mul(x, eddy_mean(y, EDDY_AXES(0), EDDY_OPTIONS(mean, .keeps_dims = true)));
    case 3:
        return eddy_narrow(x, 0, 1, n - 1);
    case 4:
        return eddy_clone(eddy_transpose(eddy_flip(eddy_transpose(x, 0, 1), EDDY_AXES(1)), 0, 1));
    case 5:
        return eddy_matmul(eddy_matmul(x, eddy_transpose(y, 0, 1)), y);
    case 6:
        return eddy_softmax(x, (int32_t)draw(f, 2));
    case 7:
        return eddy_reshape(eddy_cumsum(eddy_reshape(x, EDDY_SHAPE(4 * n)), 0), EDDY_SHAPE(n, 4));
    case 8:
        return eddy_dropout(x, EDDY_S(0.25), NULL);
    case 9:
        return eddy_add(x, f->w);
    case 10:
        return eddy_add(x, eddy_expand(eddy_sum(y, EDDY_ALL_AXES, NULL), EDDY_SHAPE(n, 4)));
    case 11:
        return eddy_mul(x,
                        eddy_reshape(eddy_arange(EDDY_S(0), EDDY_S(n), EDDY_S(1), EDDY_F32, NULL),
                                     EDDY_SHAPE(n, 1)));
    case 12:
        return eddy_div_s(eddy_sin(x), EDDY_S(n));
    case 13:
        return eddy_where(eddy_gt(x, eddy_flip(x, EDDY_AXES(0))), x, eddy_neg(x));
    case 14:
        return eddy_index_select(x, eddy_argsort(eddy_select(x, 1, draw(f, 4)), 0, NULL), 0);
    default:
        return eddy_sin(eddy_add(x, eddy_rand(EDDY_SHAPE(n, 4), EDDY_F32, NULL)));
    }
}

static eddy_status random_body(void *context, eddy_recorded_call *call) {
    random_function *f = context;
    eddy_tensor *made[TENSORS] = {call->inputs.items[0]};
    int joined[TENSORS] = {1}; /* of so many tensors that have as many rows as the size, or less */
    f->calls++;
    f->word = f->seed;
    for (int i = 1; i < OPS; i++) {
        uint32_t other = draw(f, (uint32_t)i);
        made[i] = random_op(f, made[other], made[i - 1]);
        if (!made[i])
            return EDDY_INVALID_ARGUMENT;
        bool is_join = eddy_dim_of(made[i], 0) > eddy_dim_of(made[other], 0);
        joined[i] = joined[other] + (is_join ? joined[i - 1] : 0);
        if (joined[i] > f->most_joined) {
            made[i] = eddy_tanh(made[0]);
            joined[i] = 1;
        }
    }
    eddy_tensor *all = eddy_sin(made[OPS - 1]);
    call->outputs[0] = eddy_detach(all);
    call->outputs[1] = eddy_detach(made[OPS / 2]);
    if (!f->trains || !eddy_requires_grad(all))
        return EDDY_OK;
    eddy_status status = eddy_backward(eddy_mean(all, EDDY_ALL_AXES, NULL));
    eddy_no_grad_begin();
    if (status == EDDY_OK)
        status = eddy_sub_into(f->w, eddy_mul_s(eddy_grad_of(f->w), EDDY_S(0.5)), f->w);
    eddy_no_grad_end();
    return status == EDDY_OK ? eddy_grads_zero(EDDY_LIST(f->w)) : status;
}

/* Sums of what comes out, with a weight for each place. */
static double digest(eddy_tensor *x) {
    eddy_tensor *flat = eddy_reshape(x, EDDY_SHAPE(-1));
    return sum_of(eddy_mul(
        flat, eddy_arange(EDDY_S(1), EDDY_S(1 + eddy_count_of(flat)), EDDY_S(1), EDDY_F32, NULL)));
}

/* options: NULL for the function itself. */
static int run_random(uint32_t seed, const eddy_recorded_options *options, const int64_t *sizes,
                      int count, double *found) {
    eddy_scope *scope = eddy_scope_begin();
    random_function f = {.seed = seed,
                         .trains = seed & 1,
                         .w = rows(1, 2),
                         .most_joined = sizes[count - 1] > 1000 ? 2 : 12};
    f.w = eddy_clone(eddy_select(f.w, 0, 0));
    must(eddy_requires_grad_set(f.w, f.trains));
    must(eddy_seed(seed));
    eddy_recorded *recorded = options ? eddy_recorded_create(random_body, &f, 2, options) : NULL;
    for (int i = 0; i < count; i++) {
        eddy_scope *inner = eddy_scope_begin();
        eddy_tensor *outputs[2], *x = rows(sizes[i], i);
        eddy_recorded_call call = {
            .size = sizeof(call), .inputs = EDDY_LIST(x), .outputs = outputs, .output_count = 2};
        must(options ? eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, outputs)
                     : random_body(&f, &call));
        *found++ = digest(outputs[0]);
        *found++ = digest(outputs[1]);
        eddy_scope_end(inner);
    }
    *found++ = sum_of(f.w);
    *found++ = sum_of(eddy_rand(EDDY_SHAPE(2), EDDY_F32, NULL));
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    return f.calls;
}

#define SIZES_MOST 20

/* Whether the function ran as often as is wanted. */
static bool compare_random(uint32_t seed, const eddy_recorded_options *options,
                           const int64_t *sizes, int count, int wanted) {
    double calls[2 * SIZES_MOST + 2], runs[2 * SIZES_MOST + 2];
    run_random(seed, NULL, sizes, count, calls);
    int ran = run_random(seed, options, sizes, count, runs);
    for (int i = 0; i < 2 * count + 2; i++)
        cr_assert(calls[i] == runs[i] || (calls[i] != calls[i] && runs[i] != runs[i]),
                  "seed %u, %d: %.17g and %.17g", seed, i, calls[i], runs[i]);
    return ran == wanted;
}

Test(shapes, random_functions_of_many_sizes_give_the_bits_of_their_calls) {
    static const int64_t sizes[] = {4, 4, 8, 8, 6, 6, 5, 7, 5, 6, 3, 8, 9, 7, 3};
    int foretold = 0;
    for (uint32_t seed = 1; seed <= 150; seed++)
        foretold +=
            compare_random(seed, EDDY_OPTIONS(recorded, .foretells_shapes = true), sizes, 15, 8);
    cr_assert_gt(foretold, 75, "%d", foretold);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(shapes, random_functions_of_sizes_in_buckets_give_the_bits_of_their_calls) {
    static const int64_t sizes[] = {4, 4, 8, 8, 6, 6, 5, 7, 3, 2, 12, 40, 33, 26, 39, 41, 7, 40};
    int foretold = 0;
    for (uint32_t seed = 1; seed <= 150; seed++)
        foretold += compare_random(
            seed, EDDY_OPTIONS(recorded, .foretells_shapes = true, .most_size = 40), sizes, 18, 7);
    cr_assert_gt(foretold, 60, "%d", foretold);
    cr_assert_eq(eddy_live_count(), 0);
}

/* At the largest size elementwise ops are groups. */
Test(shapes, random_functions_of_large_sizes_in_buckets_give_the_bits_of_their_calls) {
    static const int64_t sizes[] = {4, 4, 8, 8, 6, 6, 5, 7, 2, 1040, 333, 12, 1024, 1030};
    int foretold = 0;
    for (uint32_t seed = 1; seed <= 40; seed++)
        foretold += compare_random(
            seed, EDDY_OPTIONS(recorded, .foretells_shapes = true, .most_size = 1040), sizes, 14,
            6);
    cr_assert_gt(foretold, 15, "%d", foretold);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Operands without dims have no words. */
static eddy_status sine(void *context, eddy_recorded_call *call) {
    (void)context;
    call->outputs[0] = eddy_sin(call->inputs.items[0]);
    return EDDY_OK;
}

Test(shapes, numbers_alone) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_recorded *recorded = eddy_recorded_create(sine, NULL, 1, NULL);
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(), EDDY_F32, NULL), *y;
    for (int i = 0; i < 4; i++) {
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
        must_have_same_bits(y, eddy_sin(x), "a sine");
    }
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

/* A loop of C: the program of each size has as many instructions as there are rows. */
static eddy_status adds_rows(void *context, eddy_recorded_call *call) {
    eddy_tensor *rows = call->inputs.items[0], *sum = eddy_select(rows, 0, 0);
    (void)context;
    for (int64_t i = 1; i < eddy_dim_of(rows, 0); i++)
        sum = eddy_add(sum, eddy_select(rows, 0, i));
    call->outputs[0] = sum;
    return sum ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

Test(shapes, programs_of_which_none_follow_are_explained) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_recorded *recorded = make(adds_rows, NULL, 1);
    for (int64_t size = 1; size <= 6; size++)
        for (int i = 0; i < 3; i++) {
            eddy_tensor *sum;
            must(eddy_recorded_run(recorded,
                                   EDDY_LIST(eddy_ones(EDDY_SHAPE(size, 2), EDDY_F32, NULL)),
                                   (eddy_scalars){0}, &sum));
            cr_assert_eq(sum_of(sum), 2 * (double)size);
        }
    expect_explained(
        recorded,
        "(f32[n, 2]): of n = 6 the programs of 2 and 3 foretell nothing: they differ in "
        "more than sizes, or a number would not be whole\n",
        true);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}
