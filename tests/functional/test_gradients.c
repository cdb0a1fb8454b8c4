/* The gradient of each op, against central differences in f64.
 *
 * A case is a call of an op, as its entry says, or a function of tensors (gradient_chains.h). Its output is weighted with random
 * numbers and summed; each element of each variable is moved by +h and -h. With h the cube root of the rounding error, truncation
 * and rounding both leave some 1e-10 of the values' size (Nocedal and Wright, Numerical Optimization, 8.1): BOUND leaves a factor of
 * 1000 for conditioning. */
#include "described.h"
#include "gradient_cases.h"
#include "random.h"

#include <base/dtype.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tests/rounds.h>

#define STEP 6.055454452393343e-06 /* cbrt(DBL_EPSILON) */
#define BOUND 1e-7

static eddy_tensor *weighted(const gradient_problem *p, eddy_tensor *const *x) {
    eddy_tensor *output = gradient_case_output(p->which, x);
    cr_assert_not_null(output, "%s", p->which->name);
    eddy_tensor *weights = eddy_from_data(p->weights, eddy_shape_of(output), EDDY_F64, NULL);
    return eddy_sum(eddy_mul(output, weights), EDDY_ALL_AXES, NULL);
}

static void make_inputs(const gradient_problem *p, eddy_tensor **x) {
    for (int i = 0; i < p->count; i++)
        x[i] = eddy_from_data(p->values[i], p->shapes[i], EDDY_F64, NULL);
}

static double value_at(const gradient_problem *p) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x[GRADIENT_VARIABLE_MAX];
    make_inputs(p, x);
    double value = eddy_item_f64(weighted(p, x), NULL);
    eddy_scope_end(scope);
    return value;
}

static void give_up(const gradient_case *c, size_t number) {
    eddy_error error = {0};
    eddy_error_take(&error);
    cr_assert_fail("case %zu, %s: %s", number, c->name, error.message);
}

static void check_case(const gradient_case *c, size_t number) {
    eddy_scope *scope = eddy_scope_begin();
    gradient_problem p;
    gradient_problem_make(&p, c);
    eddy_tensor *x[GRADIENT_VARIABLE_MAX];
    make_inputs(&p, x);
    for (int i = 0; i < p.count; i++)
        cr_assert_eq(eddy_requires_grad_set(x[i], true), EDDY_OK);
    if (eddy_backward(weighted(&p, x)) != EDDY_OK)
        give_up(c, number);
    for (int i = 0; i < p.count; i++) {
        int64_t count = gradient_element_count(&p.shapes[i]);
        double got[GRADIENT_ELEMENT_MAX] = {0};
        if (eddy_has_grad(x[i]) &&
            eddy_read(eddy_grad_of(x[i]), got, (size_t)count * sizeof(double), NULL) != EDDY_OK)
            give_up(c, number);
        for (int64_t k = 0; k < count; k++) {
            double at = p.values[i][k];
            p.values[i][k] = at + STEP;
            double above = value_at(&p);
            p.values[i][k] = at - STEP;
            double below = value_at(&p);
            p.values[i][k] = at;
            double want = (above - below) / (2 * STEP);
            cr_assert(
                fabs(got[k] - want) <= BOUND * (1 + fabs(want)),
                "case %zu, %s, tensor %d, element %lld: %.12g, by differences %.12g (seed %llu)",
                number, c->name, i, (long long)k, got[k], want, (unsigned long long)random_seed());
        }
    }
    eddy_scope_end(scope);
}

