/* What is recorded, how going back goes, and what it leaves. */
#include "taped.h"

#include <pthread.h>

#define F32(shape, ...) eddy_from_data((float[]){__VA_ARGS__}, shape, EDDY_F32, NULL)

static eddy_tensor *total(eddy_tensor *tensor) {
    return eddy_sum(tensor, EDDY_ALL_AXES, NULL);
}

static void expect_grad(eddy_tensor *tensor, int count, const float *want) {
    float got[16];
    eddy_tensor *grad = eddy_grad_of(tensor);
    cr_assert_not_null(grad);
    cr_assert_eq(eddy_read(grad, got, (size_t)count * sizeof(float), NULL), EDDY_OK);
    for (int i = 0; i < count; i++)
        cr_assert_eq(got[i], want[i], "element %d: %g instead of %g", i, (double)got[i],
                     (double)want[i]);
}
#define EXPECT_GRAD(tensor, ...)                                                                   \
    expect_grad(tensor, (int)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)),                     \
                (float[]){__VA_ARGS__})

#define CASE(name) TAPED_TEST(autograd, name)

CASE(sums_add_up_until_they_are_given_up) {
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(2), 1, 2));
    cr_assert_not(eddy_has_grad(x));
    cr_assert_eq(eddy_backward(total(eddy_mul(x, x))), EDDY_OK);
    EXPECT_GRAD(x, 2, 4);
    cr_assert_eq(eddy_backward(total(eddy_mul(x, x))), EDDY_OK);
    EXPECT_GRAD(x, 4, 8);
    cr_assert_eq(eddy_grads_zero(EDDY_LIST(x)), EDDY_OK);
    cr_assert_not(eddy_has_grad(x));
    cr_assert_null(eddy_grad_of(x));
    expect_error(EDDY_INVALID_ARGUMENT, "there is none");
    cr_assert_eq(eddy_backward(total(x)), EDDY_OK);
    EXPECT_GRAD(x, 1, 1);
}

/* An addition hands one gradient on to both: what is added to one later is not the other's. */
CASE(leaves_do_not_share_a_gradient) {
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(2), 1, 2)), *y = leaf(F32(EDDY_SHAPE(2), 3, 4));
    cr_assert_eq(eddy_backward(total(eddy_add(x, y))), EDDY_OK);
    cr_assert_eq(eddy_backward(total(eddy_mul_s(x, EDDY_S(10)))), EDDY_OK);
    EXPECT_GRAD(x, 11, 11);
    EXPECT_GRAD(y, 1, 1);
}

/* The slope of elu is alpha e^x, and not what its rounded result leaves of it. */
CASE(elu_saturates) {
    static const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F16, EDDY_BF16};
    for (int d = 0; d < 3; d++) {
        eddy_tensor *x = leaf(eddy_full(EDDY_SHAPE(2), EDDY_S(-200), dtypes[d], NULL));
        cr_assert_eq(eddy_backward(total(eddy_elu(
                         x, &(eddy_elu_options){.size = sizeof(eddy_elu_options), .alpha = 0.7}))),
                     EDDY_OK);
        cr_assert_eq(eddy_item_f64(eddy_sum(eddy_abs(eddy_grad_of(x)), EDDY_ALL_AXES, NULL), NULL),
                     0);
    }
}

CASE(a_count_has_a_gradient_of_zeros) {
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(3), 1, 0, 2));
    eddy_norm_options options = {.size = sizeof(options), .p = 0, .p_is_zero = true};
    cr_assert_eq(eddy_backward(eddy_norm(x, EDDY_ALL_AXES, &options)), EDDY_OK);
    EXPECT_GRAD(x, 0, 0, 0);
}

