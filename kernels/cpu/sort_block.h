/* Sorting several short lines at once, number by number: for sort_key.c's narrow records. */
#ifndef EDDY_KERNELS_CPU_SORT_BLOCK_H
#define EDDY_KERNELS_CPU_SORT_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdint.h>

/* Lines that are sorted at once. */
#define EDDY_SORT_LANES 8

typedef struct eddy_sort_blocks {
    /* numbers[i * EDDY_SORT_LANES + l] is number i of line l; each line comes out in ascending order. */
    void (*lines)(int64_t *numbers, int64_t count);
} eddy_sort_blocks;

EDDY_ISA_DECLARE(eddy_sort_blocks, eddy_cpu_sort_blocks)

#endif
