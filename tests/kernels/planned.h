/* Calls of kernels planned as the interpreter does it. */
#ifndef EDDY_TESTS_KERNELS_PLANNED_H
#define EDDY_TESTS_KERNELS_PLANNED_H

#include <kernels/kernel.h>

/* A call's plan, at another place than the one that the kernel wrote it to. */
typedef struct planned_call {
    eddy_kernel_plan plan;
    _Alignas(8) char memory[EDDY_KERNEL_PLAN_BYTES];
} planned_call;

/* Plans with views that have no data, and points call->plan to what was planned. The workspace is the caller's to make. */
void planned_begin(planned_call *planned, eddy_kernel_call *call);
/* Gives back what the plan holds. */
void planned_end(planned_call *planned, const eddy_kernel_call *call);
/* Workspace, cost and whether a library was started, of a call that does not run. */
eddy_kernel_plan planned_only(const eddy_kernel_call *call);

#endif
