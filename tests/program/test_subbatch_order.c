/* The pass `subbatch` where other instructions lie between those of a region, and need what it does, or are needed by it. Numbers are small integers, so that sums are exact in any order, and
 * all bits those of the calls. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <program/program.h>
#include <stdlib.h>
#include <string.h>
#include <tests/program/outcome.h>
#include <tests/program/parts.h>
#include <tests/program/taped.h>
#include <tests/program/texts.h>

#define ITEMS 120
#define PASSES "all,subbatch"

/* From -2 to 2. */
static eddy_tensor *integers(eddy_shape shape, eddy_dtype dtype, int seed) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    eddy_tensor *all =
        eddy_arange(EDDY_S(seed), EDDY_S(seed + 7 * count), EDDY_S(7), EDDY_I64, NULL);
    all = eddy_sub_s(
        eddy_remainder_s(eddy_remainder_s(eddy_mul(all, all), EDDY_S(1009)), EDDY_S(5)), EDDY_S(2));
    return eddy_reshape(eddy_cast(all, dtype), shape);
}

/* ---- where it stays as it is, and where other instructions lie between ---- */

typedef struct chain {
    eddy_tensor *x, *h, *w, *row, *buffer;
} chain;

static chain make_chain(eddy_dtype dtype) {
    return (chain){.x = integers(EDDY_SHAPE(ITEMS, 40), dtype, 1),
                   .h = integers(EDDY_SHAPE(ITEMS, 40), dtype, 2),
                   .w = integers(EDDY_SHAPE(40, 40), dtype, 3),
                   .row = integers(EDDY_SHAPE(40), dtype, 5),
                   .buffer = integers(EDDY_SHAPE(3, 3), dtype, 4)};
}

static eddy_tensor *weight_gradient(eddy_tensor *g, eddy_tensor *h) {
    return eddy_matmul(eddy_transpose(eddy_narrow(g, 1, 0, 3), 0, 1), eddy_narrow(h, 1, 0, 3));
}

