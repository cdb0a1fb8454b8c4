#include <kernels/cuda/fusion.h>

_Static_assert(sizeof(eddy_cuda_fusion_strided) <= 4096, "a kernel takes it as parameters");

void eddy_cuda_fusion_run(const eddy_kernel_call *call) {
    const eddy_cuda_fusion *kernel = (const eddy_cuda_fusion *)(const void *)call->kernel;
    eddy_walk walk;
    eddy_cuda_operand operands[EDDY_CUDA_FUSION_OPERANDS];
    EDDY_ASSERT(call->view_count <= EDDY_CUDA_FUSION_OPERANDS);
    eddy_walk_init(&walk, call->views[0].rank, call->views[0].shape);
    for (int32_t i = 0; i < call->view_count; i++) {
        eddy_walk_add(&walk, call->views[i].strides, 1);
        operands[i] = (eddy_cuda_operand){call->views[i].data, call->views[i].dtype};
    }
    eddy_cuda_map_fusion(call, &kernel->forms, &walk, operands, kernel->input_count,
                         call->attributes, kernel->attribute_bytes);
}
