/* Recording a kernel's failure. */
#include <kernels/kernel.h>

void eddy_kernel_fail(const eddy_kernel_call *call, eddy_status status, int64_t position, int64_t value,
                      int64_t bound) {
    eddy_kernel_error *error = call->error;
    /* Slices that fail at a higher position than one recorded before need not take the guard. */
    if (position >= eddy_load_relaxed(&error->position))
        return;
    while (eddy_exchange_acquire(&error->guard, 1u) != 0)
        eddy_pause();
    if (position < eddy_load_relaxed(&error->position)) {
        error->value = value;
        error->bound = bound;
        eddy_store_relaxed(&error->status, (int32_t)status);
        eddy_store_relaxed(&error->position, position);
    }
    eddy_store_release(&error->guard, 0u);
}
