/* The sum of losses in a workspace. */
#ifndef EDDY_KERNELS_CPU_LOSS_TOTAL_H
#define EDDY_KERNELS_CPU_LOSS_TOTAL_H

#include <kernels/loss_tree.h>

/* Rows that are summed in parallel: within a row, each addition waits for the one before it. */
#define EDDY_LOSS_ROWS 4

static inline double eddy_loss_row(const double *values, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

/* Adds the rows' sums pairwise; `count` is the number of values. */
static inline double eddy_loss_pairs(const double *sums, int64_t count) {
    if (count <= EDDY_LOSS_ROW)
        return sums[0];
    int64_t half = eddy_loss_left_rows(count);
    return eddy_loss_pairs(sums, half * EDDY_LOSS_ROW) +
           eddy_loss_pairs(sums + half, count - half * EDDY_LOSS_ROW);
}

/* Sums rows, then adds the sums pairwise, in an order that depends on the count alone. The rows' sums overwrite the
 * values. */
static inline double eddy_loss_total(double *values, int64_t count) {
    if (count <= EDDY_LOSS_ROW)
        return eddy_loss_row(values, count);
    const int64_t step = (int64_t)EDDY_LOSS_ROWS * EDDY_LOSS_ROW;
    int64_t done = 0;
    double *sums = values;
    for (; done + step <= count; done += step) {
        double side[EDDY_LOSS_ROWS] = {0};
        for (int i = 0; i < EDDY_LOSS_ROW; i++)
            for (int r = 0; r < EDDY_LOSS_ROWS; r++)
                side[r] += values[done + r * EDDY_LOSS_ROW + i];
        for (int r = 0; r < EDDY_LOSS_ROWS; r++)
            *sums++ = side[r];
    }
    for (int64_t left; (left = count - done) > 0; done += EDDY_LOSS_ROW)
        *sums++ = eddy_loss_row(values + done, left < EDDY_LOSS_ROW ? left : EDDY_LOSS_ROW);
    return eddy_loss_pairs(values, count);
}

#endif
