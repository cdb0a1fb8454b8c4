/* Convolutions of oneDNN, each prepared for one geometry and kept (kernels/prepared.h).
 *
 * x, y and w have the roles that conv_slice.h gives them. The library works on f32 in layouts of its own. Images are
 * channels-last or, if they need not be, in the order that the library prefers; so are weights. Operands in another order
 * are converted first. */
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

/* Must be zeroed before it is filled, since its bytes are compared. */
typedef struct eddy_conv_key {
    int64_t direction;
    int64_t has_bias;
    int64_t is_winograd;                            /* by Winograd's algorithm; is_free */
    int64_t is_free;                                /* images need not be channels-last */
    int64_t images, groups, x_channels, y_channels; /* channels of all groups */
    int64_t x_rows, x_columns, y_rows, y_columns, w_rows, w_columns;
    int64_t row_stride, column_stride, row_dilation, column_dilation;
    int64_t top, bottom, left,
        right; /* padding of x; bottom and right may be negative: rows or columns that no window reads */
    eddy_conv_strides x, y;
    int64_t w_strides[5]; /* group, y's channel, x's channel, row, column */
    /* The order of the weights: that of the prepared object with this number, which the caller holds, so that slices of
     * different sizes share one packing. 0: the library chooses. */
    int64_t w_number;
    const eddy_dnnl_desc *w_order;
} eddy_conv_key;

typedef struct eddy_conv_prepared {
    int64_t number; /* unique within the process */
    dnnl_primitive_t convolution;
    dnnl_primitive_t x_reorder, y_reorder, w_reorder; /* NULL: the order is right already */
    eddy_dnnl_desc x_plain, y_plain, w_plain;         /* the layouts of the operands */
    eddy_dnnl_desc x_own, y_own, w_own;               /* the layouts that the library uses */
    eddy_dnnl_desc bias, scratch;
    size_t x_bytes, y_bytes, w_bytes, scratch_bytes; /* of buffers; 0: none is needed */
} eddy_conv_prepared;

/* The prepared object for a key (eddy_prepared_acquire); released by eddy_prepared_release. UNSUPPORTED if the library has
 * no specialised code for it (only its reference, or products that our own code does as well). */
EDDY_MUST_USE eddy_status eddy_conv_prepared_acquire(const eddy_conv_key *key,
                                                     const eddy_conv_prepared **prepared);

#endif
