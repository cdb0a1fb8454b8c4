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

void eddy_cuda_dnn_forget(eddy_dnn_descriptor *descriptor) {
    if (*descriptor)
        (void)eddy_cuda_dnn.descriptor_destroy(*descriptor);
    *descriptor = NULL;
}

void eddy_cuda_dnn_build_fini(eddy_cuda_dnn_build *build) {
    while (build->count > 0)
        eddy_cuda_dnn_forget(&build->parts[--build->count]);
}
