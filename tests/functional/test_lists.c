/* Lists: gaps that steps leave out, and messages that say which item they mean. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>
#include <string.h>

static eddy_tensor *numbers(float a, float b) {
    return eddy_from_data((const float[]){a, b}, EDDY_SHAPE(2), EDDY_F32, NULL);
}

static void expect_numbers(eddy_tensor *tensor, float a, float b) {
    float got[2];
    cr_assert_eq(eddy_read(tensor, got, sizeof(got), NULL), EDDY_OK);
    cr_assert(got[0] == a && got[1] == b, "%g, %g instead of %g, %g", (double)got[0],
              (double)got[1], (double)a, (double)b);
}

/* ---- gradients of lists ---- */

enum { USED, UNUSED, ALSO_USED, COUNT };

static eddy_tensor *params[COUNT], *grads[COUNT];

static eddy_list list_of(eddy_tensor *const *items) {
    return (eddy_list){items, COUNT};
}

/* d/dp of sum(p0 * 3 + p2 * p2) */
static void go_back(void) {
    for (int i = 0; i < COUNT; i++) {
        params[i] = numbers(1, 2);
        cr_assert_eq(eddy_requires_grad_set(params[i], true), EDDY_OK);
    }
    eddy_tensor *used = eddy_mul_s(params[USED], EDDY_S(3)), *also = eddy_square(params[ALSO_USED]);
    cr_assert_eq(eddy_backward(eddy_sum(eddy_add(used, also), EDDY_ALL_AXES, NULL)), EDDY_OK);
    cr_assert_eq(eddy_grads_of(list_of(params), grads), EDDY_OK);
}

Test(lists, an_unused_parameter_has_no_gradient) {
    eddy_scope *scope = eddy_scope_begin();
    go_back();
    cr_assert_eq(grads[UNUSED], EDDY_NONE);
    expect_numbers(grads[USED], 3, 3);
    expect_numbers(grads[ALSO_USED], 2, 4);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0, "the scope owned them");
}

Test(lists, what_has_no_gradient_at_all_is_refused_and_nothing_written) {
    eddy_error error;
    go_back();
    eddy_tensor *plain = numbers(1, 1), *written[2] = {NULL, NULL};
    cr_assert_eq(eddy_grads_of(EDDY_LIST(params[0], plain), written), EDDY_INVALID_ARGUMENT);
    cr_assert(!written[0] && !written[1]);
    eddy_error_take(&error);
    cr_assert_str_eq(error.message, "grads_of: params[1] requires no gradient");
    cr_assert_eq(eddy_grads_of(list_of(params), NULL), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_grads_of((eddy_list){NULL, 0}, NULL), EDDY_OK,
                 "nothing asked, nothing given");
}

Test(lists, an_array_is_a_list) {
    eddy_tensor *two[] = {numbers(1, 2), numbers(3, 4)}, *const fixed[1] = {two[0]};
    cr_assert_eq(EDDY_ARRAY(two).count, 2);
    cr_assert_eq(EDDY_ARRAY(fixed).count, 1);
    expect_numbers(eddy_select(eddy_stack(EDDY_ARRAY(two), 0), 0, 1), 3, 4);
}

/* ---- gaps ---- */

static void expect_unmoved(eddy_tensor *tensor) {
    expect_numbers(tensor, 1, 2);
}

Test(lists, steps_leave_gaps_out) {
    go_back();
    eddy_no_grad_begin();
    cr_assert_eq(eddy_sgd_step(list_of(params), list_of(grads), EDDY_S(0.5), NULL), EDDY_OK);
    expect_numbers(params[USED], -0.5f, 0.5f);
    expect_unmoved(params[UNUSED]);
    expect_numbers(params[ALSO_USED], 0, 0);
    eddy_no_grad_end();
}

typedef eddy_status step_fn(eddy_list p, eddy_list g, eddy_list m, eddy_list v, eddy_tensor *step);

static eddy_status adam(eddy_list p, eddy_list g, eddy_list m, eddy_list v, eddy_tensor *step) {
    return eddy_adam_step(p, g, m, v, step, EDDY_S(0.1), NULL);
}

static eddy_status adamw(eddy_list p, eddy_list g, eddy_list m, eddy_list v, eddy_tensor *step) {
    return eddy_adamw_step(p, g, m, v, step, EDDY_S(0.1), NULL);
}

