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

static int64_t divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* Windows of one size without gaps or overlap are the windows of a plain pool. */
static eddy_pool_axis adaptive_axis(int64_t in, int64_t out) {
    bool is_even = out > 0 && in % out == 0;
    int64_t size = is_even ? in / out : divide_up(in, eddy_max_i64(1, out)) + 1;
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

eddy_pool_window eddy_pool_window_of(const eddy_pool_axis *axis, int64_t o) {
    if (axis->is_adaptive) {
        int64_t first = o * axis->in / axis->out;
        return (eddy_pool_window){first, divide_up((o + 1) * axis->in, axis->out) - first};
    }
    int64_t start = o * axis->stride - axis->padding;
    int64_t skipped = start < 0 ? -start : 0;
    if (axis->dilation > 1)
        skipped = divide_up(skipped, axis->dilation);
    int64_t first = start + skipped * axis->dilation;
    int64_t inside = axis->in - first;
    if (axis->dilation > 1)
        inside = inside > 0 ? (inside - 1) / axis->dilation + 1 : 0;
    return (eddy_pool_window){first, eddy_min_i64(axis->kernel - skipped, inside)};
}

void eddy_pool_whole(const eddy_pool_axis *axis, int64_t *begin, int64_t *end) {
    int64_t last = axis->in - 1 - (axis->kernel - 1) * axis->dilation +
                   axis->padding; /* the last start of a whole window */
    *begin = *end = 0;
    if (axis->is_adaptive || last < 0)
        return;
    *begin = eddy_min_i64(divide_up(axis->padding, axis->stride), axis->out);
    *end = eddy_max_i64(*begin, eddy_min_i64(last / axis->stride + 1, axis->out));
}

void eddy_pool_covering(const eddy_pool_axis *axis, int64_t i, int64_t *begin, int64_t *end) {
    if (axis->is_adaptive) {
        *begin = i * axis->out / axis->in;
        *end = divide_up((i + 1) * axis->out, axis->in);
        return;
    }
    int64_t from = i + axis->padding, first = from - axis->kernel + 1;
    *begin = first > 0 ? divide_up(first, axis->stride) : 0;
    *end = eddy_min_i64(axis->out, from / axis->stride + 1);
}

/* Elements of a window, including those in the padding but not those beyond it. */
static int64_t padded_count(const eddy_pool_axis *axis, int64_t o) {
    int64_t start = o * axis->stride - axis->padding;
    return eddy_min_i64(axis->kernel, axis->in + axis->padding - start);
}

double eddy_pool_divisor(const eddy_attributes_pool *attributes, const eddy_pool_axis *height,
                         const eddy_pool_axis *width, int64_t oh, int64_t ow) {
    if (attributes != NULL && attributes->divisor_override != 0)
        return (double)attributes->divisor_override;
    if (attributes != NULL && !attributes->excludes_padding)
        return (double)padded_count(height, oh) * (double)padded_count(width, ow);
    return (double)eddy_pool_window_of(height, oh).count *
           (double)eddy_pool_window_of(width, ow).count;
}
