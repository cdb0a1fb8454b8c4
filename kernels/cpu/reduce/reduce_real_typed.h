/* Reductions of f32 in f32 and of f64 in f64, included by reduce_f32_block.c and reduce_f64_block.c alone. */
#ifndef EDDY_KERNELS_CPU_REDUCE_REAL_TYPED_H
#define EDDY_KERNELS_CPU_REDUCE_REAL_TYPED_H

#define EDDY_FROM EDDY_REAL
#define EDDY_WRAPPING EDDY_REAL
#define EDDY_LOWEST ((real)-__builtin_inf())
#define EDDY_HIGHEST ((real)__builtin_inf())
#include <kernels/cpu/reduce/reduce_typed.h>
#include <kernels/math.h>

COMBINE(sum, SUM)
BLOCK(sum, ITSELF, SUM)
COLUMNS(sum, ITSELF, SUM)

COMBINE(max, LARGEST)
EXTREME_BLOCK(max, LARGEST, LARGER)
COLUMNS(max, ITSELF, LARGEST)

COMBINE(min, SMALLEST)
EXTREME_BLOCK(min, SMALLEST, SMALLER)
COLUMNS(min, ITSELF, SMALLEST)

PICK(argmax_row, LARGEST)
PICK(argmin_row, SMALLEST)
FIND()

/* ---- log of the sum of exponentials ---- */

/* A maximum that is infinite is no distance to subtract: e^x is taken as it is, which gives 0, infinity or NaN. */
INLINE real exp_below(real x, real max) {
    return EDDY_TYPED(eddy_exp)(x - (fabs((double)max) < __builtin_inf() ? max : 0));
}

/* Made one after another and then summed up: as a part of the sum's loop the exponential would be scalar code. */
static void EDDY_TYPED(log_sum_exp_block)(const void *elements, int64_t count, const void *max,
                                          void *result) {
    const real *restrict x = elements;
    const real found = *(const real *)max;
    real powers[EDDY_REDUCE_BLOCK];
    for (int64_t i = 0; i < count; i++)
        powers[i] = exp_below(x[i], found);
    EDDY_TYPED(sum_block)(powers, count, 0, result);
}

INLINE void add_powers(real *restrict sums, bool is_first, const real *restrict x, int64_t columns,
                       const real *restrict max) {
    if (is_first)
        for (int64_t c = 0; c < columns; c++)
            sums[c] = exp_below(x[c], max[c]);
    else
        for (int64_t c = 0; c < columns; c++)
            sums[c] += exp_below(x[c], max[c]);
}

static void EDDY_TYPED(log_sum_exp_row)(void *lane, bool is_first, const void *row, int64_t columns,
                                        const void *max) {
    add_powers(lane, is_first, row, columns, max);
}

/* Lanes lie in memory: beside an exponential that costs nothing. */
static void EDDY_TYPED(log_sum_exp_columns)(void *total, const void *x, int64_t apart,
                                            int64_t count, int64_t columns, const void *max) {
    real lanes[LANES][EDDY_REDUCE_COLUMNS];
    int64_t present = count < LANES ? count : LANES;
    for (int64_t r = 0; r < count; r++)
        add_powers(lanes[r % LANES], r < LANES, (const real *)x + r * apart, columns, max);
    for (int64_t width = LANES / 2; width > 0; width /= 2)
        for (int64_t l = 0; l < width && l + width < present; l++)
            combine(SUM, lanes[l], lanes[l + width], columns);
    memcpy(total, lanes[0], sizeof(real) * (size_t)columns);
}

/* Each sum is scaled to the larger maximum; the larger's own is not touched, so that infinities do not become NaN. */
static void EDDY_TYPED(log_sum_exp_merge)(void *into_first, void *into_second, int64_t into_count,
                                          const void *first, const void *second, int64_t count,
                                          int64_t columns) {
    (void)into_count, (void)count;
    real *restrict max = into_first, *restrict sum = into_second;
    const real *restrict other_max = first, *restrict other_sum = second;
    for (int64_t c = 0; c < columns; c++) {
        real larger = join(LARGEST, max[c], other_max[c]);
        real scale = max[c] == larger ? 1 : EDDY_TYPED(eddy_exp)(max[c] - larger);
        real other_scale = other_max[c] == larger ? 1 : EDDY_TYPED(eddy_exp)(other_max[c] - larger);
        sum[c] = sum[c] * scale + other_sum[c] * other_scale;
        max[c] = larger;
    }
}

const eddy_reduce_blocks EDDY_ISA_NAME(EDDY_TYPED(eddy_cpu_reduce)) = {
    .sum = OPS(sum, sum),
    .max = OPS(max, max),
    .min = OPS(min, min),
    .log_sum_exp = PAIR_OPS(log_sum_exp, EDDY_TYPED(log_sum_exp_merge)),
    .argmax_row = EDDY_TYPED(argmax_row),
    .argmin_row = EDDY_TYPED(argmin_row),
    .find = EDDY_TYPED(find),
};

#endif
