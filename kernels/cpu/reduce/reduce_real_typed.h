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

/* An infinite maximum is not subtracted: e^x is computed as it is, which gives 0, infinity or NaN. */
INLINE real shift_of(real max) {
    return fabs((double)max) < __builtin_inf() ? max : 0;
}

INLINE real exp_below(real x, real max) {
    return EDDY_TYPED(eddy_exp)(x - shift_of(max));
}

/* The exponentials are computed first and then summed: inside the sum's loop the exponential would be scalar code. */
static void EDDY_TYPED(log_sum_exp_block)(const void *elements, int64_t count, const void *max,
                                          void *result) {
    const real *restrict x = elements;
    const real found = *(const real *)max;
    real powers[EDDY_REDUCE_BLOCK];
    for (int64_t i = 0; i < count; i++)
        powers[i] = exp_below(x[i], found);
    EDDY_TYPED(sum_block)(powers, count, 0, result);
}

static void EDDY_TYPED(log_sum_exp_row)(void *lane, bool is_first, const void *row, int64_t columns,
                                        const void *found) {
    real *restrict sums = lane;
    const real *restrict x = row, *restrict max = found;
    for (int64_t c = 0; is_first && c < columns; c++)
        sums[c] = nothing(SUM);
    for (int64_t c = 0; c < columns; c++)
        sums[c] += exp_below(x[c], max[c]);
}

/* Where a vector of columns begins: the last vector may overlap the one before it. */
INLINE int64_t vector_begin(int64_t c, int64_t columns) {
    return columns >= ONE && columns - c < ONE ? columns - ONE : c;
}

/* Processes whole vectors, since an exponential of a few columns would be scalar code. Values beyond the columns are not
 * used. */
INLINE void add_powers(real *sums, const real *x, int64_t columns, const real *shifts) {
    for (int64_t c = 0; c < columns; c += ONE) {
        real few[ONE];
        const real *from = x + vector_begin(c, columns);
        if (columns < ONE) {
            vector some = take_some(ITSELF, x, columns, (vector){0}, (vector){0});
            memcpy(few, &some, sizeof(few));
            from = few;
        }
        EDDY_LANES_APART (l, ONE)
            sums[c + l] += EDDY_TYPED(eddy_exp)(from[l] - shifts[c + l]);
    }
}

/* The lanes are in memory, which costs little beside an exponential. They are processed one after the other, each with all
 * its rows, since all together would fill the cache. The next row is prefetched. */
static void EDDY_TYPED(log_sum_exp_columns)(void *total, const void *x, int64_t apart,
                                            int64_t count, int64_t columns, const void *max) {
    real lanes[LANES][EDDY_REDUCE_COLUMNS], shifts[EDDY_REDUCE_COLUMNS], *to = total;
    int64_t present = count < LANES ? count : LANES, wide = (columns + ONE - 1) / ONE * ONE;
    for (int64_t i = 0; i < wide; i++) {
        int64_t c = vector_begin(i / ONE * ONE, columns) + i % ONE;
        shifts[i] = c < columns ? shift_of(((const real *)max)[c]) : 0;
    }
    for (int64_t l = 0; l < present; l++) {
        for (int64_t c = 0; c < wide; c++)
            lanes[l][c] = nothing(SUM);
        for (int64_t r = l; r < count; r += LANES) {
            const real *row = (const real *)x + r * apart;
            prefetch(row, columns, apart);
            add_powers(lanes[l], row, columns, shifts);
        }
    }
    for (int64_t width = LANES / 2; width > 0; width /= 2)
        for (int64_t l = 0; l < width && l + width < present; l++)
            combine(SUM, lanes[l], lanes[l + width], wide);
    for (int64_t i = 0; i < wide; i++) {
        int64_t c = vector_begin(i / ONE * ONE, columns) + i % ONE;
        if (c < columns)
            to[c] = lanes[0][i];
    }
}

/* Each sum is scaled to the larger maximum. The sum that belongs to it is not changed, so that infinities do not become
 * NaN. */
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

/* In f64, rounded once. An infinite maximum was not subtracted. */
static void EDDY_TYPED(add_log)(void *max, const void *sum, int64_t columns) {
    real *restrict to = max;
    const real *restrict sums = sum;
    for (int64_t c = 0; c < columns; c++)
        to[c] = (real)((double)shift_of(to[c]) + eddy_log_f64((double)sums[c]));
}

const eddy_reduce_blocks EDDY_ISA_NAME(EDDY_TYPED(eddy_cpu_reduce)) = {
    .sum = OPS(sum, sum),
    .max = OPS(max, max),
    .min = OPS(min, min),
    .log_sum_exp = PAIR_OPS(log_sum_exp, EDDY_TYPED(log_sum_exp_merge)),
    .add_log = EDDY_TYPED(add_log),
    .argmax_row = EDDY_TYPED(argmax_row),
    .argmin_row = EDDY_TYPED(argmin_row),
    .find = EDDY_TYPED(find),
};

#endif
