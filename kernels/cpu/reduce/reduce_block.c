#include <kernels/cpu/lanes.h>
#include <kernels/cpu/prefetch.h>
#include <kernels/cpu/reduce/reduce_block.h>
#include <kernels/math.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define ADD(a, b) ((a) + (b))
/* Wraps around: through unsigned, where that is defined. */
#define ADD_WRAP(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
/* `a` comes first: it stays where both are equal, or where it is NaN. */
#define MAX_REAL(a, b) ((((a) >= (b)) | ((a) != (a))) ? (a) : (b))
#define MIN_REAL(a, b) ((((a) <= (b)) | ((a) != (a))) ? (a) : (b))
/* The same of numbers. */
#define MAX_NUMBER(a, b) ((b) > (a) ? (b) : (a))
#define MIN_NUMBER(a, b) ((b) < (a) ? (b) : (a))
#define MAX_INTEGER(a, b) ((a) > (b) ? (a) : (b))
#define MIN_INTEGER(a, b) ((a) < (b) ? (a) : (b))
#define MULTIPLY(a, b) ((a) * (b))
#define MULTIPLY_WRAP(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))

/* What is reduced of an element, where `found` is what a sweep before found. */
#define ITSELF(x, found) (x)
#define SQUARE(x, found) ((x) * (x))
#define MAGNITUDE(x, found) fabs(x)
#define IS_NONZERO(x, found) ((x) != 0 ? 1.0 : 0.0)
#define DEVIATION(x, found) ((x) - (found))
#define SQUARE_DEVIATION(x, found) (((x) - (found)) * ((x) - (found)))

/* All lanes, of which there are EDDY_REDUCE_LANES, into lanes[0]. */
#define HALVE_LANES(lanes, OP)                                                                     \
    do {                                                                                           \
        for (int l = 0; l < 16; l++)                                                               \
            lanes[l] = OP(lanes[l], lanes[l + 16]);                                                \
        for (int l = 0; l < 8; l++)                                                                \
            lanes[l] = OP(lanes[l], lanes[l + 8]);                                                 \
        for (int l = 0; l < 4; l++)                                                                \
            lanes[l] = OP(lanes[l], lanes[l + 4]);                                                 \
        lanes[0] = OP(OP(lanes[0], lanes[2]), OP(lanes[1], lanes[3]));                             \
    } while (0)

/* What lies `ahead` elements behind the `count` at `x`. It may be beyond what there is. */
#define PREFETCH(x, count, ahead)                                                                  \
    eddy_prefetch((uintptr_t)(x) + (uintptr_t)(ahead) * sizeof(*(x)),                              \
                  (int64_t)((count) * sizeof(*(x))))

/* The body of a block function: elements of type `from`, converted to `type` before all else. Lane arrays of a constant size
 * stay in vector registers. */
#define REDUCE_BLOCK(from, type, VALUE, OP)                                                        \
    const from *restrict x = elements;                                                             \
    type lanes[EDDY_REDUCE_LANES];                                                                 \
    int64_t present = count < EDDY_REDUCE_LANES ? count : EDDY_REDUCE_LANES;                       \
    if (count >= EDDY_REDUCE_LANES) {                                                              \
        for (int l = 0; l < EDDY_REDUCE_LANES; l++)                                                \
            lanes[l] = VALUE((type)x[l], found);                                                   \
        int64_t i = EDDY_REDUCE_LANES;                                                             \
        for (; i + EDDY_REDUCE_LANES <= count; i += EDDY_REDUCE_LANES) {                           \
            if (has_next)                                                                          \
                PREFETCH(x + i, EDDY_REDUCE_LANES, ahead);                                         \
            for (int l = 0; l < EDDY_REDUCE_LANES; l++)                                            \
                lanes[l] = OP(lanes[l], VALUE((type)x[i + l], found));                             \
        }                                                                                          \
        /* As many steps as lanes, so that they stay in registers. */                              \
        EDDY_LANES (l, EDDY_REDUCE_LANES)                                                          \
            lanes[l] = i + l < count ? OP(lanes[l], VALUE((type)x[i + l], found)) : lanes[l];      \
        HALVE_LANES(lanes, OP);                                                                    \
        *(type *)result = lanes[0];                                                                \
        return;                                                                                    \
    }                                                                                              \
    for (int64_t l = 0; l < present; l++)                                                          \
        lanes[l] = VALUE((type)x[l], found);                                                       \
    for (int64_t width = EDDY_REDUCE_LANES / 2; width > 0; width /= 2)                             \
        for (int64_t l = 0; l < width && l + width < present; l++)                                 \
            lanes[l] = OP(lanes[l], lanes[l + width]);                                             \
    *(type *)result = lanes[0];

