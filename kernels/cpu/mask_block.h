/* Choosing between elements and one value by a mask, on memory of any strides. */
#ifndef EDDY_KERNELS_CPU_MASK_BLOCK_H
#define EDDY_KERNELS_CPU_MASK_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdint.h>

/* out[i] = mask[i] ? *value : in[i]; strides in elements. Out is exactly in, or overlaps none. */
typedef void eddy_mask_fill(void *out, int64_t out_stride, const void *in, int64_t in_stride, const uint8_t *mask,
                            int64_t mask_stride, const void *value, int64_t count);

/* For elements of 1, 2, 4 and 8 bytes. */
typedef struct eddy_mask_blocks {
    eddy_mask_fill *fill_8, *fill_16, *fill_32, *fill_64;
} eddy_mask_blocks;

EDDY_ISA_DECLARE(eddy_mask_blocks, eddy_cpu_mask_blocks)

#endif