/* Each gives two gradients of weights. */
static void plain(const chain *c, eddy_tensor **y) {
    eddy_tensor *g = eddy_matmul(eddy_neg(c->x), c->w);
    y[0] = weight_gradient(g, c->h);
    y[1] = weight_gradient(eddy_mul(g, c->h), c->h);
}
/* The batch is the second dim in memory. */
static void transposed(const chain *c, eddy_tensor **y) {
    eddy_tensor *g =
        eddy_transpose(eddy_matmul(eddy_transpose(c->w, 0, 1), eddy_transpose(c->x, 0, 1)), 0, 1);
    y[0] = weight_gradient(g, c->h);
    y[1] = weight_gradient(eddy_mul(g, c->h), c->h);
}
/* Each item needs the one before it. */
static void shifted(const chain *c, eddy_tensor **y) {
    eddy_tensor *g = eddy_matmul(eddy_neg(c->x), c->w);
    y[0] =
        weight_gradient(eddy_mul(eddy_narrow(g, 0, 1, ITEMS - 1), eddy_narrow(g, 0, 0, ITEMS - 1)),
                        eddy_narrow(c->h, 0, 0, ITEMS - 1));
    y[1] = weight_gradient(g, c->h);
}
/* Each item needs all of the others: by a view that repeats them, as the weights of a product, half of them beside the other half. */
static void repeated(const chain *c, eddy_tensor **y) {
    eddy_tensor *g = eddy_mul_s(c->x, EDDY_S(2)),
                *rows = eddy_unsqueeze(eddy_narrow(g, 1, 0, 2), 0);
    y[0] = eddy_sum(eddy_mul_s(eddy_expand(rows, EDDY_SHAPE(ITEMS, ITEMS, 2)), EDDY_S(3)),
                    EDDY_AXES(0, 1), NULL);
    y[1] = weight_gradient(g, c->h);
}
static void as_weights(const chain *c, eddy_tensor **y) {
    eddy_tensor *g = eddy_mul_s(c->x, EDDY_S(2));
    y[0] = weight_gradient(eddy_neg(eddy_matmul(c->h, eddy_transpose(g, 0, 1))), c->h);
    y[1] = weight_gradient(g, c->h);
}
static void halved(const chain *c, eddy_tensor **y) {
    eddy_tensor *g = eddy_matmul(eddy_neg(c->x), c->w);
    y[0] = weight_gradient(
        eddy_mul(eddy_narrow(g, 0, 0, ITEMS / 2), eddy_narrow(g, 0, ITEMS / 2, ITEMS / 2)),
        eddy_narrow(c->h, 0, 0, ITEMS / 2));
    y[1] = weight_gradient(g, c->h);
}
/* Another op has it as well. */
static void flipped(const chain *c, eddy_tensor **y) {
    eddy_tensor *u = eddy_neg(c->x), *t = eddy_matmul(u, c->w), *m = eddy_matmul(t, c->w);
    eddy_tensor *g = eddy_mul(eddy_mul(m, t), u);
    y[0] = weight_gradient(g, c->h);
    y[1] = eddy_sum(eddy_flip(g, EDDY_AXES(0)), EDDY_AXES(1), NULL);
}
/* In between a tensor is read and written that others see, before the chain ends. */
static void written_between(const chain *c, eddy_tensor **y) {
    eddy_tensor *g = eddy_matmul(eddy_neg(c->x), c->w);
    y[0] = weight_gradient(g, c->h);
    must(eddy_add_into(c->buffer, y[0], c->buffer));
    y[1] = weight_gradient(eddy_mul(g, c->h), c->h);
    must(eddy_mul_into(c->buffer, y[1], c->buffer));
}
/* The second part reads what the first has written as a whole. */
static void needed_between(const chain *c, eddy_tensor **y) {
    eddy_tensor *g = eddy_matmul(eddy_neg(c->x), c->w);
    y[0] = weight_gradient(g, c->h);
    eddy_tensor *t = eddy_mul(g, eddy_sign(eddy_sum(y[0], EDDY_ALL_AXES, NULL)));
    y[1] = weight_gradient(eddy_mul(eddy_matmul(eddy_matmul(t, c->w), c->w), g), c->h);
}
/* An operand of the chain is overwritten before the chain ends. */
static void overwritten(const chain *c, eddy_tensor **y) {
    eddy_tensor *g = eddy_matmul(eddy_neg(c->x), c->w);
    y[0] = weight_gradient(g, eddy_add(c->h, c->row));
    must(eddy_neg_into(c->row, c->row));
    y[1] = weight_gradient(eddy_mul(g, c->h), c->h);
    y[2] = eddy_clone(c->row);
}
/* And is read again by a later part of the chain, which comes of all items itself: no order has both in a row. */
static void read_before_and_after(const chain *c, eddy_tensor **y) {
    eddy_tensor *all = eddy_sum(c->x, EDDY_ALL_AXES, NULL);
    eddy_tensor *g = eddy_matmul(eddy_mul(c->x, all), c->w);
    y[0] = weight_gradient(eddy_mul(g, c->row), c->h);
    must(eddy_neg_into(c->row, c->row));
    y[1] = weight_gradient(eddy_add(g, c->row), c->h);
    y[2] = eddy_clone(c->row);
}
/* The way from one gradient to the other goes through another chain. */
static void crossed(const chain *c, eddy_tensor **y) {
    eddy_tensor *t = eddy_neg(c->x);
    y[2] = eddy_mul(t, c->h);
    eddy_tensor *u = eddy_neg(y[2]);
    y[3] = eddy_mul(u, u);
    y[0] = weight_gradient(eddy_mul_s(eddy_mul(t, y[3]), EDDY_S(2)), c->h);
    y[1] = weight_gradient(eddy_mul_s(u, EDDY_S(3)), c->h);
}
/* What is handed on is written twice. */
static void in_place(const chain *c, eddy_tensor **y) {
    eddy_tensor *g = eddy_matmul(eddy_neg(c->x), c->w);
    must(eddy_add_into(g, c->h, g));
    y[0] = weight_gradient(g, c->h);
    must(eddy_mul_into(g, c->h, g));
    y[1] = weight_gradient(g, c->h);
}
/* Part of what is handed on is written by itself. */
static void written_in_part(const chain *c, eddy_tensor **y) {
    eddy_tensor *g = eddy_matmul(eddy_neg(c->x), c->w);
    must(eddy_add_into(eddy_narrow(g, 1, 0, 20), eddy_narrow(c->h, 1, 20, 20),
                       eddy_narrow(g, 1, 0, 20)));
    y[0] = weight_gradient(g, c->h);
    must(eddy_neg_into(eddy_narrow(g, 0, 0, 4), eddy_narrow(g, 0, 8, 4)));
    y[1] = weight_gradient(g, c->h);
}
/* Look-ups may fail: they keep their order, though the first one needs what the chain gives, and the second one does not. */
static void looked_up(const chain *c, eddy_tensor **y) {
    eddy_tensor *g = eddy_matmul(eddy_neg(c->x), c->w);
    y[0] = weight_gradient(g, c->h);
    eddy_tensor *row = eddy_remainder_s(eddy_sum(y[0], EDDY_ALL_AXES, NULL), EDDY_S(3));
    row = eddy_reshape(eddy_cast(row, EDDY_I64), EDDY_SHAPE(1));
    y[2] = eddy_index_select(c->buffer, row, 0);
    y[3] = eddy_index_select(c->w, eddy_full(EDDY_SHAPE(1), EDDY_S(2), EDDY_I64, NULL), 0);
    y[1] = weight_gradient(eddy_mul(g, c->h), c->h);
}

