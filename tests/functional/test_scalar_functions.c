/* The functions of the vocabulary by themselves. EDDY_TEST_LONG=1 goes through all 2^32 arguments of f32. */
#include <criterion/criterion.h>
#include <float.h>
#include <kernels/angle.h>
#include <kernels/gauss.h>
#include <kernels/math.h>
#include <kernels/power.h>
#include <kernels/scalar_functions.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tests/functional/oracle.h>
#include <tests/functional/random.h>

typedef long double oracle_fn(long double x);

static long double oracle_sigmoid(long double x) {
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}

static long double oracle_silu(long double x) {
    return x < -12000 ? 0 : x == INFINITY ? x : x / (1 + expl(-x));
}

static long double oracle_normal(long double x) {
    return erfcl(-x * sqrtl(0.5L)) / 2;
}

static long double oracle_gelu(long double x) {
    return x == -INFINITY ? 0 : x * oracle_normal(x);
}

static long double oracle_gelu_tanh(long double x) {
    long double u = sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x);
    return x == -INFINITY ? 0 : x == INFINITY ? x : x / (1 + expl(-2 * u));
}

typedef struct function {
    const char *name;
    float (*f32)(float x);
    double (*f64)(double x);
    oracle_fn *oracle;
    double bound_f32, bound_f64; /* ulp, as in functional/README.md */
} function;

#define WORD(name)                                                                                 \
    static float name##_f32(float x) {                                                             \
        return eddy_##name##_f32(x);                                                               \
    }                                                                                              \
    static double name##_f64(double x) {                                                           \
        return eddy_##name##_f64(x);                                                               \
    }
WORD(exp)
WORD(log)
WORD(sigmoid)
WORD(tanh)
WORD(sqrt)
WORD(expm1)
WORD(log1p)
WORD(log2)
WORD(silu)
WORD(erf)
WORD(normal)
WORD(gelu)
WORD(gelu_tanh)
WORD(sin)
WORD(cos)
WORD(tan)

static const function functions[] = {
    {"exp", exp_f32, exp_f64, expl, 1.0, 1.0},
    {"log", log_f32, log_f64, logl, 1.0, 1.0},
    {"sigmoid", sigmoid_f32, sigmoid_f64, oracle_sigmoid, 1.0, 1.0},
    {"tanh", tanh_f32, tanh_f64, tanhl, 1.25, 1.25},
    {"sqrt", sqrt_f32, sqrt_f64, sqrtl, 0.5, 0.51},
    {"expm1", expm1_f32, expm1_f64, expm1l, 1.0, 1.0},
    {"log1p", log1p_f32, log1p_f64, log1pl, 1.0, 1.0},
    {"log2", log2_f32, log2_f64, log2l, 1.25, 1.25},
    {"silu", silu_f32, silu_f64, oracle_silu, 1.25, 1.0},
    {"erf", erf_f32, erf_f64, erfl, 1.0, 1.5},
    {"normal", normal_f32, normal_f64, oracle_normal, 1.0, 6.0},
    {"gelu", gelu_f32, gelu_f64, oracle_gelu, 4.5, 6.0},
    {"gelu_tanh", gelu_tanh_f32, gelu_tanh_f64, oracle_gelu_tanh, 3.0, 4.0},
    {"sin", sin_f32, sin_f64, sinl, 1.0, 1.0},
    {"cos", cos_f32, cos_f64, cosl, 1.0, 1.0},
    {"tan", tan_f32, tan_f64, tanl, 1.0, 1.25},
};
#define WORD_COUNT (sizeof(functions) / sizeof(functions[0]))

static void check_f32(const function *w, uint32_t bits) {
    float x = eddy_f32_of_bits(bits), got = w->f32(x);
    oracle_value want = {.real = w->oracle(x)};
    double distance = oracle_distance(EDDY_F32, want, &got);
    cr_assert_leq(distance, w->bound_f32, "%s(%a) is %a, not %La: %g ulp", w->name, (double)x,
                  (double)got, want.real, distance);
}

Test(functions, f32_stays_within_its_bound, .timeout = 7200) {
    bool is_long = getenv("EDDY_TEST_LONG") != NULL;
    for (size_t i = 0; i < WORD_COUNT; i++) {
        /* A prime step reaches every exponent and sign with ever different digits. */
        for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += is_long ? 1 : 4099)
            check_f32(&functions[i], (uint32_t)bits);
        for (uint32_t exponent = 0; exponent < 512; exponent++)
            for (uint32_t near = 0; near < 16; near++)
                check_f32(&functions[i], (exponent << 23) + near - 8);
    }
}

