/* Recorded functions of two sizes that change independently: programs that follow from those of four pairs. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <string.h>
#include <tests/program/outcome.h>

#define WIDTH 4

typedef struct model {
    eddy_tensor *w, *v; /* leaves */
    int calls;
} model;

static model make_model(void) {
    must(eddy_seed(3));
    model m = {.w = eddy_randn(EDDY_SHAPE(WIDTH, WIDTH), EDDY_F32, NULL),
               .v = eddy_randn(EDDY_SHAPE(3, WIDTH), EDDY_F32, NULL)};
    must(eddy_requires_grad_set(m.w, true));
    must(eddy_requires_grad_set(m.v, true));
    return m;
}

static eddy_tensor *numbers(eddy_shape shape, int seed) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    return eddy_reshape(
        eddy_sin(eddy_arange(EDDY_S(seed), EDDY_S(seed + count), EDDY_S(1), EDDY_F32, NULL)),
        shape);
}

/* A batch of sequences: layers over all of it as one matrix, attention within each, a draw, and losses that divide by the count. */
static eddy_status attend(void *context, eddy_recorded_call *call) {
    model *m = context;
    eddy_tensor *x = call->inputs.items[0];
    int64_t batch = eddy_dim_of(x, 0), length = eddy_dim_of(x, 1);
    eddy_list params = EDDY_LIST(m->w, m->v);
    m->calls++;
    eddy_tensor *rows =
        eddy_linear(eddy_reshape(x, EDDY_SHAPE(batch * length, WIDTH)), m->w, EDDY_NONE);
    eddy_tensor *h =
        eddy_reshape(eddy_dropout(rows, EDDY_S(0.25), NULL), EDDY_SHAPE(batch, length, WIDTH));
    eddy_tensor *weights = eddy_softmax(
        eddy_div_s(eddy_matmul(h, eddy_transpose(h, 1, 2)), EDDY_S((double)length)), 2);
    eddy_tensor *y = eddy_linear(
        eddy_reshape(eddy_matmul(weights, h), EDDY_SHAPE(batch * length, WIDTH)), m->v, EDDY_NONE);
    eddy_tensor *loss =
        eddy_add(eddy_cross_entropy(
                     y, eddy_reshape(call->inputs.items[1], EDDY_SHAPE(batch * length)), NULL),
                 eddy_mean(eddy_square(h), EDDY_ALL_AXES, NULL));
    eddy_status status = eddy_backward(loss);
    eddy_no_grad_begin();
    for (int i = 0; i < 2 && status == EDDY_OK; i++)
        status =
            eddy_sub_into(params.items[i], eddy_mul_s(eddy_grad_of(params.items[i]), EDDY_S(0.125)),
                          params.items[i]);
    eddy_no_grad_end();
    call->outputs[0] = eddy_detach(loss);
    call->outputs[1] = eddy_sum(eddy_detach(weights), EDDY_AXES(0), NULL);
    return status == EDDY_OK ? eddy_grads_zero(params) : status;
}

typedef struct pair {
    int64_t m, n;
} pair;

#define STEPS_MOST 24

typedef struct found {
    double losses[STEPS_MOST], sums[STEPS_MOST], w;
} found;

static void run_steps(const pair *pairs, int count, bool is_recorded, found *f, int *calls,
                      char *text, size_t size) {
    model m = make_model();
    eddy_recorded *recorded =
        eddy_recorded_create(attend, &m, 2, EDDY_OPTIONS(recorded, .foretells_shapes = true));
    for (int i = 0; i < count; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *outputs[2],
            *x = numbers(EDDY_SHAPE(pairs[i].m, pairs[i].n, WIDTH), i),
            *labels = eddy_zeros(EDDY_SHAPE(pairs[i].m, pairs[i].n), EDDY_I64, NULL);
        eddy_recorded_call call = {.size = sizeof(call),
                                   .inputs = EDDY_LIST(x, labels),
                                   .outputs = outputs,
                                   .output_count = 2};
        must(is_recorded
                 ? eddy_recorded_run(recorded, EDDY_LIST(x, labels), (eddy_scalars){0}, outputs)
                 : attend(&m, &call));
        f->losses[i] = sum_of(outputs[0]);
        f->sums[i] = sum_of(outputs[1]);
        cr_assert_eq(eddy_dim_of(outputs[1], 0), pairs[i].n);
        eddy_scope_end(scope);
    }
    f->w = sum_of(m.w);
    *calls = m.calls;
    (void)eddy_recorded_explain(recorded, text, size);
    eddy_recorded_release(&recorded);
}