/* Norms and a softmax whose statistics are those of all items; integers again, as signs. */
static void normed(const chain *c, eddy_tensor **y) {
    eddy_tensor *g = eddy_layer_norm(eddy_neg(c->x), EDDY_NONE, EDDY_NONE, 2, NULL);
    y[0] = weight_gradient(eddy_mul_s(eddy_sign(g), EDDY_S(2)), c->h);
    y[1] = eddy_neg(y[0]);
}
static void softened(const chain *c, eddy_tensor **y) {
    eddy_tensor *g = eddy_softmax(eddy_neg(c->x), 0);
    y[0] = weight_gradient(eddy_sign(eddy_sub_s(g, EDDY_S(0.05))), c->h);
    y[1] = eddy_neg(y[0]);
}
/* What was made as a whole is overwritten as a whole. */
static void overwritten_whole(const chain *c, eddy_tensor **y) {
    eddy_tensor *made = eddy_flip(c->x, EDDY_AXES(1));
    y[2] = eddy_sum(made, EDDY_AXES(1), NULL);
    eddy_tensor *g = eddy_matmul(eddy_neg(c->x), c->w);
    must(eddy_mul_into(g, c->h, made));
    y[0] = weight_gradient(made, c->h);
    y[1] = weight_gradient(eddy_mul(g, c->h), c->h);
}
/* No gradient of weights: the results are those of each item. */
static void without_weights(const chain *c, eddy_tensor **y) {
    eddy_tensor *g = eddy_matmul(eddy_neg(c->x), c->w);
    y[0] = eddy_sum(eddy_matmul(g, c->w), EDDY_AXES(0), NULL);
    y[1] = eddy_sum(g, EDDY_AXES(0), NULL);
}
/* An elementwise op writes into what it reads: no more is alive than elsewhere. */
static void reused(const chain *c, eddy_tensor **y) {
    y[1] = eddy_sum(eddy_flip(c->x, EDDY_AXES(1)), EDDY_ALL_AXES, NULL);
    y[0] = weight_gradient(eddy_mul_s(eddy_neg(c->x), EDDY_S(2)), c->h);
}
/* Random numbers count the elements of the whole batch, and so does their gradient. */
static void dropped(const chain *c, eddy_tensor **y) {
    eddy_tensor *w = leaf(eddy_clone(c->w)), *h = eddy_matmul(c->x, w), *grad;
    eddy_tensor *z = eddy_neg(eddy_dropout(eddy_neg(h), EDDY_S(0.5), NULL));
    eddy_tensor *seed = eddy_sign(eddy_sub(z, eddy_max(z, EDDY_ALL_AXES, NULL)));
    must(eddy_backward_to(EDDY_LIST(eddy_mul(z, c->h)), EDDY_LIST(w), EDDY_LIST(eddy_detach(seed)),
                          NULL, &grad));
    y[0] = grad;
    y[1] = weight_gradient(eddy_matmul(eddy_neg(c->x), c->w), c->h);
}
/* Inputs: what is handed on, and h. */
static eddy_status way(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    eddy_tensor *g = eddy_mul(inputs.items[0], inputs.items[1]);
    outputs[0] = weight_gradient(eddy_mul(eddy_mul_s(g, EDDY_S(2)), g), inputs.items[1]);
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}
/* In a branch, that reads what was made before it. */
static void branched(const chain *c, eddy_tensor **y) {
    eddy_tensor *t = eddy_neg(c->x),
                *is_large = eddy_gt_s(eddy_sum(c->x, EDDY_ALL_AXES, NULL), EDDY_S(-1e6));
    y[0] = weight_gradient(eddy_matmul(t, c->w), c->h);
    must(eddy_cond(is_large, way, way, NULL, EDDY_LIST(t, c->h), 1, NULL, &y[1]));
}
static eddy_status is_below(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_lt_s(inputs.items[0], EDDY_S(3));
    return EDDY_OK;
}
/* Carried: a count, a sum of gradients, x and h. */
static eddy_status one_more(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const chain *c = context;
    eddy_tensor *x = inputs.items[2], *h = inputs.items[3];
    eddy_tensor *g = eddy_matmul(eddy_mul(x, h), c->w);
    outputs[0] = eddy_add_s(inputs.items[0], EDDY_S(1));
    outputs[1] = eddy_add(inputs.items[1], weight_gradient(g, h));
    outputs[2] = eddy_neg(x);
    outputs[3] = h;
    return EDDY_OK;
}
/* In the body of a loop. */
static void looped(const chain *c, eddy_tensor **y) {
    eddy_tensor *outputs[4];
    must(eddy_while(is_below, one_more, (void *)c,
                    EDDY_LIST(eddy_sum(eddy_mul_s(c->row, EDDY_S(0)), EDDY_ALL_AXES, NULL),
                              c->buffer, c->x, c->h),
                    EDDY_OPTIONS(while, .most_steps = 5), outputs));
    y[0] = outputs[1];
    y[1] = weight_gradient(eddy_matmul(eddy_neg(c->x), c->w), c->h);
}

