#include <base/dtype.h>
#include <criterion/criterion.h>
#include <fenv.h>
#include <math.h>

/* The value of a narrow float by its definition, in doubles. */
static double narrow_value(uint16_t bits, int exponent_bits, int fraction_bits) {
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    int fraction = bits & ((1 << fraction_bits) - 1);
    double value;
    if (exponent == (1 << exponent_bits) - 1)
        value = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, 1 - bias - fraction_bits);
    else
        value = ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
    return bits >> 15 ? -value : value;
}

/* Nearest of all non-negative narrow values, ties to even bits, by bisection over the ordered bit patterns. */
static uint16_t nearest(double value, int exponent_bits, int fraction_bits) {
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs(value);
    uint32_t infinity = ((1u << exponent_bits) - 1) << fraction_bits;
    uint32_t low = 0, high = infinity;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (narrow_value((uint16_t)middle, exponent_bits, fraction_bits) <= magnitude)
            low = middle;
        else
            high = middle;
    }
    double below = narrow_value((uint16_t)low, exponent_bits, fraction_bits);
    /* Beyond the largest finite value rounding goes on as if the exponent did. */
    double above = high == infinity ? ldexp(1, 1 << (exponent_bits - 1))
                                    : narrow_value((uint16_t)high, exponent_bits, fraction_bits);
    double to_below = magnitude - below, to_above = above - magnitude;
    bool goes_up = to_above < to_below || (to_above == to_below && (low & 1));
    return sign | (uint16_t)(goes_up || magnitude >= above ? high : low);
}

static const struct narrow_format {
    const char *name;
    int exponent_bits, fraction_bits;
    float (*to_f32)(uint16_t);
    uint16_t (*from_f32)(float);
    uint16_t (*from_f64)(double);
} formats[] = {
    {"f16", 5, 10, eddy_f16_to_f32, eddy_f32_to_f16, eddy_f64_to_f16},
    {"bf16", 8, 7, eddy_bf16_to_f32, eddy_f32_to_bf16, eddy_f64_to_bf16},
};

Test(dtype, every_half_widens_exactly_and_narrows_back) {
    for (int f = 0; f < 2; f++)
        for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
            double wanted =
                narrow_value((uint16_t)bits, formats[f].exponent_bits, formats[f].fraction_bits);
            float wide = formats[f].to_f32((uint16_t)bits);
            if (isnan(wanted)) {
                cr_assert(isnan(wide), "%s %04x", formats[f].name, bits);
                cr_assert(isnan(formats[f].to_f32(formats[f].from_f32(wide))), "%s %04x",
                          formats[f].name, bits);
                cr_assert(isnan(formats[f].to_f32(formats[f].from_f64(wide))), "%s %04x",
                          formats[f].name, bits);
                continue;
            }
            cr_assert(wide == wanted && !signbit(wide) == !signbit(wanted), "%s %04x",
                      formats[f].name, bits);
            cr_assert_eq(formats[f].from_f32(wide), bits, "%s %04x", formats[f].name, bits);
            cr_assert_eq(formats[f].from_f64(wide), bits, "%s %04x", formats[f].name, bits);
        }
}

Test(dtype, narrowing_rounds_once_to_nearest_even) {
    for (int f = 0; f < 2; f++) {
        const struct narrow_format *format = &formats[f];
        uint16_t infinity = (uint16_t)(((1 << format->exponent_bits) - 1) << format->fraction_bits);
        for (uint16_t bits = 0; bits < infinity; bits++) {
            double low = narrow_value(bits, format->exponent_bits, format->fraction_bits);
            double high = bits + 1 == infinity ? ldexp(1, 1 << (format->exponent_bits - 1))
                                               : narrow_value(bits + 1, format->exponent_bits,
                                                              format->fraction_bits);
            double middle = (low + high) / 2;
            double values[] = {middle,
                               nextafter(middle, low),
                               nextafter(middle, high),
                               nextafter(high, low),
                               (double)nextafterf((float)middle, 0),
                               (double)nextafterf((float)middle, INFINITY)};
            for (int i = 0; i < 6; i++)
                for (int sign = 1; sign >= -1; sign -= 2) {
                    double value = sign * values[i];
                    uint16_t wanted = nearest(value, format->exponent_bits, format->fraction_bits);
                    cr_assert_eq(format->from_f64(value), wanted, "%s of %a", format->name, value);
                    if ((double)(float)value == value)
                        cr_assert_eq(format->from_f32((float)value), wanted, "%s of %a",
                                     format->name, value);
                }
        }
    }
}

