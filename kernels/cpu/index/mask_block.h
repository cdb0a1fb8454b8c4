/* Elements where a mask holds: others put there, found, counted. Masks are bytes, of which those hold that are not 0. */
#ifndef EDDY_KERNELS_CPU_MASK_BLOCK_H
#define EDDY_KERNELS_CPU_MASK_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdint.h>

/* out[i] = mask[i] ? *value : in[i]; strides in elements. Out is exactly in, or overlaps none. */
typedef void eddy_mask_fill(void *out, int64_t out_stride, const void *in, int64_t in_stride,
                            const uint8_t *mask, int64_t mask_stride, const void *value,
                            int64_t count);

/* out[i] = mask[i] ? the next of source : in[i], contiguous; returns how many of source it took. Source has `count` elements, which
 * are read whatever the mask says. Out is exactly in, or overlaps none. */
typedef int64_t eddy_mask_expand(void *out, const void *in, const uint8_t *mask, const void *source,
                                 int64_t count);

/* Those with a number are for elements of so many bits. */
typedef struct eddy_mask_blocks {
    eddy_mask_fill *fill_8, *fill_16, *fill_32, *fill_64;
    eddy_mask_expand *expand_8, *expand_16, *expand_32, *expand_64;
    /* The numbers of places where the mask holds, ascending; `held` has room for `count` of them. Returns how many there are. */
    int64_t (*find)(int32_t *held, const uint8_t *mask, int64_t stride, int64_t count);
    int64_t (*count)(const uint8_t *mask, int64_t count);
} eddy_mask_blocks;

EDDY_ISA_DECLARE(eddy_mask_blocks, eddy_cpu_mask_blocks)

#endif
