/* Elementwise ops through the public functions: what promotes, what options do, what is refused. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <kernels/cpu/half.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tests/functional/oracle.h>

static void expect_error(eddy_status status, const char *op, const char *word) {
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), status, "%s", error.message);
    cr_assert_str_eq(error.op, op);
    cr_assert(strstr(error.message, word), "%s does not say %s", error.message, word);
}

static eddy_tensor *f64s(int64_t count, const double *values) {
    return eddy_from_data(values, EDDY_SHAPE(count), EDDY_F64, NULL);
}
#define F64S(...) f64s(sizeof((double[]){__VA_ARGS__}) / sizeof(double), (double[]){__VA_ARGS__})

static eddy_tensor *i64s(int64_t count, const int64_t *values) {
    return eddy_from_data(values, EDDY_SHAPE(count), EDDY_I64, NULL);
}
#define I64S(...) i64s(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

/* The tensor has these elements (up to 16) and this dtype. */
static void expect(eddy_tensor *tensor, eddy_dtype dtype, int64_t count, const double *values) {
    double got[16];
    cr_assert_not_null(tensor);
    cr_assert_eq(eddy_dtype_of(tensor), dtype, "%s", eddy_dtype_name(eddy_dtype_of(tensor)));
    cr_assert_eq(eddy_count_of(tensor), count);
    eddy_tensor *wide = eddy_cast(tensor, EDDY_F64);
    cr_assert_eq(eddy_read(wide, got, sizeof(double) * (size_t)count, NULL), EDDY_OK);
    for (int64_t i = 0; i < count; i++)
        cr_assert(got[i] == values[i] || (isnan(got[i]) && isnan(values[i])),
                  "[%lld] is %g, not %g", (long long)i, got[i], values[i]);
}
#define EXPECT(tensor, dtype, ...)                                                                 \
    expect(tensor, dtype, sizeof((double[]){__VA_ARGS__}) / sizeof(double), (double[]){__VA_ARGS__})

Test(elementwise, bounds_of_clamp_promote_together) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = I64S(-5, 0, 5, INT64_MAX);
    EXPECT(eddy_clamp(x, EDDY_S(-1), EDDY_S(3)), EDDY_I64, -1, 0, 3, 3);
    EXPECT(eddy_clamp(x, EDDY_S(-1), EDDY_S(3.5)), EDDY_F32, -1, 0, 3.5, 3.5);
    EXPECT(eddy_clamp(x, EDDY_S(-INFINITY), EDDY_S(1)), EDDY_F32, -5, 0, 1, 1);
    EXPECT(eddy_clamp(x, EDDY_S(3), EDDY_S(1)), EDDY_I64, 1, 1, 1, 1);
    EXPECT(eddy_clamp(F64S(-2, NAN, 2), EDDY_S(-1), EDDY_S(1)), EDDY_F64, -1, NAN, 1);
    /* Bounds beyond 2^53 are exact. */
    eddy_tensor *top = eddy_clamp(x, EDDY_S(0), EDDY_S(INT64_MAX - 1));
    cr_assert_eq(eddy_item_i64(eddy_max(top, EDDY_ALL_AXES, NULL), NULL), INT64_MAX - 1);
    cr_assert_eq(eddy_clamp_inplace(x, EDDY_S(-1), EDDY_S(1)), EDDY_OK);
    EXPECT(x, EDDY_I64, -1, 0, 1, 1);
    cr_assert_eq(eddy_clamp_inplace(x, EDDY_S(-1), EDDY_S(0.5)), EDDY_DTYPE_MISMATCH);
    expect_error(EDDY_DTYPE_MISMATCH, "clamp", "clamp");
    cr_assert_null(eddy_clamp(eddy_cast(x, EDDY_BOOL), EDDY_S((bool)0), EDDY_S((bool)1)));
    expect_error(EDDY_UNSUPPORTED, "clamp", "bool");
    eddy_scope_end(scope);
}