Test(dtype, narrowing_of_extremes_and_random_floats) {
    uint64_t state = 1;
    for (int i = 0; i < 200000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint32_t bits = (uint32_t)(state >> 32);
        float value;
        memcpy(&value, &bits, sizeof(value));
        for (int f = 0; f < 2; f++) {
            uint16_t got = formats[f].from_f32(value);
            if (isnan(value))
                cr_assert(isnan(formats[f].to_f32(got)), "%s of %08x", formats[f].name, bits);
            else
                cr_assert_eq(got,
                             nearest(value, formats[f].exponent_bits, formats[f].fraction_bits),
                             "%s of %08x", formats[f].name, bits);
        }
    }
    for (int f = 0; f < 2; f++) {
        double extremes[] = {INFINITY, -INFINITY, 1e300, -1e300, 5e-324,   -5e-324,
                             0.0,      -0.0,      1e-40, 65520,  65519.999};
        for (int i = 0; i < 11; i++)
            cr_assert_eq(formats[f].from_f64(extremes[i]),
                         nearest(extremes[i], formats[f].exponent_bits, formats[f].fraction_bits),
                         "%s of %a", formats[f].name, extremes[i]);
    }
}

Test(dtype, conversions_do_not_depend_on_the_rounding_mode) {
    fesetround(FE_UPWARD);
    uint16_t up[2] = {eddy_f32_to_f16(1.0001f), eddy_f32_to_bf16(1.0001f)};
    fesetround(FE_TONEAREST);
    cr_assert_eq(up[0], 0x3c00);
    cr_assert_eq(up[1], 0x3f80);
}

Test(dtype, names_and_sizes_come_from_the_list) {
    cr_assert_str_eq(eddy_dtype_name(EDDY_BF16), "bf16");
    cr_assert_str_eq(eddy_dtype_name(EDDY_BOOL), "bool");
    cr_assert_str_eq(eddy_dtype_name((eddy_dtype)77), "?");
    cr_assert_eq(eddy_dtype_bytes(EDDY_F64), 8u);
    cr_assert_eq(eddy_dtype_bytes(EDDY_BOOL), 1u);
    cr_assert_eq(eddy_dtype_bytes((eddy_dtype)-1), 0u);
    cr_assert_eq(EDDY_DTYPE_COUNT, 10);
}

Test(dtype, promotion_is_a_join_with_pytorchs_exceptions) {
    for (int a = 0; a < EDDY_DTYPE_COUNT; a++) {
        cr_assert_eq(eddy_dtype_promote(a, a), (eddy_dtype)a);
        cr_assert_eq(eddy_dtype_promote(a, EDDY_BOOL), (eddy_dtype)a);
        cr_assert_eq(eddy_dtype_promote(a, EDDY_F64), EDDY_F64);
        for (int b = 0; b < EDDY_DTYPE_COUNT; b++) {
            eddy_dtype joined = eddy_dtype_promote(a, b);
            cr_assert_eq(joined, eddy_dtype_promote(b, a), "%s, %s", eddy_dtype_name(a),
                         eddy_dtype_name(b));
            cr_assert_eq(eddy_dtype_promote(joined, a), joined, "%s, %s", eddy_dtype_name(a),
                         eddy_dtype_name(b));
            if (eddy_dtype_is_float(a) && !eddy_dtype_is_float(b))
                cr_assert_eq(joined, (eddy_dtype)a, "%s, %s", eddy_dtype_name(a),
                             eddy_dtype_name(b));
        }
    }
    cr_assert_eq(eddy_dtype_promote(EDDY_F16, EDDY_BF16), EDDY_F32);
    cr_assert_eq(eddy_dtype_promote(EDDY_U8, EDDY_I8), EDDY_I16);
    cr_assert_eq(eddy_dtype_promote(EDDY_U8, EDDY_I16), EDDY_I16);
    cr_assert_eq(eddy_dtype_promote(EDDY_I32, EDDY_I64), EDDY_I64);
    cr_assert_eq(eddy_dtype_promote(EDDY_I64, EDDY_F16), EDDY_F16);
    cr_assert_eq(eddy_dtype_promote(EDDY_DTYPE_COUNT, EDDY_F32), EDDY_DTYPE_COUNT);
}