Test(gradients, agree_with_differences, .timeout = 300) {
    const char *only = getenv("EDDY_TEST_CASE");
    for (size_t i = 0; i < gradient_case_count; i++)
        if (only ? strcmp(only, gradient_cases[i].name) == 0 : rounds_has_next())
            check_case(&gradient_cases[i], i);
    cr_assert_eq(eddy_error_take(NULL), EDDY_OK);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- gradients of gradients ---- */

/* The squares, so that the first gradients of linear ops are no constants. */
static eddy_tensor *weighted_squares(const gradient_problem *p, eddy_tensor *const *x) {
    eddy_tensor *output = gradient_case_output(p->which, x);
    cr_assert_not_null(output, "%s", p->which->name);
    eddy_tensor *weights = eddy_from_data(p->weights, eddy_shape_of(output), EDDY_F64, NULL);
    return eddy_sum(eddy_mul(eddy_mul(output, output), weights), EDDY_ALL_AXES, NULL);
}

/* The gradients of the weighted squares of the output, weighted and summed; NULL with an error, EDDY_NONE where there is none. */
static eddy_tensor *weighted_gradients(const gradient_problem *p, eddy_tensor *const *x,
                                       bool is_recorded) {
    eddy_backward_options options = {.size = sizeof(options), .creates_graph = is_recorded};
    eddy_tensor *first[GRADIENT_VARIABLE_MAX], *sum = EDDY_NONE;
    eddy_tensor *output = weighted_squares(p, x);
    if (!eddy_requires_grad(output))
        return EDDY_NONE;
    if (eddy_backward_to(EDDY_LIST(output), (eddy_list){x, p->count}, (eddy_list){0}, &options,
                         first) != EDDY_OK)
        return NULL;
    for (int i = 0; i < p->count; i++) {
        if (first[i] == EDDY_NONE)
            continue;
        eddy_tensor *weights = eddy_from_data(p->weights, eddy_shape_of(first[i]), EDDY_F64, NULL);
        eddy_tensor *one = eddy_sum(eddy_mul(first[i], weights), EDDY_ALL_AXES, NULL);
        sum = sum == EDDY_NONE ? one : eddy_add(sum, one);
    }
    return sum;
}

static double gradient_value_at(const gradient_problem *p) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x[GRADIENT_VARIABLE_MAX];
    make_inputs(p, x);
    for (int i = 0; i < p->count; i++)
        cr_assert_eq(eddy_requires_grad_set(x[i], true), EDDY_OK);
    eddy_tensor *value = weighted_gradients(p, x, false);
    double number = value == EDDY_NONE ? 0 : eddy_item_f64(value, NULL);
    eddy_scope_end(scope);
    return number;
}

static void check_twice(const gradient_case *c, size_t number) {
    gradient_problem p;
    gradient_problem_make(&p, c);
    eddy_tensor *x[GRADIENT_VARIABLE_MAX], *second[GRADIENT_VARIABLE_MAX];
    make_inputs(&p, x);
    for (int i = 0; i < GRADIENT_VARIABLE_MAX; i++)
        second[i] = EDDY_NONE;
    for (int i = 0; i < p.count; i++)
        cr_assert_eq(eddy_requires_grad_set(x[i], true), EDDY_OK);
    eddy_tensor *sum = weighted_gradients(&p, x, true);
    eddy_status status = sum ? EDDY_OK : EDDY_UNSUPPORTED;
    if (sum && sum != EDDY_NONE && eddy_requires_grad(sum))
        status =
            eddy_backward_to(EDDY_LIST(sum), (eddy_list){x, p.count}, (eddy_list){0}, NULL, second);
    if (status != EDDY_OK)
        give_up(c, number);
    for (int i = 0; i < p.count; i++) {
        int64_t count = gradient_element_count(&p.shapes[i]);
        double got[GRADIENT_ELEMENT_MAX] = {0};
        if (second[i] != EDDY_NONE &&
            eddy_read(second[i], got, (size_t)count * sizeof(double), NULL) != EDDY_OK)
            give_up(c, number);
        for (int64_t k = 0; k < count; k++) {
            double at = p.values[i][k];
            p.values[i][k] = at + STEP;
            double above = gradient_value_at(&p);
            p.values[i][k] = at - STEP;
            double below = gradient_value_at(&p);
            p.values[i][k] = at;
            double want = (above - below) / (2 * STEP);
            cr_assert(fabs(got[k] - want) <= BOUND * (1 + fabs(want)),
                      "case %zu, %s twice, tensor %d, element %lld: %.12g, by differences %.12g "
                      "(seed %llu)",
                      number, c->name, i, (long long)k, got[k], want,
                      (unsigned long long)random_seed());
        }
    }
}

