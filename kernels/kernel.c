/* Planning a call, and recording a kernel's failure. */
#include <kernels/cost.h>
#include <kernels/kernel.h>

eddy_status eddy_kernel_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_kernel *kernel = call->kernel;
    plan->run = kernel->run;
    plan->workspace_bytes = plan->bytes = 0;
    plan->has_started_library = false;
    if (kernel->prepare) {
        eddy_status status = kernel->prepare(call, plan);
        EDDY_ASSERT(plan->bytes <= EDDY_KERNEL_PLAN_BYTES);
        return status;
    }
    plan->cost_ps = eddy_cost_views_ps(call);
    return EDDY_OK;
}

void eddy_kernel_fail(const eddy_kernel_call *call, eddy_status status, int64_t position,
                      int64_t value, int64_t bound) {
    eddy_kernel_error *error = call->error;
    /* A slice that fails at a higher position than the recorded one need not take the guard. */
    if (position >= eddy_load_relaxed(&error->position))
        return;
    while (eddy_exchange_acquire(&error->guard, 1u) != 0)
        eddy_atomic_pause();
    if (position < eddy_load_relaxed(&error->position)) {
        error->value = value;
        error->bound = bound;
        eddy_store_relaxed(&error->status, (int32_t)status);
        eddy_store_relaxed(&error->position, position);
    }
    eddy_store_release(&error->guard, 0u);
}
