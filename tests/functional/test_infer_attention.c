/* Attention: what its rules accept and refuse, and the public functions. */
#include "inferring.h"
#include <eddy/eddy.h>
#include <math.h>

Test(infer_attention, sdpa_broadcasts_what_stands_before_rows_and_columns) {
    eddy_arguments_sdpa a = {0};
    const eddy_spec q = SPEC(F16, 2, 3, 5, 8), k = SPEC(F16, 3, 7, 8), v = SPEC(F16, 2, 1, 7, 4);
    ACCEPTS(sdpa, &a, F16, EDDY_SHAPE(2, 3, 5, 4), q, k, v, ABSENT);
    ACCEPTS(sdpa, &a, F16, EDDY_SHAPE(2, 3, 5, 4), q, k, v, SPEC(BOOL, 5, 7));
    ACCEPTS(sdpa, &a, F16, EDDY_SHAPE(9, 2, 3, 5, 4), q, k, v, SPEC(F16, 9, 1, 1, 1, 7));
    const eddy_spec out = SPEC(F16, 2, 3, 5, 4);
    eddy_arguments_sdpa_backward b = {0};
    ACCEPTS(sdpa_backward, &b, F16, EDDY_SHAPE(2, 3, 5, 8), out, out, q, k, v, ABSENT);
    REFUSES(sdpa, &a, SHAPE_MISMATCH, "rows of q have 8", q, SPEC(F16, 7, 9), v, ABSENT);
    REFUSES(sdpa, &a, SHAPE_MISMATCH, "k has 6 rows", q, SPEC(F16, 6, 8), v, ABSENT);
    REFUSES(sdpa, &a, SHAPE_MISMATCH, "leading dims of v", q, k, SPEC(F16, 4, 7, 4), ABSENT);
    REFUSES(sdpa, &a, SHAPE_MISMATCH, "k must have rank 2", q, SPEC(F16, 8), v, ABSENT);
    REFUSES(sdpa, &a, SHAPE_MISMATCH, "broadcast to [.., 5, 7]", q, k, v, SPEC(BOOL, 5, 6));
    REFUSES(sdpa, &a, DTYPE_MISMATCH, "mask is f32", q, k, v, SPEC(F32, 5, 7));
    REFUSES(sdpa, &a, DTYPE_MISMATCH, "q must be", SPEC(I64, 5, 8), k, v, ABSENT);
    REFUSES(sdpa, &a, DTYPE_MISMATCH, "k is f32", q, SPEC(F32, 7, 8), v, ABSENT);
    REFUSES(sdpa_backward, &b, SHAPE_MISMATCH, "output must have", out, q, q, k, v, ABSENT);
    REFUSES(sdpa_backward, &b, DTYPE_MISMATCH, "grad is f32", SPEC(F32, 2, 3, 5, 4), out, q, k, v,
            ABSENT);
    a.scale = (double)INFINITY;
    REFUSES(sdpa, &a, INVALID_ARGUMENT, "scale is inf", q, k, v, ABSENT);
}

Test(infer_attention, rope_wants_a_position_per_row) {
    eddy_arguments_rope a = {.base = 10000};
    ACCEPTS(rope, &a, BF16, EDDY_SHAPE(2, 5, 8), SPEC(BF16, 2, 5, 8), SPEC(I64, 5));
    REFUSES(rope, &a, SHAPE_MISMATCH, "D even", SPEC(F32, 5, 7), SPEC(I64, 5));
    REFUSES(rope, &a, SHAPE_MISMATCH, "D even", SPEC(F32, 8), SPEC(I64, 5));
    REFUSES(rope, &a, SHAPE_MISMATCH, "positions must have shape [5]", SPEC(F32, 5, 8),
            SPEC(I64, 8));
    REFUSES(rope, &a, DTYPE_MISMATCH, "positions must be i64", SPEC(F32, 5, 8), SPEC(I32, 5));
    REFUSES(rope, &a, DTYPE_MISMATCH, "x must be", SPEC(I64, 5, 8), SPEC(I64, 5));
    a.base = -1;
    REFUSES(rope, &a, INVALID_ARGUMENT, "base is -1", SPEC(F32, 5, 8), SPEC(I64, 5));
}

