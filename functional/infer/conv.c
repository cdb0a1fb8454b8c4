/* Convolutions. */
#include <functional/infer.h>

#include <base/shape.h>
#include <functional/arguments.h>
#include <functional/infer/check.h>

/* Options and sizes of windows stay below this, so that spans of windows do not overflow. */
#define NUMBER_MAX INT32_MAX

typedef struct window {
    int64_t size, stride, padding, dilation;
} window;

static eddy_status check_pair(const eddy_infer *infer, const char *name, const eddy_pair *pair,
                              int64_t least) {
    if (pair->height < least || pair->width < least || pair->height > NUMBER_MAX ||
        pair->width > NUMBER_MAX)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "%s is [%lld, %lld]", name,
                               (long long)pair->height, (long long)pair->width);
    return EDDY_OK;
}

/* Fills in the defaults. */
static eddy_status check_options(const eddy_infer *infer, eddy_attributes_conv *a) {
    if (a->stride.height == 0 && a->stride.width == 0)
        a->stride = (eddy_pair){1, 1};
    if (a->dilation.height == 0 && a->dilation.width == 0)
        a->dilation = (eddy_pair){1, 1};
    if (a->groups == 0)
        a->groups = 1;
    eddy_status status = check_pair(infer, "stride", &a->stride, 1);
    if (status == EDDY_OK)
        status = check_pair(infer, "dilation", &a->dilation, 1);
    if (status == EDDY_OK)
        status = check_pair(infer, "padding", &a->padding, 0);
    if (status == EDDY_OK && (a->groups < 1 || a->groups > NUMBER_MAX))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "groups is %lld",
                               (long long)a->groups);
    return status;
}

static eddy_status check_dtypes(const eddy_infer *infer) {
    eddy_status status = eddy_check_float(infer, 0);
    for (int64_t i = 1; i < infer->input_count && status == EDDY_OK; i++)
        if (!infer->inputs[i].is_absent)
            status = eddy_check_same_dtype(infer, 0, i);
    return status;
}

static eddy_status check_image(const eddy_infer *infer, int64_t i) {
    int32_t rank = infer->inputs[i].shape.rank;
    if (rank != 3 && rank != 4)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "%s must have shape [C, H, W] or [N, C, H, W]",
                               eddy_check_name(infer, i).text);
    return EDDY_OK;
}

/* The dim at `from_last` before the last. */
static int64_t dim(const eddy_shape *shape, int32_t from_last) {
    return shape->dims[shape->rank - 1 - from_last];
}

static void set_dim(eddy_shape *shape, int32_t from_last, int64_t size) {
    shape->dims[shape->rank - 1 - from_last] = size;
}

static window window_of(const eddy_attributes_conv *a, const eddy_pair *kernel, bool is_height) {
    if (is_height)
        return (window){kernel->height, a->stride.height, a->padding.height, a->dilation.height};
    return (window){kernel->width, a->stride.width, a->padding.width, a->dilation.width};
}

/* Places of the window along an axis: *count. */
static eddy_status slide(const eddy_infer *infer, const window *w, int64_t size, int64_t *count) {
    int64_t span = w->dilation * (w->size - 1) + 1, padded = size + 2 * w->padding;
    if (span > padded)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "a window that spans %lld does not fit into %lld", (long long)span,
                               (long long)padded);
    *count = (padded - span) / w->stride + 1;
    return EDDY_OK;
}

/* What places of a window make along an axis. */
static eddy_status spread(const eddy_infer *infer, const window *w, int64_t count, int64_t more,
                          int64_t *size) {
    int64_t reach;
    if (__builtin_mul_overflow(count - 1, w->stride, &reach) ||
        __builtin_add_overflow(reach, w->dilation * (w->size - 1) + more + 1 - 2 * w->padding,
                               size))
        return eddy_infer_fail(infer, EDDY_SIZE_OVERFLOW, "the result does not fit into 63 bits");
    if (*size < 0)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "padding cuts off more than the result has");
    return EDDY_OK;
}

/* The operands x, weight and bias: channels of x at axis `x_axis` of weight, those of the result at the other. Sets
 * *kernel, and in outputs[0] all but height and width. */
