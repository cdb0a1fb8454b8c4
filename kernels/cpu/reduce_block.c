#include <kernels/cpu/reduce_block.h>

#define ADD(a, b) ((a) + (b))
/* Wraps around: through unsigned, where that is defined. */
#define ADD_WRAP(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
/* `a` comes first: it stays where both are equal, or where it is NaN. */
#define MAX_REAL(a, b) ((((a) >= (b)) | ((a) != (a))) ? (a) : (b))
#define MAX_INTEGER(a, b) ((a) > (b) ? (a) : (b))

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
            for (int64_t l = 0; i + l < count; l++)                                                                    \
                lanes[l] = OP(lanes[l], x[i + l]);                                                                     \
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
REDUCE(max_f32, float, MAX_REAL)
REDUCE(max_f64, double, MAX_REAL)
REDUCE(max_i64, int64_t, MAX_INTEGER)

#define BETTER_REAL(a, b) (((a) > (b)) | (((a) != (a)) & ((b) == (b))))
#define BETTER_INTEGER(a, b) ((a) > (b))
#define SAME_REAL(a, b) ((a) == (b) || ((a) != (a) && (b) != (b)))
#define SAME_INTEGER(a, b) ((a) == (b))

#define ARGMAX(name, type, BETTER, SAME)                                                                               \
    static void argmax_row_##name(void *best, int64_t *indices, const void *row, int64_t index, int64_t columns) {     \
        type *restrict value = best;                                                                                   \
        int64_t *restrict at = indices;                                                                                \
        const type *restrict x = row;                                                                                  \
        for (int64_t c = 0; c < columns; c++) {                                                                        \
            int64_t is_better = BETTER(x[c], value[c]);                                                                \
            value[c] = is_better ? x[c] : value[c];                                                                    \
            at[c] = is_better ? index : at[c];                                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    static int64_t find_##name(const void *elements, const void *value) {                                              \
        const type *x = elements;                                                                                      \
        type wanted = *(const type *)value;                                                                            \
        int64_t i = 0;                                                                                                 \
        while (!SAME(x[i], wanted))                                                                                    \
            i++;                                                                                                       \
        return i;                                                                                                      \
    }

ARGMAX(f32, float, BETTER_REAL, SAME_REAL)
ARGMAX(f64, double, BETTER_REAL, SAME_REAL)
ARGMAX(i64, int64_t, BETTER_INTEGER, SAME_INTEGER)

#define OPS(name)                                                                                                      \
    { name##_block, name##_rows, name##_combine }
const eddy_reduce_blocks EDDY_ISA_NAME(eddy_cpu_reduce_blocks) = {
    .sum = {OPS(sum_f32), OPS(sum_f64), OPS(sum_i64)},
    .max = {OPS(max_f32), OPS(max_f64), OPS(max_i64)},
    .argmax_row = {argmax_row_f32, argmax_row_f64, argmax_row_i64},
    .find = {find_f32, find_f64, find_i64},
};
