/* What was released is recognised, whatever is asked of it. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <string.h>

static eddy_tensor *x;    /* f32[2, 3] */
static eddy_tensor *gone; /* the same, released */

#define REFUSED(call)                                                                              \
    do {                                                                                           \
        eddy_error error;                                                                          \
        (void)(call);                                                                              \
        cr_expect_eq(eddy_error_take(&error), EDDY_INVALID_ARGUMENT, "%s: %s", #call,              \
                     error.message);                                                               \
        cr_expect_not_null(strstr(error.message, "released before"), "%s: %s", #call,              \
                           error.message);                                                         \
    } while (0)

static void use_everywhere(void) {
    float values[6];
    eddy_tensor *results[2], *pointer = gone;
    /* A fast call, in each position; a general call; lists; targets. */
    REFUSED(eddy_neg(gone));
    REFUSED(eddy_add(x, gone));
    REFUSED(eddy_add(gone, x));
    REFUSED(eddy_add(gone, gone));
    REFUSED(eddy_mul_s(gone, EDDY_S(2)));
    REFUSED(eddy_matmul(x, gone));
    REFUSED(eddy_linear(x, x, gone));
    REFUSED(eddy_sum(gone, EDDY_ALL_AXES, NULL));
    REFUSED(eddy_cat(EDDY_LIST(x, gone), 0));
    REFUSED(eddy_add_inplace(gone, x));
    REFUSED(eddy_add_inplace(x, gone));
    REFUSED(eddy_copy_into(x, gone));
    REFUSED(eddy_einsum("ij,ij->", EDDY_LIST(x, gone)));
    REFUSED(eddy_call("relu", EDDY_LIST(gone), NULL, results));
    REFUSED(eddy_select(gone, 0, 0));
    REFUSED(eddy_split(gone, 1, 0, results, 2, NULL));
    REFUSED(eddy_read(gone, values, sizeof(values), NULL));
    REFUSED(eddy_item_f64(gone, NULL));
    REFUSED(eddy_map(gone, EDDY_READ, EDDY_FOREVER));
    REFUSED(eddy_unmap(gone));
    REFUSED(eddy_wait(gone, EDDY_FOREVER));
    REFUSED(eddy_is_ready(gone));
    REFUSED(eddy_format(gone, NULL, 0, NULL));
    REFUSED(eddy_shape_of(gone));
    REFUSED(eddy_dtype_of(gone));
    REFUSED(eddy_requires_grad_set(gone, true));
    REFUSED(eddy_backward(gone));
    REFUSED(eddy_grads_zero(EDDY_LIST(gone)));
    REFUSED(eddy_detach(gone));
    REFUSED(eddy_recover(EDDY_LIST(x, gone)));
    REFUSED(eddy_to_dlpack(gone, NULL));
    REFUSED(eddy_npy_save(gone, "/tmp/never.npy", NULL));
    REFUSED(eddy_retain(gone));
    REFUSED(eddy_release(&pointer));
    cr_expect_null(pointer);
}

Test(released, a_tensor_is_recognised_by_every_function) {
    x = eddy_ones(EDDY_SHAPE(2, 3), EDDY_F32, NULL);
    eddy_tensor *released = eddy_ones(EDDY_SHAPE(2, 3), EDDY_F32, NULL);
    eddy_add(released, released); /* it knows its key */
    gone = released;
    eddy_release(&released);
    use_everywhere();
    /* The same of a view, and of what a scope gave up. */
    eddy_tensor *view = eddy_t(x);
    gone = view;
    eddy_release(&view);
    use_everywhere();
    eddy_scope *scope = eddy_scope_begin();
    gone = eddy_ones(EDDY_SHAPE(2, 3), EDDY_F32, NULL);
    eddy_scope_end(scope);
    use_everywhere();
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    float values[6];
    cr_assert_eq(eddy_read(x, values, sizeof(values), NULL), EDDY_OK);
    cr_assert_eq(values[5], 1);
}

Test(released, a_generator_is_recognised) {
    uint64_t seed, counter;
    eddy_generator *generator = eddy_generator_create(3), *after = generator, *twice = generator;
    eddy_generator_release(&generator);
    REFUSED(eddy_rand(EDDY_SHAPE(2), EDDY_F32, EDDY_OPTIONS(rand, .generator = after)));
    REFUSED(eddy_generator_state(after, &seed, &counter));
    REFUSED(eddy_generator_restore(after, 1, 0));
    REFUSED(eddy_generator_retain(after));
    REFUSED(eddy_generator_release(&twice));
    generator = eddy_generator_create(4);
    cr_assert_eq(eddy_generator_state(generator, &seed, &counter), EDDY_OK);
    cr_assert(seed == 4 && counter == 0, "nothing is left of the former one");
    eddy_generator_release(&generator);
}

static double drawn(eddy_generator *generator) {
    return eddy_item_f64(
        eddy_rand(EDDY_SHAPE(1), EDDY_F64, EDDY_OPTIONS(rand, .generator = generator)), NULL);
}

Test(default_generator, is_the_one_that_ops_take) {
    uint64_t seed, counter;
    eddy_generator *own = eddy_generator_default();
    cr_assert_eq(eddy_seed(9), EDDY_OK);
    cr_assert_eq(eddy_generator_state(own, &seed, &counter), EDDY_OK);
    cr_assert(seed == 9 && counter == 0);
    double first = drawn(NULL), second = drawn(own), third = drawn(NULL);
    cr_assert_neq(first, second);
    cr_assert_eq(eddy_generator_state(own, &seed, &counter), EDDY_OK);
    cr_assert(seed == 9 && counter == 3);
    /* Going on from where the state was taken. */
    cr_assert_eq(eddy_seed(1), EDDY_OK);
    cr_assert_eq(eddy_generator_restore(own, 9, 1), EDDY_OK);
    cr_assert_eq(drawn(NULL), second);
    cr_assert_eq(drawn(own), third);
    eddy_generator_release(&own);
    cr_assert_null(own);
    cr_assert_eq(eddy_generator_retain(eddy_generator_default()), eddy_generator_default());
    cr_assert_eq(eddy_error_take(NULL), EDDY_OK);
}