static const struct {
    const char *name;
    void (*call)(const chain *c, eddy_tensor **y);
    bool is_split;
} chains[] = {
    {"plain", plain, true},
    {"transposed", transposed, false},
    {"shifted", shifted, false},
    {"repeated", repeated, false},
    {"as_weights", as_weights, true},
    {"halved", halved, false},
    {"flipped", flipped, false},
    {"written_between", written_between, true},
    {"needed_between", needed_between, true},
    {"overwritten", overwritten, true},
    {"read_before_and_after", read_before_and_after, false},
    {"crossed", crossed, false},
    {"in_place", in_place, true},
    {"written_in_part", written_in_part, false},
    {"looked_up", looked_up, true},
    {"normed", normed, false},
    {"softened", softened, false},
    {"overwritten_whole", overwritten_whole, false},
    {"without_weights", without_weights, false},
    {"reused", reused, false},
    {"dropped", dropped, false},
    {"branched", branched, true},
    {"looped", looped, true},
};

#define OUTPUTS 4

static void expect_chain(size_t i, eddy_dtype dtype, bool is_split, const char *passes) {
    static const char *const names[OUTPUTS] = {"a", "b", "c", "d"};
    chain c = make_chain(dtype);
    eddy_tensor *state[2] = {c.buffer, c.row}, *before[2], *after[2], *y[OUTPUTS] = {NULL},
                *out[OUTPUTS];
    eddy_binding bindings[2 + OUTPUTS] = {{"x", c.x, EDDY_ROLE_INPUT}, {"h", c.h, EDDY_ROLE_INPUT}};
    int count = 0;
    for (int k = 0; k < 2; k++)
        before[k] = eddy_clone(state[k]);
    must(eddy_seed(7));
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes)));
    chains[i].call(&c, y);
    for (; count < OUTPUTS && y[count]; count++)
        bindings[2 + count] = (eddy_binding){names[count], y[count], EDDY_ROLE_OUTPUT};
    eddy_program *program = eddy_record_end(&(eddy_bindings){bindings, 2 + count});
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    for (int k = 0; k < 2; k++) {
        after[k] = eddy_clone(state[k]);
        must(eddy_copy_into(before[k], state[k]));
    }
    must(eddy_seed(7));
    must(eddy_program_run(program, EDDY_LIST(c.x, c.h), out));
    char *text = printed_of(program, false);
    cr_assert_eq(most_parts_of(program) > 1, is_split, "%s\n%s", chains[i].name, text);
    const char *first = strstr(text, "index_select");
    cr_assert(!first || strstr(first, "f64[3, 3]") < strchr(first, '\n') || dtype != EDDY_F64,
              "the order of look-ups has changed: %s", text);
    free(text);
    for (int k = 0; k < count; k++)
        must_have_same_bits(out[k], y[k], chains[i].name);
    for (int k = 0; k < 2; k++)
        must_have_same_bits(state[k], after[k], chains[i].name);
    eddy_program_release(&program);
}

