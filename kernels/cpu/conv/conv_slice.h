/* Cutting a convolution into slices that are convolutions themselves: some images each or, of few large images, some rows of
 * what is made. Slices follow from shapes alone. Pools are cut so too, as convolutions are forwards.
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

/* Images image .. of x and y, and of these rows x_row .. and y_row ..: a convolution whose padding is `top` and `bottom`,
 * negative where the last rows of x are seen by no window. */
typedef struct eddy_conv_slice {
    int64_t image, images;
    int64_t x_row, x_rows, y_row, y_rows, top, bottom;
} eddy_conv_slice;

/* The first three lines are set by who cuts: the batch is not empty. */
typedef struct eddy_conv_cut {
    eddy_conv_direction direction;
    eddy_conv_window rows;
    int64_t batch, x_height, y_height;
    int64_t images_each, rows_each, row_slices, slices;
} eddy_conv_cut;

/* Into so many slices, or fewer. */
void eddy_conv_cut_into(eddy_conv_cut *cut, int64_t slices);
eddy_conv_slice eddy_conv_slice_of(const eddy_conv_cut *cut, int64_t number);

/* What slices of a cut can be like: the first, those in the middle, and the last. Alike are those that do the same with other
 * elements. */
#define EDDY_CONV_KINDS 3

typedef struct eddy_conv_kinds {
    int32_t count;
    int32_t middle, last; /* the number of the kind of these; the first is of kind 0 */
} eddy_conv_kinds;

/* *like: a slice of each kind. */
eddy_conv_kinds eddy_conv_kinds_of(const eddy_conv_cut *cut, eddy_conv_slice like[EDDY_CONV_KINDS]);
/* The number of the kind that a slice of the cut is of. */
int32_t eddy_conv_kind_of(const eddy_conv_cut *cut, const eddy_conv_kinds *kinds, int64_t number);

#endif