static void check_f64(const function *w, double x) {
    double got = w->f64(x);
    oracle_value want = {.real = w->oracle(x)};
    double distance = oracle_distance(EDDY_F64, want, &got);
    cr_assert_leq(distance, w->bound_f64, "%s(%a) is %a, not %La: %g ulp, seed %llu", w->name, x,
                  got, want.real, distance, (unsigned long long)random_seed());
}

Test(functions, f64_stays_within_its_bound, .timeout = 7200) {
    int64_t rounds = getenv("EDDY_TEST_LONG") ? 200000000 : 300000;
    for (size_t i = 0; i < WORD_COUNT; i++) {
        for (int64_t n = 0; n < rounds; n++) {
            double unit = (double)(int64_t)random_next() * 0x1p-63;
            check_f64(&functions[i], eddy_f64_of_bits(random_next()));
            check_f64(&functions[i], unit * 750);
            check_f64(&functions[i], unit * 4);
            check_f64(&functions[i], 1 + unit * 0.5);
        }
        for (uint64_t exponent = 0; exponent < 4096; exponent++)
            for (uint64_t near = 0; near < 16; near++)
                check_f64(&functions[i], eddy_f64_of_bits((exponent << 52) + near - 8));
    }
}

/* Everywhere between the limits, where samples of all exponents are few. */
Test(functions, sigmoid_and_silu_stay_within_their_bounds, .timeout = 7200) {
    uint32_t step = getenv("EDDY_TEST_LONG") ? 1 : 257;
    for (size_t i = 0; i < WORD_COUNT; i++) {
        if (strcmp(functions[i].name, "sigmoid") != 0 && strcmp(functions[i].name, "silu") != 0)
            continue;
        for (uint32_t bits = eddy_bits_of_f32(0x1p-26f); bits < eddy_bits_of_f32(112);
             bits += step) {
            check_f32(&functions[i], bits);
            check_f32(&functions[i], bits | 0x80000000u);
        }
    }
}

Test(functions, silu_keeps_the_sign_of_0) {
    static const float zeros[] = {0.0f, -0.0f};
    for (int i = 0; i < 2; i++) {
        volatile float x = zeros[i];
        cr_assert_eq(eddy_bits_of_f32(eddy_silu_f32(x)), eddy_bits_of_f32(x));
        cr_assert_eq(eddy_bits_of_f32(eddy_silu_quick_f32(x)), eddy_bits_of_f32(x));
        cr_assert_eq(eddy_bits_of_f64(eddy_silu_f64(x)), eddy_bits_of_f64(x));
    }
    /* What rounds to 0, too. */
    static const float low[] = {-108.9f, -109.5f, -1000, -INFINITY};
    for (int i = 0; i < 4; i++)
        cr_assert_eq(eddy_bits_of_f32(eddy_silu_f32(low[i])), eddy_bits_of_f32(-0.0f), "%a",
                     (double)low[i]);
}

static bool same_f32(float a, float b) {
    return isnan(a) ? isnan(b) : eddy_bits_of_f32(a) == eddy_bits_of_f32(b);
}

static bool same_f64(double a, double b) {
    return isnan(a) ? isnan(b) : eddy_bits_of_f64(a) == eddy_bits_of_f64(b);
}

Test(functions, forms_of_a_word_have_the_same_bits) {
    uint32_t step = getenv("EDDY_TEST_LONG") ? 1 : 1021;
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += step) {
        float x = eddy_f32_of_bits((uint32_t)bits);
        if (eddy_sigmoid_is_quick_f32(x))
            cr_assert(same_f32(eddy_sigmoid_quick_f32(x), eddy_sigmoid_f32(x)), "%a", (double)x);
        if (eddy_silu_is_quick_f32(x))
            cr_assert(same_f32(eddy_silu_quick_f32(x), eddy_silu_f32(x)), "%a", (double)x);
        if (eddy_exp_is_quick_f32(x))
            cr_assert(same_f32(eddy_exp_quick_f32(x), eddy_exp_f32(x)), "%a", (double)x);
        if (!(x > 0))
            cr_assert(same_f32(eddy_exp_down_f32(x), eddy_exp_f32(x)), "%a", (double)x);
    }
    for (int64_t i = 0; i < 4000000; i++) {
        double x = i % 4 == 0 ? eddy_f64_of_bits(random_next())
                              : (double)(int64_t)random_next() * 0x1p-63 * 750;
        x = x > 0 ? -x : x;
        cr_assert(same_f64(eddy_exp_down_f64(x), eddy_exp_f64(x)), "%a", x);
    }
}

