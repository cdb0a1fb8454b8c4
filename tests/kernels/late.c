#include "late.h"
#include "serial_team.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Behind the workspace. */
#define GUARD 64
#define NOISE 0xa5

void late_begin(late_call *late, const eddy_kernel *kernel, tensor *const *inputs,
                int32_t input_count, int32_t view_count, const void *attributes) {
    memset((void *)late, 0, sizeof(*late));
    late->error.position = INT64_MAX;
    for (int32_t i = 0; i < input_count; i++) {
        late->views[i] = (eddy_op_view){.rank = -1};
        if (inputs[i] == NULL)
            continue;
        late->views[i] = inputs[i]->view;
        late->views[i].shape = inputs[i]->shape;
        late->views[i].strides = inputs[i]->strides;
    }
    late->call = (eddy_kernel_call){.kernel = kernel,
                                    .views = late->views,
                                    .view_count = view_count,
                                    .attributes = attributes,
                                    .team = &shuffling_team,
                                    .error = &late->error};
    planned_begin(&late->planned, &late->call);
    late->call.workspace = malloc(late->call.workspace_bytes + GUARD);
    memset(late->call.workspace, NOISE, late->call.workspace_bytes + GUARD);
    kernel->count(&late->call, late->shapes);
}

void late_run(late_call *late, int32_t input_count, tensor *const *outputs) {
    for (int32_t i = input_count; i < late->call.view_count; i++) {
        late->views[i] = outputs[i - input_count]->view;
        late->views[i].shape = outputs[i - input_count]->shape;
        late->views[i].strides = outputs[i - input_count]->strides;
    }
    late->planned.plan.run(&late->call);
    late_end(late);
}

void late_end(late_call *late) {
    const unsigned char *guard =
        (const unsigned char *)late->call.workspace + late->call.workspace_bytes;
    for (int i = 0; i < GUARD; i++)
        cr_assert_eq(guard[i], NOISE, "%s writes beyond its workspace", late->call.kernel->name);
    free(late->call.workspace);
    planned_end(&late->planned, &late->call);
}