#ifdef __AVX__
typedef double wide_f64 __attribute__((vector_size(EDDY_VECTOR_BYTES)));
typedef int64_t wide_i64 __attribute__((vector_size(EDDY_VECTOR_BYTES)));
enum { WIDE = EDDY_VECTOR_BYTES / 8, WIDES = EDDY_REDUCE_LANES / WIDE };
/* gcc 12 makes two conversions of __builtin_convertvector, and one of this. */
#ifdef __AVX512F__
#define WIDENED(x) ((wide_f64){(x)[0], (x)[1], (x)[2], (x)[3], (x)[4], (x)[5], (x)[6], (x)[7]})
#else
#define WIDENED(x) ((wide_f64){(x)[0], (x)[1], (x)[2], (x)[3]})
#endif

/* The first `count` elements of `a` and the others of `b`. By whole vectors: elements that are set one by one are stored and
 * read back, which waits for the stores. */
static inline wide_f64 first_of(wide_f64 a, wide_f64 b, int64_t count) {
#ifdef __AVX512F__
    wide_i64 is_first = (wide_i64){0, 1, 2, 3, 4, 5, 6, 7} < count;
#else
    wide_i64 is_first = (wide_i64){0, 1, 2, 3} < count;
#endif
    return (wide_f64)(((wide_i64)a & is_first) | ((wide_i64)b & ~is_first));
}

/* a * b. A product that is no normal number costs the processor some 150 cycles, and those of many numbers below 1 are rarely
 * anything else: where it is 0 for certain, one factor is 0 instead. */
static inline double multiply_last(double a, double b) {
    const double tiny = 0x1p-538;
    return a * ((fabs(a) < tiny) & (fabs(b) < tiny) ? copysign(0, b) : b);
}

/* The same of f32 in f64, where VALUE and OP are arithmetic alone; LAST is OP for the last two lanes. Vector by vector: where
 * the compiler chooses, it converts halves of vectors and puts them together. */
#define WIDE_BLOCK(VALUE, OP, LAST)                                                                \
    if (count >= EDDY_REDUCE_LANES) {                                                              \
        const float *restrict x = elements;                                                        \
        wide_f64 wides[WIDES];                                                                     \
        EDDY_VECTORS (w, WIDES)                                                                    \
            wides[w] = VALUE(WIDENED(&x[WIDE * w]), found);                                        \
        int64_t i = EDDY_REDUCE_LANES;                                                             \
        for (; i + EDDY_REDUCE_LANES <= count; i += EDDY_REDUCE_LANES) {                           \
            if (has_next)                                                                          \
                PREFETCH(x + i, EDDY_REDUCE_LANES, ahead);                                         \
            EDDY_VECTORS (w, WIDES)                                                                \
                wides[w] = OP(wides[w], VALUE(WIDENED(&x[i + WIDE * w]), found));                  \
        }                                                                                          \
        int rest = (int)(count - i);                                                               \
        EDDY_VECTORS (w, WIDES)                                                                    \
            if (WIDE * w < rest) {                                                                 \
                float last[WIDE];                                                                  \
                EDDY_LANES_APART (e, WIDE)                                                         \
                    last[e] = WIDE * w + e < rest ? x[i + WIDE * w + e] : 0;                       \
                wides[w] = first_of(OP(wides[w], VALUE(WIDENED(last), found)), wides[w],           \
                                    rest - WIDE * w);                                              \
            }                                                                                      \
        /* The remainder is for the compiler where there are four. */                              \
        if (WIDES == 8)                                                                            \
            EDDY_VECTORS (w, 4)                                                                    \
                wides[w] = OP(wides[w], wides[(w + 4) % WIDES]);                                   \
        wides[0] = OP(OP(wides[0], wides[2]), OP(wides[1], wides[3]));                             \
        double lanes[WIDE];                                                                        \
        memcpy(lanes, wides, sizeof(lanes));                                                       \
        for (int width = WIDE / 2; width > 2; width /= 2)                                          \
            for (int l = 0; l < width; l++)                                                        \
                lanes[l] = OP(lanes[l], lanes[l + width]);                                         \
        *(double *)result = LAST(OP(lanes[0], lanes[2]), OP(lanes[1], lanes[3]));                  \
        return;                                                                                    \
    }                                                                                              \
    REDUCE_BLOCK(float, double, VALUE, OP)
