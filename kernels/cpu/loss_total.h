/* The sum of losses that lie in a workspace. */
#ifndef EDDY_KERNELS_CPU_LOSS_TOTAL_H
#define EDDY_KERNELS_CPU_LOSS_TOTAL_H

#include <stdint.h>

/* Losses added in a row before sums are added pairwise. */
#define EDDY_LOSS_ROW 64

/* Pairwise, in an order that follows from the count alone. */
static inline double eddy_loss_total(const double *values, int64_t count) {
    if (count <= EDDY_LOSS_ROW) {
        double sum = 0;
        for (int64_t i = 0; i < count; i++)
            sum += values[i];
        return sum;
    }
    int64_t half = (count / 2 + EDDY_LOSS_ROW - 1) / EDDY_LOSS_ROW * EDDY_LOSS_ROW;
    return eddy_loss_total(values, half) + eddy_loss_total(values + half, count - half);
}

#endif