Test(elementwise, numbers_as_options_have_a_default_and_a_zero) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = F64S(-2, 3);
    EXPECT(eddy_leaky_relu(x, NULL), EDDY_F64, -2 * 0.01, 3);
    EXPECT(eddy_leaky_relu(x, EDDY_OPTIONS(leaky_relu, .negative_slope = 0.5)), EDDY_F64, -1, 3);
    EXPECT(eddy_leaky_relu(x, EDDY_OPTIONS(leaky_relu, .negative_slope_is_zero = true)), EDDY_F64,
           0, 3);
    EXPECT(eddy_elu(x, EDDY_OPTIONS(elu, .alpha = 2)), EDDY_F64, 2 * expm1(-2), 3);
    EXPECT(eddy_softplus(x, EDDY_OPTIONS(softplus, .threshold = 1)), EDDY_F64, log1p(exp(-2)), 3);
    EXPECT(eddy_addcmul(x, x, x, NULL), EDDY_F64, 2, 12);
    EXPECT(eddy_addcmul(x, x, x, EDDY_OPTIONS(addcmul, .value = -1)), EDDY_F64, -6, -6);
    EXPECT(eddy_addcmul(x, x, x, EDDY_OPTIONS(addcmul, .value_is_zero = true)), EDDY_F64, -2, 3);
    EXPECT(eddy_addcdiv(x, x, x, EDDY_OPTIONS(addcdiv, .value = 4)), EDDY_F64, 2, 7);
    cr_assert_eq(eddy_leaky_relu_inplace(x, EDDY_OPTIONS(leaky_relu, .negative_slope = 2)),
                 EDDY_OK);
    EXPECT(x, EDDY_F64, -4, 3);
    eddy_scope_end(scope);
}

Test(elementwise, gelu_is_exact_or_by_a_hyperbolic_tangent) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = F64S(1), *by_name = NULL;
    double exact = eddy_item_f64(eddy_gelu(x, NULL), NULL);
    double rough =
        eddy_item_f64(eddy_gelu(x, EDDY_OPTIONS(gelu, .approximate = EDDY_APPROXIMATE_TANH)), NULL);
    cr_assert_float_eq(exact, 0.8413447460685429, 1e-15);
    cr_assert_float_eq(rough, 0.8411919906082768, 1e-15);
    eddy_attribute choice = {
        "approximate", EDDY_ATTRIBUTE_CHOICE, {.integer = EDDY_APPROXIMATE_TANH}};
    cr_assert_eq(eddy_call("gelu", EDDY_LIST(x), EDDY_ATTRIBUTES(choice), &by_name), EDDY_OK);
    cr_assert_eq(eddy_item_f64(by_name, NULL), rough);
    choice.value.integer = 2;
    cr_assert_eq(eddy_call("gelu", EDDY_LIST(x), EDDY_ATTRIBUTES(choice), &by_name),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "gelu", "approximate");
    cr_assert_null(eddy_gelu(x, EDDY_OPTIONS(gelu, .approximate = (eddy_approximate)-1)));
    expect_error(EDDY_INVALID_ARGUMENT, "gelu", "approximate");
    cr_assert_eq(eddy_gelu_into(x, x, EDDY_OPTIONS(gelu, .approximate = (eddy_approximate)7)),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "gelu", "approximate");
    eddy_scope_end(scope);
}

