#include <kernels/cuda/elementwise.h>

void eddy_cuda_elementwise_run(const eddy_kernel_call *call) {
    const eddy_cuda_elementwise *kernel = (const eddy_cuda_elementwise *)(const void *)call->kernel;
    int32_t inputs = call->view_count - 1;
    const eddy_op_view *out = &call->views[inputs];
    eddy_walk walk;
    eddy_cuda_operand operands[EDDY_CUDA_ELEMENTWISE_OPERANDS];
    eddy_walk_init(&walk, out->rank, out->shape);
    eddy_walk_add(&walk, out->strides, 1);
    operands[0] = (eddy_cuda_operand){out->data, out->dtype};
    for (int32_t i = 0; i < inputs; i++) {
        eddy_walk_add(&walk, call->views[i].strides, 1);
        operands[i + 1] = (eddy_cuda_operand){call->views[i].data, call->views[i].dtype};
    }
    eddy_cuda_map(call, &kernel->forms, &walk, operands, call->attributes, kernel->attribute_bytes);
}