CASE(a_gradient_has_the_shape_of_its_tensor) {
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(2, 1), 1, 2)), *y = leaf(F32(EDDY_SHAPE(3), 3, 4, 5));
    cr_assert_eq(eddy_backward(total(eddy_mul(x, y))), EDDY_OK);
    EXPECT_GRAD(x, 12, 12);
    EXPECT_GRAD(y, 3, 3, 3);
    eddy_shape shapes[2] = {eddy_shape_of(eddy_grad_of(x)), eddy_shape_of(eddy_grad_of(y))};
    cr_assert(shapes[0].rank == 2 && shapes[0].dims[0] == 2 && shapes[0].dims[1] == 1);
    cr_assert(shapes[1].rank == 1 && shapes[1].dims[0] == 3);
}

CASE(what_needs_no_gradient_is_not_recorded) {
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(2), 1, 2)), *y = F32(EDDY_SHAPE(2), 3, 4);
    cr_assert_not(eddy_requires_grad(eddy_mul(y, y)));
    cr_assert(eddy_requires_grad(eddy_mul(x, y)));
    cr_assert_not(eddy_requires_grad(eddy_detach(eddy_mul(x, y))));
    cr_assert_not(eddy_requires_grad(eddy_lt(x, y)), "a comparison has no gradient");
    cr_assert_not(eddy_requires_grad(eddy_argmax(x, EDDY_ALL_AXES, NULL)));
    cr_assert_not(eddy_requires_grad(eddy_zeros_like(x, NULL)));
    cr_assert_not(eddy_requires_grad(eddy_cast(x, EDDY_I32)));
    eddy_no_grad_begin();
    eddy_no_grad_begin();
    cr_assert_not(eddy_requires_grad(eddy_mul(x, y)));
    eddy_no_grad_end();
    cr_assert_not(eddy_requires_grad(eddy_t(x)));
    eddy_no_grad_end();
    cr_assert(eddy_requires_grad(eddy_t(x)));
    eddy_no_grad_end();
    expect_error(EDDY_INVALID_ARGUMENT, "none has begun");
}

CASE(only_what_depends_on_it_gets_a_gradient) {
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(2), 1, 2)), *y = leaf(F32(EDDY_SHAPE(2), 3, 4));
    eddy_tensor *loss = total(eddy_mul(x, eddy_detach(y)));
    cr_assert_eq(eddy_backward(loss), EDDY_OK);
    EXPECT_GRAD(x, 3, 4);
    cr_assert_not(eddy_has_grad(y));
    eddy_tensor *gradients[2];
    cr_assert_eq(eddy_backward_to(EDDY_LIST(total(eddy_exp(x))), EDDY_LIST(y, x), (eddy_list){0},
                                  NULL, gradients),
                 EDDY_OK);
    cr_assert_eq(gradients[0], EDDY_NONE);
    cr_assert_not_null(gradients[1]);
    EXPECT_GRAD(x, 3, 4); /* untouched */
}

CASE(seeds_weight_what_has_many_elements) {
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(3), 1, 2, 3));
    eddy_tensor *y = eddy_mul_s(x, EDDY_S(2));
    cr_assert_eq(eddy_backward(y), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "f32[3], has not one element: make it one (eddy_sum, eddy_mean), or");
    cr_assert_eq(eddy_backward_from(EDDY_LIST(y), EDDY_LIST(F32(EDDY_SHAPE(2), 1, 1)), NULL),
                 EDDY_SHAPE_MISMATCH);
    expect_error(EDDY_SHAPE_MISMATCH, "seeds[0] is f32[2], its output f32[3]: they must be alike");
    cr_assert_eq(eddy_backward_from(EDDY_LIST(y, total(x)),
                                    EDDY_LIST(F32(EDDY_SHAPE(3), 1, 10, 100), EDDY_NONE), NULL),
                 EDDY_OK);
    EXPECT_GRAD(x, 3, 21, 201);
}

