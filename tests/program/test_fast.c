/* Fast passes: they are off unless they are named, results are within a bound that follows from the number of terms, and all else is as without them. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>
#include <program/print.h>
#include <program/program.h>
#include <stdlib.h>
#include <string.h>
#include <tests/kernels/winograd.h>
#include <tests/program/outcome.h>
#include <tests/program/taped.h>
#include <tests/program/texts.h>
#include <unistd.h>

#define IMAGES 16
#define CHANNELS 32
#define SIDE 12

static void use(const char *passes) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .passes = passes));
    cr_assert_not_null(runtime);
    must(eddy_runtime_use(runtime));
    eddy_runtime_release(&runtime);
}

/* ---- a step of a network with a convolution ---- */

static eddy_tensor *image(int64_t count, int seed) {
    eddy_tensor *all = eddy_arange(EDDY_S(seed), EDDY_S(seed + count * CHANNELS * SIDE * SIDE),
                                   EDDY_S(1), EDDY_F32, NULL);
    return eddy_sin(eddy_reshape(all, EDDY_SHAPE(count, CHANNELS, SIDE, SIDE)));
}

static eddy_tensor *weights(void) {
    eddy_tensor *all =
        eddy_arange(EDDY_S(0), EDDY_S(CHANNELS * CHANNELS * 9), EDDY_S(1), EDDY_F32, NULL);
    return eddy_cos(eddy_reshape(all, EDDY_SHAPE(CHANNELS, CHANNELS, 3, 3)));
}

static eddy_tensor *convolve(eddy_tensor *x, eddy_tensor *w) {
    return eddy_conv2d(x, w, EDDY_NONE, EDDY_OPTIONS(conv2d, .padding = {1, 1}));
}

static eddy_program *record(const char *passes, eddy_tensor *x, eddy_tensor *w) {
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes)));
    eddy_tensor *y = convolve(x, w);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return program;
}

static bool is_fast(const eddy_program *program) {
    const eddy_kernel *kernel = eddy_code_instruction_at(&program->code, 0)->kernel;
    cr_assert_eq(program->code.instructions.count, 1);
    return strcmp(kernel->name, "conv2d_fast") == 0;
}

/* The largest difference. */
static double must_be_within(eddy_tensor *a, eddy_tensor *b, double bound) {
    eddy_tensor *most = eddy_max(eddy_abs(eddy_sub(a, b)), EDDY_ALL_AXES, NULL);
    double found = eddy_item_f64(most, NULL);
    cr_assert(found <= bound, "%g, not within %g", found, bound);
    return found;
}

/* ---- the switch ---- */

Test(fast, passes_are_off_unless_they_are_named) {
    static const struct {
        const char *passes;
        bool is_fast;
    } rows[] = {{NULL, false},         {"all", false},  {"none", false},
                {"all,fast", true},    {"fast", true},  {"winograd", true},
                {"fast,all", true},    {"dead", false}, {"dead,winograd", true},
                {"all,fast,all", true}};
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = image(IMAGES, 0), *w = weights(), *y = convolve(x, w), *out;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        eddy_program *program = record(rows[i].passes, x, w);
        cr_assert_eq(is_fast(program), rows[i].is_fast, "%s", rows[i].passes);
        must(eddy_program_run(program, EDDY_LIST(x), &out));
        if (!rows[i].is_fast)
            must_have_same_bits(out, y, rows[i].passes);
        eddy_program_release(&program);
    }
    expect_nothing_left(scope);
}

