/* Casts of contiguous elements, every dtype to every other. */
#ifndef EDDY_KERNELS_CPU_CAST_BLOCK_H
#define EDDY_KERNELS_CPU_CAST_BLOCK_H

#include <eddy/dtype.h>
#include <kernels/cpu/isa.h>
#include <stdint.h>

typedef void eddy_cast_fn(void *restrict target, const void *restrict source, int64_t count);

typedef struct eddy_cast_blocks {
    eddy_cast_fn *cast[EDDY_DTYPE_COUNT][EDDY_DTYPE_COUNT]; /* [to][from] */
} eddy_cast_blocks;

EDDY_ISA_DECLARE(eddy_cast_blocks, eddy_cpu_cast_blocks)

#endif
