#include <kernels/cpu/chunk.h>
#include <kernels/cpu/pool/pool_plan.h>
#include <kernels/cpu/walk.h>

eddy_image eddy_image_of(const eddy_op_view *view) {
    int32_t c = view->rank - 3;
    const int64_t *shape = view->shape + c, *strides = view->strides + c;
    return (eddy_image){.data = view->data,
                        .dtype = view->dtype,
                        .images = c > 0 ? view->shape[0] : 1,
                        .channels = shape[0],
                        .height = shape[1],
                        .width = shape[2],
                        .image_stride = c > 0 ? view->strides[0] : 0,
                        .channel_stride = strides[0],
                        .row_stride = strides[1],
                        .column_stride = strides[2]};
}

void *eddy_image_at(const eddy_image *image, int64_t n, int64_t c, int64_t h, int64_t w) {
    return eddy_chunk_at(image->data, image->dtype,
                         n * image->image_stride + c * image->channel_stride +
                             h * image->row_stride + w * image->column_stride);
}

void eddy_image_prefetch_rows(const eddy_image *image, int64_t n, int64_t first, int64_t rows) {
    if (image->channel_stride != 1 || image->column_stride != image->channels)
        return;
    int64_t bytes = image->width * image->channels * eddy_dtype_size(image->dtype);
    rows = eddy_min_i64(rows, image->height - first);
    for (int64_t h = first; h < first + rows; h++)
        eddy_prefetch((uintptr_t)eddy_image_at(image, n, 0, h, 0), bytes);
}

/* Windows of one size without gaps or overlap are the windows of a plain pool. */
static eddy_pool_axis adaptive_axis(int64_t in, int64_t out) {
    bool is_even = out > 0 && in % out == 0;
    int64_t size = is_even ? in / out : eddy_pool_divide_up(in, eddy_max_i64(1, out)) + 1;
    return (eddy_pool_axis){.in = in,
                            .out = out,
                            .kernel = size,
                            .stride = size,
                            .dilation = 1,
                            .is_adaptive = !is_even};
}

eddy_pool_axis eddy_pool_axis_height(const eddy_attributes_pool *attributes, int64_t in,
                                     int64_t out) {
    if (attributes == NULL)
        return adaptive_axis(in, out);
    return (eddy_pool_axis){.in = in,
                            .out = out,
                            .kernel = attributes->kernel_size.height,
                            .stride = attributes->stride.height,
                            .padding = attributes->padding.height,
                            .dilation = attributes->dilation.height};
}

eddy_pool_axis eddy_pool_axis_width(const eddy_attributes_pool *attributes, int64_t in,
                                    int64_t out) {
    if (attributes == NULL)
        return adaptive_axis(in, out);
    return (eddy_pool_axis){.in = in,
                            .out = out,
                            .kernel = attributes->kernel_size.width,
                            .stride = attributes->stride.width,
                            .padding = attributes->padding.width,
                            .dilation = attributes->dilation.width};
}

void eddy_pool_whole(const eddy_pool_axis *axis, int64_t *begin, int64_t *end) {
    int64_t last = axis->in - 1 - (axis->kernel - 1) * axis->dilation +
                   axis->padding; /* the last start of a whole window */
    *begin = *end = 0;
    if (axis->is_adaptive || last < 0)
        return;
    *begin = eddy_min_i64(eddy_pool_divide_up(axis->padding, axis->stride), axis->out);
    *end = eddy_max_i64(*begin, eddy_min_i64(last / axis->stride + 1, axis->out));
}

eddy_pool_counting eddy_pool_counting_of(const eddy_attributes_pool *attributes) {
    if (attributes == NULL)
        return (eddy_pool_counting){.excludes_padding = true};
    return (eddy_pool_counting){attributes->divisor_override, attributes->excludes_padding};
}

double eddy_pool_divisor(const eddy_attributes_pool *attributes, const eddy_pool_axis *height,
                         const eddy_pool_axis *width, int64_t oh, int64_t ow) {
    return eddy_pool_divisor_of(eddy_pool_counting_of(attributes), height, width, oh, ow);
}