/* Returns how often the function ran. */
static int compare(const pair *pairs, int count, char *text, size_t size) {
    eddy_scope *scope = eddy_scope_begin();
    found by_calls, by_runs;
    int calls;
    run_steps(pairs, count, false, &by_calls, &calls, text, size);
    run_steps(pairs, count, true, &by_runs, &calls, text, size);
    for (int i = 0; i < count; i++) {
        cr_assert_eq(by_calls.losses[i], by_runs.losses[i], "step %d", i);
        cr_assert_eq(by_calls.sums[i], by_runs.sums[i], "step %d", i);
    }
    cr_assert_eq(by_calls.w, by_runs.w);
    eddy_scope_end(scope);
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(eddy_live_count(), 0);
    return calls;
}

#define COMPARE(text, ...)                                                                         \
    compare((const pair[]){__VA_ARGS__}, (int)(sizeof((pair[]){__VA_ARGS__}) / sizeof(pair)),      \
            text, sizeof(text))

Test(shapes_two, the_corners_of_a_range_foretell_what_is_within) {
    char text[8192];
    cr_assert_eq(COMPARE(text, {4, 6}, {4, 6}, {8, 6}, {8, 6}, {4, 11}, {4, 11}, {8, 11}, {8, 11},
                         {7, 9}, {5, 7}, {6, 10}, {8, 8}, {4, 11}, {5, 7}, {7, 9}, {6, 6}),
                 8 + 2, "%s: 7 x 9 checks them, and 5 x 7 leaves no step larger than 1", text);
}

/* A batch that is the same but for the last one, and lengths that are not. */
Test(shapes_two, any_four_that_say_enough_foretell) {
    char text[8192];
    cr_assert_eq(COMPARE(text, {8, 6}, {8, 6}, {8, 11}, {8, 11}, {8, 9}, {8, 7}, {5, 10}, {5, 10},
                         {8, 8}, {3, 12}, {3, 12}, {4, 9}, {7, 11}, {5, 6}, {6, 8}, {7, 10}, {6, 9},
                         {8, 12}),
                 5 + 4 + 3 + 1, "%s: of 8, then of two others, to check, and beyond", text);
}

Test(shapes_two, what_is_recorded_widens_the_range) {
    char text[8192];
    cr_assert_eq(COMPARE(text, {4, 6}, {4, 6}, {8, 6}, {8, 6}, {4, 10}, {4, 10}, {8, 10}, {8, 10},
                         {6, 8}, {9, 8}, {8, 12}, {9, 12}, {9, 6}, {7, 12}, {5, 11}),
                 8 + 6, "%s: 6 x 8 checks them, 9 and 12 are beyond, 9 x 6 and 11 out of step",
                 text);
}

/* ---- functions of two matrices ---- */

typedef struct counted {
    int calls;
} counted;

static eddy_status has_threshold(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_dim_of(x, 0) == 5 && eddy_dim_of(x, 1) == 7 ? eddy_neg(x) : eddy_abs(x);
    return EDDY_OK;
}

/* A loop of C: as many instructions as there are rows. */
static eddy_status adds_rows(void *context, eddy_recorded_call *call) {
    eddy_tensor *rows = call->inputs.items[0], *sum = eddy_select(rows, 0, 0);
    ((counted *)context)->calls++;
    for (int64_t i = 1; i < eddy_dim_of(rows, 0); i++)
        sum = eddy_add(sum, eddy_select(rows, 0, i));
    call->outputs[0] = eddy_neg(sum);
    return EDDY_OK;
}

static eddy_status negates(void *context, eddy_recorded_call *call) {
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_neg(call->inputs.items[0]);
    return EDDY_OK;
}