#else
#define WIDE_BLOCK(VALUE, OP, LAST) REDUCE_BLOCK(float, double, VALUE, OP)
#endif

/* The lanes of a block in such an order that halves are whole before others begin. */
static const uint8_t lane_order[EDDY_REDUCE_LANES] = {0,  16, 8,  24, 4,  20, 12, 28, 2,  18, 10,
                                                      26, 6,  22, 14, 30, 1,  17, 9,  25, 5,  21,
                                                      13, 29, 3,  19, 11, 27, 7,  23, 15, 31};

/* `width` columns of a block. A lane's totals stay in registers from its first row to its last; then they take the halves that
 * are whole with it, and wait for their other half. Lanes that have no row are left out. The row read next is asked for. */
#define COLUMNS_STRIP(from, type, VALUE, OP, width)                                                \
    case width:                                                                                    \
        for (int i = 0, next; i < EDDY_REDUCE_LANES; i = next) {                                   \
            int64_t lane = lane_order[i];                                                          \
            for (next = i + 1; next < EDDY_REDUCE_LANES && lane_order[next] >= count; next++)      \
                ;                                                                                  \
            int64_t ahead =                                                                        \
                ((next < EDDY_REDUCE_LANES ? lane_order[next] : count) - lane) * apart;            \
            const from *row = x + lane * apart;                                                    \
            type totals[width];                                                                    \
            for (int e = 0; e < (width); e++)                                                      \
                totals[e] = VALUE((type)row[e], found[e]);                                         \
            for (int64_t r = lane + EDDY_REDUCE_LANES; r < count; r += EDDY_REDUCE_LANES) {        \
                row += EDDY_REDUCE_LANES * apart;                                                  \
                PREFETCH(row, width, ahead);                                                       \
                for (int e = 0; e < (width); e++)                                                  \
                    totals[e] = OP(totals[e], VALUE((type)row[e], found[e]));                      \
            }                                                                                      \
            int level = 0;                                                                         \
            for (; (i ^ next) >> level > 1; level++)                                               \
                if (i >> level & 1)                                                                \
                    for (int e = 0; e < (width); e++)                                              \
                        totals[e] = OP(halves[level][e], totals[e]);                               \
            memcpy(halves[level], totals, sizeof(totals));                                         \
        }                                                                                          \
        memcpy(to, halves[LEVELS], sizeof(type) * (width));                                        \
        return;

