/* What the kernels of the grid's test are given. */
#ifndef EDDY_TESTS_FAKE_CUDA_KERNELS_GRID_SUM_H
#define EDDY_TESTS_FAKE_CUDA_KERNELS_GRID_SUM_H

typedef struct eddy_grid_sum_parameters {
    const float *numbers; /* a row for each block, as long as it has threads */
    float *totals;
    unsigned used; /* of the row; a multiple of 32 */
} eddy_grid_sum_parameters;

#endif
