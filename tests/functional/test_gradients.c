/* The gradient of each op, against central differences in f64.
 *
 * A case is a function of tensors. Its output is weighted with random numbers and summed; each element of each tensor is moved by
 * +h and -h. With h the cube root of the rounding error, truncation and rounding both leave some 1e-10 of the values'
 * size (Nocedal and Wright, Numerical Optimization, 8.1): BOUND leaves a factor of 1000 for conditioning. */
#include "random.h"

#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <functional/op_table.h>
#include <interpreter/gradient.h>
#include <math.h>
#include <string.h>

#define STEP 6.055454452393343e-06 /* cbrt(DBL_EPSILON) */
#define BOUND 1e-7
#define TENSOR_MAX 3

typedef struct gradient_case {
    const char *op; /* the entry whose gradient it shows; "" for what is no op of the list */
    eddy_tensor *(*run)(eddy_tensor *const *x);
    double least, most; /* of the elements */
    int tensors;
    eddy_shape shapes[TENSOR_MAX];
} gradient_case;

#define SHAPE(...) EDDY_SHAPE(__VA_ARGS__)
#define CASE(op, expression)                                                                                           \
    static eddy_tensor *run_##op(eddy_tensor *const *x) {                                                              \
        return expression;                                                                                             \
    }
#define A x[0]
#define B x[1]
#define C x[2]

static eddy_tensor *labels(int64_t count, int64_t classes) {
    int64_t values[16];
    for (int64_t i = 0; i < count; i++)
        values[i] = i * 7 % classes;
    return eddy_from_data(values, EDDY_SHAPE(count), EDDY_I64, NULL);
}

static eddy_tensor *mask(void) {
    return eddy_from_data((bool[]){true, false, true}, EDDY_SHAPE(3), EDDY_BOOL, NULL);
}

CASE(add, eddy_add(A, B))
CASE(add_s, eddy_add_s(A, EDDY_S(2)))
CASE(sub, eddy_sub(A, B))
CASE(sub_s, eddy_sub_s(A, EDDY_S(2)))
CASE(mul, eddy_mul(A, B))
CASE(mul_s, eddy_mul_s(A, EDDY_S(-1.5)))
CASE(div, eddy_div(A, B))
CASE(div_s, eddy_div_s(A, EDDY_S(3)))
CASE(exp, eddy_exp(A))
CASE(log, eddy_log(A))
CASE(sqrt, eddy_sqrt(A))
CASE(neg, eddy_neg(A))
CASE(relu, eddy_relu(A))
CASE(sigmoid, eddy_sigmoid(A))
CASE(tanh, eddy_tanh(A))
CASE(where, eddy_where(mask(), A, B))
CASE(sum, eddy_sum(A, EDDY_AXES(0, 2), NULL))
CASE(sum_all, eddy_sum(A, NULL, NULL))
CASE(sum_kept, eddy_sum(A, EDDY_AXES(-1), EDDY_OPTIONS(sum, .keepdim = true)))
CASE(mean, eddy_mean(A, EDDY_AXES(1), NULL))
CASE(max, eddy_max(A, EDDY_AXES(1), NULL))
CASE(max_all, eddy_max(A, NULL, NULL))
CASE(matmul, eddy_matmul(A, B))
CASE(mm, eddy_mm(A, B))
CASE(linear, eddy_linear(A, B, C))
CASE(linear_bare, eddy_linear(A, B, EDDY_NONE))
CASE(softmax, eddy_softmax(A, 1))
CASE(log_softmax, eddy_log_softmax(A, -1))
CASE(cross_entropy, eddy_cross_entropy(A, labels(4, 5), NULL))
CASE(cross_entropy_none,
     eddy_cross_entropy(A, labels(4, 5), EDDY_OPTIONS(cross_entropy, .reduction = EDDY_REDUCTION_NONE)))