CASE(going_back_again_takes_what_was_kept_for_it) {
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(1), 3));
    eddy_tensor *y = eddy_mul(x, x);
    eddy_backward_options keep = {.size = sizeof(keep), .keeps_graph = true};
    cr_assert_eq(eddy_backward_from(EDDY_LIST(y), (eddy_list){0}, &keep), EDDY_OK);
    cr_assert_eq(eddy_backward(y), EDDY_OK);
    EXPECT_GRAD(x, 12);
    cr_assert_eq(eddy_backward(y), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "what mul had saved was given up");
    EXPECT_GRAD(x, 12);
}

CASE(a_write_to_what_was_saved_is_found_out) {
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(2), 1, 2)), *factor = F32(EDDY_SHAPE(2), 3, 4);
    eddy_tensor *y = eddy_mul(x, factor);
    cr_assert_eq(eddy_relu_inplace(factor), EDDY_OK);
    cr_assert_eq(eddy_backward(total(y)), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "what mul had saved for its gradient was written to in place since");
    eddy_tensor *z = eddy_mul(x, factor);
    cr_assert_eq(eddy_copy_into(x, factor), EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, "copy_into: it has no gradient");
    cr_assert_eq(eddy_copy_into(eddy_detach(x), eddy_narrow(factor, 0, 0, 2)), EDDY_OK);
    cr_assert_eq(eddy_backward(total(z)), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "written to in place");
    eddy_tensor *v = eddy_mul(x, factor);
    cr_assert_not_null(eddy_map(factor, EDDY_WRITE, EDDY_FOREVER));
    cr_assert_eq(eddy_unmap(factor), EDDY_OK);
    cr_assert_eq(eddy_backward(total(v)), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "written to in place");
    /* A sum does not ask for the values. */
    eddy_tensor *w = eddy_add(x, factor);
    cr_assert_eq(eddy_relu_inplace(factor), EDDY_OK);
    cr_assert_eq(eddy_backward(total(w)), EDDY_OK);
    EXPECT_GRAD(x, 1, 1);
}

CASE(in_place_on_what_an_op_made) {
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(3), -1, 2, 3));
    eddy_tensor *y = eddy_mul_s(x, EDDY_S(2)), *z = F32(EDDY_SHAPE(3), 1, 1, 1);
    cr_assert_eq(eddy_relu_inplace(y), EDDY_OK);
    cr_assert_eq(eddy_add_inplace(z, y), EDDY_OK);
    cr_assert(eddy_requires_grad(z), "it depends on x from here on");
    cr_assert_eq(eddy_backward(total(z)), EDDY_OK);
    EXPECT_GRAD(x, 0, 2, 2);
}

CASE(in_place_is_refused_where_gradients_cannot_follow) {
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(2), 1, 2)), *y = F32(EDDY_SHAPE(2), 3, 4);
    cr_assert_eq(eddy_relu_inplace(x), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "relu: in place on a tensor whose gradient is wanted");
    cr_assert_eq(eddy_mul_inplace(y, x), EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, "reads what would be overwritten");
    eddy_tensor *made = eddy_mul_s(x, EDDY_S(2));
    cr_assert_eq(eddy_sub_inplace(made, made), EDDY_OK);
    cr_assert_eq(eddy_div_inplace(y, eddy_add(x, y)), EDDY_OK);
    cr_assert_eq(eddy_div_inplace(made, made), EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, "reads what would be overwritten");
    cr_assert_eq(eddy_div_inplace(made, eddy_narrow(made, 0, 0, 1)), EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, "reads what would be overwritten");
    cr_assert_eq(eddy_add_inplace(eddy_narrow(y, 0, 0, 2), x), EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, "in place on a view");
    cr_assert_eq(eddy_add_into(x, y, y), EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, "into a given tensor");
    eddy_no_grad_begin();
    cr_assert_eq(eddy_relu_inplace(x), EDDY_OK);
    eddy_no_grad_end();
    cr_assert(eddy_requires_grad(x));
}

static eddy_tensor *bystander;
static eddy_status in_deleter[7];