Test(infer_attention, public_functions_attend) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *q = eddy_zeros(EDDY_SHAPE(2, 4), EDDY_F32, NULL),
                *k = eddy_ones(EDDY_SHAPE(2, 4), EDDY_F32, NULL);
    const float values[] = {1, 3};
    eddy_tensor *v = eddy_from_data(values, EDDY_SHAPE(2, 1), EDDY_F32, NULL);
    float got[2];
    eddy_tensor *y = eddy_sdpa(q, k, v, EDDY_NONE, EDDY_OPTIONS(sdpa, .is_causal = true));
    cr_assert_eq(eddy_read(y, got, sizeof(got), NULL), EDDY_OK);
    cr_assert(got[0] == 1 && got[1] == 2);
    eddy_tensor *dq, *dk, *dv, *grad = eddy_ones(EDDY_SHAPE(2, 1), EDDY_F32, NULL);
    cr_assert_eq(eddy_sdpa_backward(grad, y, q, k, v, EDDY_NONE,
                                    EDDY_OPTIONS(sdpa_backward, .is_causal = true), &dq, &dk, &dv),
                 EDDY_OK);
    cr_assert_eq(eddy_read(dv, got, sizeof(got), NULL), EDDY_OK);
    cr_assert(got[0] == 1.5f && got[1] == 0.5f);
    eddy_tensor *positions = eddy_arange(EDDY_S(0), EDDY_S(2), EDDY_S(1), EDDY_I64, NULL);
    eddy_tensor *turned = eddy_rope(k, positions, NULL);
    cr_assert_float_eq(eddy_item_f64(eddy_sum(eddy_mul(turned, turned), EDDY_ALL_AXES, NULL), NULL),
                       8, 1e-5);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* v is the identity, so that the result is the weights. */
Test(infer_attention, dropout_is_that_of_the_weights) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_generator *g = eddy_generator_create(42);
    eddy_tensor *q =
        eddy_randn(EDDY_SHAPE(2, 3, 7, 4), EDDY_F64, EDDY_OPTIONS(randn, .generator = g));
    eddy_tensor *k = eddy_randn(EDDY_SHAPE(3, 5, 4), EDDY_F64, EDDY_OPTIONS(randn, .generator = g));
    eddy_tensor *v = eddy_eye(5, 5, EDDY_F64, NULL);
    eddy_tensor *weights = eddy_sdpa(q, k, v, EDDY_NONE, EDDY_OPTIONS(sdpa, .generator = g));
    uint64_t seed, counter;
    cr_assert_eq(eddy_generator_state(g, &seed, &counter), EDDY_OK);
    cr_assert_eq(counter, 2, "without dropout nothing is drawn");
    eddy_tensor *dropped =
        eddy_sdpa(q, k, v, EDDY_NONE, EDDY_OPTIONS(sdpa, .dropout = 0.25, .generator = g));
    cr_assert_eq(eddy_generator_state(g, &seed, &counter), EDDY_OK);
    cr_assert_eq(counter, 3);
    eddy_tensor *wanted = eddy_dropout_backward(weights, EDDY_S(0.25), 42, 2);
    cr_assert(
        eddy_item_i64(eddy_allclose(dropped, wanted, EDDY_OPTIONS(allclose, .rtol = 1e-13)), NULL));
    int64_t kept = eddy_item_i64(
        eddy_sum(eddy_cast(eddy_ne_s(dropped, EDDY_S(0)), EDDY_I64), EDDY_ALL_AXES, NULL), NULL);
    cr_assert(kept > 2 * 3 * 7 * 5 / 2 && kept < 2 * 3 * 7 * 5);

    cr_assert_eq(eddy_generator_restore(g, 42, 2), EDDY_OK);
    eddy_tensor *called = NULL;
    cr_assert_eq(
        eddy_call("sdpa", EDDY_LIST(q, k, v, EDDY_NONE),
                  EDDY_ATTRIBUTES({"dropout", EDDY_ATTRIBUTE_FLOAT, {.floating = 0.25}},
                                  {"generator", EDDY_ATTRIBUTE_GENERATOR, {.generator = g}}),
                  &called),
        EDDY_OK);
    cr_assert(eddy_item_i64(eddy_equal(called, dropped), NULL));
    eddy_generator_release(&g);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