static eddy_status momentum(eddy_list p, eddy_list g, eddy_list m, eddy_list v, eddy_tensor *step) {
    (void)v;
    (void)step;
    return eddy_sgd_momentum_step(p, g, m, EDDY_S(0.1), EDDY_S(0.9), NULL);
}

static eddy_status by_name(eddy_list p, eddy_list g, eddy_list m, eddy_list v, eddy_tensor *step) {
    eddy_tensor *inputs[4 * COUNT + 1];
    const eddy_list lists[] = {p, g, m, v};
    int64_t count = 0;
    for (int l = 0; l < 4; l++)
        for (int64_t i = 0; i < lists[l].count; i++)
            inputs[count++] = lists[l].items[i];
    inputs[count++] = step;
    return eddy_call("adam_step", (eddy_list){inputs, count},
                     EDDY_ATTRIBUTES({"lr", EDDY_ATTRIBUTE_FLOAT, {.floating = 0.1}}), NULL);
}

/* Twice the same: with a gap in the middle, and without the item. */
static void compare(step_fn *step) {
    eddy_tensor *p[2][COUNT], *m[2][COUNT], *v[2][COUNT], *g[2][COUNT], *count[2];
    for (int way = 0; way < 2; way++) {
        count[way] = eddy_zeros(EDDY_SHAPE(), EDDY_I64, NULL);
        for (int i = 0; i < COUNT; i++) {
            p[way][i] = numbers(1, 2);
            m[way][i] = eddy_zeros(EDDY_SHAPE(2), EDDY_F32, NULL);
            v[way][i] = eddy_zeros(EDDY_SHAPE(2), EDDY_F32, NULL);
            g[way][i] = numbers(0.5f, (float)i);
        }
    }
    g[0][UNUSED] = EDDY_NONE;
    cr_assert_eq(step(list_of(p[0]), list_of(g[0]), list_of(m[0]), list_of(v[0]), count[0]),
                 EDDY_OK);
    cr_assert_eq(step(EDDY_LIST(p[1][0], p[1][2]), EDDY_LIST(g[1][0], g[1][2]),
                      EDDY_LIST(m[1][0], m[1][2]), EDDY_LIST(v[1][0], v[1][2]), count[1]),
                 EDDY_OK);
    for (int i = 0; i < COUNT; i++) {
        float got[2], wanted[2];
        cr_assert_eq(eddy_read(p[0][i], got, sizeof(got), NULL), EDDY_OK);
        cr_assert_eq(eddy_read(p[1][i], wanted, sizeof(wanted), NULL), EDDY_OK);
        cr_assert_eq(memcmp(got, wanted, sizeof(got)), 0, "item %d", i);
    }
    expect_unmoved(p[0][UNUSED]);
    expect_numbers(m[0][UNUSED], 0, 0);
}

Test(lists, every_optimiser_steps_as_without_the_gap) {
    compare(adam);
    compare(adamw);
    compare(momentum);
    compare(by_name);
}

Test(lists, clipping_leaves_gaps_out) {
    eddy_tensor *a = numbers(3, 0), *b = numbers(0, 4),
                *norm = eddy_zeros(EDDY_SHAPE(), EDDY_F32, NULL);
    cr_assert_eq(eddy_clip_grad_norm(EDDY_LIST(a, EDDY_NONE, b), norm, EDDY_S(1)), EDDY_OK);
    cr_assert_eq(eddy_item_f64(norm, NULL), 5);
    cr_assert_float_eq(eddy_item_f64(eddy_select(b, 0, 1), NULL), 0.8, 1e-5);
    cr_assert_eq(eddy_clip_grad_norm(EDDY_LIST(EDDY_NONE, EDDY_NONE), norm, EDDY_S(1)), EDDY_OK);
    cr_assert_eq(eddy_item_f64(norm, NULL), 0);
}

/* ---- messages ---- */

#define SAYS(call, part)                                                                           \
    do {                                                                                           \
        eddy_error error;                                                                          \
        (void)(call);                                                                              \
        (void)eddy_error_take(&error);                                                             \
        cr_expect_not_null(strstr(error.message, part), "\"%s\" lacks \"%s\"", error.message,      \
                           part);                                                                  \
    } while (0)

