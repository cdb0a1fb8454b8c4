/* Reductions of f32 or f64 in f64, included by reduce_wide_block.c and reduce_f64_block.c alone. */
#ifndef EDDY_KERNELS_CPU_REDUCE_WIDE_TYPED_H
#define EDDY_KERNELS_CPU_REDUCE_WIDE_TYPED_H

#include <kernels/cpu/reduce/reduce_typed.h>

/* For f64 they are those of reduce_real_typed.h. */
#ifdef EDDY_IS_WIDE
COMBINE(sum, SUM)
BLOCK(sum, ITSELF, SUM)
COLUMNS(sum, ITSELF, SUM)
COMBINE(max, LARGEST)
COMBINE(min, SMALLEST)
#endif

COMBINE(prod, PRODUCT)
BLOCK(prod, ITSELF, PRODUCT)
COLUMNS(prod, ITSELF, PRODUCT)

BLOCK(squares, SQUARE, SUM)
COLUMNS(squares, SQUARE, SUM)

BLOCK(magnitudes, MAGNITUDE, SUM)
RARE_COLUMNS(magnitudes, MAGNITUDE, SUM, sum)

BLOCK(nonzeros, NONZERO, SUM)
RARE_COLUMNS(nonzeros, NONZERO, SUM, sum)

BLOCK(max_magnitude, MAGNITUDE, LARGEST)
RARE_COLUMNS(max_magnitude, MAGNITUDE, LARGEST, max)

BLOCK(min_magnitude, MAGNITUDE, SMALLEST)
RARE_COLUMNS(min_magnitude, MAGNITUDE, SMALLEST, min)

SECOND_BLOCK(variance, SQUARE_DEVIATION)
COLUMNS(variance, SQUARE_DEVIATION, SUM)

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

#define WIDE_OPS                                                                                   \
    .sum = OPS(sum, sum), .prod = OPS(prod, prod), .squares = OPS(squares, sum),                   \
    .magnitudes = OPS(magnitudes, sum), .nonzeros = OPS(nonzeros, sum),                            \
    .max_magnitude = OPS(max_magnitude, max), .min_magnitude = OPS(min_magnitude, min),            \
    .variance = PAIR_OPS(variance, variance_merge)

#endif
