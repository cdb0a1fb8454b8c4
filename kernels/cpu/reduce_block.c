#include <kernels/cpu/lanes.h>
#include <kernels/cpu/reduce_block.h>
#include <kernels/math.h>
#include <math.h>

#define ADD(a, b) ((a) + (b))
/* Wraps around: through unsigned, where that is defined. */
#define ADD_WRAP(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
/* `a` comes first: it stays where both are equal, or where it is NaN. */
#define MAX_REAL(a, b) ((((a) >= (b)) | ((a) != (a))) ? (a) : (b))
#define MIN_REAL(a, b) ((((a) <= (b)) | ((a) != (a))) ? (a) : (b))
#define MAX_INTEGER(a, b) ((a) > (b) ? (a) : (b))
#define MIN_INTEGER(a, b) ((a) < (b) ? (a) : (b))
#define MULTIPLY(a, b) ((a) * (b))
#define MULTIPLY_WRAP(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))

/* Lane arrays of a constant size stay in vector registers. */
#define REDUCE(name, type, OP)                                                                                         \
    static void name##_block(const void *elements, int64_t count, void *result) {                                      \
        const type *restrict x = elements;                                                                             \
        type lanes[EDDY_REDUCE_LANES];                                                                                 \
        int64_t present = count < EDDY_REDUCE_LANES ? count : EDDY_REDUCE_LANES;                                       \
        if (count >= EDDY_REDUCE_LANES) {                                                                              \
            for (int l = 0; l < EDDY_REDUCE_LANES; l++)                                                                \
                lanes[l] = x[l];                                                                                       \
            int64_t i = EDDY_REDUCE_LANES;                                                                             \
            for (; i + EDDY_REDUCE_LANES <= count; i += EDDY_REDUCE_LANES)                                             \
                for (int l = 0; l < EDDY_REDUCE_LANES; l++)                                                            \
                    lanes[l] = OP(lanes[l], x[i + l]);                                                                 \
            /* As many steps as lanes, so that they stay in registers. */                                              \
            EDDY_LANES (l, EDDY_REDUCE_LANES)                                                                          \
                lanes[l] = i + l < count ? OP(lanes[l], x[i + l]) : lanes[l];                                          \
            for (int l = 0; l < 16; l++)                                                                               \
                lanes[l] = OP(lanes[l], lanes[l + 16]);                                                                \
            for (int l = 0; l < 8; l++)                                                                                \
                lanes[l] = OP(lanes[l], lanes[l + 8]);                                                                 \
            for (int l = 0; l < 4; l++)                                                                                \
                lanes[l] = OP(lanes[l], lanes[l + 4]);                                                                 \
            lanes[0] = OP(lanes[0], lanes[2]);                                                                         \
            lanes[1] = OP(lanes[1], lanes[3]);                                                                         \
            *(type *)result = OP(lanes[0], lanes[1]);                                                                  \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t l = 0; l < present; l++)                                                                          \
            lanes[l] = x[l];                                                                                           \
        for (int64_t width = EDDY_REDUCE_LANES / 2; width > 0; width /= 2)                                             \
            for (int64_t l = 0; l < width && l + width < present; l++)                                                 \
                lanes[l] = OP(lanes[l], lanes[l + width]);                                                             \
        *(type *)result = lanes[0];                                                                                    \
    }                                                                                                                  \
    static void name##_rows(void *lanes, const void *rows, int64_t row_stride, int64_t first, int64_t count,           \
                            int64_t columns) {                                                                         \
        for (int64_t r = 0; r < count; r++) {                                                                          \
            type *restrict lane = (type *)lanes + (first + r) % EDDY_REDUCE_LANES * EDDY_REDUCE_COLUMNS;               \
            const type *restrict row = (const type *)rows + r * row_stride;                                            \
            if (first + r < EDDY_REDUCE_LANES)                                                                         \
                for (int64_t c = 0; c < columns; c++)                                                                  \
                    lane[c] = row[c];                                                                                  \
            else                                                                                                       \
                for (int64_t c = 0; c < columns; c++)                                                                  \
                    lane[c] = OP(lane[c], row[c]);                                                                     \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_combine(void *into, const void *other, int64_t count) {                                         \
        type *restrict a = into;                                                                                       \
        const type *restrict b = other;                                                                                \
        for (int64_t i = 0; i < count; i++)                                                                            \
            a[i] = OP(a[i], b[i]);                                                                                     \
    }

REDUCE(sum_f32, float, ADD)
REDUCE(sum_f64, double, ADD)
REDUCE(sum_i64, int64_t, ADD_WRAP)
REDUCE(prod_f32, float, MULTIPLY)
REDUCE(prod_f64, double, MULTIPLY)
REDUCE(prod_i64, int64_t, MULTIPLY_WRAP)
REDUCE(max_f32, float, MAX_REAL)
REDUCE(max_f64, double, MAX_REAL)
REDUCE(max_i64, int64_t, MAX_INTEGER)
REDUCE(max_truth, uint8_t, MAX_INTEGER)
REDUCE(min_f32, float, MIN_REAL)
REDUCE(min_f64, double, MIN_REAL)
REDUCE(min_i64, int64_t, MIN_INTEGER)
REDUCE(min_truth, uint8_t, MIN_INTEGER)

#define MAP(name, expression)                                                                                          \
    static void name(double *to, const double *from, int64_t count, double parameter) {                                \
        (void)parameter;                                                                                               \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            double x = from[i];                                                                                        \
            to[i] = expression;                                                                                        \
        }                                                                                                              \
    }

MAP(square, x *x)
MAP(absolute, fabs(x))
MAP(is_nonzero, x != 0 ? 1 : 0)
MAP(power, pow(fabs(x), parameter))

/* The second sweep and the merging of a pair; `first` is prepared once where there is one output. */
#define PAIR(name, type, SECOND)                                                                                       \
    static void name##_map(void *to, const void *from, const void *first, int64_t count) {                             \
        type *restrict y = to;                                                                                         \
        const type *restrict x = from;                                                                                 \
        const type found = *(const type *)first;                                                                       \
        for (int64_t i = 0; i < count; i++)                                                                            \
            y[i] = SECOND(x[i], found);                                                                                \
    }                                                                                                                  \
    static void name##_map_columns(void *to, const void *from, const void *first, int64_t columns) {                   \
        type *restrict y = to;                                                                                         \
        const type *restrict x = from, *restrict found = first;                                                        \
        for (int64_t c = 0; c < columns; c++)                                                                          \
            y[c] = SECOND(x[c], found[c]);                                                                             \
    }

