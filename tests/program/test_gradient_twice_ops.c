/* Gradients of gradients of each op through a run, compared with those of its call: the same bits. */
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <stdlib.h>
#include <string.h>
#include <tests/functional/gradient_cases.h>

#define LEVELS 3

/* The gradients of the variables, of their gradients, and of theirs; EDDY_NONE where there is none. */
typedef struct results {
    eddy_tensor *output, *grads[LEVELS][GRADIENT_VARIABLE_MAX];
} results;

static const char *name_of(const gradient_problem *p) {
    return p->which->name;
}

static void must(eddy_status status, const gradient_problem *p) {
    eddy_error error = {0};
    eddy_error_take(&error);
    cr_assert_eq(status, EDDY_OK, "%s, %s: %s", name_of(p), p->which->operands, error.message);
}

static void make_inputs(const gradient_problem *p, eddy_dtype dtype, eddy_tensor **x) {
    for (int i = 0; i < p->count; i++) {
        x[i] = eddy_cast(eddy_from_data(p->values[i], p->shapes[i], EDDY_F64, NULL), dtype);
        must(eddy_requires_grad_set(x[i], true), p);
    }
}

/* A sum of squares, so that gradients of linear ops are no constants; NULL of nothing that carries a gradient. */
static eddy_tensor *squares_of(const gradient_problem *p, eddy_tensor *const *of, int count) {
    eddy_tensor *sum = NULL;
    for (int i = 0; i < count; i++) {
        if (of[i] == EDDY_NONE || !eddy_requires_grad(of[i]))
            continue;
        eddy_tensor *weights = eddy_cast(
            eddy_from_data(p->weights, eddy_shape_of(of[i]), EDDY_F64, NULL), eddy_dtype_of(of[i]));
        eddy_tensor *part =
            eddy_sum(eddy_mul(eddy_mul(of[i], of[i]), weights), EDDY_ALL_AXES, NULL);
        sum = sum ? eddy_add(sum, part) : part;
    }
    return sum;
}

static void go_back(const gradient_problem *p, eddy_tensor *const *x, results *r) {
    eddy_tensor *of = squares_of(p, &r->output, 1);
    for (int level = 0; level < LEVELS; level++)
        for (int i = 0; i < p->count; i++)
            r->grads[level][i] = EDDY_NONE;
    for (int level = 0; level < LEVELS && of; level++) {
        must(eddy_backward_to(EDDY_LIST(of), (eddy_list){x, p->count}, (eddy_list){0},
                              EDDY_OPTIONS(backward, .creates_graph = level < LEVELS - 1),
                              r->grads[level]),
             p);
        of = squares_of(p, r->grads[level], p->count);
    }
}

static void expect_same(const gradient_problem *p, eddy_tensor *a, eddy_tensor *b, int level) {
    char one[8 * GRADIENT_OUTPUT_MAX], other[sizeof(one)];
    cr_assert_eq(a == EDDY_NONE, b == EDDY_NONE, "%s, level %d", name_of(p), level);
    if (a == EDDY_NONE)
        return;
    size_t bytes = (size_t)eddy_count_of(a) * eddy_dtype_bytes(eddy_dtype_of(a));
    cr_assert_eq(eddy_count_of(a), eddy_count_of(b));
    must(eddy_read(a, one, bytes, NULL), p);
    must(eddy_read(b, other, bytes, NULL), p);
    cr_assert_arr_eq(one, other, bytes, "%s, %s, %s, level %d", name_of(p), p->which->operands,
                     eddy_dtype_name(eddy_dtype_of(a)), level);
}

static eddy_program *record(const gradient_problem *p, eddy_dtype dtype) {
    static const char *const names[GRADIENT_VARIABLE_MAX] = {"a", "b", "c", "d", "e", "f"};
    eddy_tensor *x[GRADIENT_VARIABLE_MAX];
    eddy_binding bindings[GRADIENT_VARIABLE_MAX + 1];
    make_inputs(p, dtype, x);
    must(eddy_record_begin(NULL), p);
    eddy_tensor *y = gradient_case_output(p->which, x);
    for (int i = 0; i < p->count; i++)
        bindings[i] = (eddy_binding){names[i], x[i], EDDY_ROLE_INPUT};
    bindings[p->count] = (eddy_binding){"y", y, EDDY_ROLE_OUTPUT};
    return eddy_record_end_with_grad(&(eddy_bindings){bindings, p->count + 1});
}

static void compare(const gradient_problem *p, eddy_tensor *const *x, results *calls,
                    eddy_program *program) {
    eddy_tensor *same[GRADIENT_VARIABLE_MAX];
    results runs = {0};
    make_inputs(p, eddy_dtype_of(x[0]), same);
    must(eddy_seed(5), p);
    must(eddy_program_run(program, (eddy_list){same, p->count}, &runs.output), p);
    go_back(p, x, calls);
    go_back(p, same, &runs);
    expect_same(p, calls->output, runs.output, -1);
    for (int level = 0; level < LEVELS; level++)
        for (int i = 0; i < p->count; i++)
            expect_same(p, calls->grads[level][i], runs.grads[level][i], level);
}

/* Whether the case is a call of operands of that dtype, and its result's shape is known: else there is no program. */
static bool check(const gradient_case *c, eddy_dtype dtype) {
    gradient_problem p;
    eddy_tensor *x[GRADIENT_VARIABLE_MAX];
    eddy_error error = {0};
    gradient_problem_make(&p, c);
    make_inputs(&p, dtype, x);
    results calls = {.output = gradient_case_output(p.which, x)};
    if (!calls.output) {
        eddy_error_take(&error);
        cr_assert_neq(dtype, EDDY_F64, "%s: %s", c->name, error.message);
        return false;
    }
    eddy_program *program = record(&p, dtype);
    if (!program) {
        eddy_error_take(&error);
        cr_assert_not_null(strstr(error.message, "depends on data"), "%s: %s", c->name,
                           error.message);
        return false;
    }
    compare(&p, x, &calls, program);
    eddy_program_release(&program);
    return true;
}

Test(gradient_twice_ops, have_the_bits_of_calls, .timeout = 300) {
    const eddy_dtype dtypes[] = {EDDY_F64, EDDY_F32, EDDY_F16, EDDY_BF16};
    const char *only = getenv("EDDY_TEST_CASE");
    size_t checked = 0;
    for (size_t i = 0; i < gradient_case_count; i++)
        for (int d = 0; d < 4; d++) {
            eddy_scope *scope = eddy_scope_begin();
            if (!only || strcmp(only, gradient_cases[i].name) == 0)
                checked += check(&gradient_cases[i], dtypes[d]);
            eddy_scope_end(scope);
        }
    cr_assert(only || checked > 3 * gradient_case_count, "%zu of %zu cases", checked,
              gradient_case_count);
    cr_assert_eq(eddy_live_count(), 0);
}
