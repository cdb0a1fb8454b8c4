/* The gradient of each op, against central differences in f64.
 *
 * A case is a function of tensors. Its output is weighted with random numbers and summed; each element of each tensor is moved by
 * +h and -h. With h the cube root of the rounding error, truncation and rounding both leave some 1e-10 of the values'
 * size (Nocedal and Wright, Numerical Optimization, 8.1): BOUND leaves a factor of 1000 for conditioning. */
#include "gradient_cases.h"
#include "random.h"

#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <functional/op_table.h>
#include <interpreter/tape/gradient.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEP 6.055454452393343e-06 /* cbrt(DBL_EPSILON) */
#define BOUND 1e-7

static int64_t count_of(const eddy_shape *shape) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape->rank; d++)
        count *= shape->dims[d];
    return count;
}

/* Numbers that differ by more than any step, so that no maximum and no kink is near two of them. */
static void fill(double *values, int64_t count, double least, double most) {
    for (int64_t i = 0; i < count; i++)
        values[i] = least + (most - least) * ((double)((i * 37 + 11) % 97) + 0.3 + 0.1 * (double)random_below(4)) / 98;
}

typedef struct problem {
    const gradient_case *which;
    double values[TENSOR_MAX][64];
    double weights[128];
} problem;

static eddy_tensor *weighted(const problem *p, eddy_tensor *const *x) {
    eddy_tensor *output = p->which->run(x);
    cr_assert_not_null(output, "%s", p->which->op);
    eddy_tensor *weights = eddy_from_data(p->weights, eddy_shape_of(output), EDDY_F64, NULL);
    return eddy_sum(eddy_mul(output, weights), EDDY_ALL_AXES, NULL);
}

static void make_inputs(const problem *p, eddy_tensor **x) {
    for (int i = 0; i < p->which->tensors; i++)
        x[i] = eddy_from_data(p->values[i], p->which->shapes[i], EDDY_F64, NULL);
}

static double value_at(const problem *p) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x[TENSOR_MAX];
    make_inputs(p, x);
    double value = eddy_item_f64(weighted(p, x), NULL);
    eddy_scope_end(scope);
    return value;
}

static void give_up(const gradient_case *c, size_t number) {
    eddy_error error = {0};
    eddy_error_take(&error);
    cr_assert_fail("case %zu, %s: %s", number, c->op, error.message);
}

static void check_case(const gradient_case *c, size_t number) {
    eddy_scope *scope = eddy_scope_begin();
    problem p = {.which = c};
    for (int i = 0; i < c->tensors; i++)
        fill(p.values[i], count_of(&c->shapes[i]), c->least, c->most);
    for (int i = 0; i < 128; i++)
        p.weights[i] = 0.25 + (double)random_below(1000) / 1000;
    eddy_tensor *x[TENSOR_MAX];
    make_inputs(&p, x);
    for (int i = 0; i < c->tensors; i++)
        cr_assert_eq(eddy_requires_grad_set(x[i], true), EDDY_OK);
    if (eddy_backward(weighted(&p, x)) != EDDY_OK)
        give_up(c, number);
    for (int i = 0; i < c->tensors; i++) {
        int64_t count = count_of(&c->shapes[i]);
        double got[64] = {0};
        if (eddy_has_grad(x[i]) && eddy_read(eddy_grad_of(x[i]), got, (size_t)count * sizeof(double), NULL) != EDDY_OK)
            give_up(c, number);
        for (int64_t k = 0; k < count; k++) {
            double at = p.values[i][k];
            p.values[i][k] = at + STEP;
            double above = value_at(&p);
            p.values[i][k] = at - STEP;
            double below = value_at(&p);
            p.values[i][k] = at;
            double want = (above - below) / (2 * STEP);
            cr_assert(fabs(got[k] - want) <= BOUND * (1 + fabs(want)),
                      "case %zu, %s, tensor %d, element %lld: %.12g, by differences %.12g (seed %llu)", number, c->op,
                      i, (long long)k, got[k], want, (unsigned long long)random_seed());
        }
    }
    eddy_scope_end(scope);
}