static inline double square_deviation(double x, double mean) {
    return (x - mean) * (x - mean);
}

static inline double deviation_from(double x, double mean) {
    return x - mean;
}

/* A maximum that is infinite is no distance to subtract: e^x is taken as it is, which gives 0, infinity or NaN. */
static inline float exp_below_f32(float x, float max) {
    return eddy_exp_f32(x - (fabsf(max) < __builtin_inff() ? max : 0.0f));
}

static inline double exp_below_f64(double x, double max) {
    return eddy_exp_f64(x - (fabs(max) < __builtin_inf() ? max : 0.0));
}

PAIR(variance, double, square_deviation)
PAIR(deviation, double, deviation_from)
PAIR(log_sum_exp_f32, float, exp_below_f32)
PAIR(log_sum_exp_f64, double, exp_below_f64)

/* Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979. */
static void variance_merge(void *into_first, void *into_second, int64_t into_count, const void *first,
                           const void *second, int64_t count, int64_t columns) {
    double *restrict mean = into_first, *restrict square = into_second;
    const double *restrict other_mean = first, *restrict other_square = second;
    double share = (double)count / (double)(into_count + count), weight = (double)into_count * share;
    for (int64_t c = 0; c < columns; c++) {
        double apart = other_mean[c] - mean[c];
        mean[c] += apart * share;
        square[c] += other_square[c] + apart * apart * weight;
    }
}

