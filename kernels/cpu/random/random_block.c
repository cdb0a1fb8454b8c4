/* Normals by Box and Muller (1958). log, sin and cos are polynomials made of + - * / and sqrt alone, each rounded as IEEE
 * 754 says and never contracted, so that the bits depend neither on libm nor on the vector width. */
#include <kernels/cpu/half.h>
#include <kernels/cpu/random/random_block.h>
#include <kernels/philox.h>

#define COUNT EDDY_RANDOM_BLOCKS

/* The words of COUNT blocks, grouped by word. */
typedef struct words {
    uint32_t word[4][COUNT];
} words;

static inline void philox_blocks(words *w, uint64_t seed, uint64_t counter, uint64_t block) {
    for (int i = 0; i < COUNT; i++) {
        uint64_t number = block + (uint64_t)i;
        w->word[0][i] = (uint32_t)number;
        w->word[1][i] = (uint32_t)(number >> 32);
        w->word[2][i] = (uint32_t)counter;
        w->word[3][i] = (uint32_t)(counter >> 32);
    }
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < EDDY_PHILOX_ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++)
            eddy_philox_round(&w->word[0][i], &w->word[1][i], &w->word[2][i], &w->word[3][i], k0,
                              k1);
        k0 += EDDY_PHILOX_W0;
        k1 += EDDY_PHILOX_W1;
    }
}

static void philox_words(uint32_t *out, uint64_t seed, uint64_t counter, uint64_t block) {
    words w;
    philox_blocks(&w, seed, counter, block);
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < 4; k++)
            out[4 * i + k] = w.word[k][i];
}

static void uniform_f32(float *out, int bits, uint64_t seed, uint64_t counter, uint64_t block) {
    words w;
    philox_blocks(&w, seed, counter, block);
    float unit = 1.0f / (float)(1 << bits);
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < 4; k++)
            out[4 * i + k] = (float)(int32_t)(w.word[k][i] >> (32 - bits)) * unit;
}

static inline double unit_f64(uint32_t high, uint32_t low) {
    uint64_t bits = (uint64_t)high << 32 | low;
    return (double)(int64_t)(bits >> 11) * 0x1p-53;
}

static void uniform_f64(double *out, uint64_t seed, uint64_t counter, uint64_t block) {
    words w;
    philox_blocks(&w, seed, counter, block);
    for (int i = 0; i < COUNT; i++) {
        out[2 * i] = unit_f64(w.word[0][i], w.word[1][i]);
        out[2 * i + 1] = unit_f64(w.word[2][i], w.word[3][i]);
    }
}

/* ln x for normal x in (0, 1]: x = m * 2^e with m in [sqrt 1/2, sqrt 2); ln m from Cephes logf. */
static inline float log_f32(float x) {
    uint32_t bits = eddy_bits_of_f32(x);
    int32_t e = (int32_t)(bits - 0x3f3504f3u) >> 23;
    float m = eddy_f32_of_bits(bits - ((uint32_t)e << 23)) - 1.0f;
    float z = m * m;
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    float y = m * z * p;
    y = y + (float)e * -2.12194440e-4f;
    y = y - 0.5f * z;
    return (m + y) + (float)e * 0.693359375f;
}

/* sin and cos of 2 pi t for t in [0, 1): a quarter turn from the top bits, the rest by polynomials on [-pi/4, pi/4]. */
static inline void turn_f32(float t, float *sine, float *cosine) {
    float quarters = t * 4.0f;
    int32_t quadrant = (int32_t)(quarters + 0.5f);
    float r = (quarters - (float)quadrant) * 1.57079632679f;
    float z = r * r;
    float s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * r + r;
    float c =
        ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z -
        0.5f * z + 1.0f;
    float swapped_s = quadrant & 1 ? c : s, swapped_c = quadrant & 1 ? s : c;
    *sine = quadrant & 2 ? -swapped_s : swapped_s;
    *cosine = (quadrant + 1) & 2 ? -swapped_c : swapped_c;
}