static void call_the_tape(void *context) {
    (void)context;
    eddy_tensor *found = NULL;
    int i = 0;
    in_deleter[i++] = eddy_requires_grad_set(bystander, false);
    in_deleter[i++] = eddy_backward(bystander);
    in_deleter[i++] =
        eddy_backward_to(EDDY_LIST(bystander), EDDY_LIST(bystander), (eddy_list){0}, NULL, &found);
    in_deleter[i++] = eddy_grad_keep(bystander);
    in_deleter[i++] = eddy_grads_zero(EDDY_LIST(bystander));
    eddy_error_take(NULL);
    cr_assert_null(eddy_detach(bystander));
    in_deleter[i++] = eddy_error_take(NULL);
    cr_assert_null(eddy_grad_of(bystander));
    in_deleter[i++] = eddy_error_take(NULL);
}

CASE(a_deleter_leaves_the_tape_alone) {
    static float values[2];
    bystander = leaf(F32(EDDY_SHAPE(1), 1));
    eddy_tensor *lent =
        eddy_from_buffer(values, EDDY_SHAPE(2), EDDY_F32, call_the_tape, NULL, NULL);
    cr_assert_not_null(lent);
    eddy_release(&lent);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(eddy_sync_deleters(EDDY_FOREVER), EDDY_OK);
    for (int i = 0; i < 7; i++)
        cr_assert_eq(in_deleter[i], EDDY_WRONG_THREAD, "call %d: %d", i, (int)in_deleter[i]);
    cr_assert(eddy_requires_grad(bystander) && !eddy_has_grad(bystander));
}

CASE(marks_are_checked) {
    eddy_tensor *n = eddy_ones(EDDY_SHAPE(2), EDDY_I64, NULL), *x = leaf(F32(EDDY_SHAPE(2), 1, 2));
    cr_assert_eq(eddy_requires_grad_set(n, true), EDDY_DTYPE_MISMATCH);
    expect_error(EDDY_DTYPE_MISMATCH, "i64[2] has no gradient");
    cr_assert_eq(eddy_requires_grad_set(NULL, true), EDDY_INVALID_ARGUMENT);
    eddy_error_take(NULL);
    eddy_tensor *y = eddy_exp(x);
    cr_assert_eq(eddy_requires_grad_set(y, true), EDDY_OK);
    cr_assert_eq(eddy_requires_grad_set(y, false), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "made by a recorded op");
    cr_assert_eq(eddy_backward(n), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "requires no gradient");
    cr_assert_eq(eddy_requires_grad_set(x, false), EDDY_OK);
    cr_assert_not(eddy_requires_grad(eddy_exp(x)));
}

CASE(gradients_of_gradients) {
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(2), 2, 3));
    eddy_tensor *y = total(eddy_mul(eddy_mul(x, x), x)), *first, *second, *third;
    eddy_backward_options create = {.size = sizeof(create), .creates_graph = true};
    cr_assert_eq(eddy_backward_to(EDDY_LIST(y), EDDY_LIST(x), (eddy_list){0}, &create, &first),
                 EDDY_OK);
    cr_assert_eq(
        eddy_backward_to(EDDY_LIST(total(first)), EDDY_LIST(x), (eddy_list){0}, &create, &second),
        EDDY_OK);
    cr_assert_eq(
        eddy_backward_to(EDDY_LIST(total(second)), EDDY_LIST(x), (eddy_list){0}, NULL, &third),
        EDDY_OK);
    float values[2];
    cr_assert_eq(eddy_read(first, values, sizeof(values), NULL), EDDY_OK);
    cr_assert(values[0] == 12 && values[1] == 27);
    cr_assert_eq(eddy_read(second, values, sizeof(values), NULL), EDDY_OK);
    cr_assert(values[0] == 12 && values[1] == 18);
    cr_assert_eq(eddy_read(third, values, sizeof(values), NULL), EDDY_OK);
    cr_assert(values[0] == 6 && values[1] == 6);
}