Test(elementwise, division_of_integers_by_zero_gives_zero) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = I64S(7, -7, INT64_MIN, 0), *b = I64S(0, 2, -1, 0);
    EXPECT(eddy_floordiv(a, b), EDDY_I64, 0, -4, (double)INT64_MIN, 0);
    EXPECT(eddy_remainder(a, b), EDDY_I64, 0, 1, 0, 0);
    EXPECT(eddy_floordiv_s(a, EDDY_S(0)), EDDY_I64, 0, 0, 0, 0);
    EXPECT(eddy_remainder_s(F64S(-1, 5.5), EDDY_S(2)), EDDY_F64, 1, 1.5);
    EXPECT(eddy_floordiv_s(F64S(-1, 5.5), EDDY_S(0)), EDDY_F64, -INFINITY, INFINITY);
    EXPECT(eddy_pow_s(I64S(-2, 3), EDDY_S(3)), EDDY_I64, -8, 27);
    EXPECT(eddy_pow_s(I64S(4, 9), EDDY_S(0.5)), EDDY_F32, 2, 3);
    /* 2 has a loop of its own. */
    EXPECT(eddy_pow_s(I64S(-2, 3), EDDY_S(2)), EDDY_I64, 4, 9);
    EXPECT(eddy_pow_s(eddy_cast(I64S(-2, 3), EDDY_F32), EDDY_S(2.0)), EDDY_F32, 4, 9);
    eddy_scope_end(scope);
}

Test(elementwise, extremes_with_a_number_are_bounds_of_one_side) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = I64S(-3, 4);
    EXPECT(eddy_maximum_s(x, EDDY_S(0)), EDDY_I64, 0, 4);
    EXPECT(eddy_minimum_s(x, EDDY_S(0.5)), EDDY_F32, -3, 0.5);
    EXPECT(eddy_maximum(eddy_cast(x, EDDY_BOOL), eddy_zeros(EDDY_SHAPE(), EDDY_BOOL, NULL)),
           EDDY_BOOL, 1, 1);
    eddy_scope_end(scope);
}

Test(elementwise, lerp_takes_a_tensor_or_a_number) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *start = F64S(0, 10), *end = F64S(4, 20);
    EXPECT(eddy_lerp(start, end, F64S(0.25, 1)), EDDY_F64, 1, 20);
    EXPECT(eddy_lerp_s(start, end, EDDY_S(0.5)), EDDY_F64, 2, 15);
    cr_assert_eq(eddy_lerp_s_inplace(start, end, EDDY_S(1)), EDDY_OK);
    EXPECT(start, EDDY_F64, 4, 20);
    cr_assert_null(eddy_lerp_s(I64S(1), I64S(2), EDDY_S(1)));
    expect_error(EDDY_UNSUPPORTED, "lerp_s", "i64");
    eddy_scope_end(scope);
}

Test(elementwise, logic_takes_any_dtype_and_bits_take_no_floats) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = F64S(0, 2, NAN), *n = I64S(6, 3, -1);
    EXPECT(eddy_logical_not(x), EDDY_BOOL, 1, 0, 0);
    EXPECT(eddy_logical_xor(x, n), EDDY_BOOL, 1, 0, 0);
    EXPECT(eddy_isnan(x), EDDY_BOOL, 0, 0, 1);
    EXPECT(eddy_isfinite(n), EDDY_BOOL, 1, 1, 1);
    EXPECT(eddy_bitwise_and_s(n, EDDY_S(5)), EDDY_I64, 4, 1, 5);
    EXPECT(eddy_bitwise_not(eddy_logical_not(n)), EDDY_BOOL, 1, 1, 1);
    cr_assert_null(eddy_bitwise_or(x, n));
    expect_error(EDDY_UNSUPPORTED, "bitwise_or", "f64");
    cr_assert_null(eddy_bitwise_not(x));
    expect_error(EDDY_UNSUPPORTED, "bitwise_not", "f64");
    cr_assert_null(eddy_abs(eddy_isnan(x)));
    expect_error(EDDY_UNSUPPORTED, "abs", "bool");
    eddy_scope_end(scope);
}

/* ---- ops that carry gradients: against central differences in f64 ---- */

static eddy_tensor *gelu_exact(eddy_tensor *x) {
    return eddy_gelu(x, NULL);
}
static eddy_tensor *gelu_tanh(eddy_tensor *x) {
    return eddy_gelu(x, EDDY_OPTIONS(gelu, .approximate = EDDY_APPROXIMATE_TANH));
}
static eddy_tensor *silu(eddy_tensor *x) {
    return eddy_silu(x);
}

