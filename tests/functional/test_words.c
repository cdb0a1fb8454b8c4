/* The words of the vocabulary by themselves. EDDY_TEST_LONG=1 goes through all 2^32 arguments of f32. */
#include <criterion/criterion.h>
#include <kernels/math.h>
#include <kernels/words.h>
#include <math.h>
#include <stdlib.h>
#include <tests/functional/oracle.h>
#include <tests/functional/random.h>

typedef long double oracle_fn(long double x);

static long double oracle_sigmoid(long double x) {
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}

typedef struct word {
    const char *name;
    float (*f32)(float x);
    double (*f64)(double x);
    oracle_fn *oracle;
    double bound_f32, bound_f64; /* ulp, as in functional/README.md */
} word;

#define WORD(name)                                                                                                     \
    static float name##_f32(float x) {                                                                                 \
        return eddy_##name##_f32(x);                                                                                   \
    }                                                                                                                  \
    static double name##_f64(double x) {                                                                               \
        return eddy_##name##_f64(x);                                                                                   \
    }
WORD(exp)
WORD(log)
WORD(sigmoid)
WORD(tanh)
WORD(sqrt)

static const word words[] = {
    {"exp", exp_f32, exp_f64, expl, 1.0, 1.0},
    {"log", log_f32, log_f64, logl, 1.0, 1.0},
    {"sigmoid", sigmoid_f32, sigmoid_f64, oracle_sigmoid, 1.0, 1.0},
    {"tanh", tanh_f32, tanh_f64, tanhl, 1.0, 1.25},
    {"sqrt", sqrt_f32, sqrt_f64, sqrtl, 0.5, 0.51},
};
#define WORD_COUNT (sizeof(words) / sizeof(words[0]))

static void check_f32(const word *w, uint32_t bits) {
    float x = eddy_f32_of_bits(bits), got = w->f32(x);
    oracle_value want = {.real = w->oracle(x)};
    double distance = oracle_distance(EDDY_F32, want, &got);
    cr_assert_leq(distance, w->bound_f32, "%s(%a) is %a, not %La: %g ulp", w->name, (double)x, (double)got, want.real,
                  distance);
}

Test(words, f32_stays_within_its_bound, .timeout = 7200) {
    bool is_long = getenv("EDDY_TEST_LONG") != NULL;
    for (size_t i = 0; i < WORD_COUNT; i++) {
        /* A prime step reaches every exponent and sign with ever different digits. */
        for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += is_long ? 1 : 4099)
            check_f32(&words[i], (uint32_t)bits);
        for (uint32_t exponent = 0; exponent < 512; exponent++)
            for (uint32_t near = 0; near < 16; near++)
                check_f32(&words[i], (exponent << 23) + near - 8);
    }
}

static void check_f64(const word *w, double x) {
    double got = w->f64(x);
    oracle_value want = {.real = w->oracle(x)};
    double distance = oracle_distance(EDDY_F64, want, &got);
    cr_assert_leq(distance, w->bound_f64, "%s(%a) is %a, not %La: %g ulp, seed %llu", w->name, x, got, want.real,
                  distance, (unsigned long long)random_seed());
}

Test(words, f64_stays_within_its_bound, .timeout = 7200) {
    int64_t rounds = getenv("EDDY_TEST_LONG") ? 200000000 : 300000;
    for (size_t i = 0; i < WORD_COUNT; i++) {
        for (int64_t n = 0; n < rounds; n++) {
            double unit = (double)(int64_t)random_next() * 0x1p-63;
            check_f64(&words[i], eddy_f64_of_bits(random_next()));
            check_f64(&words[i], unit * 750);
            check_f64(&words[i], unit * 4);
            check_f64(&words[i], 1 + unit * 0.5);
        }
        for (uint64_t exponent = 0; exponent < 4096; exponent++)
            for (uint64_t near = 0; near < 16; near++)
                check_f64(&words[i], eddy_f64_of_bits((exponent << 52) + near - 8));
    }
}