/* Columns in strips: eight vectors, or fewer where there are no more. The last may overlap the one before it. */
#define COLUMNS(name, from, type, VALUE, OP)                                                       \
    static void name##_strip(int width, type *to, const from *x, int64_t apart, int64_t count,     \
                             const type *found) {                                                  \
        (void)found;                                                                               \
        enum { ONE = EDDY_VECTOR_BYTES / (int)sizeof(type), LEVELS = 5 };                          \
        type halves[LEVELS + 1][8 * ONE];                                                          \
        switch (width) {                                                                           \
            COLUMNS_STRIP(from, type, VALUE, OP, 8 * ONE)                                          \
            COLUMNS_STRIP(from, type, VALUE, OP, 4 * ONE)                                          \
            COLUMNS_STRIP(from, type, VALUE, OP, 2 * ONE)                                          \
            COLUMNS_STRIP(from, type, VALUE, OP, ONE)                                              \
            COLUMNS_STRIP(from, type, VALUE, OP, 1)                                                \
        }                                                                                          \
    }                                                                                              \
    static void name##_strips(type *total, const from *x, int64_t apart, int64_t count,            \
                              int columns, const type *found) {                                    \
        enum { ONE = EDDY_VECTOR_BYTES / (int)sizeof(type) };                                      \
        int wide = columns < ONE ? 1 : 8 * ONE;                                                    \
        while (wide > columns)                                                                     \
            wide /= 2;                                                                             \
        int rest = columns % wide, narrow = wide, c = 0;                                           \
        while (narrow > ONE && narrow / 2 >= rest)                                                 \
            narrow /= 2;                                                                           \
        for (; c + wide <= columns; c += wide)                                                     \
            name##_strip(wide, total + c, x + c, apart, count, found + c);                         \
        c = columns - narrow;                                                                      \
        if (rest > 0)                                                                              \
            name##_strip(narrow, total + c, x + c, apart, count, found + c);                       \
    }                                                                                              \
    static void name##_one_row(type *restrict lane, bool is_first, const from *restrict row,       \
                               int64_t columns, const type *restrict found) {                      \
        (void)found;                                                                               \
        if (is_first)                                                                              \
            for (int64_t c = 0; c < columns; c++)                                                  \
                lane[c] = VALUE((type)row[c], found[c]);                                           \
        else                                                                                       \
            for (int64_t c = 0; c < columns; c++)                                                  \
                lane[c] = OP(lane[c], VALUE((type)row[c], found[c]));                              \
    }

/* The body of a block function of the largest or the smallest. Where there is no NaN, one comparison is enough; the sum is none
 * then, unless infinities meet. */
#define EXTREME_BLOCK(type, QUICK, OP)                                                             \
    if (count >= EDDY_REDUCE_LANES) {                                                              \
        const type *restrict x = elements;                                                         \
        type lanes[EDDY_REDUCE_LANES], sums[EDDY_REDUCE_LANES];                                    \
        for (int l = 0; l < EDDY_REDUCE_LANES; l++)                                                \
            lanes[l] = sums[l] = x[l];                                                             \
        int64_t i = EDDY_REDUCE_LANES;                                                             \
        for (; i + EDDY_REDUCE_LANES <= count; i += EDDY_REDUCE_LANES) {                           \
            if (has_next)                                                                          \
                PREFETCH(x + i, EDDY_REDUCE_LANES, ahead);                                         \
            for (int l = 0; l < EDDY_REDUCE_LANES; l++) {                                          \
                lanes[l] = QUICK(lanes[l], x[i + l]);                                              \
                sums[l] += x[i + l];                                                               \
            }                                                                                      \
        }                                                                                          \
        if (i < count)                                                                             \
            EDDY_LANES (l, EDDY_REDUCE_LANES) {                                                    \
                type other = i + l < count ? x[i + l] : lanes[l];                                  \
                lanes[l] = QUICK(lanes[l], other);                                                 \
                sums[l] += other;                                                                  \
            }                                                                                      \
        for (int l = 0; l < EDDY_REDUCE_LANES / 2; l++)                                            \
            sums[l] += sums[l + EDDY_REDUCE_LANES / 2];                                            \
        int others = 0;                                                                            \
        EDDY_LANES (l, EDDY_REDUCE_LANES / 2)                                                      \
            others |= sums[l] != sums[l];                                                          \
        HALVE_LANES(lanes, QUICK);                                                                 \
        if (!others) {                                                                             \
            *(type *)result = lanes[0];                                                            \
            return;                                                                                \
        }                                                                                          \
    }                                                                                              \
    REDUCE_BLOCK(type, type, ITSELF, OP)