/* Truncation and rounding leave some 1e-10 with steps of 2^-16. */
static void check_slope(const char *name, eddy_tensor *(*op)(eddy_tensor *x), eddy_tensor *x,
                        eddy_tensor *gradient) {
    double slope[161], low[161], high[161], step = 0x1p-16;
    cr_assert_eq(eddy_read(gradient, slope, sizeof(slope), NULL), EDDY_OK);
    cr_assert_eq(eddy_read(op(eddy_sub_s(x, EDDY_S(step))), low, sizeof(low), NULL), EDDY_OK);
    cr_assert_eq(eddy_read(op(eddy_add_s(x, EDDY_S(step))), high, sizeof(high), NULL), EDDY_OK);
    for (int i = 0; i < 161; i++) {
        double difference = (high[i] - low[i]) / (2 * step);
        cr_assert_float_eq(slope[i], difference, 1e-9, "%s at %g: %g, difference %g", name,
                           (i - 80) / 8.0, slope[i], difference);
    }
}

/* e^x is there too small for all of its digits, and x times it is not. */
Test(elementwise, the_gradient_of_silu_is_right_where_the_sigmoid_is_subnormal) {
    eddy_scope *scope = eddy_scope_begin();
    static const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64};
    static const double first[] = {-104, -746}, last[] = {-87, -708};
    oracle_function *oracle = oracle_of("silu_backward");
    cr_assert_not_null(oracle);
    for (int d = 0; d < 2; d++) {
        eddy_tensor *x = eddy_linspace(EDDY_S(first[d]), EDDY_S(last[d]), 1001, dtypes[d], NULL);
        eddy_tensor *slopes = eddy_silu_backward(eddy_ones_like(x, NULL), x);
        for (int i = 0; i < 1001; i++) {
            oracle_value values[4] = {{.real = 1},
                                      {.real = eddy_item_f64(eddy_select(x, 0, i), NULL)}},
                         want = {0};
            double slope = eddy_item_f64(eddy_select(slopes, 0, i), NULL);
            float narrow = (float)slope;
            cr_assert(oracle(values, dtypes[d], &want));
            double distance =
                oracle_distance(dtypes[d], want, d == 0 ? (void *)&narrow : (void *)&slope);
            cr_assert_leq(distance, 5, "at %Lg: %g, not %Lg", values[1].real, slope, want.real);
        }
    }
    eddy_tensor *ends = F64S(-INFINITY, INFINITY);
    EXPECT(eddy_silu_backward(eddy_ones_like(ends, NULL), ends), EDDY_F64, 0, 1);
    eddy_scope_end(scope);
}

Test(elementwise, gradients_are_the_slopes) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_linspace(EDDY_S(-10), EDDY_S(10), 161, EDDY_F64, NULL),
                *one = eddy_ones_like(x, NULL);
    check_slope("gelu", gelu_exact, x, eddy_gelu_backward(one, x, NULL));
    check_slope("gelu tanh", gelu_tanh, x,
                eddy_gelu_backward(
                    one, x, EDDY_OPTIONS(gelu_backward, .approximate = EDDY_APPROXIMATE_TANH)));
    check_slope("silu", silu, x, eddy_silu_backward(one, x));
    eddy_scope_end(scope);
}

/* 9e38 is too large for f32, the sum is not. */
Test(elementwise, the_product_of_addcmul_does_not_overflow_before_it_is_added) {
    eddy_scope *scope = eddy_scope_begin();
    const double input[] = {-8e38 / 3, -1}, a[] = {0x1p64, 0x1p12 + 1}, b[] = {0x1p64, 0x1p-12};
    eddy_tensor *sum =
        eddy_addcmul(eddy_cast(f64s(2, input), EDDY_F32), eddy_cast(f64s(2, a), EDDY_F32),
                     eddy_cast(f64s(2, b), EDDY_F32), NULL);
    EXPECT(sum, EDDY_F32, 0x1p128 - (double)(float)(8e38 / 3), 0x1p-12);
    eddy_tensor *wide = eddy_addcmul(F64S(-0x1.8p1023), F64S(0x1p512), F64S(0x1p512), NULL);
    EXPECT(wide, EDDY_F64, 0x1p1022);
    eddy_scope_end(scope);
}