/* What a graph is made of stays as it is when more comes to it. */
CASE(a_gradient_with_a_graph_is_not_added_to) {
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(2), 2, 3)), *second;
    eddy_backward_options create = {.size = sizeof(create), .creates_graph = true};
    cr_assert_eq(eddy_backward_from(EDDY_LIST(total(eddy_mul(x, x))), (eddy_list){0}, &create),
                 EDDY_OK);
    eddy_tensor *first = eddy_grad_of(x), *of_first = total(eddy_mul(first, first));
    cr_assert_eq(eddy_backward_from(EDDY_LIST(total(eddy_mul(x, x))), (eddy_list){0}, &create),
                 EDDY_OK);
    EXPECT_GRAD(x, 8, 12);
    float values[2];
    cr_assert_eq(eddy_read(first, values, sizeof(values), NULL), EDDY_OK);
    cr_assert(values[0] == 4 && values[1] == 6);
    cr_assert_eq(eddy_backward_to(EDDY_LIST(of_first), EDDY_LIST(x), (eddy_list){0}, NULL, &second),
                 EDDY_OK);
    cr_assert_eq(eddy_read(second, values, sizeof(values), NULL), EDDY_OK);
    cr_assert(values[0] == 16 && values[1] == 24);
    cr_assert_eq(eddy_grads_zero(EDDY_LIST(x)),
                 EDDY_OK); /* it and its graph would hold each other */
}

/* exp saves its result: the tape must find its way through that too. */
CASE(gradients_of_gradients_through_saved_results) {
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(2), 0, 0)), *first, *second;
    eddy_backward_options create = {.size = sizeof(create), .creates_graph = true};
    cr_assert_eq(eddy_backward_to(EDDY_LIST(total(eddy_exp(x))), EDDY_LIST(x), (eddy_list){0},
                                  &create, &first),
                 EDDY_OK);
    cr_assert_eq(eddy_backward_to(EDDY_LIST(total(eddy_mul(first, first))), EDDY_LIST(x),
                                  (eddy_list){0}, NULL, &second),
                 EDDY_OK);
    float values[2];
    cr_assert_eq(eddy_read(second, values, sizeof(values), NULL), EDDY_OK);
    cr_assert(values[0] == 2 && values[1] == 2);
}

CASE(an_op_between_can_keep_its_gradient) {
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(2), 1, 2));
    eddy_tensor *y = eddy_mul(x, x);
    cr_assert_eq(eddy_grad_keep(y), EDDY_OK);
    cr_assert_eq(eddy_backward(total(eddy_mul_s(y, EDDY_S(3)))), EDDY_OK);
    EXPECT_GRAD(y, 3, 3);
    EXPECT_GRAD(x, 6, 12);
    eddy_tensor *gradient;
    eddy_tensor *z = eddy_exp(x);
    cr_assert_eq(eddy_backward_to(EDDY_LIST(total(eddy_mul(z, z))), EDDY_LIST(z), (eddy_list){0},
                                  NULL, &gradient),
                 EDDY_OK);
    cr_assert_neq(gradient, EDDY_NONE, "inputs need not be leaves");
}

/* ---- hooks ---- */

typedef struct seen {
    int calls, destroyed;
    bool replaces, is_wrong;
} seen;

static eddy_tensor *look(void *context, eddy_tensor *gradient) {
    seen *s = context;
    s->calls++;
    if (s->is_wrong)
        return F32(EDDY_SHAPE(1), 1);
    return s->replaces ? eddy_mul_s(gradient, EDDY_S(10)) : NULL;
}

static void forget(void *context) {
    ((seen *)context)->destroyed++;
}