#define COMBINE(name, type, OP)                                                                    \
    static void name##_combine(void *into, const void *other, int64_t count) {                     \
        type *restrict a = into;                                                                   \
        const type *restrict b = other;                                                            \
        for (int64_t i = 0; i < count; i++)                                                        \
            a[i] = OP(a[i], b[i]);                                                                 \
    }

/* `each` is no constant: where gcc knows how many elements there are, the lanes lie in memory. */
#define GROUP_AND_COLUMNS(name, from, type, VALUE, OP)                                             \
    static void name##_group(const void *elements, int64_t each, void *result) {                   \
        const from *x = elements;                                                                  \
        type values[EDDY_REDUCE_GROUP];                                                            \
        for (int b = 0; b < EDDY_REDUCE_GROUP; b++)                                                \
            name##_block_ahead(x + b * each, each, EDDY_REDUCE_AHEAD / (int64_t)sizeof(from),      \
                               &values[b]);                                                        \
        for (int width = EDDY_REDUCE_GROUP / 2; width > 0; width /= 2)                             \
            for (int b = 0; b < width; b++)                                                        \
                values[b] = OP(values[2 * b], values[2 * b + 1]);                                  \
        *(type *)result = values[0];                                                               \
    }                                                                                              \
    COLUMNS(name, from, type, VALUE, OP)                                                           \
    /* Nothing was found: any array will do. */                                                    \
    static void name##_columns(void *total, const void *rows, int64_t apart, int64_t count,        \
                               int64_t columns) {                                                  \
        name##_strips(total, rows, apart, count, (int)columns, total);                             \
    }                                                                                              \
    static void name##_row(void *lane, bool is_first, const void *row, int64_t columns) {          \
        name##_one_row(lane, is_first, row, columns, NULL);                                        \
    }

/* A loop that asks for what comes next, and one that does not. */
#define BLOCK_OF(name, BODY)                                                                       \
    static void name##_block_ahead(const void *elements, int64_t count, int64_t ahead,             \
                                   void *result) {                                                 \
        const bool has_next = true;                                                                \
        BODY                                                                                       \
    }                                                                                              \
    static void name##_block(const void *elements, int64_t count, void *result) {                  \
        const bool has_next = false;                                                               \
        const int64_t ahead = 0;                                                                   \
        BODY                                                                                       \
    }

/* The same loop for both, for what is rare: elements that have been gathered are asked for again. */
#define SHARED_BLOCK_OF(name, BODY)                                                                \
    static void name##_block_ahead(const void *elements, int64_t count, int64_t ahead,             \
                                   void *result) {                                                 \
        const bool has_next = true;                                                                \
        BODY                                                                                       \
    }                                                                                              \
    static void name##_block(const void *elements, int64_t count, void *result) {                  \
        name##_block_ahead(elements, count, 0, result);                                            \
    }

#define REDUCE_OF(name, from, type, VALUE, OP)                                                     \
    SHARED_BLOCK_OF(name, REDUCE_BLOCK(from, type, VALUE, OP))                                     \
    GROUP_AND_COLUMNS(name, from, type, VALUE, OP)

/* Of f32 in f64. */
#define WIDE_OF(name, VALUE, OP, LAST)                                                             \
    BLOCK_OF(name, WIDE_BLOCK(VALUE, OP, LAST))                                                    \
    GROUP_AND_COLUMNS(name, float, double, VALUE, OP)

#define REDUCE(name, type, OP)                                                                     \
    BLOCK_OF(name, REDUCE_BLOCK(type, type, ITSELF, OP))                                           \
    GROUP_AND_COLUMNS(name, type, type, ITSELF, OP)                                                \
    COMBINE(name, type, OP)

#define EXTREME(name, type, QUICK, OP)                                                             \
    BLOCK_OF(name, EXTREME_BLOCK(type, QUICK, OP))                                                 \
    GROUP_AND_COLUMNS(name, type, type, ITSELF, OP)                                                \
    COMBINE(name, type, OP)