/* The last of three parts of the columns: how many these are depends on how the size divides. */
static eddy_status chunks(void *context, eddy_recorded_call *call) {
    eddy_tensor *parts[3];
    int64_t count;
    ((counted *)context)->calls++;
    eddy_status status = eddy_chunk(call->inputs.items[0], 3, 1, parts, 3, &count);
    call->outputs[0] = status == EDDY_OK ? eddy_exp(parts[2]) : NULL;
    return status;
}

static int run_pairs(eddy_recorded_body *body, const eddy_recorded_options *options,
                     const pair *pairs, int count, const char *explained) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0}, other = {0};
    char text[8192];
    eddy_recorded *recorded = eddy_recorded_create(body, &c, 1, options);
    for (int i = 0; i < count; i++) {
        eddy_scope *inner = eddy_scope_begin();
        eddy_tensor *x = numbers(EDDY_SHAPE(pairs[i].m, pairs[i].n), i), *y, *expected;
        eddy_recorded_call call = {
            .size = sizeof(call), .inputs = EDDY_LIST(x), .outputs = &expected, .output_count = 1};
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
        must(body(&other, &call));
        must_have_same_bits(y, expected, "of the call");
        eddy_scope_end(inner);
    }
    cr_assert_gt(eddy_recorded_explain(recorded, text, sizeof(text)), 0);
    cr_assert(strstr(text, explained), "%s", text);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(eddy_live_count(), 0);
    return c.calls;
}

#define FORETELLS EDDY_OPTIONS(recorded, .foretells_shapes = true)
#define PAIRS(...) (const pair[]){__VA_ARGS__}, (int)(sizeof((pair[]){__VA_ARGS__}) / sizeof(pair))

/* Each pair is recorded then, as without the option, but for what one size still says. */
Test(shapes_two, a_pair_that_is_not_as_foretold_ends_it) {
    cr_assert_eq(run_pairs(has_threshold, FORETELLS,
                           PAIRS({4, 6}, {4, 6}, {8, 6}, {8, 6}, {4, 11}, {4, 11}, {8, 11}, {8, 11},
                                 {5, 7}, {6, 8}, {6, 8}, {5, 7}, {5, 7}, {7, 10}),
                           "(f32[6, 8]): ran 2 times"),
                 8 + 2 + 2 + 1);
}

Test(shapes_two, one_size_is_still_known_by_itself) {
    cr_assert_eq(
        run_pairs(has_threshold, FORETELLS,
                  PAIRS({4, 6}, {4, 6}, {8, 6}, {8, 6}, {7, 6}, {5, 6}, {4, 11}, {4, 11}, {8, 11},
                        {8, 11}, {6, 6}),
                  "(f32[6, 6]): ran 0 times, replayed 1 times; as programs of other sizes"),
        5 + 4, "what two say of 6 x 6 was checked, what four say was not");
}

Test(shapes_two, one_size_is_learnt_where_two_were_given_up) {
    cr_assert_eq(
        run_pairs(has_threshold, FORETELLS,
                  PAIRS({4, 6}, {4, 6}, {8, 6}, {8, 6}, {4, 11}, {4, 11}, {8, 11}, {8, 11}, {5, 7},
                        {4, 9}, {4, 9}, {8, 9}, {8, 9}, {7, 9}, {5, 9}),
                  "(f32[5, 9]): ran 0 times, replayed 1 times; as programs of other sizes"),
        8 + 1 + 4 + 1);
}

/* One of the four has another op. */
static eddy_status has_odd_corner(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_dim_of(x, 0) == 8 && eddy_dim_of(x, 1) == 6 ? eddy_neg(x) : eddy_abs(x);
    return EDDY_OK;
}

Test(shapes_two, four_that_are_not_alike_foretell_nothing) {
    cr_assert_eq(run_pairs(has_odd_corner, FORETELLS,
                           PAIRS({4, 6}, {4, 6}, {8, 6}, {8, 6}, {4, 11}, {4, 11}, {8, 11}, {8, 11},
                                 {5, 7}, {6, 9}),
                           "(f32[m, n]): of m x n = 6 x 9 the programs of 4 x 11, 4 x 6, 8 x 6 and "
                           "8 x 11 foretell nothing"),
                 8 + 2);
}

