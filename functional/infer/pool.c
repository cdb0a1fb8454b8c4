/* Pooling. */
#include <functional/infer.h>

#include <base/dtype.h>
#include <base/shape.h>
#include <functional/arguments.h>
#include <functional/infer/check.h>
#include <math.h>

/* Input `i` is [N, C, H, W] or [C, H, W] with planes that are not empty. */
static eddy_status check_image(const eddy_infer *infer, int64_t i) {
    const eddy_shape *shape = &infer->inputs[i].shape;
    if (shape->rank != 3 && shape->rank != 4)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "%s must be [N, C, H, W] or [C, H, W]",
                               eddy_check_name(infer, i).text);
    if (shape->dims[shape->rank - 2] == 0 || shape->dims[shape->rank - 1] == 0)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "the images of %s are empty",
                               eddy_check_name(infer, i).text);
    return EDDY_OK;
}

/* Both numbers are between `least` and a bound that keeps their products below 2^62. */
static eddy_status check_pair(const eddy_infer *infer, const char *name, eddy_pair pair,
                              int64_t least) {
    if (pair.height < least || pair.width < least || pair.height > INT32_MAX ||
        pair.width > INT32_MAX)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "%s is %lld, %lld", name,
                               (long long)pair.height, (long long)pair.width);
    return EDDY_OK;
}

static bool is_default(eddy_pair pair) {
    return pair.height == 0 && pair.width == 0;
}

/* Fills in the defaults and checks each pair by itself. */
static eddy_status check_pool(const eddy_infer *infer, eddy_attributes_pool *a) {
    if (is_default(a->stride))
        a->stride = a->kernel_size;
    if (is_default(a->dilation))
        a->dilation = (eddy_pair){1, 1};
    eddy_status status = check_pair(infer, "kernel_size", a->kernel_size, 1);
    if (status == EDDY_OK)
        status = check_pair(infer, "stride", a->stride, 1);
    if (status == EDDY_OK)
        status = check_pair(infer, "padding", a->padding, 0);
    if (status == EDDY_OK)
        status = check_pair(infer, "dilation", a->dilation, 1);
    return status;
}

typedef struct axis {
    const char *name;
    int64_t in, kernel, stride, padding, dilation;
    bool is_ceil_mode;
} axis;

/* The sum of floor((step * i + first) / divisor) over i from 0 to count - 1, in as many steps as Euclid's algorithm takes (the recursion
 * of AtCoder's library, floor_sum). No argument is negative, the divisor not 0. */
static __int128 floor_sum(__int128 count, __int128 divisor, __int128 step, __int128 first) {
    __int128 sum = 0;
    for (;;) {
        sum += count * (count - 1) / 2 * (step / divisor) + count * (first / divisor);
        step %= divisor;
        first %= divisor;
        __int128 last = step * count + first, old = divisor;
        if (last < divisor)
            return sum;
        count = last / divisor;
        first = last % divisor;
        divisor = step;
        step = old;
    }
}

/* With dilation a window that begins in the padding may step over the image: if it has no element behind the padding (the first window is the
 * farthest from it), or if the first one that it has there, (o * stride - padding) modulo dilation, lies behind the image. Dilations
 * may be 2^31, so these windows are counted, not searched. */
static bool misses_image(const axis *a, int64_t out) {
    int64_t within = (a->padding + a->stride - 1) / a->stride, count = out < within ? out : within;
    if (count <= 0)
        return false;
    if ((a->padding + a->dilation - 1) / a->dilation >= a->kernel)
        return true;
    if (a->dilation <= a->in)
        return false;
    int64_t first = (a->dilation - a->padding % a->dilation) % a->dilation;
    return floor_sum(count, a->dilation, a->stride, first + a->dilation - a->in) !=
           floor_sum(count, a->dilation, a->stride, first);
}

static eddy_status count_windows(const eddy_infer *infer, const axis *a, int64_t *out) {
    int64_t span = (a->kernel - 1) * a->dilation + 1, room = a->in + 2 * a->padding - span;
    if (a->padding > span / 2)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT,
                               "the padding of the %s is %lld, more than half a window", a->name,
                               (long long)a->padding);
    if (a->is_ceil_mode)
        room += a->stride - 1;
    if (room < 0)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "windows of %s %lld do not fit into images of %lld", a->name,
                               (long long)span, (long long)a->in);
    *out = room / a->stride + 1;
    if (a->is_ceil_mode && (*out - 1) * a->stride >= a->in + a->padding)
        --*out; /* each window begins in the image or in the padding before it */
    if (misses_image(a, *out))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "a window steps over the image's %s",
                               a->name);
    return EDDY_OK;
}

/* Changes the shape of images to that of the pool's result. */
static eddy_status pool_shape(const eddy_infer *infer, const eddy_attributes_pool *a,
                              bool is_ceil_mode, eddy_shape *shape) {
    int64_t *height = &shape->dims[shape->rank - 2], *width = &shape->dims[shape->rank - 1];
    const axis down = {"height",         *height,           a->kernel_size.height,
                       a->stride.height, a->padding.height, a->dilation.height,
                       is_ceil_mode};
    const axis across = {"width",         *width,           a->kernel_size.width,
                         a->stride.width, a->padding.width, a->dilation.width,
                         is_ceil_mode};
    eddy_status status = count_windows(infer, &down, height);
    return status == EDDY_OK ? count_windows(infer, &across, width) : status;
}

