/* The order in which losses are added, which depends on their count alone. For CUDA sources too. */
#ifndef EDDY_KERNELS_LOSS_TREE_H
#define EDDY_KERNELS_LOSS_TREE_H

#include <base/builtin.h>

/* Losses of a row; they are added one after another, before the rows' sums are added pairwise. */
#define EDDY_LOSS_ROW 64

/* The first rows of those of `count` losses, more than a row has: their sum is added to that of the others. */
EDDY_SCALAR int64_t eddy_loss_left_rows(int64_t count) {
    return (count / 2 + EDDY_LOSS_ROW - 1) / EDDY_LOSS_ROW;
}

#endif