CASE(hooks_see_and_replace_gradients) {
    eddy_scope *inner = eddy_scope_begin();
    seen leaf_hook = {.replaces = true}, middle = {0}, wrong = {.is_wrong = true};
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(2), 1, 2));
    cr_assert_eq(eddy_grad_hook_add(x, look, &leaf_hook, forget), EDDY_OK);
    eddy_tensor *y = eddy_mul(x, x);
    cr_assert_eq(eddy_grad_hook_add(y, look, &middle, forget), EDDY_OK);
    cr_assert_eq(eddy_backward(total(eddy_add(y, y))), EDDY_OK);
    cr_assert_eq(middle.calls, 1, "once, when the gradient is complete");
    EXPECT_GRAD(x, 40, 80);
    eddy_tensor *z = eddy_exp(x);
    cr_assert_eq(eddy_grad_hook_add(z, look, &wrong, NULL), EDDY_OK);
    cr_assert_eq(eddy_backward(total(z)), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "another shape, dtype or device");
    cr_assert_eq(eddy_grad_hook_add(z, NULL, NULL, NULL), EDDY_INVALID_ARGUMENT);
    eddy_error_take(NULL);
    eddy_scope_end(inner);
    cr_assert(leaf_hook.destroyed == 1 && middle.destroyed == 1);
}

static eddy_tensor *give_wrong(void *context, eddy_tensor *gradient) {
    (void)context, (void)gradient;
    return eddy_retain(F32(EDDY_SHAPE(1), 1));
}

CASE(what_a_hook_gives_in_vain_is_given_up) {
    int64_t live = eddy_live_count();
    eddy_scope *inner = eddy_scope_begin();
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(2), 1, 2));
    cr_assert_eq(eddy_grad_hook_add(x, give_wrong, NULL, NULL), EDDY_OK);
    cr_assert_eq(eddy_backward(total(eddy_exp(x))), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "another shape, dtype or device");
    eddy_scope_end(inner);
    cr_assert_eq(eddy_live_count(), live);
}

/* ---- size and memory ---- */

/* Only the last is the user's: the others live as long as the tape needs them. */
static eddy_tensor *chain(eddy_tensor *from, int length, eddy_tensor *(*op)(eddy_tensor *)) {
    eddy_tensor *at = eddy_clone(from);
    for (int i = 0; i < length; i++) {
        eddy_tensor *before = at;
        at = op(at);
        eddy_release(&before);
    }
    return at;
}

#ifdef __SANITIZE_THREAD__ /* a recursion would have left the stack all the same, and a million take 40 s */
#define DEEP 200000
#else
#define DEEP 1000000
#endif
CASE(a_million_ops_deep_there_and_back_and_freed) {
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(1), 0));
    eddy_scope *inner = eddy_scope_begin();
    cr_assert_eq(eddy_backward(chain(x, DEEP, eddy_neg)), EDDY_OK);
    eddy_scope_end(inner);
    EXPECT_GRAD(x, 1);
    inner = eddy_scope_begin();
    cr_assert_not_null(chain(x, DEEP, eddy_neg)); /* and one that nobody goes back through */
    eddy_scope_end(inner);
}

CASE(saved_tensors_go_as_going_back_proceeds) {
    eddy_tensor *x = leaf(eddy_ones(EDDY_SHAPE(1000), EDDY_F32, NULL));
    eddy_tensor *loss = total(chain(x, 100, eddy_sigmoid));
    int64_t before = eddy_live_count();
    cr_assert_eq(eddy_backward(loss), EDDY_OK);
    /* All results but the last, which the user has; the gradient came. */
    cr_assert_eq(eddy_live_count(), before - 99 + 1);
}

/* Truncated backpropagation: what is carried over must not carry the tape. */
CASE(a_detached_tensor_holds_no_tape) {
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(2), 1, 2)), *carried = eddy_clone(eddy_detach(x));
    int64_t held[3];
    for (int i = 0; i < 3; i++) {
        eddy_tensor *before = carried, *next = eddy_mul(carried, x), *last = eddy_exp(next);
        carried = eddy_detach(last);
        eddy_release(&next);
        eddy_release(&last);
        eddy_release(&before);
        held[i] = eddy_memory_counted(EDDY_MEMORY_TAPE).bytes;
    }
    cr_assert(held[1] == held[0] && held[2] == held[0]);
}