eddy_status eddy_infer_max_pool2d(eddy_infer *infer) {
    eddy_arguments_max_pool2d *arguments = infer->attributes;
    eddy_status status = check_image(infer, 0);
    if (status == EDDY_OK)
        status = check_pool(infer, &arguments->kernel);
    if (status != EDDY_OK)
        return status;
    for (int32_t o = 0; o < infer->op->output_count; o++)
        infer->outputs[o].dtype = o == 0 ? infer->inputs[0].dtype : EDDY_I64;
    infer->outputs[0].shape = infer->inputs[0].shape;
    status =
        pool_shape(infer, &arguments->kernel, arguments->is_ceil_mode, &infer->outputs[0].shape);
    if (infer->op->output_count > 1)
        infer->outputs[1].shape = infer->outputs[0].shape;
    return status;
}

eddy_status eddy_infer_max_pool2d_backward(eddy_infer *infer) {
    const eddy_arguments_max_pool2d_backward *arguments = infer->attributes;
    const eddy_shape *grad = &infer->inputs[0].shape, *shape = &arguments->shape;
    eddy_status status = check_image(infer, 0);
    if (status == EDDY_OK)
        status = eddy_check_float(infer, 0);
    if (status == EDDY_OK)
        status = eddy_check_index(infer, 1);
    if (status == EDDY_OK)
        status = eddy_check_same_shape(infer, 0, 1);
    if (status != EDDY_OK)
        return status;
    bool fits = shape->rank == grad->rank && shape->dims[shape->rank - 2] > 0 &&
                shape->dims[shape->rank - 1] > 0;
    for (int32_t d = 0; fits && d < grad->rank - 2; d++)
        fits = shape->dims[d] == grad->dims[d];
    if (!fits)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "grad is no gradient of images of that shape");
    infer->outputs[0].shape = *shape;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return EDDY_OK;
}

/* Whether `grad` can be the gradient of a pool whose result has planes of `height` and `width`. */
static eddy_status check_gradient(const eddy_infer *infer, const eddy_shape *shape, int64_t height,
                                  int64_t width) {
    const eddy_shape *grad = &infer->inputs[0].shape;
    bool fits = shape->rank == grad->rank;
    for (int32_t d = 0; fits && d < grad->rank; d++)
        fits = grad->dims[d] == (d == grad->rank - 2   ? height
                                 : d == grad->rank - 1 ? width
                                                       : shape->dims[d]);
    if (!fits)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "grad is no gradient of images of that shape");
    return EDDY_OK;
}

eddy_status eddy_infer_max_pool2d_backward_from_x(eddy_infer *infer) {
    eddy_arguments_max_pool2d_backward_from_x *arguments = infer->attributes;
    eddy_shape pooled = infer->inputs[1].shape;
    eddy_status status = check_image(infer, 1);
    if (status == EDDY_OK)
        status = eddy_check_float(infer, 1);
    if (status == EDDY_OK)
        status = eddy_check_same_dtype(infer, 1, 0);
    if (status == EDDY_OK)
        status = check_pool(infer, &arguments->kernel);
    if (status == EDDY_OK)
        status = pool_shape(infer, &arguments->kernel, arguments->is_ceil_mode, &pooled);
    if (status == EDDY_OK &&
        !eddy_shape_equal(pooled.rank, pooled.dims, infer->inputs[0].shape.rank,
                          infer->inputs[0].shape.dims))
        status = eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                                 "grad is no gradient of images of that shape");
    infer->outputs[0] = infer->inputs[1];
    return status;
}

static eddy_status check_average(const eddy_infer *infer, eddy_attributes_pool *a) {
    eddy_status status = eddy_check_float(infer, 0);
    if (status == EDDY_OK)
        status = check_pool(infer, a);
    if (status == EDDY_OK && a->divisor_override < 0)
        status = eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "divisor_override is %lld",
                                 (long long)a->divisor_override);
    return status;
}

eddy_status eddy_infer_avg_pool2d(eddy_infer *infer) {
    eddy_arguments_avg_pool2d *arguments = infer->attributes;
    eddy_status status = check_image(infer, 0);
    if (status == EDDY_OK)
        status = check_average(infer, &arguments->kernel);
    if (status != EDDY_OK)
        return status;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    infer->outputs[0].shape = infer->inputs[0].shape;
    return pool_shape(infer, &arguments->kernel, arguments->is_ceil_mode, &infer->outputs[0].shape);
}