Test(subbatch, chains_with_other_instructions_between) {
    eddy_scope *scope = eddy_scope_begin();
    for (size_t i = 0; i < sizeof(chains) / sizeof(*chains); i++) {
        expect_chain(i, EDDY_F64, chains[i].is_split, PASSES);
        expect_chain(i, EDDY_F32, chains[i].is_split, "all,fast,subbatch");
        expect_chain(i, EDDY_F64, chains[i].is_split, "subbatch");
    }
    expect_nothing_left(scope);
}

/* A sum of 16-bit sums would be rounded to 16 bits each time. */
Test(subbatch, sums_of_16_bits_stay) {
    eddy_scope *scope = eddy_scope_begin();
    expect_chain(0, EDDY_BF16, false, PASSES);
    expect_chain(0, EDDY_F16, false, PASSES);
    expect_nothing_left(scope);
}

/* In the block 76,800 bytes are handed on at once, elsewhere 27,040 are alive: a third of the one is as good as that, a half is not. */
Test(subbatch, as_few_parts_as_it_takes) {
    eddy_scope *scope = eddy_scope_begin();
    chain c = make_chain(EDDY_F64);
    eddy_tensor *wide = integers(EDDY_SHAPE(3380), EDDY_F64, 5);
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "subbatch")));
    eddy_tensor *y = weight_gradient(eddy_matmul(eddy_neg(c.x), c.w), c.h),
                *z = eddy_sum(eddy_flip(wide, EDDY_AXES(0)), EDDY_ALL_AXES, NULL);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", c.x, EDDY_ROLE_INPUT}, {"h", c.h, EDDY_ROLE_INPUT},
                                      {"y", y, EDDY_ROLE_OUTPUT}, {"z", z, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    cr_assert_eq(most_parts_of(program), 3);
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

/* What leads to an output of the same maker that failed says why, as the calls do. */
Test(subbatch, errors_are_those_of_the_calls) {
    static const char *const passes[] = {"none", PASSES};
    eddy_scope *scope = eddy_scope_begin();
    chain c = make_chain(EDDY_F64);
    eddy_tensor *good = eddy_arange(EDDY_S(0), EDDY_S(ITEMS), EDDY_S(1), EDDY_I64, NULL);
    for (int p = 0; p < 2; p++) {
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes[p])));
        eddy_tensor *x = eddy_index_select(c.x, good, 0), *out[2];
        eddy_tensor *g = eddy_matmul(eddy_neg(x), c.w), *y = weight_gradient(g, c.h),
                    *z = eddy_mul_s(g, EDDY_S(2));
        eddy_program *program = eddy_record_end(
            EDDY_BINDINGS({"rows", good, EDDY_ROLE_INPUT}, {"h", c.h, EDDY_ROLE_INPUT},
                          {"y", y, EDDY_ROLE_OUTPUT}, {"z", z, EDDY_ROLE_OUTPUT}));
        must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
        must(eddy_program_run(program, EDDY_LIST(eddy_add_s(good, EDDY_S(1)), c.h), out));
        for (int i = 0; i < 2; i++) {
            cr_assert_eq(eddy_wait(out[i], EDDY_FOREVER), EDDY_OUT_OF_RANGE, "%d", i);
            eddy_error_take(NULL);
        }
        eddy_program_release(&program);
    }
    eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    eddy_scope_end(scope);
}

