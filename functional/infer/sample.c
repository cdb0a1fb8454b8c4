/* Random decisions. */
#include <functional/infer.h>

#include <base/dtype.h>
#include <functional/arguments.h>
#include <functional/infer/check.h>

static eddy_status like_input(eddy_infer *infer) {
    infer->outputs[0].shape = infer->inputs[0].shape;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return eddy_check_float(infer, 0);
}

static eddy_status check_probability(const eddy_infer *infer, double p) {
    if (!(p >= 0 && p <= 1))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "p is %g, which is no probability", p);
    return EDDY_OK;
}

eddy_status eddy_infer_dropout(eddy_infer *infer) {
    const eddy_attributes_dropout *attributes = infer->attributes;
    eddy_status status = check_probability(infer, attributes->p);
    return status == EDDY_OK ? like_input(infer) : status;
}

eddy_status eddy_infer_dropout_backward(eddy_infer *infer) {
    const eddy_attributes_dropout_backward *attributes = infer->attributes;
    eddy_status status = check_probability(infer, attributes->p);
    return status == EDDY_OK ? like_input(infer) : status;
}

eddy_status eddy_infer_bernoulli(eddy_infer *infer) {
    return like_input(infer);
}

eddy_status eddy_infer_multinomial(eddy_infer *infer) {
    const eddy_attributes_multinomial *attributes = infer->attributes;
    const eddy_shape *weights = &infer->inputs[0].shape;
    eddy_status status = eddy_check_float(infer, 0);
    if (status != EDDY_OK)
        return status;
    if (weights->rank != 1 && weights->rank != 2)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "weights must be [K] or [N, K]");
    int64_t classes = weights->dims[weights->rank - 1];
    if (attributes->count < 1)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "%lld are no draws",
                               (long long)attributes->count);
    if (attributes->count > classes && (!attributes->has_replacement || classes == 0))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT,
                               "%lld classes do not suffice for %lld draws", (long long)classes,
                               (long long)attributes->count);
    infer->outputs[0].shape = *weights;
    infer->outputs[0].shape.dims[weights->rank - 1] = attributes->count;
    infer->outputs[0].dtype = EDDY_I64;
    return EDDY_OK;
}

eddy_status eddy_infer_randint(eddy_infer *infer) {
    const eddy_arguments_randint *arguments = infer->attributes;
    int64_t least, largest, low = arguments->kernel.low, high = arguments->kernel.high;
    eddy_status status = eddy_check_dtype(infer, arguments->dtype);
    if (status != EDDY_OK)
        return status;
    if (eddy_dtype_category_of(arguments->dtype) != EDDY_CATEGORY_INT)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "the dtype must be an integer, not %s",
                               eddy_dtype_name(arguments->dtype));
    if (low >= high)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT,
                               "there is no number from %lld to below %lld", (long long)low,
                               (long long)high);
    eddy_dtype_range(arguments->dtype, &least, &largest);
    if (low < least || high - 1 > largest)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT,
                               "%s does not hold all numbers from %lld to below %lld",
                               eddy_dtype_name(arguments->dtype), (long long)low, (long long)high);
    infer->outputs[0].shape = arguments->shape;
    infer->outputs[0].dtype = arguments->dtype;
    return EDDY_OK;
}