Test(shapes_two, programs_of_which_none_follow_are_explained) {
    run_pairs(
        adds_rows, FORETELLS,
        PAIRS({4, 6}, {4, 6}, {6, 6}, {6, 6}, {4, 10}, {4, 10}, {7, 8}, {7, 8}, {5, 7}),
        "(f32[m, n]): of m x n = 5 x 7 the programs of 4 x 10, 4 x 6, 6 x 6 and 7 x 8 foretell "
        "nothing: they differ in more than sizes, or a number would not be whole\n");
}

/* Three even sizes are alike, and odd ones are not. */
Test(shapes_two, both_sizes_follow_in_steps) {
    cr_assert_eq(run_pairs(chunks, FORETELLS,
                           PAIRS({4, 6}, {4, 6}, {7, 6}, {7, 6}, {4, 10}, {4, 10}, {7, 10}, {7, 10},
                                 {5, 8}, {6, 7}),
                           "(f32[6, 7]): ran 1 times"),
                 8 + 1 + 1);
}

/* Each has one signature, of which nothing follows: more than there is room for points. */
Test(shapes_two, arguments_of_other_kinds_are_no_points) {
    static const pair pairs[] = {{4, 6}, {8, 6}, {4, 11}, {8, 11}};
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(negates, &c, 1, FORETELLS);
    for (int i = 0; i < 4; i++)
        for (int twice = 0; twice < 2; twice++) {
            eddy_tensor *y;
            for (int32_t rank = 3; i == 3 && rank < 16; rank++) {
                eddy_shape shape = {.rank = rank, .dims = {2, 3}};
                for (int32_t d = 2; d < rank; d++)
                    shape.dims[d] = 1;
                must(eddy_recorded_run(recorded, EDDY_LIST(numbers(shape, 1)), (eddy_scalars){0},
                                       &y));
            }
            eddy_tensor *x = numbers(EDDY_SHAPE(pairs[i].m, pairs[i].n), i);
            must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
        }
    int calls = c.calls;
    for (int64_t n = 7; n < 11; n++) {
        eddy_tensor *x = numbers(EDDY_SHAPE(6, n), 3), *y;
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
        must_have_same_bits(y, eddy_neg(x), "of the call");
    }
    cr_assert_leq(c.calls - calls, 3, "%d: one to check, and a step or two", c.calls - calls);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

/* Counts nothing: threads share it. */
static eddy_status multiplies_rows(void *context, eddy_recorded_call *call) {
    (void)context;
    eddy_tensor *x = call->inputs.items[0];
    call->outputs[0] = eddy_sin(eddy_matmul(x, eddy_transpose(x, 0, 1)));
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static void *call_many_pairs(void *context) {
    for (int i = 0; i < 120; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = numbers(EDDY_SHAPE(3 + i / 2 % 5, 4 + i / 4 % 6), i), *y;
        must(eddy_recorded_run(context, EDDY_LIST(x), (eddy_scalars){0}, &y));
        must_have_same_bits(y, eddy_sin(eddy_matmul(x, eddy_transpose(x, 0, 1))), "of the call");
        eddy_scope_end(scope);
    }
    return NULL;
}

/* With so little memory programs, classes and what they know come and go. */
Test(shapes_two, threads_share_what_they_learn) {
    for (int round = 0; round < 6; round++) {
        pthread_t threads[3];
        eddy_recorded *recorded = eddy_recorded_create(
            multiplies_rows, NULL, 1,
            EDDY_OPTIONS(recorded, .foretells_shapes = true, .most_bytes = round % 2 ? 20000 : 0));
        for (int i = 0; i < 3; i++)
            cr_assert_eq(pthread_create(&threads[i], NULL, call_many_pairs, recorded), 0);
        for (int i = 0; i < 3; i++)
            cr_assert_eq(pthread_join(threads[i], NULL), 0);
        eddy_recorded_release(&recorded);
    }
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- numbers that are none of a + b m + c n + d mn ---- */

static eddy_status squares(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    int64_t n = eddy_dim_of(x, 1);
    ((counted *)context)->calls++;
    call->outputs[0] =
        eddy_sin(eddy_reshape(eddy_matmul(eddy_transpose(x, 0, 1), x), EDDY_SHAPE(n * n)));
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* All along n = 6 the square of n is what the four say. */
Test(shapes_two, a_pair_beside_two_of_the_four_checks_nothing) {
    cr_assert_eq(run_pairs(squares, FORETELLS,
                           PAIRS({4, 6}, {4, 6}, {8, 6}, {8, 6}, {4, 11}, {4, 11}, {8, 11}, {8, 11},
                                 {5, 6}, {7, 11}, {6, 8}, {5, 8}, {7, 8}),
                           "(f32[6, 8]): ran 1 times"),
                 8 + 2 + 3, "the pairs of 6 and 11 lie between corners, and 6 x 8 ends it");
}

/* Two pairs of 3 columns, which the four say all about, leave no step that is larger than 1; 3 x 5 would have 23 elements. */
Test(shapes_two, pairs_that_check_nothing_do_not_add_up) {
    cr_assert_eq(run_pairs(squares, FORETELLS,
                           PAIRS({3, 4}, {3, 4}, {5, 7}, {5, 7}, {6, 3}, {6, 3}, {3, 3}, {3, 3},
                                 {2, 3}, {4, 3}, {3, 5}),
                           "(f32[3, 5]): ran 1 times"),
                 8 + 3);
}

static eddy_status has_odd_pair(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_dim_of(x, 0) == 5 && eddy_dim_of(x, 1) == 2 ? eddy_neg(x) : eddy_abs(x);
    return EDDY_OK;
}

/* It lies between two of the four, and is a sum of their differences. */
Test(shapes_two, nothing_follows_unchecked) {
    cr_assert_eq(
        run_pairs(has_odd_pair, FORETELLS,
                  PAIRS({4, 2}, {4, 2}, {6, 3}, {6, 3}, {3, 2}, {3, 2}, {2, 5}, {2, 5}, {5, 2}),
                  "(f32[5, 2]): ran 1 times"),
        8 + 1);
}

/* Of 3 x 8 and 5 x 6 neither is below the other: both are ends, from which 4 x 9 and 6 x 7 follow. */
Test(shapes_two, ends_may_lie_beside_each_other) {
    cr_assert_eq(run_pairs(negates, FORETELLS,
                           PAIRS({3, 8}, {3, 8}, {5, 6}, {5, 6}, {9, 12}, {9, 12}, {4, 11}, {4, 11},
                                 {6, 9}, {7, 10}, {8, 9}, {4, 9}, {6, 7}, {5, 10}, {3, 6}),
                           "(f32[6, 7]): ran 0 times, replayed 1 times"),
                 8 + 1 + 1, "6 x 9 checks them, and 3 x 6 is beyond");
}

static eddy_status first_of_both(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0],
                *y = eddy_cat(EDDY_LIST(eddy_select(x, 1, 0), eddy_select(x, 0, 0)), 0);
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_neg(eddy_slice(y, 0, 0, 16, 1)); /* it ends where there are fewer */
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

Test(shapes_two, what_is_cut_off_at_a_corner_is_seen) {
    cr_assert_eq(run_pairs(first_of_both, FORETELLS,
                           PAIRS({4, 2}, {4, 2}, {12, 2}, {12, 2}, {4, 8}, {4, 8}, {12, 8}, {12, 8},
                                 {4, 5}, {12, 5}),
                           "(f32[12, 5]): ran 1 times"),
                 8 + 2);
}

static eddy_status first_of_all(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_neg(eddy_slice(eddy_reshape(x, EDDY_SHAPE(-1)), 0, 0, 64, 1));
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* Batches of as many numbers: none of the four is above 10 x 10. */
Test(shapes_two, pairs_above_all_that_were_recorded_are_beyond) {
    cr_assert_eq(run_pairs(first_of_all, FORETELLS,
                           PAIRS({4, 16}, {4, 16}, {8, 8}, {8, 8}, {16, 4}, {16, 4}, {5, 6}, {5, 6},
                                 {6, 7}, {10, 10}, {16, 16}, {7, 7}),
                           "(f32[10, 10]): ran 1 times"),
                 8 + 4);
}

static eddy_status whole_words(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    int64_t count = eddy_count_of(x) / 8 * 8;
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_neg(eddy_narrow(eddy_reshape(x, EDDY_SHAPE(-1)), 0, 0, count));
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* The product of all five is a multiple of 8. */
Test(shapes_two, products_follow_in_steps) {
    cr_assert_eq(run_pairs(whole_words, FORETELLS,
                           PAIRS({4, 6}, {4, 6}, {8, 6}, {8, 6}, {4, 10}, {4, 10}, {8, 10}, {8, 10},
                                 {6, 8}, {6, 6}, {6, 10}),
                           "(f32[6, 6]): ran 1 times"),
                 8 + 3);
}

/* The option is that of functions of one size. */
Test(shapes_two, buckets_are_of_one_size) {
    cr_assert_eq(run_pairs(has_threshold,
                           EDDY_OPTIONS(recorded, .foretells_shapes = true, .most_size = 40),
                           PAIRS({4, 6}, {4, 6}, {8, 6}, {8, 6}, {6, 6}, {40, 6}, {41, 6}, {4, 11},
                                 {4, 11}, {7, 12}, {7, 12}, {6, 9}, {7, 8}, {41, 6}, {60, 60}),
                           "(f32[n, 6]), n above 40: ran 2 times; not replayed"),
                 5 + 1 + 4 + 1 + 1 + 1);
}

static eddy_status multiplies(void *context, eddy_recorded_call *call) {
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_matmul(call->inputs.items[0], call->inputs.items[1]);
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* Of dims that change with m none is the second size. */
Test(shapes_two, sizes_that_follow_from_the_first_are_none) {
    static const pair pairs[] = {{2, 3}, {2, 3}, {5, 3}, {5, 3}, {2, 6}, {2, 6}, {5, 6},
                                 {5, 6}, {3, 4}, {4, 4}, {3, 5}, {4, 6}, {2, 5}, {5, 4}};
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    char text[4096];
    eddy_recorded *recorded = eddy_recorded_create(multiplies, &c, 1, FORETELLS);
    for (int i = 0; i < 14; i++) {
        eddy_tensor *x = numbers(EDDY_SHAPE(pairs[i].m, 2 * pairs[i].m + 1), i),
                    *y = numbers(EDDY_SHAPE(2 * pairs[i].m + 1, pairs[i].n), i), *product;
        must(eddy_recorded_run(recorded, EDDY_LIST(x, y), (eddy_scalars){0}, &product));
        must_have_same_bits(product, eddy_matmul(x, y), "of the call");
    }
    cr_assert_gt(eddy_recorded_explain(recorded, text, sizeof(text)), 0);
    cr_assert_eq(c.calls, 8 + 3, "%s", text);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

/* ---- gradients through a replay ---- */

static eddy_status scores(void *context, eddy_recorded_call *call) {
    model *m = context;
    eddy_tensor *x = call->inputs.items[0];
    int64_t batch = eddy_dim_of(x, 0), length = eddy_dim_of(x, 1);
    m->calls++;
    eddy_tensor *h =
        eddy_tanh(eddy_linear(eddy_reshape(x, EDDY_SHAPE(batch * length, WIDTH)), m->w, EDDY_NONE));
    h = eddy_reshape(h, EDDY_SHAPE(batch, length, WIDTH));
    call->outputs[0] = eddy_softmax(eddy_matmul(h, eddy_transpose(h, 1, 2)), 2);
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* Also of a gradient. */
static void gradients_of(model *m, eddy_recorded *recorded, pair at, int seed, double sums[3]) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *y, *first, *x = numbers(EDDY_SHAPE(at.m, at.n, WIDTH), seed);
    must(eddy_requires_grad_set(x, true));
    eddy_recorded_call call = {
        .size = sizeof(call), .inputs = EDDY_LIST(x), .outputs = &y, .output_count = 1};
    must(recorded ? eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y)
                  : scores(m, &call));
    eddy_tensor *loss = eddy_sum(eddy_mul(y, numbers(eddy_shape_of(y), seed)), EDDY_ALL_AXES, NULL);
    must(eddy_backward_to(EDDY_LIST(loss), EDDY_LIST(x), (eddy_list){0},
                          EDDY_OPTIONS(backward, .creates_graph = true), &first));
    sums[0] = sum_of(first);
    must(eddy_backward(eddy_add(loss, eddy_sum(eddy_square(first), EDDY_ALL_AXES, NULL))));
    sums[1] = sum_of(eddy_grad_of(x));
    sums[2] = sum_of(eddy_grad_of(m->w));
    must(eddy_grads_zero(EDDY_LIST(m->w)));
    eddy_scope_end(scope);
}

Test(shapes_two, gradients_go_back_through_what_follows) {
    static const pair pairs[] = {{2, 3}, {2, 3}, {5, 3}, {5, 3}, {2, 6}, {2, 6}, {5, 6},
                                 {5, 6}, {3, 4}, {4, 4}, {4, 3}, {3, 6}, {4, 5}, {5, 5}};
    eddy_scope *scope = eddy_scope_begin();
    model m = make_model();
    eddy_recorded *recorded = eddy_recorded_create(scores, &m, 1, FORETELLS);
    for (int i = 0; i < 14; i++) {
        double by_calls[3], by_runs[3];
        gradients_of(&m, recorded, pairs[i], i, by_runs);
        int calls = m.calls;
        gradients_of(&m, NULL, pairs[i], i, by_calls);
        m.calls = calls;
        for (int k = 0; k < 3; k++)
            cr_assert_eq(by_calls[k], by_runs[k], "call %d, %d: %.17g and %.17g", i, k, by_calls[k],
                         by_runs[k]);
    }
    cr_assert_eq(m.calls, 8 + 3);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- random functions ---- */

#define OPS 14

typedef struct random_function {
    uint32_t seed, word;
    int calls;
} random_function;

static uint32_t draw(random_function *f, uint32_t count) {
    f->word = f->word * UINT32_C(1664525) + UINT32_C(1013904223);
    return (f->word >> 16) % count;
}

/* With dims as they would be of inputs of MANY and OTHER rows: whether dims are the same is not to depend on sizes. */
typedef struct sized {
    eddy_tensor *tensor;
    int64_t rows, columns;
} sized;

#define MANY 1000003
#define OTHER 1500007

static sized like(sized x, eddy_tensor *tensor) {
    return (sized){tensor, x.rows, x.columns};
}

static sized joined(sized x, sized y, int32_t axis) {
    return (sized){eddy_cat(EDDY_LIST(x.tensor, y.tensor), axis), x.rows + (axis == 0 ? y.rows : 0),
                   x.columns + (axis == 1 ? y.columns : 0)};
}

/* Of any shape, of two dims. */
static sized random_op(random_function *f, sized of, sized other) {
    eddy_tensor *x = of.tensor, *y = other.tensor;
    int64_t m = eddy_dim_of(x, 0), n = eddy_dim_of(x, 1);
    bool has_rows = of.columns == other.columns, has_columns = of.rows == other.rows;
    switch (draw(f, 12)) {
    case 0:
        return has_rows ? joined(of, other, 0) : like(of, eddy_tanh(x));
    case 1:
        return has_columns ? joined(of, other, 1) : like(of, eddy_sin(x));
    case 2:
        return like(of, has_rows && has_columns ? eddy_mul(x, y) : eddy_abs(x));
    case 3:
        return has_rows ? (sized){eddy_matmul(x, eddy_transpose(y, 0, 1)), of.rows, other.rows}
                        : like(of, eddy_neg(x));
    case 4:
        return (sized){eddy_clone(eddy_transpose(x, 0, 1)), of.columns, of.rows};
    case 5:
        return like(
            of, eddy_reshape(eddy_cumsum(eddy_reshape(x, EDDY_SHAPE(m * n)), 0), EDDY_SHAPE(m, n)));
    case 6:
        return like(of, eddy_softmax(x, (int32_t)draw(f, 2)));
    case 7:
        return like(of, eddy_sub(x, eddy_mean(x, EDDY_AXES(draw(f, 2)),
                                              EDDY_OPTIONS(mean, .keeps_dims = true))));
    case 8:
        return (sized){eddy_narrow(x, 1, 1, n - 1), of.rows, of.columns - 1};
    case 9:
        return like(of, eddy_flip(eddy_add_s(x, EDDY_S(m * n)), EDDY_AXES(0)));
    case 10:
        return like(of, eddy_add(x, eddy_rand(EDDY_SHAPE(m, n), EDDY_F32, NULL)));
    default:
        return like(of,
                    eddy_reshape(eddy_sin(eddy_reshape(eddy_transpose(x, 0, 1), EDDY_SHAPE(m * n))),
                                 EDDY_SHAPE(m, n)));
    }
}

/* None is large, or could have one row or column, of 3 and 6 rows. */
static bool is_moderate_dim(int64_t dim) {
    return dim <= 6 * OTHER && dim >= MANY - 1 && (dim >= OTHER - 3 || dim < OTHER - OPS);
}

static bool is_moderate(sized x) {
    return is_moderate_dim(x.rows) && is_moderate_dim(x.columns);
}

static eddy_status random_body(void *context, eddy_recorded_call *call) {
    random_function *f = context;
    sized made[OPS] = {{call->inputs.items[0], MANY, OTHER}, {call->inputs.items[1], OTHER, MANY}};
    f->calls++;
    f->word = f->seed;
    for (int i = 2; i < OPS; i++) {
        uint32_t other = draw(f, (uint32_t)i);
        made[i] = random_op(f, made[other], made[i - 1]);
        if (!made[i].tensor)
            return EDDY_INVALID_ARGUMENT;
        if (!is_moderate(made[i]))
            made[i] = like(made[i % 2], eddy_tanh(made[i % 2].tensor));
    }
    call->outputs[0] = eddy_sin(made[OPS - 1].tensor);
    call->outputs[1] = eddy_neg(made[OPS / 2].tensor);
    return EDDY_OK;
}

static double digest(eddy_tensor *x) {
    return sum_of(eddy_mul(x, numbers(eddy_shape_of(x), 1)));
}

#define CALLS 16

static int run_random(uint32_t seed, bool is_recorded, double *digests) {
    static const pair pairs[CALLS] = {{4, 6},  {4, 6},  {7, 6}, {7, 6}, {4, 10}, {4, 10},
                                      {7, 10}, {7, 10}, {6, 8}, {5, 7}, {6, 7},  {5, 9},
                                      {4, 8},  {7, 9},  {5, 6}, {6, 10}};
    eddy_scope *scope = eddy_scope_begin();
    random_function f = {.seed = seed};
    must(eddy_seed(seed));
    eddy_recorded *recorded = eddy_recorded_create(random_body, &f, 2, FORETELLS);
    for (int i = 0; i < CALLS; i++) {
        eddy_scope *inner = eddy_scope_begin();
        eddy_tensor *outputs[2], *x = numbers(EDDY_SHAPE(pairs[i].m, pairs[i].n), i),
                                 *y = numbers(EDDY_SHAPE(pairs[i].n, pairs[i].m), 2 * i);
        eddy_recorded_call call = {
            .size = sizeof(call), .inputs = EDDY_LIST(x, y), .outputs = outputs, .output_count = 2};
        must(is_recorded ? eddy_recorded_run(recorded, EDDY_LIST(x, y), (eddy_scalars){0}, outputs)
                         : random_body(&f, &call));
        *digests++ = digest(outputs[0]);
        *digests++ = digest(outputs[1]);
        eddy_scope_end(inner);
    }
    *digests = sum_of(eddy_rand(EDDY_SHAPE(2), EDDY_F32, NULL));
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    return f.calls;
}

Test(shapes_two, random_functions_give_the_bits_of_their_calls) {
    int foretold = 0;
    for (uint32_t seed = 1; seed <= 300; seed++) {
        double calls[2 * CALLS + 1], runs[2 * CALLS + 1];
        run_random(seed, false, calls);
        foretold += run_random(seed, true, runs) == 8 + 3;
        for (int i = 0; i < 2 * CALLS + 1; i++)
            cr_assert(calls[i] == runs[i] || (calls[i] != calls[i] && runs[i] != runs[i]),
                      "seed %u, %d: %.17g and %.17g", seed, i, calls[i], runs[i]);
    }
    cr_assert_gt(foretold, 150, "%d", foretold);
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(eddy_live_count(), 0);
}