/* The numbers of each format that come closest to a multiple of pi / 2 (Muller et al., Handbook of Floating-Point
 * Arithmetic). */
Test(functions, angles_are_right_where_reduction_is_hardest) {
    for (size_t i = 0; i < WORD_COUNT; i++) {
        if (strcmp(functions[i].name, "sin") != 0 && strcmp(functions[i].name, "cos") != 0 &&
            strcmp(functions[i].name, "tan") != 0)
            continue;
        for (int near = -2; near <= 2; near++) {
            check_f32(&functions[i], eddy_bits_of_f32(16367173.0f * 0x1p72f) + (uint32_t)near);
            check_f64(&functions[i], (6381956970095103.0 + near) * 0x1p797);
        }
    }
}

/* ---- functions of two arguments ---- */

typedef struct pair_word {
    const char *name;
    float (*f32)(float a, float b);
    double (*f64)(double a, double b);
    long double (*oracle)(long double a, long double b);
    double bound_f32, bound_f64;
} pair_word;

#define PAIR_WORD(name)                                                                            \
    static float name##_f32(float a, float b) {                                                    \
        return eddy_##name##_f32(a, b);                                                            \
    }                                                                                              \
    static double name##_f64(double a, double b) {                                                 \
        return eddy_##name##_f64(a, b);                                                            \
    }
PAIR_WORD(pow)
PAIR_WORD(atan2)
PAIR_WORD(remainder)
PAIR_WORD(floordiv)