/* Writes to three tensors in place what has saved them: one from outside, one by a view, one that the record made. */
static void make_rings(eddy_tensor *x, eddy_tensor **rings) {
    rings[0] = F32(EDDY_SHAPE(2), 3, 4);
    rings[1] = F32(EDDY_SHAPE(2), 5, 6);
    rings[2] = eddy_exp(x);
    cr_assert_eq(eddy_add_inplace(rings[0], eddy_mul(x, rings[0])), EDDY_OK);
    cr_assert_eq(eddy_add_inplace(rings[1], eddy_mul(x, eddy_narrow(rings[1], 0, 0, 2))), EDDY_OK);
    cr_assert_eq(eddy_add_inplace(rings[2], eddy_mul(x, rings[2])), EDDY_OK);
}

/* The node that a tensor names leads to one that saved the tensor. Nobody goes back, which would give it up; yet all is freed. */
CASE(a_write_in_place_to_what_was_saved_closes_no_ring) {
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(2), 1, 2)), *rings[3];
    for (int i = 0; i < 3; i++) {
        eddy_scope *inner = eddy_scope_begin();
        int64_t alive = eddy_live_count();
        make_rings(x, rings);
        for (int k = 0; k < 3; k++)
            cr_assert(k == i || eddy_backward(total(rings[k])) == EDDY_INVALID_ARGUMENT);
        eddy_error_take(NULL);
        eddy_scope_end(inner);
        cr_assert_eq(eddy_live_count(), alive, "ring %d", i);
    }
}

/* At any distance, and each time. A recursion would leave the stack on the CPU; on other devices the calls take too long. */
CASE(a_write_in_place_closes_no_ring_of_many) {
    int length = eddy_device_current().kind == EDDY_DEVICE_CPU ? 100000 : 2000;
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(2), 1, 2)), *sum = F32(EDDY_SHAPE(2), 3, 4);
    for (int i = 0; i < 3; i++) {
        eddy_tensor *far = chain(eddy_mul(sum, x), length, eddy_neg);
        cr_assert_eq(eddy_add_inplace(sum, eddy_add(far, far)), EDDY_OK);
        eddy_release(&far);
    }
}

CASE(a_ring_that_was_broken_is_refused) {
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(2), 1, 2)), *rings[3];
    make_rings(x, rings);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(eddy_backward(total(rings[i])), EDDY_INVALID_ARGUMENT);
        expect_error(EDDY_INVALID_ARGUMENT,
                     "what mul had saved for its gradient was written to in place since");
    }
}

/* What still serves is kept, and the other ways back stay open. */
CASE(a_write_in_place_leaves_what_it_did_not_touch) {
    eddy_tensor *x = leaf(F32(EDDY_SHAPE(2), 1, 2)), *y = leaf(F32(EDDY_SHAPE(2), 3, 4)), *gradient;
    eddy_tensor *sum = F32(EDDY_SHAPE(2), 1, 1);
    eddy_tensor *factor = F32(EDDY_SHAPE(2), 5, 6), *product = eddy_mul(x, factor);
    cr_assert_eq(eddy_add_inplace(sum, product), EDDY_OK);
    cr_assert_eq(eddy_add_inplace(sum, eddy_mul(y, eddy_detach(sum))), EDDY_OK);
    cr_assert_eq(
        eddy_backward_to(EDDY_LIST(total(sum)), EDDY_LIST(x), (eddy_list){0}, NULL, &gradient),
        EDDY_OK);
    float values[2];
    cr_assert_eq(eddy_read(gradient, values, sizeof(values), NULL), EDDY_OK);
    cr_assert(values[0] == 5 && values[1] == 6);
}