Test(gradients, of_gradients_agree_with_differences, .timeout = 300) {
    const char *only = getenv("EDDY_TEST_CASE");
    for (size_t i = 0; i < gradient_case_count; i++) {
        eddy_scope *scope = eddy_scope_begin();
        if (only ? strcmp(only, gradient_cases[i].name) == 0 : rounds_has_next())
            check_twice(&gradient_cases[i], i);
        eddy_scope_end(scope);
    }
    cr_assert_eq(eddy_error_take(NULL), EDDY_OK);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- in one loop (functional/generate/fused.py) and op by op ---- */

typedef enum seed_layout { PLAIN, REPEATED, APART, SEED_LAYOUT_COUNT } seed_layout;

/* A gradient to begin with: elements side by side, one for all, or every second of a row. */
static eddy_tensor *seed_for(const gradient_problem *p, eddy_tensor *output, seed_layout layout) {
    eddy_shape shape = eddy_shape_of(output);
    eddy_dtype dtype = eddy_dtype_of(output);
    if (layout == REPEATED)
        return eddy_expand(eddy_full(EDDY_SHAPE(), EDDY_S(-0.75), dtype, NULL), shape);
    if (layout == PLAIN || shape.rank == 0)
        return eddy_cast(eddy_from_data(p->weights, shape, EDDY_F64, NULL), dtype);
    shape.dims[shape.rank - 1] *= 2;
    eddy_tensor *wide = eddy_cast(eddy_from_data(p->weights, shape, EDDY_F64, NULL), dtype);
    return eddy_slice(wide, -1, 0, shape.dims[shape.rank - 1], 2);
}

/* Kinks of activations among them. */
static void make_special(gradient_problem *p) {
    static const double specials[] = {0, -0.0, INFINITY, -INFINITY, NAN, 3, -3, 6, -0.5, 1};
    for (int i = 0; i < p->count; i++)
        for (int64_t k = 0; k < gradient_element_count(&p->shapes[i]); k++)
            p->values[i][k] =
                specials[(size_t)(k * 3 + i) % (sizeof(specials) / sizeof(specials[0]))];
}

static void expect_alike(const gradient_problem *p, eddy_dtype dtype, eddy_tensor *one,
                         eddy_tensor *other) {
    double a[GRADIENT_ELEMENT_MAX], b[GRADIENT_ELEMENT_MAX],
        bound = dtype == EDDY_F16    ? 0x1p-8
                : dtype == EDDY_BF16 ? 0x1p-5
                                     : 0;
    size_t bytes = sizeof(double) * (size_t)eddy_count_of(one);
    cr_assert_eq(eddy_read(eddy_cast(one, EDDY_F64), a, bytes, NULL), EDDY_OK);
    cr_assert_eq(eddy_read(eddy_cast(other, EDDY_F64), b, bytes, NULL), EDDY_OK);
    for (int64_t k = 0; k < eddy_count_of(one); k++) {
        bool is_same = memcmp(&a[k], &b[k], sizeof(double)) == 0 || (isnan(a[k]) && isnan(b[k]));
        cr_assert(is_same || fabs(a[k] - b[k]) <= bound * (1 + fabs(b[k])),
                  "%s, %s, %s [%lld]: %.17g, recorded %.17g", p->which->name, p->which->operands,
                  eddy_dtype_name(dtype), (long long)k, a[k], b[k]);
    }
}

/* The gradients by a pass that is recorded, and by one that is not. */
static void check_passes(const gradient_problem *p, eddy_dtype dtype, seed_layout layout) {
    const eddy_backward_options apart = {.size = sizeof(apart), .keeps_graph = true};
    const eddy_backward_options recorded = {.size = sizeof(recorded), .creates_graph = true};
    eddy_tensor *x[GRADIENT_VARIABLE_MAX], *one[GRADIENT_VARIABLE_MAX],
        *other[GRADIENT_VARIABLE_MAX];
    for (int i = 0; i < p->count; i++) {
        x[i] = eddy_cast(eddy_from_data(p->values[i], p->shapes[i], EDDY_F64, NULL), dtype);
        cr_assert_eq(eddy_requires_grad_set(x[i], true), EDDY_OK);
    }
    eddy_tensor *output = gradient_case_output(p->which, x), *seed = seed_for(p, output, layout);
    eddy_list inputs = {x, p->count};
    cr_assert_eq(eddy_backward_to(EDDY_LIST(output), inputs, EDDY_LIST(seed), &apart, one),
                 EDDY_OK);
    cr_assert_eq(eddy_backward_to(EDDY_LIST(output), inputs, EDDY_LIST(seed), &recorded, other),
                 EDDY_OK);
    for (int i = 0; i < p->count; i++)
        if (one[i] != EDDY_NONE)
            expect_alike(p, dtype, one[i], other[i]);
}

Test(gradients, in_one_loop_have_the_bits_of_those_op_by_op, .timeout = 300) {
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};
    for (size_t i = 0; i < gradient_case_count; i++)
        for (int way = 0; way < 2 * 4 * SEED_LAYOUT_COUNT && !gradient_cases[i].run; way++) {
            bool is_special = way % 2, is_half = way / 2 % 4 >= 2;
            if (!described_op(gradient_cases[i].name)->is_elementwise || (is_special && is_half) ||
                !rounds_has_next())
                continue;
            eddy_scope *scope = eddy_scope_begin();
            gradient_problem p;
            gradient_problem_make(&p, &gradient_cases[i]);
            if (is_special)
                make_special(&p);
            check_passes(&p, dtypes[way / 2 % 4], (seed_layout)(way / 8));
            eddy_scope_end(scope);
        }
}

