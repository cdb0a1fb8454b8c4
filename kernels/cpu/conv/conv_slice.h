/* Cuts a convolution into slices that are convolutions themselves: some images each or, of few large images, some rows of
 * the output. Slices depend on shapes alone. Pools are cut in the same way as forward convolutions.
 *
 * Roles are the same in every direction: x is the input of a conv2d, y its result, w its weight. */
#ifndef EDDY_KERNELS_CPU_CONV_SLICE_H
#define EDDY_KERNELS_CPU_CONV_SLICE_H

#include <kernels/cpu/conv/conv_plan.h>

typedef enum eddy_conv_direction {
    EDDY_CONV_FORWARD, /* x, w -> y */
    EDDY_CONV_DATA,    /* y, w -> x */
    EDDY_CONV_WEIGHT,  /* x, y -> w */
} eddy_conv_direction;

/* Images image .. of x and y, with rows x_row .. and y_row .. of them: a convolution with padding `top` and `bottom`.
 * `bottom` is negative if no window reads the last rows of x. */
typedef struct eddy_conv_slice {
    int64_t image, images;
    int64_t x_row, x_rows, y_row, y_rows, top, bottom;
} eddy_conv_slice;

/* The caller sets the first three lines; the batch is not empty. */
typedef struct eddy_conv_cut {
    eddy_conv_direction direction;
    eddy_conv_window rows;
    int64_t batch, x_height, y_height;
    int64_t images_each, rows_each, row_slices, slices;
} eddy_conv_cut;

/* Cuts into at most `slices` slices. */
void eddy_conv_cut_into(eddy_conv_cut *cut, int64_t slices);
/* Cuts each image into at most `slices` slices of rows; into none where they would not be alike. */
void eddy_conv_cut_rows(eddy_conv_cut *cut, int64_t slices);
eddy_conv_slice eddy_conv_slice_of(const eddy_conv_cut *cut, int64_t number);

/* The kinds of slices in a cut: the first, those in the middle, and the last. Slices are alike if they have the same
 * geometry and differ only in their elements. */
#define EDDY_CONV_KINDS 3

typedef struct eddy_conv_kinds {
    int32_t count;
    int32_t middle, last; /* the kinds of these slices; the first slice is of kind 0 */
} eddy_conv_kinds;

/* *like receives a slice of each kind. */
eddy_conv_kinds eddy_conv_kinds_of(const eddy_conv_cut *cut, eddy_conv_slice like[EDDY_CONV_KINDS]);
/* The kind of slice `number` of the cut. */
int32_t eddy_conv_kind_of(const eddy_conv_cut *cut, const eddy_conv_kinds *kinds, int64_t number);

#endif