/* A step in which one allocation fails; false when there was no such one. Whether it fails at the call or late, it says so, and
 * where nothing failed the gradient is right. */
static bool step_with_failure(int64_t nth) {
    eddy_scope *inner = eddy_scope_begin();
    eddy_tensor *x = F32(EDDY_SHAPE(2), 1, 2), *w = F32(EDDY_SHAPE(2), 3, 4);
    eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, nth, 1);
    eddy_status status = eddy_requires_grad_set(w, true);
    eddy_tensor *y = eddy_relu(eddy_mul(eddy_narrow(w, 0, 0, 2), eddy_add(x, w)));
    if (status == EDDY_OK)
        status = eddy_backward(total(eddy_softmax(y, 0)));
    if (status == EDDY_OK)
        status = eddy_backward(total(eddy_mul(eddy_exp(w), eddy_detach(x))));
    bool was_injected = eddy_memory_failures_injected() > 0;
    eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, 0, 0);
    eddy_error error = {0};
    eddy_error_take(&error);
    cr_assert_eq(status != EDDY_OK, error.status != EDDY_OK, "at %lld: %s", (long long)nth,
                 error.message);
    /* Later calls fail because the first one had; the record is the first's. */
    eddy_status late = eddy_sync(EDDY_FOREVER);
    status = error.status != EDDY_OK ? error.status : late;
    eddy_error_take(NULL);
    cr_assert(status == EDDY_OK || (was_injected && status == EDDY_OUT_OF_MEMORY), "at %lld: %s",
              (long long)nth, error.message);
    if (!was_injected)
        cr_assert(eddy_has_grad(w));
    eddy_scope_end(inner);
    return was_injected;
}

CASE(without_memory_it_fails_cleanly) {
    int64_t nth = 0;
    while (step_with_failure(nth))
        nth++;
    cr_assert_gt(nth, 10);
}

/* ---- threads ---- */

typedef struct shared_graph {
    eddy_tensor *x, *middle;
} shared_graph;

static void *go_back(void *context) {
    shared_graph *shared = context;
    eddy_scope *mine = eddy_scope_begin();
    eddy_backward_options keep = {.size = sizeof(keep), .keeps_graph = true};
    for (int i = 0; i < 200; i++) {
        eddy_tensor *loss = total(eddy_mul_s(shared->middle, EDDY_S(1)));
        cr_assert_eq(eddy_backward_from(EDDY_LIST(loss), (eddy_list){0}, &keep), EDDY_OK);
    }
    eddy_scope_end(mine);
    return NULL;
}

CASE(threads_go_back_through_what_they_share) {
    shared_graph shared = {.x = leaf(F32(EDDY_SHAPE(2), 1, 2))};
    shared.middle = eddy_mul(shared.x, shared.x);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, go_back, &shared), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    EXPECT_GRAD(shared.x, 2 * 800, 4 * 800);
}

typedef struct race {
    eddy_tensor *loss;
    eddy_status status;
} race;

static void *go_back_once(void *context) {
    race *r = context;
    r->status = eddy_backward(r->loss);
    eddy_error_take(NULL);
    return NULL;
}

/* What is given up by the first is not there for the second, who is told. */
CASE(one_of_two_that_race_is_refused) {
    for (int round = 0; round < 100; round++) {
        eddy_scope *inner = eddy_scope_begin();
        eddy_tensor *x = leaf(F32(EDDY_SHAPE(2), 1, 2));
        eddy_tensor *loss = total(eddy_mul(x, x));
        race races[2] = {{.loss = loss}, {.loss = loss}};
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            cr_assert_eq(pthread_create(&threads[i], NULL, go_back_once, &races[i]), 0);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        cr_assert_eq((races[0].status == EDDY_OK) + (races[1].status == EDDY_OK), 1);
        EXPECT_GRAD(x, 2, 4);
        eddy_scope_end(inner);
    }
}