static eddy_status check_operands(eddy_infer *infer, const eddy_attributes_conv *a, int32_t x_axis,
                                  eddy_pair *kernel) {
    const eddy_shape *x = &infer->inputs[0].shape, *weight = &infer->inputs[1].shape;
    const eddy_spec *bias = &infer->inputs[2];
    eddy_status status = check_image(infer, 0);
    if (status != EDDY_OK)
        return status;
    if (weight->rank != 4)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "weight must have rank 4");
    *kernel = (eddy_pair){weight->dims[2], weight->dims[3]};
    if (kernel->height < 1 || kernel->width < 1 || kernel->height > NUMBER_MAX ||
        kernel->width > NUMBER_MAX)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "weight has windows of %lld by %lld",
                               (long long)kernel->height, (long long)kernel->width);
    bool is_transposed = x_axis == 0;
    int64_t channels = weight->dims[1], made;
    if (__builtin_mul_overflow(channels, a->groups, &channels))
        return eddy_infer_fail(infer, EDDY_SIZE_OVERFLOW, "the channels do not fit into 63 bits");
    made = is_transposed ? channels : weight->dims[0];
    channels = is_transposed ? weight->dims[0] : channels;
    if (dim(x, 2) != channels)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "x has %lld channels, weight is for %lld", (long long)dim(x, 2),
                               (long long)channels);
    if (weight->dims[0] % a->groups != 0)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "%lld channels do not make %lld groups",
                               (long long)weight->dims[0], (long long)a->groups);
    if (!bias->is_absent && (bias->shape.rank != 1 || bias->shape.dims[0] != made))
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "bias must have shape [%lld]",
                               (long long)made);
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    infer->outputs[0].shape = *x;
    set_dim(&infer->outputs[0].shape, 2, made);
    return EDDY_OK;
}

eddy_status eddy_infer_conv2d(eddy_infer *infer) {
    eddy_arguments_conv2d *arguments = infer->attributes;
    eddy_attributes_conv *a = &arguments->kernel;
    eddy_pair kernel;
    eddy_status status = check_dtypes(infer);
    if (status == EDDY_OK)
        status = check_options(infer, a);
    if (status == EDDY_OK)
        status = check_operands(infer, a, 1, &kernel);
    for (int32_t d = 0; d < 2 && status == EDDY_OK; d++) {
        window w = window_of(a, &kernel, d == 1);
        int64_t count = 0;
        status = slide(infer, &w, dim(&infer->inputs[0].shape, d), &count);
        if (status == EDDY_OK)
            set_dim(&infer->outputs[0].shape, d, count);
    }
    return status;
}

eddy_status eddy_infer_conv_transpose2d(eddy_infer *infer) {
    eddy_arguments_conv_transpose2d *arguments = infer->attributes;
    eddy_attributes_conv *a = &arguments->kernel;
    const eddy_pair *more = &arguments->output_padding;
    eddy_pair kernel;
    eddy_status status = check_dtypes(infer);
    if (status == EDDY_OK)
        status = check_options(infer, a);
    if (status == EDDY_OK)
        status = check_pair(infer, "output_padding", more, 0);
    if (status == EDDY_OK)
        status = check_operands(infer, a, 0, &kernel);
    if (status != EDDY_OK)
        return status;
    if ((more->height >= a->stride.height && more->height >= a->dilation.height) ||
        (more->width >= a->stride.width && more->width >= a->dilation.width))
        return eddy_infer_fail(
            infer, EDDY_INVALID_ARGUMENT,
            "output_padding [%lld, %lld] is less than neither stride nor dilation",
            (long long)more->height, (long long)more->width);
    for (int32_t d = 0; d < 2 && status == EDDY_OK; d++) {
        window w = window_of(a, &kernel, d == 1);
        int64_t size = 0;
        status = spread(infer, &w, dim(&infer->inputs[0].shape, d),
                        d == 1 ? more->height : more->width, &size);
        if (status == EDDY_OK)
            set_dim(&infer->outputs[0].shape, d, size);
    }
    return status;
}

eddy_status eddy_infer_conv2d_backward_weight(eddy_infer *infer) {
    eddy_arguments_conv2d_backward_weight *arguments = infer->attributes;
    eddy_attributes_conv *a = &arguments->kernel;
    const eddy_shape *grad = &infer->inputs[0].shape, *x = &infer->inputs[1].shape;
    eddy_status status = check_dtypes(infer);
    if (status == EDDY_OK)
        status = check_options(infer, a);
    if (status == EDDY_OK)
        status = check_pair(infer, "kernel_size", &arguments->kernel_size, 1);
    if (status == EDDY_OK)
        status = check_image(infer, 0);
    if (status == EDDY_OK)
        status = check_image(infer, 1);
    if (status != EDDY_OK)
        return status;
    if (grad->rank != x->rank || (x->rank == 4 && grad->dims[0] != x->dims[0]))
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "grad and x must be as many images");
    if (dim(x, 2) % a->groups != 0 || dim(grad, 2) % a->groups != 0)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "channels do not make %lld groups",
                               (long long)a->groups);
    for (int32_t d = 0; d < 2; d++) {
        window w = window_of(a, &arguments->kernel_size, d == 1);
        int64_t count = 0;
        status = slide(infer, &w, dim(x, d), &count);
        if (status != EDDY_OK)
            return status;
        if (dim(grad, d) > count)
            return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "grad has %lld %s, the result %lld",
                                   (long long)dim(grad, d), d == 1 ? "rows" : "columns",
                                   (long long)count);
    }
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    infer->outputs[0].shape =
        EDDY_SHAPE(dim(grad, 2), dim(x, 2) / a->groups, arguments->kernel_size.height,
                   arguments->kernel_size.width);
    return EDDY_OK;
}
