#include <base/dtype.h>
#include <base/number.h>
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static const eddy_dtype integers[] = {EDDY_I8, EDDY_U8, EDDY_I16, EDDY_I32, EDDY_I64};

Test(number, an_integer_dtype_takes_what_it_holds_and_nothing_else) {
    for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++) {
        int64_t least, most;
        eddy_dtype_range(integers[i], &least, &most);
        for (int64_t offset = -2; offset <= 2; offset++) {
            int64_t values[2];
            bool is_number = !__builtin_add_overflow(least, offset, &values[0]);
            eddy_scalar number = eddy_scalar_int(is_number ? values[0] : 0);
            bool is_held = !is_number || offset >= 0;
            cr_expect_eq(eddy_number_convert(&number, integers[i], false), is_held, "%s %lld",
                         eddy_dtype_name(integers[i]), (long long)number.value.integer);
            is_number = !__builtin_add_overflow(most, offset, &values[1]);
            number = eddy_scalar_int(is_number ? values[1] : 0);
            is_held = !is_number || offset <= 0;
            cr_expect_eq(eddy_number_convert(&number, integers[i], false), is_held, "%s %lld",
                         eddy_dtype_name(integers[i]), (long long)number.value.integer);
        }
    }
}

Test(number, fractions_are_cut_off_before_the_range_is_asked) {
    eddy_scalar number = EDDY_S(255.9);
    cr_assert(eddy_number_convert(&number, EDDY_U8, false));
    cr_expect_eq(number.kind, EDDY_SCALAR_INT);
    cr_expect_eq(number.value.integer, 255);
    number = EDDY_S(-0.9);
    cr_assert(eddy_number_convert(&number, EDDY_U8, false));
    cr_expect_eq(number.value.integer, 0);
    number = EDDY_S(256.0);
    cr_expect_not(eddy_number_convert(&number, EDDY_U8, false));
    cr_expect_eq(number.value.floating, 256.0, "what is refused stays as it was");
}

Test(number, no_integer_dtype_holds_nan_or_an_infinity) {
    const double values[] = {NAN, INFINITY, -INFINITY, 0x1p63};
    for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++)
        for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
            eddy_scalar number = EDDY_S(values[k]);
            cr_expect_not(eddy_number_convert(&number, integers[i], false));
            cr_expect_not(eddy_number_convert(&number, integers[i], true));
        }
}

Test(number, wrapping_takes_the_low_bits) {
    const struct {
        eddy_dtype dtype;
        int64_t given, wanted;
    } rows[] = {{EDDY_U8, 256, 0},
                {EDDY_U8, -1, 255},
                {EDDY_U8, 511, 255},
                {EDDY_I8, 128, -128},
                {EDDY_I8, -129, 127},
                {EDDY_I16, 32768, -32768},
                {EDDY_I32, INT64_C(1) << 31, INT32_MIN},
                {EDDY_I32, INT64_MIN, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        eddy_scalar number = eddy_scalar_int(rows[i].given);
        cr_assert(eddy_number_convert(&number, rows[i].dtype, true));
        cr_expect_eq(number.value.integer, rows[i].wanted, "%lld", (long long)rows[i].given);
    }
}

/* 2^24 + 1 is halfway between two floats; the last bit, which a double does not hold, decides. */
Test(number, a_float_dtype_rounds_an_integer_once) {
    eddy_scalar number = eddy_scalar_int((INT64_C(1) << 62) + (INT64_C(1) << 38) + 1);
    cr_assert(eddy_number_convert(&number, EDDY_F32, false));
    cr_expect_eq((float)number.value.floating, 0x1.000002p62f);
    number = eddy_scalar_int(3);
    cr_assert(eddy_number_convert(&number, EDDY_F64, false));
    cr_expect_eq(number.kind, EDDY_SCALAR_FLOAT);
    cr_expect_eq(number.value.floating, 3.0);
}

Test(number, bool_asks_whether_it_is_zero) {
    const eddy_scalar held[] = {EDDY_S(0.5), EDDY_S(NAN), EDDY_S(256)};
    for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++) {
        eddy_scalar number = held[i];
        cr_assert(eddy_number_convert(&number, EDDY_BOOL, false));
        cr_expect_eq(number.kind, EDDY_SCALAR_BOOL);
        cr_expect_eq(number.value.integer, 1);
    }
    eddy_scalar zero = EDDY_S(-0.0);
    cr_assert(eddy_number_convert(&zero, EDDY_BOOL, false));
    cr_expect_eq(zero.value.integer, 0);
}

Test(number, text_is_what_was_given) {
    char text[32];
    eddy_number_format(EDDY_S(-300), text, sizeof(text));
    cr_expect_str_eq(text, "-300");
    eddy_number_format(EDDY_S(2.5), text, sizeof(text));
    cr_expect_str_eq(text, "2.5");
}
