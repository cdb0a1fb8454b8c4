/* Numbers beside integer tensors: what the dtype does not hold is refused, the same way by every op that takes a number; where
 * integers wrap around, the number does with them (docs/numbers.md). */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>
#include <string.h>

#define COUNT 4

static eddy_tensor *bytes(void) {
    const uint8_t data[COUNT] = {0, 1, 200, 255};
    return eddy_from_data(data, EDDY_SHAPE(COUNT), EDDY_U8, NULL);
}

static eddy_tensor *mask(void) {
    const bool data[COUNT] = {true, false, true, false};
    return eddy_from_data(data, EDDY_SHAPE(COUNT), EDDY_BOOL, NULL);
}

static void expect_bytes(eddy_tensor *tensor, const char *what, const uint8_t (*wanted)[COUNT]) {
    uint8_t data[COUNT];
    cr_assert_eq(eddy_read(tensor, data, sizeof(data), NULL), EDDY_OK, "%s", what);
    cr_expect_eq(memcmp(data, wanted, sizeof(data)), 0, "%s: %d %d %d %d", what, data[0], data[1],
                 data[2], data[3]);
}

static void expect_refused(eddy_tensor *tensor, const char *what, const char *part) {
    eddy_error error = {0};
    eddy_status status = eddy_error_take(&error);
    cr_expect_null(tensor, "%s", what);
    cr_expect_eq(status, EDDY_OUT_OF_RANGE, "%s: %s", what, error.message);
    cr_expect_not_null(strstr(error.message, part), "%s: %s", what, error.message);
}

#define REFUSED(call, part) expect_refused(call, #call, part)
#define BYTES(call, ...) expect_bytes(call, #call, &(const uint8_t[COUNT]){__VA_ARGS__})

Test(numbers, a_bound_is_refused_that_the_dtype_does_not_hold) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = bytes();
    REFUSED(eddy_clamp(x, EDDY_S(0), EDDY_S(256)), "upper is 256, and u8 holds 0 to 255");
    REFUSED(eddy_clamp(x, EDDY_S(-1), EDDY_S(5)), "lower is -1, and u8 holds 0 to 255");
    REFUSED(eddy_maximum_s(x, EDDY_S(300)), "b is 300, and u8 holds 0 to 255");
    REFUSED(eddy_minimum_s(x, EDDY_S(256)), "b is 256, and u8 holds 0 to 255");
    REFUSED(eddy_minimum_s(eddy_cast(x, EDDY_I8), EDDY_S(128)),
            "b is 128, and i8 holds -128 to 127");
    BYTES(eddy_clamp(x, EDDY_S(1), EDDY_S(255)), 1, 1, 200, 255);
    eddy_scope_end(scope);
}

Test(numbers, a_filling_is_refused_that_the_dtype_does_not_hold) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = bytes(), *m = mask();
    REFUSED(eddy_full(EDDY_SHAPE(COUNT), EDDY_S(256), EDDY_U8, NULL),
            "value is 256, and u8 holds 0 to 255");
    REFUSED(eddy_full(EDDY_SHAPE(COUNT), EDDY_S(NAN), EDDY_I64, NULL),
            "value is nan, and i64 holds");
    REFUSED(eddy_full(EDDY_SHAPE(COUNT), EDDY_S(1e30), EDDY_I64, NULL),
            "value is 1e+30, and i64 holds");
    REFUSED(eddy_full_like(x, EDDY_S(-1), NULL), "value is -1, and u8 holds 0 to 255");
    REFUSED(eddy_masked_fill(x, m, EDDY_S(256)), "value is 256, and u8 holds 0 to 255");
    REFUSED(eddy_masked_fill(x, m, EDDY_S(-INFINITY)), "value is -inf, and u8 holds 0 to 255");
    REFUSED(eddy_pad(x, EDDY_SHAPE(1), EDDY_SHAPE(1), EDDY_S(256)),
            "value is 256, and u8 holds 0 to 255");
    BYTES(eddy_masked_fill(x, m, EDDY_S(2.7)), 2, 1, 2, 255);
    BYTES(eddy_full(EDDY_SHAPE(COUNT), EDDY_S(255.9), EDDY_U8, NULL), 255, 255, 255, 255);
    eddy_scope_end(scope);
}

