/* Convolutions as matrix products: which elements are read and written, and which input element is multiplied with which
 * weight.
 *
 * A place is a position (row, column) in an image. The result of a group of channels at a place is the product of the
 * weights, one row for each channel, with the column of elements that the window at the place reads (K. Chellapilla, S.
 * Puri, P. Simard, "High performance convolutional neural networks for document processing", 2006). Columns are gathered
 * for a tile of places at a time (conv_gather.h). A transposed convolution is split into phases, each a convolution of its
 * own (kernels/conv.h). */
#ifndef EDDY_KERNELS_CPU_CONV_PLAN_H
#define EDDY_KERNELS_CPU_CONV_PLAN_H

#include <kernels/attributes.h>
#include <kernels/conv.h>
#include <kernels/kernel.h>

/* [N, C, H, W]; N is 1 if the view has no such dim. */
typedef struct eddy_conv_image {
    void *data;
    eddy_dtype dtype;
    int64_t batch, channels, height, width;
    int64_t batch_stride, channel_stride, row_stride, column_stride;
} eddy_conv_image;

eddy_conv_image eddy_conv_image_of(const eddy_op_view *view);

/* Weights as [group, result's channel, input's channel, KH, KW]. */
typedef struct eddy_conv_weight {
    void *data;
    eddy_dtype dtype;
    int64_t height, width;
    int64_t group_stride, to_stride, from_stride, row_stride, column_stride;
} eddy_conv_weight;

typedef struct eddy_conv_plan {
    eddy_conv_image from, to;
    eddy_conv_weight weight;
    eddy_conv_window rows, columns;
    int64_t groups, from_channels, to_channels; /* channels of a group */
    bool is_transposed;
    int64_t row_phases, column_phases;
    eddy_dtype compute;
    int64_t bytes; /* of a number of the compute type */
} eddy_conv_plan;

/* For conv2d and conv_transpose2d. They use shapes, strides and dtypes; pointers to data are only copied. */
void eddy_conv_plan_forward(eddy_conv_plan *plan, const eddy_op_view *x, const eddy_op_view *weight,
                            const eddy_op_view *out, const eddy_attributes_conv *attributes);
void eddy_conv_plan_transposed(eddy_conv_plan *plan, const eddy_op_view *x,
                               const eddy_op_view *weight, const eddy_op_view *out,
                               const eddy_attributes_conv *attributes);

/* A transposed convolution without strides is a forward convolution with reversed windows. False if the op has strides, or
 * crops more of its result than a forward convolution can. The weights of `turned` are dense and keep their dtype, one
 * of 2 or 4 bytes. The caller provides their memory; eddy_conv_plan_turn_weights fills it. */
bool eddy_conv_plan_turn(const eddy_conv_plan *plan, eddy_conv_plan *turned);
void eddy_conv_plan_turn_weights(const eddy_conv_plan *plan, const eddy_conv_plan *turned);
int64_t eddy_conv_plan_weight_count(const eddy_conv_plan *plan);

void eddy_conv_plan_phase(const eddy_conv_plan *plan, int64_t phase, eddy_conv_axis *rows,
                          eddy_conv_axis *columns);

/* A row of weights, in the order in which columns count their depth (conv_gather.h): channel `to` of a group's result,
 * channels from .. from + count - 1 of its input, at the taps of a phase. */
typedef struct eddy_conv_row {
    const eddy_conv_axis *rows, *columns;
    int64_t group, to, from, count;
    bool is_last; /* taps and, within each tap, channels */
} eddy_conv_row;
/* Copy between the weights and a row of the compute type. */
void eddy_conv_row_load(const eddy_conv_plan *plan, const eddy_conv_row *row, void *to);
void eddy_conv_row_store(const eddy_conv_plan *plan, const eddy_conv_row *row, const void *from);

/* c = a b, or with `adds` c += a b; row-major in the compute type, a [m, k], b [k, n], each transposed if its flag says
 * so. The call fails if memory is short. */
void eddy_conv_multiply(const eddy_kernel_call *call, const eddy_conv_plan *plan, bool transpose_a,
                        bool transpose_b, int64_t m, int64_t n, int64_t k, const void *a,
                        int64_t lda, const void *b, int64_t ldb, bool adds, void *c, int64_t ldc);
/* Multiply-adds of the call; a double, for estimates. */
double eddy_conv_plan_work(const eddy_conv_plan *plan);
/* Picoseconds, for gathering and for multiplying at some 80 GFLOP/s. */
int64_t eddy_conv_plan_cost(const eddy_conv_plan *plan);

/* Places of a tile, if there are `places` places in all and columns have `depth` elements. */
int64_t eddy_conv_tile_places(const eddy_conv_plan *plan, int64_t places, int64_t depth);

#endif
