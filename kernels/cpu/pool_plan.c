#include <kernels/cpu/chunk.h>
#include <kernels/cpu/pool_plan.h>
#include <kernels/cpu/walk.h>

eddy_image eddy_image_of(const eddy_kernel_view *view) {
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
                         n * image->image_stride + c * image->channel_stride + h * image->row_stride +
                             w * image->column_stride);
}

eddy_pool_axis eddy_pool_axis_height(const eddy_attributes_pool *attributes, int64_t in, int64_t out) {
    return (eddy_pool_axis){.in = in,
                            .out = out,
                            .kernel = attributes->kernel_size.height,
                            .stride = attributes->stride.height,
                            .padding = attributes->padding.height,
                            .dilation = attributes->dilation.height};
}

eddy_pool_axis eddy_pool_axis_width(const eddy_attributes_pool *attributes, int64_t in, int64_t out) {
    return (eddy_pool_axis){.in = in,
                            .out = out,
                            .kernel = attributes->kernel_size.width,
                            .stride = attributes->stride.width,
                            .padding = attributes->padding.width,
                            .dilation = attributes->dilation.width};
}

static int64_t divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

eddy_pool_window eddy_pool_window_of(const eddy_pool_axis *axis, int64_t o) {
    if (axis->is_adaptive) {
        int64_t first = o * axis->in / axis->out;
        return (eddy_pool_window){first, divide_up((o + 1) * axis->in, axis->out) - first};
    }
    int64_t start = o * axis->stride - axis->padding;
    int64_t skipped = start < 0 ? divide_up(-start, axis->dilation) : 0, first = start + skipped * axis->dilation;
    int64_t inside = first < axis->in ? (axis->in - 1 - first) / axis->dilation + 1 : 0;
    return (eddy_pool_window){first, eddy_min_i64(axis->kernel - skipped, inside)};
}

void eddy_pool_whole(const eddy_pool_axis *axis, int64_t *begin, int64_t *end) {
    int64_t last = axis->in - 1 - (axis->kernel - 1) * axis->dilation + axis->padding; /* where a whole one may start */
    *begin = *end = 0;
    if (axis->is_adaptive || last < 0)
        return;
    *begin = eddy_min_i64(divide_up(axis->padding, axis->stride), axis->out);
    *end = eddy_max_i64(*begin, eddy_min_i64(last / axis->stride + 1, axis->out));
}