/* PyTorch's numbers: both ends become integers first, and what lies between is cut off. */
Test(elementwise, linspace_counts_integers_between_integers) {
    eddy_scope *scope = eddy_scope_begin();
    EXPECT(eddy_linspace(EDDY_S(0.5), EDDY_S(9.9), 5, EDDY_I64, NULL), EDDY_I64, 0, 2, 4, 6, 9);
    EXPECT(eddy_linspace(EDDY_S(-2.9), EDDY_S(2.9), 6, EDDY_I64, NULL), EDDY_I64, -2, -1, 0, 0, 1,
           2);
    EXPECT(eddy_linspace(EDDY_S(-5), EDDY_S(5), 8, EDDY_I32, NULL), EDDY_I32, -5, -3, -2, 0, 0, 2,
           3, 5);
    EXPECT(eddy_linspace(EDDY_S(10), EDDY_S(0), 4, EDDY_U8, NULL), EDDY_U8, 10, 6, 3, 0);
    EXPECT(eddy_linspace(EDDY_S(2.7), EDDY_S(5), 1, EDDY_I8, NULL), EDDY_I8, 2);
    cr_assert_null(eddy_linspace(EDDY_S(0), EDDY_S(300), 4, EDDY_U8, NULL));
    expect_error(EDDY_OUT_OF_RANGE, "linspace", "end is 300, and u8 holds 0 to 255");
    EXPECT(eddy_linspace(EDDY_S(0.5), EDDY_S(1.5), 3, EDDY_F32, NULL), EDDY_F32, 0.5, 1, 1.5);
    eddy_scope_end(scope);
}

/* ---- f16 ---- */

#define HALVES 65536

static bool is_nan_half(uint16_t bits) {
    return (bits & 0x7fffu) > 0x7c00u;
}

/* Devices make NaN of other bits. */
static bool is_same_half(uint16_t a, uint16_t b) {
    return a == b || (is_nan_half(a) && is_nan_half(b));
}

/* Also at the ends of a run, where fewer are left than the processor converts at once. */
Test(elementwise, each_half_is_converted_as_if_alone) {
    static uint16_t all[HALVES], negated[HALVES], products[HALVES];
    static const uint16_t factors[] = {0x3c00, 0x3555, 0x1234, 0x7bff, 0x0001, 0xbc01, 0x0400};
    for (int i = 0; i < HALVES; i++)
        all[i] = (uint16_t)i;
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_from_data(all, EDDY_SHAPE(HALVES), EDDY_F16, NULL);
    for (int64_t first = 0; first < 12; first++) {
        int64_t count = HALVES - 2 * first;
        eddy_tensor *part = eddy_narrow(x, 0, first, count);
        uint16_t factor = factors[first % 7];
        eddy_tensor *by = eddy_from_data(&factor, EDDY_SHAPE(1), EDDY_F16, NULL);
        size_t bytes = (size_t)count * sizeof(uint16_t);
        cr_assert_eq(eddy_read(eddy_neg(part), negated, bytes, NULL), EDDY_OK);
        cr_assert_eq(eddy_read(eddy_mul(part, by), products, bytes, NULL), EDDY_OK);
        for (int64_t i = 0; i < count; i++) {
            uint16_t half = (uint16_t)(first + i);
            float value = eddy_half_load(half);
            uint16_t product = eddy_half_store(value * eddy_half_load(factor));
            uint16_t opposite = eddy_half_store(-value);
            cr_assert(is_same_half(negated[i], opposite), "-%#x: %#x", half, negated[i]);
            cr_assert(is_same_half(products[i], product), "%#x times %#x: %#x, not %#x", half,
                      factor, products[i], product);
        }
    }
    eddy_scope_end(scope);
}