Test(numbers, a_comparison_is_refused_with_what_the_dtype_does_not_hold) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = bytes();
    REFUSED(eddy_eq_s(x, EDDY_S(256)), "b is 256, and u8 holds 0 to 255");
    REFUSED(eddy_lt_s(x, EDDY_S(256)), "b is 256");
    REFUSED(eddy_gt_s(x, EDDY_S(-1)), "b is -1");
    BYTES(eddy_ge_s(x, EDDY_S(200)), false, false, true, true);
    BYTES(eddy_lt_s(x, EDDY_S(255.5)), true, true, true, true);
    eddy_scope_end(scope);
}

Test(numbers, division_and_powers_are_refused_with_what_the_dtype_does_not_hold) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = bytes();
    REFUSED(eddy_floordiv_s(x, EDDY_S(256)), "b is 256");
    REFUSED(eddy_remainder_s(x, EDDY_S(256)), "b is 256");
    REFUSED(eddy_pow_s(x, EDDY_S(-1)), "b is -1");
    eddy_scope_end(scope);
}

Test(numbers, where_integers_wrap_around_the_number_does_too) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = bytes();
    BYTES(eddy_add_s(x, EDDY_S(256)), 0, 1, 200, 255);
    BYTES(eddy_add_s(x, EDDY_S(-1)), 255, 0, 199, 254);
    BYTES(eddy_sub_s(x, EDDY_S(257)), 255, 0, 199, 254);
    BYTES(eddy_mul_s(x, EDDY_S(-1)), 0, 255, 56, 1);
    BYTES(eddy_bitwise_and_s(x, EDDY_S(256 + 1)), 0, 1, 0, 1);
    BYTES(eddy_bitwise_or_s(x, EDDY_S(256)), 0, 1, 200, 255);
    BYTES(eddy_bitwise_xor_s(x, EDDY_S(-1)), 255, 254, 55, 0);
    eddy_scope_end(scope);
}

/* Calls of other forms and layouts take other ways through the interpreter. */
Test(numbers, the_rule_holds_for_targets_and_views) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = bytes(), *target = eddy_zeros_like(x, NULL);
    eddy_tensor *every_other = eddy_slice(x, 0, 0, COUNT, 2);
    REFUSED(eddy_minimum_s(every_other, EDDY_S(256)), "b is 256, and u8 holds 0 to 255");
    cr_expect_eq(eddy_minimum_s_into(x, target, EDDY_S(256)), EDDY_OUT_OF_RANGE);
    cr_expect_eq(eddy_minimum_s_inplace(x, EDDY_S(256)), EDDY_OUT_OF_RANGE);
    cr_expect_eq(eddy_masked_fill_inplace(x, mask(), EDDY_S(256)), EDDY_OUT_OF_RANGE);
    cr_expect_eq(eddy_minimum_s_inplace(every_other, EDDY_S(256)), EDDY_OUT_OF_RANGE);
    (void)eddy_error_take(NULL);
    BYTES(x, 0, 1, 200, 255);
    cr_expect_eq(eddy_add_s_inplace(every_other, EDDY_S(256)), EDDY_OK);
    BYTES(x, 0, 1, 200, 255);
    eddy_scope_end(scope);
}

/* A float number makes floats of integers, so it is never beside them; floats round what they are given. */
Test(numbers, floats_take_every_number) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_cast(bytes(), EDDY_F16),
                *filled = eddy_masked_fill(x, mask(), EDDY_S(-1e9));
    eddy_tensor *clamped = eddy_clamp(bytes(), EDDY_S(2.5), EDDY_S(1e9));
    cr_expect_eq(eddy_item_f64(eddy_select(filled, 0, 0), NULL), -INFINITY);
    cr_expect_eq(eddy_dtype_of(clamped), EDDY_F32);
    cr_expect_eq(eddy_item_f64(eddy_select(clamped, 0, 0), NULL), 2.5);
    eddy_scope_end(scope);
}
