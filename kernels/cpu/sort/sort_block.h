/* Sorts several short lines side by side, number by number: for narrow records (sort_key.h). */
#ifndef EDDY_KERNELS_CPU_SORT_BLOCK_H
#define EDDY_KERNELS_CPU_SORT_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdint.h>

/* Lines that are sorted side by side. */
#define EDDY_SORT_LANES 8

/* Records are compared as signed numbers, for which there are more instructions: so their top bit is inverted. */
#define EDDY_SORT_TURNED (UINT64_C(1) << 63)

typedef struct eddy_sort_blocks {
    /* numbers[i * EDDY_SORT_LANES + l] is number i of line l. Sorts each line in ascending order. */
    void (*lines)(int64_t *numbers, int64_t count);
    /* Stores the `kept` smallest numbers of each line (all are below INT64_MAX), in ascending order, at least[i *
     * EDDY_SORT_LANES + l]. */
    void (*least)(int64_t *least, int64_t kept, const int64_t *numbers, int64_t count);
    void (*keys_f32)(uint32_t *keys, const void *elements, int64_t count);
    /* Makes numbers, for lines side by side, of their narrow keys, keys[l * count + i]: records with their top bit
     * inverted. */
    void (*join)(int64_t *numbers, const uint32_t *keys, int64_t count);
} eddy_sort_blocks;

EDDY_ISA_DECLARE(eddy_sort_blocks, eddy_cpu_sort_blocks)

#endif
