/* The getters of <eddy/tensor.h>. */
#include <base/shape.h>
#include <base/status.h>
#include <interpreter/handle/tensor.h>

int32_t eddy_rank_of(const eddy_tensor *tensor) {
    return eddy_tensor_check_shape(tensor, EDDY_ORIGIN("rank_of")) == EDDY_OK ? tensor->rank : -1;
}

eddy_shape eddy_shape_of(const eddy_tensor *tensor) {
    eddy_shape shape = {.rank = -1};
    if (eddy_tensor_check_shape(tensor, EDDY_ORIGIN("shape_of")) == EDDY_OK)
        eddy_tensor_shape(tensor, &shape);
    return shape;
}

/* The axis counted from the first; false with the error recorded. */
static bool find_axis(const eddy_tensor *tensor, int32_t axis, eddy_origin origin,
                      int32_t *result) {
    if (eddy_tensor_check_shape(tensor, origin) != EDDY_OK)
        return false;
    if (tensor->rank > 0 && eddy_shape_axis_normalize(axis, tensor->rank, result))
        return true;
    char text[EDDY_RANK_MAX * 22];
    eddy_tensor_describe(tensor, text, sizeof(text));
    eddy_fail(EDDY_OUT_OF_RANGE, origin, "%s has no axis %d", text, (int)axis);
    return false;
}

int64_t eddy_dim_of(const eddy_tensor *tensor, int32_t axis) {
    int32_t d;
    return find_axis(tensor, axis, EDDY_ORIGIN("dim_of"), &d) ? tensor->axes[d].dim : -1;
}

int64_t eddy_stride_of(const eddy_tensor *tensor, int32_t axis) {
    int32_t d;
    return find_axis(tensor, axis, EDDY_ORIGIN("stride_of"), &d) ? tensor->axes[d].stride
                                                                 : INT64_MIN;
}

eddy_status eddy_strides_of(const eddy_tensor *tensor, int64_t *strides) {
    eddy_origin origin = EDDY_ORIGIN("strides_of");
    eddy_status status = eddy_tensor_check_shape(tensor, origin);
    if (status != EDDY_OK)
        return status;
    if (!strides && tensor->rank > 0)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the array is NULL");
    for (int32_t d = 0; d < tensor->rank; d++)
        strides[d] = tensor->axes[d].stride;
    return EDDY_OK;
}

int64_t eddy_count_of(const eddy_tensor *tensor) {
    return eddy_tensor_check_shape(tensor, EDDY_ORIGIN("count_of")) == EDDY_OK ? tensor->count : -1;
}

int64_t eddy_offset_of(const eddy_tensor *tensor) {
    return eddy_tensor_check_shape(tensor, EDDY_ORIGIN("offset_of")) == EDDY_OK ? tensor->offset
                                                                                : -1;
}

eddy_dtype eddy_dtype_of(const eddy_tensor *tensor) {
    bool is_tensor = eddy_tensor_check(tensor, "tensor", EDDY_ORIGIN("dtype_of")) == EDDY_OK;
    return is_tensor ? (eddy_dtype)tensor->dtype : EDDY_DTYPE_COUNT;
}

eddy_device eddy_device_of(const eddy_tensor *tensor) {
    bool is_tensor = eddy_tensor_check(tensor, "tensor", EDDY_ORIGIN("device_of")) == EDDY_OK;
    return is_tensor ? eddy_tensor_device(tensor) : (eddy_device){EDDY_DEVICE_DEFAULT, 0};
}

eddy_runtime *eddy_runtime_of(const eddy_tensor *tensor) {
    bool is_tensor = eddy_tensor_check(tensor, "tensor", EDDY_ORIGIN("runtime_of")) == EDDY_OK;
    return is_tensor ? tensor->runtime : NULL;
}

bool eddy_is_contiguous(const eddy_tensor *tensor) {
    return eddy_tensor_check_shape(tensor, EDDY_ORIGIN("is_contiguous")) == EDDY_OK &&
           tensor->is_contiguous;
}
