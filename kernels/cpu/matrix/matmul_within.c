#include <kernels/cpu/matrix/matmul_within.h>

#include <base/number.h>
#include <kernels/cpu/kernels.h>

eddy_op_view eddy_matmul_aside(const eddy_kernel_call *call, const eddy_op_view *shaped,
                               eddy_dtype dtype, int64_t *strides) {
    eddy_op_view product = *shaped;
    strides[0] = eddy_max_i64(1, product.shape[1]);
    strides[1] = 1;
    product.strides = strides;
    product.dtype = dtype;
    product.data = call->workspace;
    return product;
}

static eddy_kernel_call inner(const eddy_kernel_call *call, const eddy_op_view *views) {
    eddy_kernel_call matmul = *call;
    matmul.kernel = &eddy_cpu_matmul;
    matmul.views = views;
    matmul.view_count = 3;
    matmul.attributes = NULL;
    return matmul;
}

eddy_status eddy_matmul_within_prepare(eddy_matmul_within *within, const eddy_kernel_call *call,
                                       const eddy_op_view *views, void *memory,
                                       eddy_kernel_plan *plan) {
    eddy_kernel_call matmul = inner(call, views);
    eddy_kernel_plan own = {.memory = memory};
    eddy_status status = eddy_kernel_prepare(&matmul, &own);
    if (status != EDDY_OK)
        return status;
    within->run = own.run;
    within->workspace_bytes = own.workspace_bytes;
    plan->workspace_bytes = within->aside_bytes + own.workspace_bytes;
    plan->cost_ps = own.cost_ps;
    plan->has_started_library = own.has_started_library;
    plan->bytes = own.bytes;
    return EDDY_OK;
}

void eddy_matmul_within_run(const eddy_matmul_within *within, const eddy_kernel_call *call,
                            const eddy_op_view *views, const void *memory) {
    eddy_kernel_call matmul = inner(call, views);
    matmul.plan = memory;
    matmul.workspace = (char *)call->workspace + within->aside_bytes;
    matmul.workspace_bytes = within->workspace_bytes;
    within->run(&matmul);
}
