/* Rows of lists on CUDA devices: what the kernels get (row.cu, row.c). Plain C. */
#ifndef EDDY_KERNELS_CUDA_ROW_H
#define EDDY_KERNELS_CUDA_ROW_H

#include <kernels/cuda/parameters.h>

/* Elements of so many bits: eddy_row_get_<bits>, eddy_row_set_<bits>. */
#define EDDY_CUDA_ROWS(row) row(8) row(16) row(32) row(64)

/* The row of this number of the list, strides in bytes. Where there is none, get gives zeros, and set does nothing. */
typedef struct eddy_cuda_row {
    eddy_cuda_gate gate;
    void *list, *row;
    const int64_t *number; /* one, in the device's memory */
    int64_t rows, columns;
    int64_t list_strides[2]; /* from row to row, and within one */
    int64_t stride;          /* of the other row */
} eddy_cuda_row;

#endif
