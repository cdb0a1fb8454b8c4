#include <base/dtype.h>
#include <kernels/cuda/dnn_conv.h>
#include <string.h>

typedef enum layout { BY_ROWS, CHANNELS_LAST, LAYOUTS } layout;

/* Outermost first. */
static const int axes[LAYOUTS][EDDY_CUDA_AXES] = {
    [BY_ROWS] = {EDDY_CUDA_IMAGE, EDDY_CUDA_CHANNEL, EDDY_CUDA_ROW, EDDY_CUDA_COLUMN},
    [CHANNELS_LAST] = {EDDY_CUDA_IMAGE, EDDY_CUDA_ROW, EDDY_CUDA_COLUMN, EDDY_CUDA_CHANNEL}};

static void lay(eddy_cuda_dnn_tensor *tensor, layout as) {
    int64_t step = 1;
    for (int k = EDDY_CUDA_AXES - 1; k >= 0; k--) {
        tensor->strides[axes[as][k]] = step;
        step *= tensor->sizes[axes[as][k]];
    }
}

/* Strides of dims of one element say nothing. */
static bool lies(const eddy_cuda_dnn_tensor *tensor, layout as) {
    eddy_cuda_dnn_tensor laid = *tensor;
    lay(&laid, as);
    for (int d = 0; d < EDDY_CUDA_AXES; d++)
        if (tensor->sizes[d] > 1 && tensor->strides[d] != laid.strides[d])
            return false;
    return true;
}

static bool lie(const eddy_cuda_dnn_question *question, layout as) {
    for (int k = 0; k < EDDY_CUDA_DNN_CONV_TENSORS; k++)
        if (!lies(&question->tensors[k], as))
            return false;
    return true;
}

/* Where it may be either, the layout that all have: the library chooses by strides. */
static bool lay_all(eddy_cuda_dnn_question *question) {
    bool are_last = !lie(question, BY_ROWS) && lie(question, CHANNELS_LAST);
    for (int k = 0; k < EDDY_CUDA_DNN_CONV_TENSORS; k++) {
        eddy_cuda_dnn_tensor *tensor = &question->tensors[k];
        bool is_last = are_last || !lies(tensor, BY_ROWS);
        if (is_last && !lies(tensor, CHANNELS_LAST))
            return false;
        lay(tensor, is_last ? CHANNELS_LAST : BY_ROWS);
    }
    return true;
}

/* False: it has no elements. */
static bool read_view(const eddy_op_view *view, eddy_cuda_dnn_tensor *tensor) {
    int32_t missing = EDDY_CUDA_AXES - view->rank;
    for (int32_t d = 0; d < EDDY_CUDA_AXES; d++) {
        tensor->sizes[d] = d < missing ? 1 : view->shape[d - missing];
        tensor->strides[d] = d < missing ? 0 : view->strides[d - missing];
        if (tensor->sizes[d] == 0)
            return false;
    }
    return true;
}

/* Whether y has as many places as windows have along the axis: 0 for rows, 1 for columns. */
static bool fits(const eddy_cuda_dnn_question *question, int axis) {
    const eddy_cuda_dnn_tensor *all = question->tensors;
    const eddy_cuda_dnn_conv *conv = &question->conv;
    int d = EDDY_CUDA_ROW + axis;
    int64_t reach = (all[EDDY_CUDA_DNN_AT_WEIGHT].sizes[d] - 1) * conv->dilation[axis] + 1,
            room = all[EDDY_CUDA_DNN_AT_X].sizes[d] + 2 * conv->padding[axis];
    return room >= reach &&
           all[EDDY_CUDA_DNN_AT_Y].sizes[d] == (room - reach) / conv->stride[axis] + 1;
}

bool eddy_cuda_dnn_conv_of(eddy_cuda_dnn_way way, const eddy_op_view *x, const eddy_op_view *weight,
                           const eddy_op_view *y, const eddy_attributes_conv *attributes,
                           eddy_cuda_dnn_question *question) {
    const eddy_op_view *views[EDDY_CUDA_DNN_CONV_TENSORS] = {x, weight, y};
    eddy_cuda_dnn_conv *conv = &question->conv;
    memset(question, 0, sizeof(*question));
    if (!eddy_dtype_is_float(x->dtype))
        return false;
    for (int k = 0; k < EDDY_CUDA_DNN_CONV_TENSORS; k++)
        if (!read_view(views[k], &question->tensors[k]))
            return false;
    question->kind = EDDY_CUDA_DNN_IS_CONV;
    question->tensor_count = EDDY_CUDA_DNN_CONV_TENSORS;
    question->dtype = x->dtype;
    conv->stride[0] = attributes->stride.height;
    conv->stride[1] = attributes->stride.width;
    conv->padding[0] = attributes->padding.height;
    conv->padding[1] = attributes->padding.width;
    conv->dilation[0] = attributes->dilation.height;
    conv->dilation[1] = attributes->dilation.width;
    conv->way = way;
    return fits(question, 0) && fits(question, 1) && lay_all(question);
}
