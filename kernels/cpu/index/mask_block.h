/* Elements selected by a mask: replaced, found, counted. A mask consists of bytes, and holds where a byte is not 0. */
#ifndef EDDY_KERNELS_CPU_MASK_BLOCK_H
#define EDDY_KERNELS_CPU_MASK_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdint.h>

/* out[i] = mask[i] ? *value : in[i]; strides in elements. Out is exactly in, or overlaps none. */
typedef void eddy_mask_fill(void *out, int64_t out_stride, const void *in, int64_t in_stride,
                            const uint8_t *mask, int64_t mask_stride, const void *value,
                            int64_t count);

/* out[i] = mask[i] ? the next element of source : in[i], contiguous; returns the number of source elements used. Source
 * has `count` elements, which are read whatever the mask says. Out is exactly in, or overlaps none. */
typedef int64_t eddy_mask_expand(void *out, const void *in, const uint8_t *mask, const void *source,
                                 int64_t count);

/* The number in a name is the size of an element in bits. */
typedef struct eddy_mask_blocks {
    eddy_mask_fill *fill_8, *fill_16, *fill_32, *fill_64;
    eddy_mask_expand *expand_8, *expand_16, *expand_32, *expand_64;
    /* Stores the numbers of the places where the mask holds, ascending, and returns how many there are; `held` has space
     * for `count`. */
    int64_t (*find)(int32_t *held, const uint8_t *mask, int64_t stride, int64_t count);
    int64_t (*count)(const uint8_t *mask, int64_t count);
} eddy_mask_blocks;

EDDY_ISA_DECLARE(eddy_mask_blocks, eddy_cpu_mask_blocks)

#endif