eddy_status eddy_infer_avg_pool2d_backward(eddy_infer *infer) {
    eddy_arguments_avg_pool2d_backward *arguments = infer->attributes;
    const eddy_shape *shape = &arguments->shape;
    eddy_status status = check_image(infer, 0);
    if (status == EDDY_OK)
        status = check_average(infer, &arguments->kernel);
    if (status != EDDY_OK)
        return status;
    eddy_shape pooled = *shape;
    if (shape->rank != infer->inputs[0].shape.rank)
        return check_gradient(infer, shape, 0, 0);
    status = pool_shape(infer, &arguments->kernel, arguments->is_ceil_mode, &pooled);
    if (status == EDDY_OK)
        status = check_gradient(infer, shape, pooled.dims[pooled.rank - 2],
                                pooled.dims[pooled.rank - 1]);
    infer->outputs[0].shape = *shape;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return status;
}

eddy_status eddy_infer_adaptive_avg_pool2d(eddy_infer *infer) {
    const eddy_arguments_adaptive_avg_pool2d *arguments = infer->attributes;
    eddy_status status = check_image(infer, 0);
    if (status == EDDY_OK)
        status = eddy_check_float(infer, 0);
    if (status == EDDY_OK)
        status = check_pair(infer, "output_size", arguments->output_size, 1);
    if (status != EDDY_OK)
        return status;
    eddy_shape *shape = &infer->outputs[0].shape;
    *shape = infer->inputs[0].shape;
    shape->dims[shape->rank - 2] = arguments->output_size.height;
    shape->dims[shape->rank - 1] = arguments->output_size.width;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return EDDY_OK;
}

eddy_status eddy_infer_adaptive_avg_pool2d_backward(eddy_infer *infer) {
    const eddy_arguments_adaptive_avg_pool2d_backward *arguments = infer->attributes;
    const eddy_shape *shape = &arguments->shape, *grad = &infer->inputs[0].shape;
    eddy_status status = check_image(infer, 0);
    if (status == EDDY_OK)
        status = eddy_check_float(infer, 0);
    if (status == EDDY_OK)
        status =
            check_gradient(infer, shape, grad->dims[grad->rank - 2], grad->dims[grad->rank - 1]);
    if (status == EDDY_OK && (shape->dims[shape->rank - 2] < 1 || shape->dims[shape->rank - 1] < 1))
        status = eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "grad is no gradient of empty images");
    infer->outputs[0].shape = *shape;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return status;
}

/* ---- interpolate ---- */

/* Height and width of the result; output_size 0, 0: by the scale. */
static eddy_status enlarge(const eddy_infer *infer, const eddy_attributes_interpolate *a,
                           eddy_pair output_size, eddy_shape *shape) {
    int64_t *height = &shape->dims[shape->rank - 2], *width = &shape->dims[shape->rank - 1];
    if (a->aligns_corners && a->mode != EDDY_MODE_BILINEAR)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT,
                               "aligns_corners goes with EDDY_MODE_BILINEAR");
    if (is_default(output_size) == (a->scale == 0))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT,
                               "either output_size or scale has to be given");
    if (a->scale == 0) {
        *height = output_size.height;
        *width = output_size.width;
        return check_pair(infer, "output_size", output_size, 1);
    }
    double scaled[] = {floor((double)*height * a->scale), floor((double)*width * a->scale)};
    if (!(scaled[0] >= 1 && scaled[1] >= 1 && scaled[0] <= INT32_MAX && scaled[1] <= INT32_MAX))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "scale is %g", a->scale);
    *height = (int64_t)scaled[0];
    *width = (int64_t)scaled[1];
    return EDDY_OK;
}

eddy_status eddy_infer_interpolate(eddy_infer *infer) {
    const eddy_arguments_interpolate *arguments = infer->attributes;
    eddy_status status = check_image(infer, 0);
    if (status == EDDY_OK && arguments->kernel.mode == EDDY_MODE_BILINEAR)
        status = eddy_check_float(infer, 0);
    if (status != EDDY_OK)
        return status;
    infer->outputs[0] = infer->inputs[0];
    return enlarge(infer, &arguments->kernel, arguments->output_size, &infer->outputs[0].shape);
}

eddy_status eddy_infer_interpolate_backward(eddy_infer *infer) {
    const eddy_arguments_interpolate_backward *arguments = infer->attributes;
    const eddy_shape *shape = &arguments->shape, *grad = &infer->inputs[0].shape;
    eddy_status status = check_image(infer, 0);
    if (status == EDDY_OK)
        status = eddy_check_float(infer, 0);
    if (status != EDDY_OK)
        return status;
    if (shape->rank != grad->rank)
        return check_gradient(infer, shape, 0, 0);
    if (shape->dims[shape->rank - 2] < 1 || shape->dims[shape->rank - 1] < 1)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "grad is no gradient of empty images");
    eddy_shape large = *shape;
    eddy_pair size = {grad->dims[grad->rank - 2], grad->dims[grad->rank - 1]};
    status = enlarge(infer, &arguments->kernel,
                     arguments->kernel.scale == 0 ? size : (eddy_pair){0, 0}, &large);
    if (status == EDDY_OK)
        status =
            check_gradient(infer, shape, large.dims[large.rank - 2], large.dims[large.rank - 1]);
    infer->outputs[0].shape = *shape;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return status;
}
