/* Tensors from numbers: shape and dtype are attributes, at different offsets in several ops. */
#include <functional/infer.h>

#include <base/dtype.h>
#include <functional/arguments.h>
#include <functional/infer/check.h>
#include <functional/parameter.h>
#include <math.h>
#include <string.h>

/* The attribute of that name, which every op with this rule has. */
static const void *attribute(const eddy_infer *infer, const char *name) {
    for (int32_t i = 0; i < infer->op->attribute_count; i++)
        if (strcmp(infer->op->attributes[i].name, name) == 0)
            return (const char *)infer->attributes + infer->op->attributes[i].offset;
    EDDY_ASSERT(false);
    return NULL;
}

eddy_status eddy_infer_create(eddy_infer *infer) {
    infer->outputs[0].shape = *(const eddy_shape *)attribute(infer, "shape");
    infer->outputs[0].dtype = *(const eddy_dtype *)attribute(infer, "dtype");
    return EDDY_OK;
}

eddy_status eddy_infer_like(eddy_infer *infer) {
    infer->outputs[0].shape = infer->inputs[0].shape;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return EDDY_OK;
}

static eddy_status vector(eddy_infer *infer, int64_t count, eddy_dtype dtype) {
    infer->outputs[0].shape = (eddy_shape){.rank = 1, .dims = {count}};
    infer->outputs[0].dtype = dtype;
    return EDDY_OK;
}

static eddy_status check_not_bool(const eddy_infer *infer, eddy_dtype dtype) {
    eddy_status status = eddy_check_dtype(infer, dtype);
    if (status == EDDY_OK && dtype == EDDY_BOOL)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "the dtype cannot be bool");
    return status;
}

/* ceil((end - start) / step) in integers, exact over the whole range. */
static bool count_integers(int64_t start, int64_t end, int64_t step, int64_t *count) {
    if (start == end) {
        *count = 0;
        return true;
    }
    if ((end > start) != (step > 0))
        return false;
    uint64_t distance =
        step > 0 ? (uint64_t)end - (uint64_t)start : (uint64_t)start - (uint64_t)end;
    uint64_t size = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    uint64_t steps = distance / size + (distance % size != 0);
    *count = steps > INT64_MAX ? INT64_MAX : (int64_t)steps;
    return true;
}

eddy_status eddy_infer_arange(eddy_infer *infer) {
    const eddy_arguments_arange *arguments = infer->attributes;
    eddy_scalar start = arguments->kernel.start, end = arguments->end,
                step = arguments->kernel.step;
    eddy_status status = check_not_bool(infer, arguments->dtype);
    if (status != EDDY_OK)
        return status;
    int64_t count = 0;
    bool is_possible;
    double from = eddy_parameter_f64(start), to = eddy_parameter_f64(end),
           by = eddy_parameter_f64(step);
    if (start.kind != EDDY_SCALAR_FLOAT && end.kind != EDDY_SCALAR_FLOAT &&
        step.kind != EDDY_SCALAR_FLOAT) {
        is_possible =
            step.value.integer != 0 &&
            count_integers(start.value.integer, end.value.integer, step.value.integer, &count);
    } else {
        double steps = ceil((to - from) / by);
        is_possible = isfinite(from) && isfinite(to) && isfinite(by) && by != 0 && steps >= 0;
        count = steps >= 0x1p63 ? INT64_MAX : is_possible ? (int64_t)steps : 0;
    }
    if (!is_possible)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "step %g does not lead from %g to %g",
                               by, from, to);
    return vector(infer, count, arguments->dtype);
}

/* An end of an integer line is one of its numbers. */
static eddy_status convert_end(const eddy_infer *infer, const char *name, double *end,
                               eddy_dtype dtype) {
    eddy_scalar number = eddy_scalar_float(*end);
    if (eddy_dtype_is_float(dtype))
        return EDDY_OK;
    eddy_status status = eddy_infer_number(infer, name, &number, dtype);
    *end = eddy_parameter_f64(number);
    return status;
}

eddy_status eddy_infer_linspace(eddy_infer *infer) {
    eddy_arguments_linspace *arguments = infer->attributes;
    eddy_status status = check_not_bool(infer, arguments->dtype);
    if (status == EDDY_OK)
        status = convert_end(infer, "start", &arguments->kernel.start, arguments->dtype);
    if (status == EDDY_OK)
        status = convert_end(infer, "end", &arguments->kernel.end, arguments->dtype);
    if (status != EDDY_OK)
        return status;
    if (arguments->count < 0)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "count %lld is negative",
                               (long long)arguments->count);
    return vector(infer, arguments->count, arguments->dtype);
}

eddy_status eddy_infer_eye(eddy_infer *infer) {
    const eddy_arguments_eye *arguments = infer->attributes;
    infer->outputs[0].shape =
        (eddy_shape){.rank = 2, .dims = {arguments->rows, arguments->columns}};
    infer->outputs[0].dtype = arguments->dtype;
    return EDDY_OK;
}

eddy_status eddy_infer_random(eddy_infer *infer) {
    eddy_status status = eddy_infer_create(infer);
    eddy_dtype dtype = infer->outputs[0].dtype;
    if (status == EDDY_OK)
        status = eddy_check_dtype(infer, dtype);
    if (status == EDDY_OK && !eddy_dtype_is_float(dtype))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT,
                               "the dtype must be f32, f64, f16 or bf16, not %s",
                               eddy_dtype_name(dtype));
    return status;
}

eddy_status eddy_infer_randperm(eddy_infer *infer) {
    const eddy_arguments_randperm *arguments = infer->attributes;
    if (arguments->dtype != EDDY_I64 && arguments->dtype != EDDY_I32)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "the dtype must be i64 or i32, not %s",
                               eddy_dtype_name(arguments->dtype));
    if (arguments->count < 0 || (arguments->dtype == EDDY_I32 && arguments->count > INT32_MAX))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "count %lld does not fit %s",
                               (long long)arguments->count, eddy_dtype_name(arguments->dtype));
    return vector(infer, arguments->count, arguments->dtype);
}