/* The text says what was called; what runs it is the plan's. */
Test(fast, text_and_files_know_nothing_of_them) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = image(IMAGES, 0), *w = weights(), *out;
    eddy_program *plain = record("all", x, w), *program = record("all,fast", x, w);
    char *text = printed_of(plain, false), *fast_text = printed_of(program, false),
         *plan = printed_of(program, true), path[64];
    cr_assert_str_eq(text, fast_text);
    const char *way =
        winograd_is_there() ? "# kernel conv2d_fast, winograd; " : "# kernel conv2d_fast, direct; ";
    cr_assert_not_null(strstr(plan, way), "%s", plan);
    snprintf(path, sizeof(path), "/tmp/eddy-fast-%ld.program", (long)getpid());
    must(eddy_program_save(program, path));
    eddy_program *loaded = eddy_program_load(path);
    unlink(path);
    cr_assert_not_null(loaded);
    cr_assert_not(is_fast(loaded));
    must(eddy_program_run(loaded, EDDY_LIST(x), &out));
    must_have_same_bits(out, convolve(x, w), "loaded");
    eddy_program_release(&loaded);
    eddy_program_release(&plain);
    eddy_program_release(&program);
    free(text), free(fast_text), free(plan);
    expect_nothing_left(scope);
}

static int64_t shared(void) {
    eddy_counters counters = {.size = sizeof(counters)};
    must(eddy_counters_read(&counters));
    return counters.programs_shared;
}

Test(fast, a_build_is_not_shared_with_one_without_them) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = image(IMAGES, 0), *w = weights();
    static const char *const passes[] = {"all", "all,fast", "all,winograd", "all,fast", "all"};
    static const int64_t more[] = {0, 0, 0, 1, 1};
    eddy_program *programs[5];
    for (int i = 0; i < 5; i++) {
        int64_t before = shared();
        programs[i] = record(passes[i], x, w);
        cr_assert_eq(shared() - before, more[i], "%s", passes[i]);
        cr_assert_eq(is_fast(programs[i]), i > 0 && i < 4);
    }
    for (int i = 0; i < 5; i++)
        eddy_program_release(&programs[i]);
    expect_nothing_left(scope);
}

/* ---- winograd ---- */

/* The bound of tests/kernels/test_winograd.c, of numbers of up to 1. */
static double bound_of(double terms, double roundings) {
    return 88.0 / 3 * 88.0 / 3 * (roundings + 24) * 0x1p-24 * terms;
}

/* Gradients go back through two convolutions, which replays compute within their bounds: by Winograd's algorithm, where that is there. */
Test(winograd, results_and_gradients_are_within_their_bounds) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = leaf(image(IMAGES, 0)), *w = leaf(weights()), *grads[2][2], *y[2];
    for (int i = 0; i < 2; i++) {
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = i ? "all,fast" : "none")));
        eddy_tensor *out = convolve(x, w);
        eddy_program *program = eddy_record_end_with_grad(
            EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", out, EDDY_ROLE_OUTPUT}));
        must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
        must(eddy_program_run(program, EDDY_LIST(x), &y[i]));
        must(eddy_backward(all(eddy_mul(y[i], image(IMAGES, 5)))));
        grads[i][0] = eddy_detach(eddy_grad_of(x));
        grads[i][1] = eddy_detach(eddy_grad_of(w));
        must(eddy_grads_zero(EDDY_LIST(x, w)));
        eddy_program_release(&program);
    }
    double found[] = {
        must_be_within(eddy_detach(y[0]), eddy_detach(y[1]), bound_of(9 * CHANNELS, CHANNELS)),
        must_be_within(grads[0][0], grads[1][0], bound_of(9 * CHANNELS, CHANNELS)),
        must_be_within(grads[0][1], grads[1][1],
                       bound_of(IMAGES * SIDE * SIDE, IMAGES * SIDE * SIDE / 16.0))};
    for (int i = 0; i < 3; i++)
        cr_assert_eq(found[i] > 0, winograd_is_there(), "%d: bits are those of the calls elsewhere",
                     i);
    expect_nothing_left(scope);
}

