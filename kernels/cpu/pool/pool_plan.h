/* Images and the windows of pools over them: what pools and their gradients share.
 *
 *   axis of 7, kernel 3, stride 2, padding 1        windows -1..1, 1..3, 3..5, 5..7: the first and the last are clipped
 *   axis of 7, adaptive to 3                        windows 0..2, 2..4, 4..6: floor(o in / out) .. ceil((o + 1) in / out) */
#ifndef EDDY_KERNELS_CPU_POOL_PLAN_H
#define EDDY_KERNELS_CPU_POOL_PLAN_H

#include <kernels/attributes.h>
#include <kernels/kernel.h>

/* [N, C, H, W], or [C, H, W] as one image. Strides in elements. */
typedef struct eddy_image {
    char *data;
    eddy_dtype dtype;
    int64_t images, channels, height, width;
    int64_t image_stride, channel_stride, row_stride, column_stride;
} eddy_image;

eddy_image eddy_image_of(const eddy_op_view *view);
void *eddy_image_at(const eddy_image *image, int64_t n, int64_t c, int64_t h, int64_t w);
/* Prefetches all channels of an image's rows, if the image is channels-last without gaps. */
void eddy_image_prefetch_rows(const eddy_image *image, int64_t n, int64_t first, int64_t rows);

typedef struct eddy_pool_axis {
    int64_t in, out;
    int64_t kernel, stride, padding, dilation;
    bool is_adaptive; /* windows follow from `in` and `out` */
} eddy_pool_axis;

/* Elements first, first + dilation, ..: those that are inside the image. */
typedef struct eddy_pool_window {
    int64_t first, count;
} eddy_pool_window;

/* The axes of a pool with these attributes; NULL: adaptive. */
eddy_pool_axis eddy_pool_axis_height(const eddy_attributes_pool *attributes, int64_t in,
                                     int64_t out);
eddy_pool_axis eddy_pool_axis_width(const eddy_attributes_pool *attributes, int64_t in,
                                    int64_t out);

eddy_pool_window eddy_pool_window_of(const eddy_pool_axis *axis, int64_t o);
/* Outputs *begin .. *end - 1 are those whose windows contain element i; for axes without dilation. */
void eddy_pool_covering(const eddy_pool_axis *axis, int64_t i, int64_t *begin, int64_t *end);
/* The divisor of the average over the window of row oh and column ow. */
double eddy_pool_divisor(const eddy_attributes_pool *attributes, const eddy_pool_axis *height,
                         const eddy_pool_axis *width, int64_t oh, int64_t ow);
/* Outputs *begin .. *end - 1 have whole windows, one stride apart. */
void eddy_pool_whole(const eddy_pool_axis *axis, int64_t *begin, int64_t *end);

#endif