Test(words, special_arguments_have_special_values) {
    for (size_t i = 0; i < WORD_COUNT; i++) {
        cr_assert(isnan(words[i].f32(NAN)) && isnan(words[i].f64((double)NAN)), "%s of NaN", words[i].name);
        cr_assert(isnan(words[i].f32(-NAN)) && isnan(words[i].f64(-(double)NAN)), "%s of -NaN", words[i].name);
    }
    cr_assert(exp_f32(-INFINITY) == 0 && exp_f32(INFINITY) == INFINITY && exp_f32(0) == 1);
    cr_assert(exp_f64(-INFINITY) == 0 && exp_f64(INFINITY) == INFINITY && exp_f64(0) == 1);
    cr_assert(log_f32(0) == -INFINITY && log_f32(-0.0f) == -INFINITY && log_f32(INFINITY) == INFINITY &&
              log_f32(1) == 0);
    cr_assert(log_f64(0) == -INFINITY && log_f64(-0.0) == -INFINITY && log_f64(INFINITY) == INFINITY &&
              log_f64(1) == 0);
    cr_assert(isnan(log_f32(-1)) && isnan(log_f64(-1)) && isnan(log_f32(-INFINITY)) && isnan(log_f64(-INFINITY)));
    cr_assert(sigmoid_f32(0) == 0.5f && sigmoid_f32(INFINITY) == 1 && sigmoid_f32(-INFINITY) == 0);
    cr_assert(sigmoid_f64(0) == 0.5 && sigmoid_f64(INFINITY) == 1 && sigmoid_f64(-INFINITY) == 0);
    cr_assert(tanh_f32(INFINITY) == 1 && tanh_f32(-INFINITY) == -1 && tanh_f64(INFINITY) == 1 &&
              tanh_f64(-INFINITY) == -1);
    cr_assert(signbit(tanh_f32(-0.0f)) && signbit(tanh_f64(-0.0)) && tanh_f32(-0.0f) == 0 && tanh_f64(-0.0) == 0);
    cr_assert(tanh_f32(0x1p-149f) == 0x1p-149f && tanh_f64(0x1p-1074) == 0x1p-1074);
}

Test(words, a_nan_wins_in_min_and_max) {
    float values[] = {-INFINITY, -1, -0.0f, 0, 1, INFINITY, NAN};
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < 7; j++) {
            float a = values[i], b = values[j], low = eddy_min_f32(a, b), high = eddy_max_f32(a, b);
            bool is_nan = isnan(a) || isnan(b);
            cr_assert(is_nan ? isnan(low) && isnan(high) : low == fminf(a, b) && high == fmaxf(a, b), "%g %g",
                      (double)a, (double)b);
            double low64 = eddy_min_f64(a, b), high64 = eddy_max_f64(a, b);
            cr_assert(is_nan ? isnan(low64) && isnan(high64) : low64 == fmin(a, b) && high64 == fmax(a, b));
        }
}

Test(words, integers_wrap_around) {
    cr_assert_eq(eddy_add_i8(INT8_MAX, 1), INT8_MIN);
    cr_assert_eq(eddy_sub_u8(0, 1), UINT8_MAX);
    cr_assert_eq(eddy_mul_i16(INT16_MIN, INT16_MIN), 0);
    cr_assert_eq(eddy_mul_i32(INT32_MIN, -1), INT32_MIN);
    cr_assert_eq(eddy_add_i64(INT64_MAX, 1), INT64_MIN);
    cr_assert_eq(eddy_mul_i64(INT64_MIN, -1), INT64_MIN);
    cr_assert_eq(eddy_neg_i8(INT8_MIN), INT8_MIN);
    cr_assert_eq(eddy_neg_i64(INT64_MIN), INT64_MIN);
    cr_assert_eq(eddy_neg_u8(1), UINT8_MAX);
    cr_assert_eq(eddy_abs_i32(INT32_MIN), INT32_MIN);
    cr_assert_eq(eddy_abs_i16(-5), 5);
}

Test(words, abs_and_fma_are_exact) {
    cr_assert(!signbit(eddy_abs_f32(-0.0f)) && eddy_abs_f64(-INFINITY) == INFINITY);
    /* The square's last bit would be rounded off. */
    cr_assert_eq(eddy_fma_f32(1 + 0x1p-12f, 1 + 0x1p-12f, -1), 0x1p-11f + 0x1p-24f);
    cr_assert_eq(eddy_fma_f64(1 + 0x1p-27, 1 + 0x1p-27, -1), 0x1p-26 + 0x1p-54);
}
