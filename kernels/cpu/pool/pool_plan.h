/* Images and the windows of pools over them (kernels/pool.h): what pools and their gradients share. */
#ifndef EDDY_KERNELS_CPU_POOL_PLAN_H
#define EDDY_KERNELS_CPU_POOL_PLAN_H

#include <kernels/attributes.h>
#include <kernels/kernel.h>
#include <kernels/pool.h>

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

/* The axes of a pool with these attributes; NULL: adaptive. */
eddy_pool_axis eddy_pool_axis_height(const eddy_attributes_pool *attributes, int64_t in,
                                     int64_t out);
eddy_pool_axis eddy_pool_axis_width(const eddy_attributes_pool *attributes, int64_t in,
                                    int64_t out);

/* Of these attributes; NULL: adaptive. */
eddy_pool_counting eddy_pool_counting_of(const eddy_attributes_pool *attributes);
/* The divisor of the average over the window of row oh and column ow. */
double eddy_pool_divisor(const eddy_attributes_pool *attributes, const eddy_pool_axis *height,
                         const eddy_pool_axis *width, int64_t oh, int64_t ow);
/* Outputs *begin .. *end - 1 have whole windows, one stride apart. */
void eddy_pool_whole(const eddy_pool_axis *axis, int64_t *begin, int64_t *end);

#endif