/* Each sum is scaled to the larger maximum; the larger's own is not touched, so that infinities do not become NaN. */
#define LOG_SUM_EXP_MERGE(name, type)                                                                                  \
    static void log_sum_exp_##name##_merge(void *into_first, void *into_second, int64_t into_count, const void *first, \
                                           const void *second, int64_t count, int64_t columns) {                       \
        (void)into_count, (void)count;                                                                                 \
        type *restrict max = into_first, *restrict sum = into_second;                                                  \
        const type *restrict other_max = first, *restrict other_sum = second;                                          \
        for (int64_t c = 0; c < columns; c++) {                                                                        \
            type larger = MAX_REAL(max[c], other_max[c]);                                                              \
            type scale = max[c] == larger ? 1 : eddy_exp_##name(max[c] - larger);                                      \
            type other_scale = other_max[c] == larger ? 1 : eddy_exp_##name(other_max[c] - larger);                    \
            sum[c] = sum[c] * scale + other_sum[c] * other_scale;                                                      \
            max[c] = larger;                                                                                           \
        }                                                                                                              \
    }

LOG_SUM_EXP_MERGE(f32, float)
LOG_SUM_EXP_MERGE(f64, double)

#define HIGHER_REAL(a, b) (((a) > (b)) | (((a) != (a)) & ((b) == (b))))
#define HIGHER_INTEGER(a, b) ((a) > (b))
#define LOWER_REAL(a, b) (((a) < (b)) | (((a) != (a)) & ((b) == (b))))
#define LOWER_INTEGER(a, b) ((a) < (b))
#define SAME_REAL(a, b) ((a) == (b) || ((a) != (a) && (b) != (b)))
#define SAME_INTEGER(a, b) ((a) == (b))

#define PICK(name, type, BETTER)                                                                                       \
    static void name(void *best, int64_t *indices, const void *row, int64_t index, int64_t columns) {                  \
        type *restrict value = best;                                                                                   \
        int64_t *restrict at = indices;                                                                                \
        const type *restrict x = row;                                                                                  \
        for (int64_t c = 0; c < columns; c++) {                                                                        \
            int64_t is_better = BETTER(x[c], value[c]);                                                                \
            value[c] = is_better ? x[c] : value[c];                                                                    \
            at[c] = is_better ? index : at[c];                                                                         \
        }                                                                                                              \
    }

PICK(argmax_row_f32, float, HIGHER_REAL)
PICK(argmax_row_f64, double, HIGHER_REAL)
PICK(argmax_row_i64, int64_t, HIGHER_INTEGER)
PICK(argmin_row_f32, float, LOWER_REAL)
PICK(argmin_row_f64, double, LOWER_REAL)
PICK(argmin_row_i64, int64_t, LOWER_INTEGER)

#define FIND(name, type, SAME)                                                                                         \
    static int64_t find_##name(const void *elements, const void *value) {                                              \
        const type *x = elements;                                                                                      \
        type wanted = *(const type *)value;                                                                            \
        int64_t i = 0;                                                                                                 \
        while (!SAME(x[i], wanted))                                                                                    \
            i++;                                                                                                       \
        return i;                                                                                                      \
    }

FIND(f32, float, SAME_REAL)
FIND(f64, double, SAME_REAL)
FIND(i64, int64_t, SAME_INTEGER)

#define OPS(name)                                                                                                      \
    { name##_block, name##_rows, name##_combine }
#define PAIR_OPS(name)                                                                                                 \
    { name##_map, name##_map_columns, name##_merge }
const eddy_reduce_blocks EDDY_ISA_NAME(eddy_cpu_reduce_blocks) = {
    .sum = {OPS(sum_f32), OPS(sum_f64), OPS(sum_i64)},
    .prod = {OPS(prod_f32), OPS(prod_f64), OPS(prod_i64)},
    .max = {OPS(max_f32), OPS(max_f64), OPS(max_i64), OPS(max_truth)},
    .min = {OPS(min_f32), OPS(min_f64), OPS(min_i64), OPS(min_truth)},
    .variance = PAIR_OPS(variance),
    .deviation = {deviation_map, deviation_map_columns, NULL},
    .log_sum_exp = {PAIR_OPS(log_sum_exp_f32), PAIR_OPS(log_sum_exp_f64)},
    .square = square,
    .absolute = absolute,
    .is_nonzero = is_nonzero,
    .power = power,
    .argmax_row = {argmax_row_f32, argmax_row_f64, argmax_row_i64},
    .argmin_row = {argmin_row_f32, argmin_row_f64, argmin_row_i64},
    .find = {find_f32, find_f64, find_i64},
};