Test(gradients, agree_with_differences, .timeout = 300) {
    const char *only = getenv("EDDY_TEST_CASE");
    for (size_t i = 0; i < CASE_COUNT; i++)
        if (!only || strcmp(only, cases[i].op) == 0)
            check_case(&cases[i], i);
    cr_assert_eq(eddy_error_take(NULL), EDDY_OK);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- gradients of gradients ---- */

/* The squares, so that the first gradients of linear ops are no constants. */
static eddy_tensor *weighted_squares(const problem *p, eddy_tensor *const *x) {
    eddy_tensor *output = p->which->run(x);
    cr_assert_not_null(output, "%s", p->which->op);
    eddy_tensor *weights = eddy_from_data(p->weights, eddy_shape_of(output), EDDY_F64, NULL);
    return eddy_sum(eddy_mul(eddy_mul(output, output), weights), EDDY_ALL_AXES, NULL);
}

/* The gradients of the weighted squares of the output, weighted and summed; NULL with an error, EDDY_NONE where there is none. */
static eddy_tensor *weighted_gradients(const problem *p, eddy_tensor *const *x, bool is_recorded) {
    eddy_backward_options options = {.size = sizeof(options), .creates_graph = is_recorded};
    eddy_tensor *first[TENSOR_MAX], *sum = EDDY_NONE;
    eddy_tensor *output = weighted_squares(p, x);
    if (!eddy_requires_grad(output))
        return EDDY_NONE;
    if (eddy_backward_to(EDDY_LIST(output), (eddy_list){x, p->which->tensors}, (eddy_list){0}, &options, first) !=
        EDDY_OK)
        return NULL;
    for (int i = 0; i < p->which->tensors; i++) {
        if (first[i] == EDDY_NONE)
            continue;
        eddy_tensor *weights = eddy_from_data(p->weights, eddy_shape_of(first[i]), EDDY_F64, NULL);
        eddy_tensor *one = eddy_sum(eddy_mul(first[i], weights), EDDY_ALL_AXES, NULL);
        sum = sum == EDDY_NONE ? one : eddy_add(sum, one);
    }
    return sum;
}

static double gradient_value_at(const problem *p) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x[TENSOR_MAX];
    make_inputs(p, x);
    for (int i = 0; i < p->which->tensors; i++)
        cr_assert_eq(eddy_requires_grad_set(x[i], true), EDDY_OK);
    eddy_tensor *value = weighted_gradients(p, x, false);
    double number = value == EDDY_NONE ? 0 : eddy_item_f64(value, NULL);
    eddy_scope_end(scope);
    return number;
}

static void check_twice(const gradient_case *c, size_t number) {
    problem p = {.which = c};
    for (int i = 0; i < c->tensors; i++)
        fill(p.values[i], count_of(&c->shapes[i]), c->least, c->most);
    for (int i = 0; i < 128; i++)
        p.weights[i] = 0.25 + (double)random_below(1000) / 1000;
    eddy_tensor *x[TENSOR_MAX], *second[TENSOR_MAX];
    make_inputs(&p, x);
    for (int i = 0; i < TENSOR_MAX; i++)
        second[i] = EDDY_NONE;
    for (int i = 0; i < c->tensors; i++)
        cr_assert_eq(eddy_requires_grad_set(x[i], true), EDDY_OK);
    eddy_tensor *sum = weighted_gradients(&p, x, true);
    eddy_status status = sum ? EDDY_OK : EDDY_UNSUPPORTED;
    if (sum && sum != EDDY_NONE && eddy_requires_grad(sum))
        status = eddy_backward_to(EDDY_LIST(sum), (eddy_list){x, c->tensors}, (eddy_list){0}, NULL, second);
    if (status != EDDY_OK)
        give_up(c, number);
    for (int i = 0; i < c->tensors; i++) {
        int64_t count = count_of(&c->shapes[i]);
        double got[64] = {0};
        if (second[i] != EDDY_NONE && eddy_read(second[i], got, (size_t)count * sizeof(double), NULL) != EDDY_OK)
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
                      "case %zu, %s twice, tensor %d, element %lld: %.12g, by differences %.12g (seed %llu)", number,
                      c->op, i, (long long)k, got[k], want, (unsigned long long)random_seed());
        }
    }
}

Test(gradients, of_gradients_agree_with_differences, .timeout = 300) {
    const char *only = getenv("EDDY_TEST_CASE");
    for (size_t i = 0; i < CASE_COUNT; i++) {
        eddy_scope *scope = eddy_scope_begin();
        if (!only || strcmp(only, cases[i].op) == 0)
            check_twice(&cases[i], i);
        eddy_scope_end(scope);
    }
    cr_assert_eq(eddy_error_take(NULL), EDDY_OK);
    cr_assert_eq(eddy_live_count(), 0);
}

/* The list and the table above grow together. */
Test(gradients, each_op_that_has_one_is_checked) {
    for (uint32_t n = 0; n < eddy_op_table_count; n++) {
        const eddy_op *op = eddy_op_table[n];
        if (!op->gradient || !op->gradient->run)
            continue;
        bool is_checked = false;
        for (size_t i = 0; i < CASE_COUNT; i++)
            is_checked |= strcmp(cases[i].op, op->name) == 0;
        cr_expect(is_checked, "%s has a gradient and no case", op->name);
    }
}