CASE(cross_entropy_ignored, eddy_cross_entropy(A, labels(4, 5), EDDY_OPTIONS(cross_entropy, .ignore_index = 2)))
CASE(cat, eddy_cat(EDDY_LIST(A, B, A), 1))
CASE(clone, eddy_clone(A))
CASE(cast, eddy_cast(eddy_cast(A, EDDY_F64), EDDY_F64))
CASE(relu_backward, eddy_relu_backward(A, eddy_detach(B)))
CASE(reshape, eddy_reshape(eddy_t(A), EDDY_SHAPE(2, -1)))
CASE(permute, eddy_permute(A, EDDY_AXES(2, 0, 1)))
CASE(expand, eddy_expand(A, EDDY_SHAPE(2, 3, 4)))
CASE(slice, eddy_slice(A, 1, 1, 6, 2))
CASE(select, eddy_select(A, -1, 2))
CASE(narrow, eddy_narrow(A, 0, 1, 2))
CASE(squeeze, eddy_squeeze(eddy_unsqueeze(A, 1), NULL))
CASE(flatten, eddy_flatten(eddy_transpose(A, 0, 2), 0, -1))
CASE(contiguous, eddy_contiguous(eddy_t(A)))
CASE(twice, eddy_mul(eddy_exp(A), eddy_add(A, eddy_exp(A))))

static eddy_tensor *run_inplace(eddy_tensor *const *x) {
    eddy_tensor *y = eddy_mul(x[0], x[1]);
    return eddy_sigmoid_inplace(y) == EDDY_OK ? eddy_mul(y, x[0]) : NULL;
}