static long double oracle_remainder(long double a, long double b) {
    long double rest = fmodl(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* Whole but for the rounding of the division. */
static long double oracle_floordiv(long double a, long double b) {
    if (b == 0 || isnan(b) || !isfinite(a))
        return b == 0 ? a / b : NAN;
    if (isinf(b))
        return a != 0 && (a < 0) != (b < 0) ? -1 : 0;
    return roundl((a - oracle_remainder(a, b)) / b);
}

static const pair_word pair_words[] = {
    {"pow", pow_f32, pow_f64, powl, 1.0, 1.0},
    {"atan2", atan2_f32, atan2_f64, atan2l, 1.0, 1.25},
    {"remainder", remainder_f32, remainder_f64, oracle_remainder, 0.5, 0.51},
    {"floordiv", floordiv_f32, floordiv_f64, oracle_floordiv, 1.0, 1.0},
};
#define PAIR_WORD_COUNT (sizeof(pair_words) / sizeof(pair_words[0]))

static void check_pair_f32(const pair_word *w, float a, float b) {
    float got = w->f32(a, b);
    oracle_value want = {.real = w->oracle(a, b)};
    double distance = oracle_distance(EDDY_F32, want, &got);
    cr_assert_leq(distance, w->bound_f32, "%s(%a, %a) is %a, not %La: %g ulp, seed %llu", w->name,
                  (double)a, (double)b, (double)got, want.real, distance,
                  (unsigned long long)random_seed());
}

static void check_pair_f64(const pair_word *w, double a, double b) {
    double got = w->f64(a, b);
    oracle_value want = {.real = w->oracle(a, b)};
    double distance = oracle_distance(EDDY_F64, want, &got);
    cr_assert_leq(distance, w->bound_f64, "%s(%a, %a) is %a, not %La: %g ulp, seed %llu", w->name,
                  a, b, got, want.real, distance, (unsigned long long)random_seed());
}

Test(functions, those_of_two_arguments_stay_within_their_bounds, .timeout = 7200) {
    static const double specials[] = {
        0.0,      -0.0,    1.0,    -1.0,     0.5,           -0.5,         2.0,
        -2.0,     3.0,     -3.0,   INFINITY, -INFINITY,     NAN,          0x1p-149,
        0x1p-126, FLT_MAX, 0x1p24, 0x1p53,   0x1p-1074,     DBL_MIN,      DBL_MAX,
        -DBL_MAX, 0.1,     -7.25,  1e10,     1.0 - 0x1p-53, 1.0 + 0x1p-52};
    int64_t rounds = getenv("EDDY_TEST_LONG") ? 100000000 : 200000;
    for (size_t i = 0; i < PAIR_WORD_COUNT; i++) {
        const pair_word *w = &pair_words[i];
        for (size_t a = 0; a < sizeof(specials) / sizeof(specials[0]); a++)
            for (size_t b = 0; b < sizeof(specials) / sizeof(specials[0]); b++) {
                check_pair_f32(w, (float)specials[a], (float)specials[b]);
                check_pair_f64(w, specials[a], specials[b]);
            }
        for (int64_t n = 0; n < rounds; n++) {
            uint64_t bits = random_next();
            check_pair_f32(w, eddy_f32_of_bits((uint32_t)bits),
                           eddy_f32_of_bits((uint32_t)(bits >> 32)));
            check_pair_f64(w, eddy_f64_of_bits(bits), eddy_f64_of_bits(random_next()));
            double a = (double)(int64_t)random_next() * 0x1p-63,
                   b = (double)(int64_t)random_next() * 0x1p-63;
            double scale = (double)random_below(1000);
            check_pair_f32(w, (float)(a * 8), (float)(b * 30));
            check_pair_f64(w, a * 8, b * 300);
            check_pair_f64(w, fabs(a) * scale, b * 100);
            check_pair_f64(w, 1 + a * 0x1p-20, b * 0x1p28);
            check_pair_f32(w, (float)(1 + a * 0x1p-10), (float)(b * 0x1p15));
            check_pair_f64(w, (double)random_below(1000), (double)random_below(200) - 100);
        }
    }
}

/* ---- slopes: sums whose terms cancel; the unit is that of the larger term ---- */

WORD(gelu_slope)
WORD(gelu_tanh_slope)

static oracle_value oracle_slope(long double x, bool is_tanh) {
    long double rise = x * expl(-x * x / 2) / sqrtl(2 * acosl(-1)), share = oracle_normal(x);
    if (is_tanh) {
        long double k = 2 * sqrtl(2 / acosl(-1)), v = k * (x + 0.044715L * x * x * x);
        share = oracle_sigmoid(v);
        rise = x * share * oracle_sigmoid(-v) * k * (1 + 3 * 0.044715L * x * x);
    }
    return (oracle_value){.real = share + rise, .is_sum = true, .scale = fmaxl(share, fabsl(rise))};
}

Test(functions, slopes_of_gelu_stay_within_their_bounds) {
    for (int64_t n = 0; n < 300000; n++)
        for (int is_tanh = 0; is_tanh < 2; is_tanh++) {
            double x = (double)(int64_t)random_next() * 0x1p-63 * (double)(1 << random_below(5));
            float narrow = (float)x,
                  got = is_tanh ? gelu_tanh_slope_f32(narrow) : gelu_slope_f32(narrow);
            double distance = oracle_distance(EDDY_F32, oracle_slope(narrow, is_tanh), &got);
            cr_assert_leq(distance, 1, "%d at %a: %a, %g ulp", is_tanh, (double)narrow, (double)got,
                          distance);
            double wide = is_tanh ? gelu_tanh_slope_f64(x) : gelu_slope_f64(x);
            oracle_value want = oracle_slope(x, is_tanh);
            distance = want.scale < DBL_MIN * 0x1p53L ? 0 : oracle_distance(EDDY_F64, want, &wide);
            cr_assert_leq(distance, 6, "%d at %a: %a, %g ulp", is_tanh, x, wide, distance);
        }
    cr_assert(gelu_slope_f32(INFINITY) == 1 && gelu_slope_f64(-INFINITY) == 0 &&
              gelu_tanh_slope_f32(-INFINITY) == 0 && gelu_tanh_slope_f64(INFINITY) == 1);
    cr_assert(isnan(gelu_slope_f32(NAN)) && isnan(gelu_slope_f64((double)NAN)) &&
              isnan(gelu_tanh_slope_f32(NAN)) && isnan(gelu_tanh_slope_f64((double)NAN)));
}

WORD(silu_slope)

static oracle_value oracle_silu_slope(long double x) {
    long double share = oracle_sigmoid(x), rise = x < -12000 ? 0 : x * share * oracle_sigmoid(-x);
    return (oracle_value){.real = share + rise, .is_sum = true, .scale = fmaxl(share, fabsl(rise))};
}

static void check_silu_slope_f32(float x) {
    float got = silu_slope_f32(x);
    double distance = oracle_distance(EDDY_F32, oracle_silu_slope(x), &got);
    cr_assert_leq(distance, 4, "at %a: %a, %g ulp", (double)x, (double)got, distance);
}

static void check_silu_slope_f64(double x) {
    double got = silu_slope_f64(x),
           distance = oracle_distance(EDDY_F64, oracle_silu_slope(x), &got);
    cr_assert_leq(distance, 4, "at %a: %a, %g ulp, seed %llu", x, got, distance,
                  (unsigned long long)random_seed());
}

/* Subnormal slopes, and subnormal sigmoids under normal slopes, are among them. */
Test(functions, the_slope_of_silu_stays_within_its_bound) {
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += 4099) {
        float x = eddy_f32_of_bits((uint32_t)bits);
        if (isfinite(x))
            check_silu_slope_f32(x);
    }
    for (int64_t n = 0; n < 300000; n++) {
        double unit = (double)(int64_t)random_next() * 0x1p-63;
        check_silu_slope_f32((float)(unit * 110));
        check_silu_slope_f64(unit * 750);
        check_silu_slope_f64(unit * 8);
    }
    cr_assert(silu_slope_f32(INFINITY) == 1 && silu_slope_f32(-INFINITY) == 0);
    cr_assert(silu_slope_f64(INFINITY) == 1 && silu_slope_f64(-INFINITY) == 0);
    cr_assert(isnan(silu_slope_f32(NAN)) && isnan(silu_slope_f64((double)NAN)));
}

Test(functions, special_arguments_have_special_values) {
    for (size_t i = 0; i < WORD_COUNT; i++) {
        cr_assert(isnan(functions[i].f32(NAN)) && isnan(functions[i].f64((double)NAN)), "%s of NaN",
                  functions[i].name);
        cr_assert(isnan(functions[i].f32(-NAN)) && isnan(functions[i].f64(-(double)NAN)),
                  "%s of -NaN", functions[i].name);
    }
    cr_assert(exp_f32(-INFINITY) == 0 && exp_f32(INFINITY) == INFINITY && exp_f32(0) == 1);
    cr_assert(exp_f64(-INFINITY) == 0 && exp_f64(INFINITY) == INFINITY && exp_f64(0) == 1);
    cr_assert(log_f32(0) == -INFINITY && log_f32(-0.0f) == -INFINITY &&
              log_f32(INFINITY) == INFINITY && log_f32(1) == 0);
    cr_assert(log_f64(0) == -INFINITY && log_f64(-0.0) == -INFINITY &&
              log_f64(INFINITY) == INFINITY && log_f64(1) == 0);
    cr_assert(isnan(log_f32(-1)) && isnan(log_f64(-1)) && isnan(log_f32(-INFINITY)) &&
              isnan(log_f64(-INFINITY)));
    cr_assert(sigmoid_f32(0) == 0.5f && sigmoid_f32(INFINITY) == 1 && sigmoid_f32(-INFINITY) == 0);
    cr_assert(sigmoid_f64(0) == 0.5 && sigmoid_f64(INFINITY) == 1 && sigmoid_f64(-INFINITY) == 0);
    cr_assert(tanh_f32(INFINITY) == 1 && tanh_f32(-INFINITY) == -1 && tanh_f64(INFINITY) == 1 &&
              tanh_f64(-INFINITY) == -1);
    cr_assert(signbit(tanh_f32(-0.0f)) && signbit(tanh_f64(-0.0)) && tanh_f32(-0.0f) == 0 &&
              tanh_f64(-0.0) == 0);
    cr_assert(tanh_f32(0x1p-149f) == 0x1p-149f && tanh_f64(0x1p-1074) == 0x1p-1074);
    /* Odd functions keep the sign of 0. */
    cr_assert(signbit(expm1_f32(-0.0f)) && signbit(log1p_f32(-0.0f)) && signbit(sin_f32(-0.0f)) &&
              signbit(tan_f32(-0.0f)) && signbit(erf_f32(-0.0f)));
    cr_assert(signbit(expm1_f64(-0.0)) && signbit(log1p_f64(-0.0)) && signbit(sin_f64(-0.0)) &&
              signbit(tan_f64(-0.0)) && signbit(erf_f64(-0.0)));
    /* So do those that are x near 0 but for a factor. */
    cr_assert(signbit(silu_f32(-0.0f)) && signbit(gelu_f32(-0.0f)) &&
              signbit(gelu_tanh_f32(-0.0f)));
    cr_assert(signbit(silu_f64(-0.0)) && signbit(gelu_f64(-0.0)) && signbit(gelu_tanh_f64(-0.0)));
    cr_assert(!signbit(silu_f32(0)) && !signbit(silu_f64(0)) && !signbit(gelu_f64(0)) &&
              !signbit(gelu_tanh_f64(0)));
    cr_assert(signbit(atan2_f32(-0.0f, 1)) && signbit(atan2_f64(-0.0, 1)) &&
              atan2_f64(0, -0.0) > 3);
    cr_assert(silu_f32(-INFINITY) == 0 && silu_f64(-INFINITY) == 0 && gelu_f32(-INFINITY) == 0 &&
              gelu_f64(-INFINITY) == 0 && gelu_tanh_f32(-INFINITY) == 0 &&
              gelu_tanh_f64(-INFINITY) == 0);
    cr_assert(isnan(sin_f32(INFINITY)) && isnan(cos_f64(-INFINITY)) && isnan(tan_f32(INFINITY)));
}

Test(functions, integers_are_divided_as_python_does) {
    for (int a = INT8_MIN; a <= INT8_MAX; a++)
        for (int b = INT8_MIN; b <= INT8_MAX; b++) {
            double floored = b == 0 ? 0 : floor((double)a / b);
            int8_t quotient = (int8_t)(int)floored,
                   rest = (int8_t)(b == 0 ? 0 : a - (int)floored * b);
            cr_assert_eq(eddy_floordiv_i8((int8_t)a, (int8_t)b), quotient, "%d // %d", a, b);
            cr_assert_eq(eddy_remainder_i8((int8_t)a, (int8_t)b), rest, "%d %% %d", a, b);
            cr_assert_eq(eddy_floordiv_i64(a, b), (int64_t)floored, "%d // %d", a, b);
            cr_assert_eq(eddy_remainder_i32(a, b), (int32_t)rest, "%d %% %d", a, b);
        }
    cr_assert_eq(eddy_floordiv_i64(INT64_MIN, -1), INT64_MIN);
    cr_assert_eq(eddy_remainder_i64(INT64_MIN, -1), 0);
    cr_assert_eq(eddy_floordiv_i32(INT32_MIN, -1), INT32_MIN);
    cr_assert_eq(eddy_floordiv_u8(200, 0), 0);
    cr_assert_eq(eddy_remainder_u8(200, 7), 4);
}

Test(functions, integer_powers_wrap_around) {
    cr_assert_eq(eddy_pow_i32(3, 4), 81);
    cr_assert_eq(eddy_pow_i32(0, 0), 1);
    cr_assert_eq(eddy_pow_i8(2, 7), INT8_MIN);
    cr_assert_eq(eddy_pow_u8(2, 8), 0);
    cr_assert_eq(eddy_pow_i64(-2, 63), INT64_MIN);
    cr_assert_eq(eddy_pow_i64(3, INT64_MAX), (int64_t)0xaaaaaaaaaaaaaaabu);
    cr_assert_eq(eddy_pow_i16(2, -1), 0);
    cr_assert_eq(eddy_pow_i16(-1, -3), -1);
    cr_assert_eq(eddy_pow_i16(1, -3), 1);
    cr_assert_eq(eddy_pow_i16(0, -3), 0);
}

Test(functions, a_nan_wins_in_min_and_max) {
    float values[] = {-INFINITY, -1, -0.0f, 0, 1, INFINITY, NAN};
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < 7; j++) {
            float a = values[i], b = values[j], low = eddy_min_f32(a, b), high = eddy_max_f32(a, b);
            bool is_nan = isnan(a) || isnan(b);
            cr_assert(is_nan ? isnan(low) && isnan(high)
                             : low == fminf(a, b) && high == fmaxf(a, b),
                      "%g %g", (double)a, (double)b);
            double low64 = eddy_min_f64(a, b), high64 = eddy_max_f64(a, b);
            cr_assert(is_nan ? isnan(low64) && isnan(high64)
                             : low64 == fmin(a, b) && high64 == fmax(a, b));
        }
}

Test(functions, integers_wrap_around) {
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

Test(functions, abs_and_fma_are_exact) {
    cr_assert(!signbit(eddy_abs_f32(-0.0f)) && eddy_abs_f64(-INFINITY) == INFINITY);
    /* The square's last bit would be rounded off. */
    cr_assert_eq(eddy_fma_f32(1 + 0x1p-12f, 1 + 0x1p-12f, -1), 0x1p-11f + 0x1p-24f);
    cr_assert_eq(eddy_fma_f64(1 + 0x1p-27, 1 + 0x1p-27, -1), 0x1p-26 + 0x1p-54);
}