REDUCE(sum_f32, float, ADD)
REDUCE(sum_f64, double, ADD)
REDUCE(sum_i64, int64_t, ADD_WRAP)
REDUCE(prod_f32, float, MULTIPLY)
REDUCE(prod_f64, double, MULTIPLY)
REDUCE(prod_i64, int64_t, MULTIPLY_WRAP)
EXTREME(max_f32, float, MAX_NUMBER, MAX_REAL)
EXTREME(max_f64, double, MAX_NUMBER, MAX_REAL)
REDUCE(max_i64, int64_t, MAX_INTEGER)
REDUCE(max_truth, uint8_t, MAX_INTEGER)
EXTREME(min_f32, float, MIN_NUMBER, MIN_REAL)
EXTREME(min_f64, double, MIN_NUMBER, MIN_REAL)
REDUCE(min_i64, int64_t, MIN_INTEGER)
REDUCE(min_truth, uint8_t, MIN_INTEGER)

WIDE_OF(sum_wide, ITSELF, ADD, ADD)
WIDE_OF(prod_wide, ITSELF, MULTIPLY, multiply_last)
WIDE_OF(squares_f32, SQUARE, ADD, ADD)
REDUCE_OF(squares_f64, double, double, SQUARE, ADD)
REDUCE_OF(magnitudes_f32, float, double, MAGNITUDE, ADD)
REDUCE_OF(magnitudes_f64, double, double, MAGNITUDE, ADD)
REDUCE_OF(nonzeros_f32, float, double, IS_NONZERO, ADD)
REDUCE_OF(nonzeros_f64, double, double, IS_NONZERO, ADD)
REDUCE_OF(max_magnitude_f32, float, double, MAGNITUDE, MAX_REAL)
REDUCE_OF(max_magnitude_f64, double, double, MAGNITUDE, MAX_REAL)
REDUCE_OF(min_magnitude_f32, float, double, MAGNITUDE, MIN_REAL)
REDUCE_OF(min_magnitude_f64, double, double, MAGNITUDE, MIN_REAL)

static void power(double *to, const double *from, int64_t count, double parameter) {
    for (int64_t i = 0; i < count; i++)
        to[i] = pow(fabs(from[i]), parameter);
}

/* The columns of a second sweep. */
#define SECOND_COLUMNS(name, from, type, VALUE)                                                    \
    COLUMNS(name, from, type, VALUE, ADD)                                                          \
    static void name##_columns(void *total, const void *rows, int64_t apart, int64_t count,        \
                               int64_t columns, const void *first_sweep) {                         \
        name##_strips(total, rows, apart, count, (int)columns, first_sweep);                       \
    }                                                                                              \
    static void name##_row(void *lane, bool is_first, const void *row, int64_t columns,            \
                           const void *first_sweep) {                                              \
        name##_one_row(lane, is_first, row, columns, first_sweep);                                 \
    }

#define SECOND_OF(name, from, type, VALUE, BODY)                                                   \
    static void name##_block(const void *elements, int64_t count, const void *first_sweep,         \
                             void *result) {                                                       \
        const bool has_next = false;                                                               \
        const int64_t ahead = 0;                                                                   \
        const type found = *(const type *)first_sweep;                                             \
        BODY                                                                                       \
    }                                                                                              \
    SECOND_COLUMNS(name, from, type, VALUE)

#define SECOND(name, from, type, VALUE)                                                            \
    SECOND_OF(name, from, type, VALUE, REDUCE_BLOCK(from, type, VALUE, ADD))

SECOND_OF(variance_f32, float, double, SQUARE_DEVIATION, WIDE_BLOCK(SQUARE_DEVIATION, ADD, ADD))
SECOND(variance_f64, double, double, SQUARE_DEVIATION)
SECOND(deviation, double, double, DEVIATION)