static void normal_f32(float *out, uint64_t seed, uint64_t counter, uint64_t block) {
    words w;
    philox_blocks(&w, seed, counter, block);
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < 2; k++) {
            /* (0, 1] with 31 bits: the tail reaches 6.5. [0, 1) with 24 bits for the angle. */
            float u = ((float)(int32_t)(w.word[2 * k][i] >> 1) + 1.0f) * 0x1p-31f;
            float t = (float)(int32_t)(w.word[2 * k + 1][i] >> 8) * 0x1p-24f;
            float radius = __builtin_sqrtf(-2.0f * log_f32(u)), sine, cosine;
            turn_f32(t, &sine, &cosine);
            out[4 * i + 2 * k] = radius * cosine;
            out[4 * i + 2 * k + 1] = radius * sine;
        }
}

/* The same in double: ln m = 2 atanh(s), s = (m - 1) / (m + 1), |s| <= 0.172. */
static inline double log_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    int64_t e = (int64_t)(bits - 0x3fe6a09e667f3bcdull) >> 52;
    uint64_t mantissa = bits - ((uint64_t)e << 52);
    double m;
    memcpy(&m, &mantissa, sizeof(m));
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 1.0 / 23;
    p = p * z + 1.0 / 21;
    p = p * z + 1.0 / 19;
    p = p * z + 1.0 / 17;
    p = p * z + 1.0 / 15;
    p = p * z + 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    double ln = 2.0 * s + 2.0 * s * z * p;
    return (double)(int32_t)e * 0.693147180559945309417 + ln;
}

static inline void turn_f64(double t, double *sine, double *cosine) {
    double quarters = t * 4.0;
    int32_t quadrant = (int32_t)(quarters + 0.5);
    double r = (quarters - (double)quadrant) * 1.57079632679489661923;
    double z = r * r;
    double s = -1.0 / 1307674368000.0;
    s = s * z + 1.0 / 6227020800.0;
    s = s * z - 1.0 / 39916800.0;
    s = s * z + 1.0 / 362880.0;
    s = s * z - 1.0 / 5040.0;
    s = s * z + 1.0 / 120.0;
    s = s * z - 1.0 / 6.0;
    s = s * z * r + r;
    double c = 1.0 / 20922789888000.0;
    c = c * z - 1.0 / 87178291200.0;
    c = c * z + 1.0 / 479001600.0;
    c = c * z - 1.0 / 3628800.0;
    c = c * z + 1.0 / 40320.0;
    c = c * z - 1.0 / 720.0;
    c = c * z + 1.0 / 24.0;
    c = c * z * z - 0.5 * z + 1.0;
    double swapped_s = quadrant & 1 ? c : s, swapped_c = quadrant & 1 ? s : c;
    *sine = quadrant & 2 ? -swapped_s : swapped_s;
    *cosine = (quadrant + 1) & 2 ? -swapped_c : swapped_c;
}

static void normal_f64(double *out, uint64_t seed, uint64_t counter, uint64_t block) {
    words w;
    philox_blocks(&w, seed, counter, block);
    for (int i = 0; i < COUNT; i++) {
        double u = unit_f64(w.word[0][i], w.word[1][i]) + 0x1p-53,
               t = unit_f64(w.word[2][i], w.word[3][i]);
        double radius = __builtin_sqrt(-2.0 * log_f64(u)), sine, cosine;
        turn_f64(t, &sine, &cosine);
        out[2 * i] = radius * cosine;
        out[2 * i + 1] = radius * sine;
    }
}

/* The product of 64 bits and 32 bits has 96 bits: the upper 32 are the number, the lower 64 decide whether it has to be
 * drawn again. */
static bool below(int64_t *out, int64_t low, uint32_t bound, uint32_t least, uint64_t seed,
                  uint64_t counter, uint64_t block) {
    words w;
    philox_blocks(&w, seed, counter, block);
    uint64_t again = 0;
    for (int i = 0; i < COUNT; i++) {
        uint64_t lower = (uint64_t)w.word[1][i] * bound;
        uint64_t upper = (uint64_t)w.word[0][i] * bound + (lower >> 32);
        again += (upper << 32 | (lower & UINT32_MAX)) < least ? 1 : 0;
        out[i] = (int64_t)((uint64_t)low + (upper >> 32));
    }
    return again == 0;
}

const eddy_random_blocks EDDY_ISA_NAME(eddy_cpu_random_blocks) = {
    philox_words, uniform_f32, uniform_f64, normal_f32, normal_f64, below};