/* ---- what does not pay ---- */

static void expect_whole(eddy_tensor *y, const chain *c) {
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", c->x, EDDY_ROLE_INPUT}, {"h", c->h, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    cr_assert_eq(most_parts_of(program), 1);
    eddy_program_release(&program);
}

/* Between the gradients lies what each of them is needed for, one after the other: in a row they would all be alive at once. */
Test(subbatch, no_order_in_which_more_is_alive) {
    eddy_scope *scope = eddy_scope_begin();
    chain c = make_chain(EDDY_F64);
    eddy_tensor *wide = integers(EDDY_SHAPE(60, 40), EDDY_F64, 6);
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = PASSES, .records_only = true)));
    eddy_tensor *g = c.x, *y = NULL;
    for (int k = 0; k < 16; k++) {
        g = eddy_matmul(g, c.w);
        eddy_tensor *sum = eddy_sum(weight_gradient(g, c.h), EDDY_ALL_AXES, NULL),
                    *z = eddy_cumsum(eddy_add_s(wide, EDDY_S(k)), 0),
                    *most = eddy_max(eddy_add(z, sum), EDDY_ALL_AXES, NULL);
        y = y ? eddy_add(y, most) : most;
    }
    expect_whole(y, &c);
    expect_nothing_left(scope);
}

/* Each chain is alive by itself: all of them would have to be split for what one of them wins. */
Test(subbatch, many_chains_for_what_one_of_them_wins) {
    eddy_scope *scope = eddy_scope_begin();
    chain c = make_chain(EDDY_F64);
    for (int count = 1; count < 50; count += 48) {
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = PASSES, .records_only = true)));
        eddy_tensor *y = NULL;
        for (int k = 0; k < count; k++) {
            eddy_tensor *g = eddy_matmul(eddy_mul_s(c.x, EDDY_S(k)), c.w);
            eddy_tensor *gradient = weight_gradient(g, c.h);
            y = y ? eddy_add(y, gradient) : gradient;
        }
        if (count > 1) {
            expect_whole(y, &c);
            continue;
        }
        eddy_program *program = eddy_record_end(EDDY_BINDINGS(
            {"x", c.x, EDDY_ROLE_INPUT}, {"h", c.h, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
        must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
        cr_assert_gt(most_parts_of(program), 1);
        eddy_program_release(&program);
    }
    expect_nothing_left(scope);
}

/* The first of many that write in place, one after the other, needs all items in the end. Another chain does not. */
Test(subbatch, what_loses_its_batch_is_found_at_once) {
    eddy_scope *scope = eddy_scope_begin();
    chain c = make_chain(EDDY_F64);
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = PASSES, .records_only = true)));
    eddy_tensor *g = eddy_mul_s(c.x, EDDY_S(2));
    for (int k = 0; k < 3000; k++) {
        eddy_tensor *next = eddy_mul_s(c.x, EDDY_S(k));
        must(eddy_add_into(next, g, next));
        g = next;
    }
    eddy_tensor *others = eddy_narrow(c.h, 0, 1, ITEMS - 1),
                *y = weight_gradient(eddy_narrow(g, 0, 1, ITEMS - 1), others);
    eddy_tensor *x = eddy_cat(EDDY_LIST(c.x, c.x, c.x, c.x), 0),
                *z = weight_gradient(eddy_matmul(eddy_neg(x), c.w), x);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", c.x, EDDY_ROLE_INPUT}, {"h", c.h, EDDY_ROLE_INPUT},
                                      {"y", y, EDDY_ROLE_OUTPUT}, {"z", z, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    cr_assert_gt(most_parts_of(program), 1);
    eddy_program_release(&program);
    expect_nothing_left(scope);
}