/* A maximum that is infinite is no distance to subtract: e^x is taken as it is, which gives 0, infinity or NaN. */
static inline float exp_below_f32(float x, float max) {
    return eddy_exp_f32(x - (fabsf(max) < __builtin_inff() ? max : 0.0f));
}

static inline double exp_below_f64(double x, double max) {
    return eddy_exp_f64(x - (fabs(max) < __builtin_inf() ? max : 0.0));
}

/* Made one after another and then summed up: as a part of the sum's loop the exponential would be scalar code. */
#define LOG_SUM_EXP(name, type)                                                                    \
    static void log_sum_exp_##name##_block(const void *elements, int64_t count, const void *max,   \
                                           void *result) {                                         \
        const type *restrict x = elements;                                                         \
        const type found = *(const type *)max;                                                     \
        type powers[EDDY_REDUCE_BLOCK];                                                            \
        for (int64_t i = 0; i < count; i++)                                                        \
            powers[i] = exp_below_##name(x[i], found);                                             \
        sum_##name##_block(powers, count, result);                                                 \
    }                                                                                              \
    SECOND_COLUMNS(log_sum_exp_##name, type, type, exp_below_##name)

LOG_SUM_EXP(f32, float)
LOG_SUM_EXP(f64, double)

/* Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979. */
static void variance_merge(void *into_first, void *into_second, int64_t into_count,
                           const void *first, const void *second, int64_t count, int64_t columns) {
    double *restrict mean = into_first, *restrict square = into_second;
    const double *restrict other_mean = first, *restrict other_square = second;
    double share = (double)count / (double)(into_count + count),
           weight = (double)into_count * share;
    for (int64_t c = 0; c < columns; c++) {
        double apart = other_mean[c] - mean[c];
        mean[c] += apart * share;
        square[c] += other_square[c] + apart * apart * weight;
    }
}

/* Each sum is scaled to the larger maximum; the larger's own is not touched, so that infinities do not become NaN. */
#define LOG_SUM_EXP_MERGE(name, type)                                                              \
    static void log_sum_exp_##name##_merge(void *into_first, void *into_second,                    \
                                           int64_t into_count, const void *first,                  \
                                           const void *second, int64_t count, int64_t columns) {   \
        (void)into_count, (void)count;                                                             \
        type *restrict max = into_first, *restrict sum = into_second;                              \
        const type *restrict other_max = first, *restrict other_sum = second;                      \
        for (int64_t c = 0; c < columns; c++) {                                                    \
            type larger = MAX_REAL(max[c], other_max[c]);                                          \
            type scale = max[c] == larger ? 1 : eddy_exp_##name(max[c] - larger);                  \
            type other_scale =                                                                     \
                other_max[c] == larger ? 1 : eddy_exp_##name(other_max[c] - larger);               \
            sum[c] = sum[c] * scale + other_sum[c] * other_scale;                                  \
            max[c] = larger;                                                                       \
        }                                                                                          \
    }

LOG_SUM_EXP_MERGE(f32, float)
LOG_SUM_EXP_MERGE(f64, double)

#define HIGHER_REAL(a, b) (((a) > (b)) | (((a) != (a)) & ((b) == (b))))
#define HIGHER_INTEGER(a, b) ((a) > (b))
#define LOWER_REAL(a, b) (((a) < (b)) | (((a) != (a)) & ((b) == (b))))
#define LOWER_INTEGER(a, b) ((a) < (b))
#define SAME_REAL(a, b) (((a) == (b)) | (((a) != (a)) & ((b) != (b))))
#define SAME_INTEGER(a, b) ((a) == (b))

#define PICK(name, type, BETTER)                                                                   \
    static void name(void *best, int64_t *indices, const void *row, int64_t index,                 \
                     int64_t columns) {                                                            \
        type *restrict value = best;                                                               \
        int64_t *restrict at = indices;                                                            \
        const type *restrict x = row;                                                              \
        for (int64_t c = 0; c < columns; c++) {                                                    \
            int64_t is_better = BETTER(x[c], value[c]);                                            \
            value[c] = is_better ? x[c] : value[c];                                                \
            at[c] = is_better ? index : at[c];                                                     \
        }                                                                                          \
    }

