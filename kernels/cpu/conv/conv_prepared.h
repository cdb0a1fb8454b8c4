/* Convolutions of oneDNN, prepared for one geometry each and kept (kernels/prepared.h).
 *
 * x, y and w have the roles that conv_slice.h gives them. The library works on f32 in an
 * order of its own: images channels-last or, where they lie otherwise anyway, as it likes; weights as it likes. What lies
 * otherwise, or is bf16, is brought there. Results are f32: the library's way to bf16 flushes what is denormal to 0. */
#ifndef EDDY_KERNELS_CPU_CONV_PREPARED_H
#define EDDY_KERNELS_CPU_CONV_PREPARED_H

#include <base/assert.h>
#include <kernels/cpu/conv/conv_slice.h>
#include <kernels/cpu/dnnl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct eddy_conv_strides {
    int64_t image, channel, row, column;
} eddy_conv_strides;

/* A zeroed struct to fill: its bytes are compared. */
typedef struct eddy_conv_key {
    int64_t direction;
    int64_t is_bf16; /* what is read; results are f32 */
    int64_t has_bias;
    int64_t is_free;                                /* images need not be channels-last */
    int64_t images, groups, x_channels, y_channels; /* channels of all groups */
    int64_t x_rows, x_columns, y_rows, y_columns, w_rows, w_columns;
    int64_t row_stride, column_stride, row_dilation, column_dilation;
    int64_t top, bottom, left,
        right; /* padding of x; bottom and right may be negative: what no window reaches */
    eddy_conv_strides x, y;
    int64_t w_strides[5]; /* group, y's channel, x's channel, row, column */
    /* The order of the weights, so that slices of other sizes share them: of what has been prepared under this number, which is
     * held meanwhile. 0: the library's choice. */
    int64_t w_number;
    const eddy_dnnl_desc *w_order;
} eddy_conv_key;

typedef struct eddy_conv_prepared {
    int64_t number; /* no other has it, nor will have */
    dnnl_primitive_t convolution;
    dnnl_primitive_t x_reorder, y_reorder, w_reorder; /* NULL: lies as the library has it */
    eddy_dnnl_desc x_plain, y_plain, w_plain;         /* as the operands lie */
    eddy_dnnl_desc x_own, y_own, w_own;               /* as the library has them */
    eddy_dnnl_desc bias, scratch;
    size_t x_bytes, y_bytes, w_bytes, scratch_bytes; /* of buffers; 0 where none is needed */
} eddy_conv_prepared;

/* What is prepared for a key (eddy_prepared_acquire), to be released by eddy_prepared_release. UNSUPPORTED where the library has no
 * code of its own for it (its reference, or products that we could do ourselves). */
EDDY_MUST_USE eddy_status eddy_conv_prepared_acquire(const eddy_conv_key *key,
                                                     const eddy_conv_prepared **prepared);

#endif