#define ROW(op, run, least, most, count, ...)                                                                          \
    {                                                                                                                  \
#op, run_##run, least, most, count, {                                                                          \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
static const gradient_case cases[] = {
    ROW(add, add, -2, 2, 2, SHAPE(2, 3), SHAPE(2, 3)),
    ROW(add, add, -2, 2, 2, SHAPE(2, 1, 3), SHAPE(4, 1)),
    ROW(add_s, add_s, -2, 2, 1, SHAPE(3)),
    ROW(sub, sub, -2, 2, 2, SHAPE(3), SHAPE(2, 3)),
    ROW(sub_s, sub_s, -2, 2, 1, SHAPE(3)),
    ROW(mul, mul, -2, 2, 2, SHAPE(2, 3), SHAPE()),
    ROW(mul_s, mul_s, -2, 2, 1, SHAPE(2, 3)),
    ROW(div, div, 0.5, 2, 2, SHAPE(2, 3), SHAPE(1, 3)),
    ROW(div_s, div_s, 0.5, 2, 1, SHAPE(2, 3)),
    ROW(exp, exp, -2, 2, 1, SHAPE(5)),
    ROW(log, log, 0.5, 2, 1, SHAPE(5)),
    ROW(sqrt, sqrt, 0.5, 2, 1, SHAPE(5)),
    ROW(neg, neg, -2, 2, 1, SHAPE(5)),
    ROW(relu, relu, -2, 2, 1, SHAPE(7)),
    ROW(sigmoid, sigmoid, -2, 2, 1, SHAPE(5)),
    ROW(tanh, tanh, -2, 2, 1, SHAPE(5)),
    ROW(where, where, -2, 2, 2, SHAPE(2, 3), SHAPE(2, 1)),
    ROW(sum, sum, -2, 2, 1, SHAPE(2, 3, 4)),
    ROW(sum, sum_all, -2, 2, 1, SHAPE(2, 3)),
    ROW(sum, sum_kept, -2, 2, 1, SHAPE(2, 3)),
    ROW(mean, mean, -2, 2, 1, SHAPE(2, 3, 4)),
    ROW(max, max, -2, 2, 1, SHAPE(2, 5, 3)),
    ROW(max, max_all, -2, 2, 1, SHAPE(2, 5)),
    ROW(matmul, matmul, -2, 2, 2, SHAPE(3), SHAPE(3)),
    ROW(matmul, matmul, -2, 2, 2, SHAPE(2, 3), SHAPE(3)),
    ROW(matmul, matmul, -2, 2, 2, SHAPE(3), SHAPE(2, 3, 4)),
    ROW(matmul, matmul, -2, 2, 2, SHAPE(2, 1, 3, 4), SHAPE(5, 4, 2)),
    ROW(mm, mm, -2, 2, 2, SHAPE(2, 3), SHAPE(3, 4)),
    ROW(linear, linear, -2, 2, 3, SHAPE(2, 3, 4), SHAPE(5, 4), SHAPE(5)),
    ROW(linear, linear_bare, -2, 2, 2, SHAPE(3, 4), SHAPE(5, 4)),
    ROW(softmax, softmax, -2, 2, 1, SHAPE(2, 4, 3)),
    ROW(log_softmax, log_softmax, -2, 2, 1, SHAPE(3, 4)),
    ROW(cross_entropy, cross_entropy, -2, 2, 1, SHAPE(4, 5)),
    ROW(cross_entropy, cross_entropy_none, -2, 2, 1, SHAPE(4, 5)),
    ROW(cross_entropy, cross_entropy_ignored, -2, 2, 1, SHAPE(4, 5)),
    ROW(cat, cat, -2, 2, 2, SHAPE(2, 3), SHAPE(2, 1)),
    ROW(clone, clone, -2, 2, 1, SHAPE(2, 3)),
    ROW(cast, cast, -2, 2, 1, SHAPE(2, 3)),
    ROW(relu_backward, relu_backward, -2, 2, 2, SHAPE(5), SHAPE(5)),
    ROW(, reshape, -2, 2, 1, SHAPE(3, 4)),
    ROW(, permute, -2, 2, 1, SHAPE(2, 3, 4)),
    ROW(, expand, -2, 2, 1, SHAPE(3, 1)),
    ROW(, slice, -2, 2, 1, SHAPE(2, 7)),
    ROW(, select, -2, 2, 1, SHAPE(2, 3)),
    ROW(, narrow, -2, 2, 1, SHAPE(4, 3)),
    ROW(, squeeze, -2, 2, 1, SHAPE(2, 3)),
    ROW(, flatten, -2, 2, 1, SHAPE(2, 3, 2)),
    ROW(, contiguous, -2, 2, 1, SHAPE(2, 3)),
    ROW(, twice, -2, 2, 1, SHAPE(2, 3)),
    ROW(, inplace, -2, 2, 2, SHAPE(2, 3), SHAPE(3)),
};
#define CASE_COUNT (sizeof(cases) / sizeof(cases[0]))

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
    return eddy_sum(eddy_mul(output, weights), NULL, NULL);
}

static void make_inputs(const problem *p, eddy_tensor **x) {
    for (int i = 0; i < p->which->tensors; i++)
        x[i] = eddy_from_data(p->values[i], p->which->shapes[i], EDDY_F64, NULL);
}

static double value_at(const problem *p) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x[TENSOR_MAX];
    make_inputs(p, x);
    double value = eddy_item_f64(weighted(p, x));
    eddy_scope_end(scope);
    return value;
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
        cr_assert_eq(eddy_set_requires_grad(x[i], true), EDDY_OK);
    cr_assert_eq(eddy_backward(weighted(&p, x)), EDDY_OK, "case %zu, %s", number, c->op);
    for (int i = 0; i < c->tensors; i++) {
        int64_t count = count_of(&c->shapes[i]);
        double got[64] = {0};
        if (eddy_has_grad(x[i]))
            cr_assert_eq(eddy_read(eddy_grad(x[i]), got, (size_t)count * sizeof(double)), EDDY_OK);
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
    for (size_t i = 0; i < CASE_COUNT; i++)
        check_case(&cases[i], i);
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