Test(dtype, a_scalar_raises_only_the_category) {
    cr_assert_eq(eddy_dtype_promote_scalar(EDDY_I32, EDDY_SCALAR_INT), EDDY_I32);
    cr_assert_eq(eddy_dtype_promote_scalar(EDDY_I32, EDDY_SCALAR_FLOAT), EDDY_F32);
    cr_assert_eq(eddy_dtype_promote_scalar(EDDY_F16, EDDY_SCALAR_FLOAT), EDDY_F16);
    cr_assert_eq(eddy_dtype_promote_scalar(EDDY_BOOL, EDDY_SCALAR_INT), EDDY_I64);
    cr_assert_eq(eddy_dtype_promote_scalar(EDDY_BOOL, EDDY_SCALAR_BOOL), EDDY_BOOL);
    cr_assert_eq(eddy_dtype_promote_scalar(EDDY_BOOL, EDDY_SCALAR_FLOAT), EDDY_F32);
    cr_assert_eq(eddy_dtype_promote_scalar(EDDY_U8, EDDY_SCALAR_BOOL), EDDY_U8);
}

static double stored_f64(eddy_dtype dtype, double value) {
    char bytes[9];
    eddy_dtype_store_f64(dtype, bytes + 1, value); /* unaligned on purpose */
    return eddy_dtype_load_f64(dtype, bytes + 1);
}

Test(dtype, stores_saturate_and_loads_return_what_was_stored) {
    for (int dtype = 0; dtype < EDDY_DTYPE_COUNT; dtype++) {
        cr_assert_eq(stored_f64(dtype, 0), 0, "%s", eddy_dtype_name(dtype));
        cr_assert_eq(stored_f64(dtype, 1), 1, "%s", eddy_dtype_name(dtype));
        if (dtype != EDDY_BOOL)
            cr_assert_eq(stored_f64(dtype, 100), 100, "%s", eddy_dtype_name(dtype));
    }
    cr_assert_eq(stored_f64(EDDY_BOOL, 0.25), 1);
    cr_assert_eq(stored_f64(EDDY_BOOL, NAN), 1);
    cr_assert_eq(stored_f64(EDDY_I8, 1000), 127);
    cr_assert_eq(stored_f64(EDDY_I8, -1000), -128);
    cr_assert_eq(stored_f64(EDDY_I8, -3.9), -3);
    cr_assert_eq(stored_f64(EDDY_U8, -1), 0);
    cr_assert_eq(stored_f64(EDDY_U8, 300), 255);
    cr_assert_eq(stored_f64(EDDY_I16, INFINITY), 32767);
    cr_assert_eq(stored_f64(EDDY_I32, -1e30), -0x1p31);
    cr_assert_eq(stored_f64(EDDY_I64, 1e30), 0x1p63);
    cr_assert_eq(stored_f64(EDDY_I32, NAN), 0);
    cr_assert(isnan(stored_f64(EDDY_F16, NAN)));
    cr_assert_eq(stored_f64(EDDY_F16, 1e9), INFINITY);
}

Test(dtype, integers_pass_exactly) {
    int64_t value, odd = (INT64_C(1) << 62) + 1;
    eddy_dtype_store_i64(EDDY_I64, &value, odd);
    cr_assert_eq(eddy_dtype_load_i64(EDDY_I64, &value), odd);
    eddy_dtype_store_scalar(EDDY_I64, &value, EDDY_S(INT64_MIN));
    cr_assert_eq(value, INT64_MIN);
    double not_a_number = NAN, huge = 1e30;
    float fraction = -2.75f;
    cr_assert_eq(eddy_dtype_load_i64(EDDY_F64, &not_a_number), INT64_MIN);
    cr_assert_eq(eddy_dtype_load_i64(EDDY_F64, &huge), INT64_MIN);
    cr_assert_eq(eddy_dtype_load_i64(EDDY_F32, &fraction), -2);
    /* Through a double this would round twice: 2^62 + 2^54 + 1 lies just above the middle of two bf16. */
    uint16_t half;
    eddy_dtype_store_i64(EDDY_BF16, &half, (INT64_C(1) << 62) + (INT64_C(1) << 54) + 1);
    cr_assert_eq(eddy_bf16_to_f32(half), 0x1p62f + 0x1p55f);
    float single;
    eddy_dtype_store_i64(EDDY_F32, &single, INT64_MAX);
    cr_assert_eq(single, 0x1p63f);
    eddy_dtype_store_i64(EDDY_F32, &single, (INT64_C(1) << 62) + (INT64_C(1) << 38) + 1);
    cr_assert_eq(single, 0x1p62f + 0x1p39f);
    eddy_dtype_store_scalar(EDDY_F32, &single, EDDY_S(0.5));
    cr_assert_eq(single, 0.5f);
    uint8_t truth;
    eddy_dtype_store_scalar(EDDY_BOOL, &truth, EDDY_S(256));
    cr_assert_eq(truth, 1);
}