static int64_t instructions(void) {
    eddy_counters counters = {.size = sizeof(counters)};
    cr_assert_eq(eddy_counters_read(&counters), EDDY_OK);
    return counters.submitted;
}

static int64_t instructions_back_through(eddy_tensor *x, eddy_tensor *y, bool is_recorded) {
    const eddy_backward_options options = {
        .size = sizeof(options), .keeps_graph = true, .creates_graph = is_recorded};
    eddy_tensor *seed = eddy_full_like(y, EDDY_S(2), NULL), *gradient;
    int64_t before = instructions();
    cr_assert_eq(eddy_backward_to(EDDY_LIST(y), EDDY_LIST(x), EDDY_LIST(seed), &options, &gradient),
                 EDDY_OK);
    return instructions() - before;
}

Test(gradients, of_an_elementwise_op_are_one_instruction_where_the_pass_is_not_recorded) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_full(EDDY_SHAPE(5), EDDY_S(0.5), EDDY_F32, NULL);
    cr_assert_eq(eddy_requires_grad_set(x, true), EDDY_OK);
    eddy_tensor *y = eddy_full_like(x, EDDY_S(0.75), NULL);
    eddy_tensor *results[] = {eddy_hardswish(x),
                              eddy_relu6(x),
                              eddy_leaky_relu(x, NULL),
                              eddy_log1p(x),
                              eddy_tan(x),
                              eddy_elu(x, NULL),
                              eddy_div(y, x),
                              eddy_maximum(x, y),
                              eddy_atan2(y, x),
                              eddy_lerp(y, y, x),
                              eddy_sin(x),
                              eddy_cos(x),
                              eddy_erf(x),
                              eddy_softplus(x, NULL),
                              eddy_remainder(y, x),
                              eddy_pow(x, y),
                              eddy_pow(y, x),
                              eddy_pow_s(x, EDDY_S(2.5)),
                              eddy_silu_backward(y, x),
                              eddy_addcdiv(y, y, x, NULL)};
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
        cr_expect_eq(instructions_back_through(x, results[i], false), 1, "%zu", i);
        cr_expect_gt(instructions_back_through(x, results[i], true), 1, "%zu", i);
    }
    /* Operands that differ in dtype are each promoted where they are used. */
    eddy_tensor *wide = eddy_full(EDDY_SHAPE(5), EDDY_S(0.5), EDDY_F64, NULL),
                *b = eddy_full_like(x, EDDY_S(3), NULL);
    eddy_tensor *mixed = eddy_addcmul(wide, x, b, NULL);
    cr_expect_eq(instructions_back_through(x, mixed, false),
                 instructions_back_through(x, mixed, true));
    eddy_scope_end(scope);
}

