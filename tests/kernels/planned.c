#include "planned.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define NOISE 0xa5
#define GUARD 64

void planned_begin(planned_call *planned, eddy_kernel_call *call) {
    eddy_kernel_call without = {
        .kernel = call->kernel, .view_count = call->view_count, .attributes = call->attributes};
    eddy_op_view *views = malloc((size_t)call->view_count * sizeof(*views) + 1);
    memcpy(views, call->views, (size_t)call->view_count * sizeof(*views));
    for (int32_t i = 0; i < call->view_count; i++)
        views[i].data = NULL;
    without.views = views;
    unsigned char *memory = malloc(EDDY_KERNEL_PLAN_BYTES + GUARD);
    memset(memory, NOISE, EDDY_KERNEL_PLAN_BYTES + GUARD);
    planned->plan.memory = memory;
    cr_assert_eq(eddy_kernel_prepare(&without, &planned->plan), EDDY_OK);
    for (size_t i = planned->plan.bytes; i < EDDY_KERNEL_PLAN_BYTES + GUARD; i++)
        cr_assert_eq(memory[i], NOISE, "%s writes beyond its plan", call->kernel->name);
    memset(planned->memory, NOISE, sizeof(planned->memory));
    memcpy(planned->memory, memory, planned->plan.bytes);
    planned->plan.memory = planned->memory;
    memset(memory, NOISE, EDDY_KERNEL_PLAN_BYTES);
    free(memory);
    free(views);
    call->plan = planned->memory;
    call->workspace_bytes = planned->plan.workspace_bytes;
}

void planned_end(planned_call *planned, const eddy_kernel_call *call) {
    if (call->kernel->end)
        call->kernel->end(planned->memory);
}

eddy_kernel_plan planned_only(const eddy_kernel_call *call) {
    planned_call planned;
    eddy_kernel_call copy = *call;
    planned_begin(&planned, &copy);
    planned_end(&planned, &copy);
    return planned.plan;
}