/* What has failed before a run reaches its outputs as it does by calls, and a later run is healthy. */
Test(winograd, errors_are_those_of_the_calls) {
    eddy_error errors[2];
    for (int i = 0; i < 2; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = image(IMAGES, 0), *w = weights(), *out;
        eddy_tensor *index = eddy_full(EDDY_SHAPE(IMAGES), EDDY_S(i + 2), EDDY_I64, NULL);
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = i ? "all,fast" : "none")));
        eddy_tensor *y = convolve(eddy_index_select(x, index, 0), w);
        eddy_program *program = eddy_record_end(
            EDDY_BINDINGS({"index", index, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
        must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
        eddy_tensor *bad = eddy_full(EDDY_SHAPE(IMAGES), EDDY_S(99), EDDY_I64, NULL);
        must(eddy_program_run(program, EDDY_LIST(bad), &out));
        cr_assert_eq(eddy_error_of(out, EDDY_FOREVER, &errors[i]), EDDY_OUT_OF_RANGE);
        must(eddy_program_run(program, EDDY_LIST(index), &out));
        must(eddy_wait(out, EDDY_FOREVER));
        eddy_program_release(&program);
        eddy_scope_end(scope);
        eddy_sync(EDDY_FOREVER);
        eddy_error_take(NULL);
    }
    cr_assert_str_eq(errors[0].message, errors[1].message);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- accumulate ---- */

#define ROWS 24
#define DEPTH 40
#define COLUMNS 32

static eddy_tensor *matrix(int64_t rows, int64_t columns, int seed) {
    eddy_tensor *all =
        eddy_arange(EDDY_S(seed), EDDY_S(seed + rows * columns), EDDY_S(1), EDDY_F32, NULL);
    return eddy_sin(eddy_reshape(all, EDDY_SHAPE(rows, columns)));
}

/* What is computed of a [ROWS, DEPTH], b [DEPTH, COLUMNS], and a state [ROWS, COLUMNS]. */
typedef struct given {
    eddy_tensor *a, *b, *kept;
} given;

typedef eddy_tensor *formula(const given *g);

static eddy_tensor *kept_gradient(const given *g) {
    must(eddy_add_into(g->kept, eddy_matmul(g->a, g->b), g->kept));
    return g->kept;
}

static eddy_tensor *kept_gradient_first(const given *g) {
    must(eddy_add_into(eddy_linear(g->a, eddy_t(g->b), EDDY_NONE), g->kept, g->kept));
    return g->kept;
}

/* The sum is written to a tensor that is none of its operands, though it lies where one does. */
static eddy_tensor *kept_gradient_as_another(const given *g) {
    must(eddy_add_into(eddy_detach(g->kept), eddy_matmul(g->a, g->b), g->kept));
    return g->kept;
}

static eddy_tensor *two_products(const given *g) {
    return eddy_add(eddy_matmul(g->a, g->b), eddy_matmul(eddy_neg(g->a), eddy_cos(g->b)));
}

static eddy_tensor *three_products(const given *g) {
    return eddy_exp(eddy_add(two_products(g), eddy_matmul(eddy_cos(g->a), g->b)));
}

static eddy_tensor *rows_of_batches(const given *g) {
    eddy_tensor *a = eddy_reshape(g->a, EDDY_SHAPE(2, ROWS / 2, DEPTH)),
                *x = eddy_reshape(eddy_neg(g->kept), EDDY_SHAPE(2, ROWS / 2, COLUMNS));
    return eddy_add(x, eddy_linear(a, eddy_t(g->b), EDDY_NONE));
}

/* ---- those that stay ---- */

static eddy_tensor *used_again(const given *g) {
    eddy_tensor *x = eddy_neg(g->kept);
    return eddy_mul(eddy_add(x, eddy_matmul(g->a, g->b)), x);
}

static eddy_tensor *product_used_again(const given *g) {
    eddy_tensor *product = eddy_matmul(g->a, g->b);
    return eddy_mul(eddy_add(eddy_neg(g->kept), product), product);
}

static eddy_tensor *product_by_itself(const given *g) {
    eddy_tensor *product = eddy_matmul(g->a, g->b);
    return eddy_add(product, product);
}

static eddy_tensor *state_is_not_overwritten(const given *g) {
    return eddy_add(g->kept, eddy_matmul(g->a, g->b));
}

static eddy_tensor *with_bias(const given *g) {
    return eddy_add(
        eddy_neg(g->kept),
        eddy_linear(g->a, eddy_t(g->b), eddy_narrow(eddy_flatten(g->kept, 0, 1), 0, 0, COLUMNS)));
}

static eddy_tensor *factor_is_written(const given *g) {
    eddy_tensor *a = eddy_neg(g->a), *product = eddy_matmul(a, g->b);
    must(eddy_neg_into(a, a));
    return eddy_add(eddy_add(eddy_neg(g->kept), product), eddy_sum(a, EDDY_ALL_AXES, NULL));
}

static eddy_tensor *factor_is_the_sum(const given *g) {
    eddy_tensor *square = eddy_neg(eddy_matmul(g->kept, eddy_t(g->kept)));
    must(eddy_add_into(square, eddy_matmul(square, square), square));
    return square;
}

/* A layer whose input goes on beside it. */
static eddy_tensor *factor_is_added(const given *g) {
    eddy_tensor *x = eddy_neg(g->kept), *weights = eddy_matmul(eddy_t(g->b), g->b);
    return eddy_add(x, eddy_matmul(x, weights));
}

static eddy_tensor *other_factor_is_added(const given *g) {
    eddy_tensor *x = eddy_neg(g->kept), *weights = eddy_matmul(g->kept, eddy_t(g->kept));
    return eddy_add(eddy_matmul(weights, x), x);
}

static eddy_tensor *sum_broadcasts(const given *g) {
    return eddy_add(eddy_neg(eddy_narrow(g->kept, 0, 0, 1)), eddy_matmul(g->a, g->b));
}

static eddy_tensor *part_of_the_product(const given *g) {
    eddy_tensor *product = eddy_matmul(g->a, g->b);
    return eddy_add(eddy_neg(eddy_narrow(g->kept, 0, 0, ROWS / 2)),
                    eddy_narrow(product, 0, ROWS / 2, ROWS / 2));
}

static eddy_tensor *factor_in_turns(const given *g) {
    eddy_tensor *a = eddy_transpose(eddy_reshape(g->a, EDDY_SHAPE(ROWS / 2, 2, DEPTH)), 0, 1),
                *x = eddy_reshape(eddy_neg(g->kept), EDDY_SHAPE(2, ROWS / 2, COLUMNS));
    return eddy_add(x, eddy_linear(a, eddy_t(g->b), EDDY_NONE));
}

static eddy_tensor *sum_is_turned(const given *g) {
    return eddy_add(eddy_t(eddy_neg(g->kept)), eddy_t(eddy_matmul(g->a, g->b)));
}

static eddy_tensor *of_vectors(const given *g) {
    eddy_tensor *row = eddy_flatten(eddy_narrow(g->a, 0, 0, 1), 0, 1);
    return eddy_add(eddy_flatten(eddy_neg(eddy_narrow(g->kept, 0, 0, 1)), 0, 1),
                    eddy_matmul(row, g->b));
}

static eddy_tensor *product_broadcasts(const given *g) {
    return eddy_add(eddy_neg(g->kept), eddy_matmul(eddy_narrow(g->a, 0, 0, 1), g->b));
}

static eddy_tensor *of_batches(const given *g) {
    eddy_tensor *a = eddy_reshape(g->a, EDDY_SHAPE(2, ROWS / 2, DEPTH)),
                *b = eddy_reshape(eddy_cat(EDDY_LIST(g->b, eddy_neg(g->b)), 0),
                                  EDDY_SHAPE(2, DEPTH, COLUMNS)),
                *x = eddy_reshape(eddy_neg(g->kept), EDDY_SHAPE(2, ROWS / 2, COLUMNS));
    return eddy_add(x, eddy_matmul(a, b));
}

static eddy_tensor *of_a_vector(const given *g) {
    eddy_tensor *column = eddy_flatten(eddy_narrow(g->b, 1, 0, 1), 0, 1);
    return eddy_add(eddy_sum(eddy_neg(g->kept), EDDY_AXES(1), NULL), eddy_matmul(g->a, column));
}

static eddy_tensor *in_halves(const given *g) {
    eddy_tensor *product = eddy_matmul(eddy_cast(g->a, EDDY_F16), eddy_cast(g->b, EDDY_F16));
    return eddy_cast(eddy_add(eddy_neg(eddy_cast(g->kept, EDDY_F16)), product), EDDY_F32);
}

static eddy_tensor *in_integers(const given *g) {
    eddy_tensor *a = eddy_cast(eddy_mul_s(g->a, EDDY_S(9)), EDDY_I64),
                *b = eddy_cast(eddy_mul_s(g->b, EDDY_S(9)), EDDY_I64),
                *x = eddy_neg(eddy_cast(eddy_mul_s(g->kept, EDDY_S(9)), EDDY_I64));
    return eddy_cast(eddy_add(x, eddy_matmul(a, b)), EDDY_F32);
}

static eddy_tensor *sum_in_a_turned_state(const given *g) {
    eddy_tensor *turned = eddy_t(eddy_reshape(g->kept, EDDY_SHAPE(COLUMNS, ROWS)));
    must(eddy_add_into(turned, eddy_matmul(g->a, g->b), turned));
    return g->kept;
}

/* One half of the state, and a product, are the other half. */
static eddy_tensor *sum_of_another_part(const given *g) {
    eddy_tensor *product = eddy_matmul(eddy_narrow(g->a, 0, 0, ROWS / 2), g->b);
    must(eddy_add_into(eddy_narrow(g->kept, 0, 0, ROWS / 2), product,
                       eddy_narrow(g->kept, 0, ROWS / 2, ROWS / 2)));
    return g->kept;
}

/* The sum is written to what others have read before. */
static eddy_tensor *sum_overwrites_another(const given *g) {
    eddy_tensor *z = eddy_neg(g->kept), *x = eddy_cos(g->kept), *seen = eddy_cumsum(z, 0),
                *product = eddy_matmul(g->a, g->b);
    must(eddy_add_into(x, product, z));
    return eddy_sub(z, seen);
}

/* What a loop finds there: something that a product is added to, or a product, of factors that a step changes. */
typedef struct looping {
    const given *g;
    eddy_tensor *x, *factor;
} looping;

static eddy_status is_third(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_lt_s(inputs.items[0], EDDY_S(3));
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status adds_a_product(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const looping *l = context;
    eddy_tensor *sum = eddy_add(l->x, eddy_matmul(l->g->a, l->g->b));
    outputs[0] = eddy_add_s(inputs.items[0], EDDY_S(1));
    outputs[1] = eddy_mul(eddy_cos(sum), eddy_cos(inputs.items[1]));
    return outputs[1] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status adds_what_was_there(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const looping *l = context;
    outputs[0] = eddy_add_s(inputs.items[0], EDDY_S(1));
    outputs[1] = eddy_add(eddy_cos(inputs.items[1]), l->x);
    return eddy_neg_into(l->factor, l->factor);
}

static eddy_tensor *loop_of(looping *l, eddy_block *step) {
    eddy_tensor *count = eddy_zeros((eddy_shape){0}, EDDY_F32, NULL), *outputs[2];
    must(eddy_while(is_third, step, l, EDDY_LIST(count, l->g->kept), NULL, outputs));
    return outputs[1];
}

static eddy_tensor *sum_is_of_before_a_loop(const given *g) {
    return loop_of(&(looping){.g = g, .x = eddy_neg(g->kept)}, adds_a_product);
}

static eddy_tensor *product_is_of_before_a_loop(const given *g) {
    eddy_tensor *factor = eddy_neg(g->a);
    looping l = {.g = g, .x = eddy_matmul(factor, g->b), .factor = factor};
    return loop_of(&l, adds_what_was_there);
}

static const struct {
    formula *compute;
    const char *name;
    int fewer; /* instructions */
} formulas[] = {
#define ROW(name, fewer)                                                                           \
    { name, #name, fewer }
    ROW(kept_gradient, 1),
    ROW(kept_gradient_first, 1),
    ROW(kept_gradient_as_another, 1),
    ROW(two_products, 1),
    ROW(three_products, 2),
    ROW(rows_of_batches, 1),
    ROW(used_again, 0),
    ROW(product_used_again, 0),
    ROW(product_by_itself, 0),
    ROW(state_is_not_overwritten, 0),
    ROW(with_bias, 0),
    ROW(factor_is_written, 0),
    ROW(factor_is_the_sum, 0),
    ROW(sum_broadcasts, 0),
    ROW(sum_is_turned, 0),
    ROW(of_vectors, 0),
    ROW(part_of_the_product, 0),
    ROW(product_broadcasts, 0),
    ROW(of_batches, 0),
    ROW(of_a_vector, 0),
    ROW(in_halves, 0),
    ROW(in_integers, 0),
    ROW(sum_in_a_turned_state, 0),
    ROW(sum_of_another_part, 0),
    ROW(sum_overwrites_another, 0),
    ROW(factor_is_added, 0),
    ROW(other_factor_is_added, 0),
    ROW(factor_in_turns, 0),
    ROW(sum_is_of_before_a_loop, 0),
    ROW(product_is_of_before_a_loop, 0),
};

static given make_given(int seed) {
    return (given){matrix(ROWS, DEPTH, seed), matrix(DEPTH, COLUMNS, seed + 1),
                   matrix(ROWS, COLUMNS, seed + 2)};
}

static eddy_program *record_formula(formula *compute, const given *g, const char *passes) {
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes)));
    eddy_tensor *y = compute(g);
    eddy_program *program = y == g->kept
                                ? eddy_record_end(EDDY_BINDINGS({"a", g->a, EDDY_ROLE_INPUT},
                                                                {"b", g->b, EDDY_ROLE_INPUT},
                                                                {"kept", g->kept, EDDY_ROLE_STATE}))
                                : eddy_record_end(EDDY_BINDINGS({"a", g->a, EDDY_ROLE_INPUT},
                                                                {"b", g->b, EDDY_ROLE_INPUT},
                                                                {"y", y, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return program;
}

/* y, or the state if that is written. */
static eddy_tensor *run_formula(eddy_program *program, const given *g) {
    eddy_tensor *y = NULL;
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    must(eddy_program_run(program, EDDY_LIST(g->a, g->b), &y));
    return info.output_count > 0 ? y : eddy_program_state(program, "kept");
}

static int64_t instructions_of(const eddy_program *program) {
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    return info.instruction_count;
}

/* Terms are products of numbers of up to 1, of which two or three sums are added up; the derivative of what follows is at most e^3 there. */
Test(accumulate, sums_are_within_their_bound_or_stay, .timeout = 60) {
    for (size_t i = 0; i < sizeof(formulas) / sizeof(*formulas); i++) {
        eddy_scope *scope = eddy_scope_begin();
        given g[2] = {make_given(3), make_given(3)};
        eddy_program *plain = record_formula(formulas[i].compute, &g[0], "none"),
                     *fast = record_formula(formulas[i].compute, &g[1], "accumulate");
        cr_assert_eq(instructions_of(plain) - instructions_of(fast), formulas[i].fewer, "%s",
                     formulas[i].name);
        for (int run = 0; run < 3; run++) {
            eddy_tensor *want = run_formula(plain, &g[0]), *got = run_formula(fast, &g[1]);
            if (formulas[i].fewer == 0) {
                must_have_same_bits(want, got, formulas[i].name);
                continue;
            }
            double terms = 3.0 * (DEPTH + 2) * (run + 2),
                   largest = eddy_item_f64(eddy_max(eddy_abs(want), EDDY_ALL_AXES, NULL), NULL),
                   slope = formulas[i].compute == three_products ? largest : 1;
            must_be_within(want, got, 2 * terms * 0x1p-24 * terms * slope);
        }
        eddy_program_release(&plain);
        eddy_program_release(&fast);
        expect_nothing_left(scope);
    }
}

/* The product, or what it is added to, is an output, too. */
Test(accumulate, what_is_given_out_stays) {
    for (int which = 0; which < 2; which++) {
        eddy_scope *scope = eddy_scope_begin();
        given g = make_given(3);
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "accumulate")));
        eddy_tensor *x = eddy_neg(g.kept), *product = eddy_matmul(g.a, g.b),
                    *y = eddy_add(x, product), *shown = which == 0 ? x : product, *outputs[2];
        eddy_program *program = eddy_record_end(
            EDDY_BINDINGS({"a", g.a, EDDY_ROLE_INPUT}, {"b", g.b, EDDY_ROLE_INPUT},
                          {"shown", shown, EDDY_ROLE_OUTPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
        must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
        cr_assert_eq(instructions_of(program), 3);
        must(eddy_program_run(program, EDDY_LIST(g.a, g.b), outputs));
        must_have_same_bits(outputs[0], shown, "shown");
        must_have_same_bits(outputs[1], y, "y");
        eddy_program_release(&program);
        expect_nothing_left(scope);
    }
}

/* What the text says is the calls' product and sum: who loads it without the pass gets their bits. */
Test(accumulate, files_give_the_bits_of_the_calls) {
    use("none");
    for (size_t i = 0; i < sizeof(formulas) / sizeof(*formulas) && formulas[i].fewer > 0; i++) {
        eddy_scope *scope = eddy_scope_begin();
        given g[2] = {make_given(5), make_given(5)};
        char path[64];
        eddy_program *plain = record_formula(formulas[i].compute, &g[0], "none"),
                     *fast = record_formula(formulas[i].compute, &g[1], "accumulate");
        snprintf(path, sizeof(path), "/tmp/eddy-fast-%ld.program", (long)getpid());
        must(eddy_program_save(fast, path));
        eddy_program *loaded = eddy_program_load(path);
        unlink(path);
        cr_assert_not_null(loaded);
        char *text = printed_of(fast, false), *again = printed_of(loaded, false);
        cr_assert_str_eq(text, again);
        cr_assert_not_null(strstr(text, "add_product("));
        for (int run = 0; run < 2; run++)
            must_have_same_bits(run_formula(loaded, &g[1]), run_formula(plain, &g[0]),
                                formulas[i].name);
        free(text), free(again);
        eddy_program_release(&plain);
        eddy_program_release(&fast);
        eddy_program_release(&loaded);
        expect_nothing_left(scope);
    }
}

/* What is selected by `index` is the factor, or what the product is added to. 2: the sum is the state. */
static eddy_tensor *sum_of_rows(const given *g, eddy_tensor *index, int which) {
    eddy_tensor *rows = eddy_index_select(which == 1 ? g->kept : g->a, index, 0);
    if (which == 0)
        return eddy_add(eddy_neg(g->kept), eddy_matmul(rows, g->b));
    if (which == 1)
        return eddy_add(rows, eddy_matmul(g->a, g->b));
    must(eddy_add_into(g->kept, eddy_matmul(rows, g->b), g->kept));
    return g->kept;
}

typedef struct outcome {
    eddy_error error;
    eddy_status failed, recovered;
    double sum;   /* of what is there when it has recovered */
    double later; /* of a run behind it */
} outcome;

static outcome fail_with(const char *passes, int which, int64_t *instructions) {
    outcome o = {.sum = 0};
    eddy_scope *scope = eddy_scope_begin();
    given g = make_given(7);
    eddy_tensor *index = eddy_full(EDDY_SHAPE(ROWS), EDDY_S(1), EDDY_I64, NULL), *out = g.kept;
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes)));
    eddy_tensor *y = sum_of_rows(&g, index, which);
    eddy_program *program = which == 2
                                ? eddy_record_end(EDDY_BINDINGS({"index", index, EDDY_ROLE_INPUT}))
                                : eddy_record_end(EDDY_BINDINGS({"index", index, EDDY_ROLE_INPUT},
                                                                {"y", y, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    *instructions = instructions_of(program);
    eddy_tensor *bad = eddy_full(EDDY_SHAPE(ROWS), EDDY_S(99), EDDY_I64, NULL);
    must(eddy_program_run(program, EDDY_LIST(bad), &out));
    o.failed = eddy_error_of(out, EDDY_FOREVER, &o.error);
    cr_assert_neq(o.failed, EDDY_OK);
    (void)eddy_recover(EDDY_LIST(out)); /* fails late */
    o.recovered = eddy_wait(out, EDDY_FOREVER);
    if (o.recovered == EDDY_OK)
        o.sum = sum_of(out);
    eddy_error_take(NULL);
    must(eddy_program_run(program, EDDY_LIST(index), &out));
    o.later = sum_of(out);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    return o;
}

Test(accumulate, errors_leave_what_the_calls_would) {
    for (int which = 0; which < 3; which++) {
        int64_t instructions[2];
        outcome plain = fail_with("none", which, &instructions[0]),
                fast = fail_with("accumulate", which, &instructions[1]);
        cr_assert_eq(instructions[0] - instructions[1], 1);
        cr_assert_eq(plain.failed, fast.failed);
        cr_assert_str_eq(plain.error.message, fast.error.message);
        cr_assert_str_eq(plain.error.op, fast.error.op);
        cr_assert_eq(plain.recovered, fast.recovered, "%d", which);
        cr_assert_eq(plain.recovered == EDDY_OK, which == 2, "what is made by a run is lost");
        cr_assert_eq(plain.sum, fast.sum, "%d", which);
        cr_assert_float_eq(plain.later, fast.later,
                           (double)ROWS * COLUMNS * 6 * (DEPTH + 2) * (DEPTH + 2) * 0x1p-24);
    }
    cr_assert_eq(eddy_live_count(), 0);
}

/* A sum that goes on in an input reads it, whatever a run is given. */
Test(accumulate, an_input_that_has_failed_stays_so) {
    eddy_scope *scope = eddy_scope_begin();
    given g = make_given(9);
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "accumulate")));
    kept_gradient(&g);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"a", g.a, EDDY_ROLE_INPUT}, {"b", g.b, EDDY_ROLE_INPUT},
                                      {"kept", g.kept, EDDY_ROLE_INPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    cr_assert_eq(instructions_of(program), 1);
    eddy_tensor *bad = eddy_full(EDDY_SHAPE(ROWS), EDDY_S(99), EDDY_I64, NULL),
                *failed = eddy_index_select(g.kept, bad, 0);
    must(eddy_program_run(program, EDDY_LIST(g.a, g.b, failed), NULL));
    eddy_error error;
    cr_assert_eq(eddy_error_of(failed, EDDY_FOREVER, &error), EDDY_OUT_OF_RANGE);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- recorded functions ---- */

typedef struct model {
    eddy_tensor *w;
    int calls;
} model;

static eddy_status train(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    eddy_tensor *loss =
        eddy_mean(eddy_square(convolve(call->inputs.items[0], m->w)), EDDY_ALL_AXES, NULL);
    eddy_status status = eddy_backward(loss);
    call->outputs[0] = eddy_detach(loss);
    call->outputs[1] = eddy_detach(eddy_grad_of(m->w));
    return status == EDDY_OK ? eddy_grads_zero(EDDY_LIST(m->w)) : status;
}

/* Sizes that were never recorded have programs too, of code that has gone through the passes. */
Test(winograd, sizes_are_foretold) {
    use("all,fast");
    eddy_scope *scope = eddy_scope_begin();
    model m = {.w = leaf(weights())};
    eddy_recorded *recorded =
        eddy_recorded_create(train, &m, 2, EDDY_OPTIONS(recorded, .foretells_shapes = true));
    static const int64_t counts[] = {16, 16, 16, 24, 24, 24, 40, 40, 40, 33, 33, 16};
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        eddy_scope *inner = eddy_scope_begin();
        eddy_tensor *outputs[2], *x = image(counts[i], (int)i);
        must(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(), outputs));
        eddy_tensor *expected[2];
        eddy_recorded_call call = {
            .size = sizeof(call), .inputs = EDDY_LIST(x), .outputs = expected, .output_count = 2};
        must(train(&m, &call));
        m.calls--;
        double count = (double)counts[i] * SIDE * SIDE;
        double largest = 2 * 9 * CHANNELS / (count * CHANNELS);
        must_be_within(outputs[1], expected[1],
                       largest * bound_of(count, count / 16) +
                           2 * bound_of(9 * CHANNELS, CHANNELS) / CHANNELS);
        eddy_scope_end(inner);
    }
    cr_assert_eq(m.calls, 6); /* two of each of two sizes, and the first of each other */
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}
