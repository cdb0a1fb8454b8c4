#include <base/assert.h>
#include <streams/cuda/dnn_build.h>

eddy_dnn_status eddy_cuda_dnn_create(eddy_dnn_kind kind, eddy_dnn_descriptor *made) {
    EDDY_ASSERT(!*made);
    eddy_dnn_status status = eddy_cuda_dnn.descriptor_create(kind, made);
    if (status != 0)
        *made = NULL;
    return status;
}

eddy_dnn_status eddy_cuda_dnn_make(eddy_dnn_kind kind, const eddy_cuda_dnn_setting *settings,
                                   size_t count, eddy_dnn_descriptor *made) {
    eddy_dnn_status status = eddy_cuda_dnn_create(kind, made);
    for (size_t k = 0; k < count && status == 0; k++)
        status = eddy_cuda_dnn.descriptor_set(*made, settings[k].attribute, settings[k].type,
                                              settings[k].count, settings[k].elements);
    return status == 0 ? eddy_cuda_dnn.descriptor_finalize(*made) : status;
}

eddy_dnn_descriptor eddy_cuda_dnn_add(eddy_cuda_dnn_build *build, eddy_dnn_kind kind,
                                      const eddy_cuda_dnn_setting *settings, size_t count) {
    if (build->status != 0)
        return NULL;
    EDDY_ASSERT(build->count < EDDY_CUDA_DNN_PARTS);
    eddy_dnn_descriptor *made = &build->parts[build->count];
    build->status = eddy_cuda_dnn_make(kind, settings, count, made);
    build->count += *made != NULL;
    return build->status == 0 ? *made : NULL;
}

void eddy_cuda_dnn_add_operation(eddy_cuda_dnn_build *build, eddy_dnn_kind kind,
                                 const eddy_cuda_dnn_setting *settings, size_t count) {
    EDDY_ASSERT(build->operation_count < EDDY_CUDA_DNN_OPERATIONS);
    build->operations[build->operation_count++] = eddy_cuda_dnn_add(build, kind, settings, count);
}

eddy_dnn_descriptor eddy_cuda_dnn_add_tensor(eddy_cuda_dnn_build *build, eddy_cuda_dnn_place place,
                                             int64_t number, int type,
                                             const eddy_cuda_dnn_tensor *tensor,
                                             int64_t alignment) {
    static const bool yes = true;
    const eddy_cuda_dnn_setting settings[] = {
        {EDDY_DNN_TENSOR_NUMBER, EDDY_DNN_TYPE_INT64, 1, &number},
        {EDDY_DNN_TENSOR_DATA_TYPE, EDDY_DNN_TYPE_DATA_TYPE, 1, &type},
        {EDDY_DNN_TENSOR_SIZES, EDDY_DNN_TYPE_INT64, EDDY_CUDA_AXES, tensor->sizes},
        {EDDY_DNN_TENSOR_STRIDES, EDDY_DNN_TYPE_INT64, EDDY_CUDA_AXES, tensor->strides},
        {EDDY_DNN_TENSOR_ALIGNMENT, EDDY_DNN_TYPE_INT64, 1, &alignment},
        {place == EDDY_CUDA_DNN_NOWHERE ? EDDY_DNN_TENSOR_IS_VIRTUAL : EDDY_DNN_TENSOR_IS_VALUE,
         EDDY_DNN_TYPE_BOOL, 1, &yes}};
    const size_t count = sizeof(settings) / sizeof(*settings);
    return eddy_cuda_dnn_add(build, EDDY_DNN_TENSOR, settings,
                             place == EDDY_CUDA_DNN_IN_MEMORY ? count - 1 : count);
}

void eddy_cuda_dnn_forget(eddy_dnn_descriptor *descriptor) {
    if (*descriptor)
        (void)eddy_cuda_dnn.descriptor_destroy(*descriptor);
    *descriptor = NULL;
}

void eddy_cuda_dnn_build_fini(eddy_cuda_dnn_build *build) {
    while (build->count > 0)
        eddy_cuda_dnn_forget(&build->parts[--build->count]);
}