static eddy_tensor *variable(const float *elements, eddy_shape shape, eddy_dtype dtype) {
    eddy_tensor *x = eddy_cast(eddy_from_data(elements, shape, EDDY_F32, NULL), dtype);
    cr_assert_eq(eddy_requires_grad_set(x, true), EDDY_OK);
    return x;
}

/* Rounded for each batch, the sum is 0. */
Test(gradients, of_a_matrix_that_all_batches_multiply_are_rounded_once) {
    const float a[2][2] = {{1, 3 * 0x1p-10f}, {1, 0}}, seed[2][2] = {{1, 1}, {-1, -1}};
    const float one[] = {1};
    const eddy_shape shapes[] = {EDDY_SHAPE(1), EDDY_SHAPE(1, 1), EDDY_SHAPE(1, 1, 1)};
    for (int i = 0; i < 3; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *b = variable(one, shapes[i], EDDY_BF16),
                    *x = variable(a[0], EDDY_SHAPE(2, 2, 1), EDDY_BF16);
        eddy_tensor *y = eddy_matmul(x, b), *gradient;
        eddy_tensor *weights =
            eddy_cast(eddy_from_data(seed, eddy_shape_of(y), EDDY_F32, NULL), EDDY_BF16);
        const eddy_backward_options options = {.size = sizeof(options), .keeps_graph = true};
        int64_t before = instructions();
        cr_assert_eq(
            eddy_backward_to(EDDY_LIST(y), EDDY_LIST(b), EDDY_LIST(weights), &options, &gradient),
            EDDY_OK);
        cr_expect_eq(instructions() - before, 1, "rank %d", i + 1);
        eddy_shape got = eddy_shape_of(gradient);
        cr_expect_eq(got.rank, i + 1);
        cr_expect_eq(eddy_item_f64(gradient, NULL), 3 * 0x1p-10, "rank %d", i + 1);
        eddy_scope_end(scope);
    }
}

/* Beside a product for each batch; `x` with strides, too, and with no batches. */
Test(gradients, of_a_matrix_that_all_batches_multiply) {
    const eddy_shape shapes[] = {EDDY_SHAPE(4), EDDY_SHAPE(4, 5), EDDY_SHAPE(1, 1, 4, 5)};
    for (int64_t batches = 0; batches <= 3; batches++)
        for (int i = 0; i < 6; i++) {
            eddy_scope *scope = eddy_scope_begin();
            const eddy_shape *shape = &shapes[i / 2];
            eddy_tensor *x = eddy_randn(EDDY_SHAPE(batches, 2, 3, 4), EDDY_F64, NULL),
                        *b = eddy_randn(*shape, EDDY_F64, NULL);
            if (i % 2)
                x = eddy_transpose(eddy_randn(EDDY_SHAPE(batches, 3, 2, 4), EDDY_F64, NULL), 1, 2);
            cr_assert_eq(eddy_requires_grad_set(b, true), EDDY_OK);
            eddy_tensor *y = eddy_matmul(x, b), *got;
            eddy_tensor *seed = eddy_randn(eddy_shape_of(y), EDDY_F64, NULL);
            cr_assert_eq(eddy_backward_to(EDDY_LIST(y), EDDY_LIST(b), EDDY_LIST(seed), NULL, &got),
                         EDDY_OK);
            eddy_tensor *grad = shape->rank == 1 ? eddy_unsqueeze(seed, -1) : seed;
            eddy_tensor *want =
                eddy_sum(eddy_matmul(eddy_transpose(x, -1, -2), grad), EDDY_AXES(0, 1), NULL);
            want = eddy_reshape(want, *shape);
            eddy_tensor *are_close =
                eddy_allclose(got, want, EDDY_OPTIONS(allclose, .rtol = 1e-12, .atol = 1e-12));
            cr_expect_eq(eddy_item_i64(are_close, NULL), 1, "rank %d, %d batches", shape->rank,
                         (int)batches);
            eddy_scope_end(scope);
        }
}