Test(lists, messages_say_which_item) {
    eddy_tensor *a = numbers(1, 2), *b = numbers(3, 4),
                *wide = eddy_ones(EDDY_SHAPE(2), EDDY_F64, NULL), *results[2];
    eddy_tensor *long_one = eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL), *gone = numbers(5, 6),
                *after = gone;
    eddy_release(&gone);
    SAYS(eddy_cat(EDDY_LIST(a, b, NULL), 0), "cat: tensors[2] is NULL");
    SAYS(eddy_stack(EDDY_LIST(a, after), 0), "stack: tensors[1] was released before");
    SAYS(eddy_sgd_step(EDDY_LIST(a, b), EDDY_LIST(a, wide), EDDY_S(1), NULL),
         "params[1] is f32 and grads[1] is f64");
    SAYS(eddy_sgd_step(EDDY_LIST(a, b), EDDY_LIST(a, long_one), EDDY_S(1), NULL),
         "params[1] and grads[1] must have one shape");
    SAYS(eddy_sgd_step(EDDY_LIST(a, NULL), EDDY_LIST(a, EDDY_NONE), EDDY_S(1), NULL),
         "params[1] is NULL");
    SAYS(eddy_sgd_step(EDDY_LIST(a, EDDY_NONE), EDDY_LIST(a, b), EDDY_S(1), NULL),
         "params[1] is EDDY_NONE");
    SAYS(eddy_clip_grad_norm(EDDY_LIST(a, eddy_ones(EDDY_SHAPE(1), EDDY_I64, NULL)), EDDY_NONE,
                             EDDY_S(1)),
         "grads[1] must be");
    SAYS(eddy_grads_zero(EDDY_LIST(a)), "grads_zero: tensors[0] requires no gradient");
    SAYS(eddy_recover(EDDY_LIST(a, NULL)), "recover: tensors[1] is NULL");
    SAYS(eddy_npz_save(EDDY_LIST(a, NULL), (const char *[]){"a", "b"}, "/tmp/never.npz", NULL),
         "tensors[1] is NULL");
    SAYS(eddy_backward_to(EDDY_LIST(a), EDDY_LIST(NULL), (eddy_list){0}, NULL, results),
         "inputs[0] is NULL");
}

/* ---- what is told ---- */

static char lines[4096];

static void keep(void *context, const char *line) {
    (void)context;
    strncat(lines, line, sizeof(lines) - strlen(lines) - 2);
    strcat(lines, "\n");
}

static eddy_tensor *loss_of(eddy_shape input, eddy_shape target) {
    return eddy_mse_loss(eddy_ones(input, EDDY_F32, NULL), eddy_ones(target, EDDY_F32, NULL), NULL);
}

Test(lists, a_target_of_another_shape_is_told_once_a_place) {
    loss_of(EDDY_SHAPE(4, 1), EDDY_SHAPE(4)); /* nobody listens */
    eddy_log_set(keep, NULL);
    for (int i = 0; i < 3; i++)
        cr_assert_not_null(loss_of(EDDY_SHAPE(8, 1), EDDY_SHAPE(8)));
    cr_assert_str_eq(lines, "mse_loss: input is [8, 1] and target [8]: both are broadcast to [8, "
                            "8], which is seldom meant\n");
    lines[0] = '\0';
    cr_assert_not_null(loss_of(EDDY_SHAPE(8), EDDY_SHAPE(8)));
    cr_assert_str_eq(lines, "");
    eddy_l1_loss(eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL),
                 eddy_ones(EDDY_SHAPE(2, 2), EDDY_F32, NULL), NULL);
    cr_assert_eq(strncmp(lines, "l1_loss: ", 9), 0, "%s", lines);
}

/* The memory of a call is taken before its operands' shapes are waited for. */
Test(lists, a_thousand_tensors_of_late_shape) {
    enum { LATE = 1000 };
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *source = eddy_ones(EDDY_SHAPE(1, 1, 2), EDDY_F32, NULL), *places[LATE];
    for (int i = 0; i < LATE; i++)
        cr_assert_not_null(places[i] = eddy_nonzero(source));
    eddy_tensor *all = eddy_cat((eddy_list){places, LATE}, 0);
    cr_assert_not_null(all);
    cr_assert(eddy_dim_of(all, 0) == 2 * LATE && eddy_dim_of(all, 1) == 3);
    cr_assert_eq(eddy_item_i64(eddy_sum(all, EDDY_ALL_AXES, NULL), NULL), LATE);
    eddy_scope_end(scope);
}