PICK(argmax_row_f32, float, HIGHER_REAL)
PICK(argmax_row_f64, double, HIGHER_REAL)
PICK(argmax_row_i64, int64_t, HIGHER_INTEGER)
PICK(argmin_row_f32, float, LOWER_REAL)
PICK(argmin_row_f64, double, LOWER_REAL)
PICK(argmin_row_i64, int64_t, LOWER_INTEGER)

/* Lanes tell whether it is among theirs. */
#define FIND(name, type, SAME)                                                                     \
    static int64_t find_##name(const void *elements, int64_t count, const void *value) {           \
        const type *x = elements;                                                                  \
        type wanted = *(const type *)value;                                                        \
        int64_t i = 0;                                                                             \
        for (; i + EDDY_REDUCE_LANES <= count; i += EDDY_REDUCE_LANES) {                           \
            int is_here = 0;                                                                       \
            EDDY_LANES (l, EDDY_REDUCE_LANES)                                                      \
                is_here |= SAME(x[i + l], wanted);                                                 \
            if (is_here)                                                                           \
                break;                                                                             \
        }                                                                                          \
        while (!SAME(x[i], wanted))                                                                \
            i++;                                                                                   \
        return i;                                                                                  \
    }

FIND(f32, float, SAME_REAL)
FIND(f64, double, SAME_REAL)
FIND(i64, int64_t, SAME_INTEGER)

#define OPS(name)                                                                                  \
    { name##_block, name##_block_ahead, name##_group, name##_columns, name##_row, name##_combine }
/* Of an op that differs from `whole` in what it takes of an element. */
#define OPS_OF(name, whole)                                                                        \
    { name##_block, name##_block_ahead, name##_group, name##_columns, name##_row, whole##_combine }
#define PAIR_OPS(name, merge)                                                                      \
    { name##_block, name##_columns, name##_row, merge }
const eddy_reduce_blocks EDDY_ISA_NAME(eddy_cpu_reduce_blocks) = {
    .sum = {OPS(sum_f32), OPS(sum_f64), OPS(sum_i64)},
    .prod = {OPS(prod_f32), OPS(prod_f64), OPS(prod_i64)},
    .max = {OPS(max_f32), OPS(max_f64), OPS(max_i64), OPS(max_truth)},
    .min = {OPS(min_f32), OPS(min_f64), OPS(min_i64), OPS(min_truth)},
    .wide_sum = {OPS_OF(sum_wide, sum_f64), OPS(sum_f64)},
    .wide_prod = {OPS_OF(prod_wide, prod_f64), OPS(prod_f64)},
    .squares = {OPS_OF(squares_f32, sum_f64), OPS_OF(squares_f64, sum_f64)},
    .magnitudes = {OPS_OF(magnitudes_f32, sum_f64), OPS_OF(magnitudes_f64, sum_f64)},
    .nonzeros = {OPS_OF(nonzeros_f32, sum_f64), OPS_OF(nonzeros_f64, sum_f64)},
    .max_magnitude = {OPS_OF(max_magnitude_f32, max_f64), OPS_OF(max_magnitude_f64, max_f64)},
    .min_magnitude = {OPS_OF(min_magnitude_f32, min_f64), OPS_OF(min_magnitude_f64, min_f64)},
    .variance = {PAIR_OPS(variance_f32, variance_merge), PAIR_OPS(variance_f64, variance_merge)},
    .deviation = PAIR_OPS(deviation, NULL),
    .log_sum_exp = {PAIR_OPS(log_sum_exp_f32, log_sum_exp_f32_merge),
                    PAIR_OPS(log_sum_exp_f64, log_sum_exp_f64_merge)},
    .power = power,
    .argmax_row = {argmax_row_f32, argmax_row_f64, argmax_row_i64},
    .argmin_row = {argmin_row_f32, argmin_row_f64, argmin_row_i64},
    .find = {find_f32, find_f64, find_i64},
};
