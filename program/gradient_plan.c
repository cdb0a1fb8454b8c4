/* The backward passes of a recording, recorded behind its calls. */
#include <base/memory.h>
#include <base/status.h>
#include <interpreter/handle/scope.h>
#include <program/gradient.h>
#include <program/late_calls.h>

/* The root that the tensor is; root_count if it is none so far. */
static uint32_t root_of(const eddy_gradient_plan *plan, const eddy_tensor *tensor) {
    uint32_t i = 0;
    while (i < plan->root_count && plan->roots[i] != tensor->autograd)
        i++;
    return i;
}

static bool goes_back(const eddy_recording *recording, const eddy_tensor *output) {
    return output->autograd &&
           eddy_autograd_node_of(output->autograd)->recording == recording->recorder.serial;
}

/* A gradient of the output, of zeros: what passes compute here nobody sees. It was there before for the recording. */
static eddy_status make_seed(eddy_caller *caller, const eddy_tensor *output, eddy_tensor **seed) {
    eddy_spec spec = {.dtype = (eddy_dtype)output->dtype};
    eddy_tensor_shape(output, &spec.shape);
    eddy_recorder *recorder = caller->recorder;
    caller->recorder = NULL;
    eddy_status status = eddy_gradient_ops_table.zeros(&spec, eddy_tensor_device(output), seed);
    caller->recorder = recorder;
    if (status == EDDY_OK)
        eddy_tensor_retain(*seed);
    return status;
}

static eddy_status find_roots(eddy_caller *caller, const eddy_recording *recording,
                              eddy_gradient_plan *plan, eddy_list outputs, eddy_origin origin) {
    for (int64_t i = 0; i < outputs.count; i++) {
        const eddy_tensor *output = outputs.items[i];
        uint32_t root = root_of(plan, output);
        if (!goes_back(recording, output) || root < plan->root_count)
            continue;
        if (root == EDDY_GRADIENT_ROOTS_MOST)
            return eddy_fail(EDDY_UNSUPPORTED, origin, "more than %d outputs carry a gradient",
                             EDDY_GRADIENT_ROOTS_MOST);
        eddy_status status = make_seed(caller, output, &plan->seeds[root]);
        if (status != EDDY_OK)
            return status;
        plan->roots[plan->root_count++] = output->autograd;
    }
    return EDDY_OK;
}

static const eddy_tensor *output_of(const eddy_gradient_plan *plan, eddy_list outputs,
                                    uint32_t root) {
    int64_t i = 0;
    while (root_of(plan, outputs.items[i]) != root)
        i++;
    return outputs.items[i];
}

static eddy_status record_pass(eddy_recording *recording, eddy_list outputs, uint64_t roots,
                               eddy_origin origin) {
    eddy_gradient_plan *plan = recording->plan;
    eddy_gradient_pass *pass = &plan->passes[plan->pass_count];
    eddy_tensor *from[EDDY_GRADIENT_ROOTS_MOST], *seeds[EDDY_GRADIENT_ROOTS_MOST];
    int64_t count = 0;
    for (uint32_t i = 0; i < plan->root_count; i++) {
        if (!(roots >> i & 1))
            continue;
        from[count] = (eddy_tensor *)output_of(plan, outputs, i);
        seeds[count++] = plan->seeds[i];
    }
    *pass = (eddy_gradient_pass){.roots = roots, .first = recording->code.instructions.count};
    eddy_status status = eddy_backward_within(recording->recorder.serial, (eddy_list){from, count},
                                              (eddy_list){seeds, count}, origin, &pass->found);
    if (status != EDDY_OK)
        return status;
    pass->end = recording->code.instructions.count;
    plan->pass_count++;
    /* They would be drawn at the wrong time, and here they have been drawn for nothing. */
    if (recording->code.draws.count != plan->draw_count)
        return eddy_fail(EDDY_UNSUPPORTED, origin, "the backward pass draws random numbers");
    return EDDY_OK;
}

/* That of all roots first, which has found all edges. */
static eddy_status record_passes(eddy_recording *recording, eddy_list outputs, eddy_origin origin) {
    const eddy_gradient_plan *plan = recording->plan;
    uint64_t all = UINT64_MAX >> (64 - plan->root_count);
    eddy_status status = record_pass(recording, outputs, all, origin);
    bool are_few = plan->root_count <= EDDY_GRADIENT_ROOTS_FEW;
    for (uint64_t roots = 1; roots < all && are_few && status == EDDY_OK; roots++)
        status = record_pass(recording, outputs, roots, origin);
    return status;
}

static eddy_status plan_within(eddy_caller *caller, eddy_recording *recording, eddy_list outputs,
                               eddy_origin origin) {
    eddy_gradient_plan *plan = recording->plan;
    eddy_status status = find_roots(caller, recording, plan, outputs, origin);
    if (status != EDDY_OK || plan->root_count == 0)
        return status;
    if (recording->has_redirected)
        return eddy_fail(EDDY_UNSUPPORTED, origin,
                         "a recorded call writes in place to a tensor that was there before, and "
                         "a gradient goes back through it");
    return record_passes(recording, outputs, origin);
}

static bool any_gradient(eddy_list outputs) {
    for (int64_t i = 0; i < outputs.count; i++)
        if (outputs.items[i]->autograd)
            return true;
    return false;
}

eddy_status eddy_gradient_plan_make(eddy_caller *caller, eddy_recording *recording,
                                    eddy_list outputs, eddy_origin origin) {
    if (recording->status != EDDY_OK)
        return EDDY_OK;
    if (eddy_late_calls_have_late_shape(&recording->code) && any_gradient(outputs))
        return eddy_fail(EDDY_UNSUPPORTED, origin,
                         "a gradient goes back through its outputs, and the shape of a result "
                         "depends on data");
    recording->plan = eddy_memory_acquire_zeroed(sizeof(*recording->plan), EDDY_MEMORY_PROGRAM);
    if (!recording->plan)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for the backward pass");
    recording->plan->instruction_count = recording->code.instructions.count;
    recording->plan->draw_count = recording->code.draws.count;
    recording->plan->scalar_count = recording->code.scalars.count;
    eddy_scope *scope;
    eddy_status status = eddy_scope_open(caller, origin, &scope);
    if (status == EDDY_OK) {
        status = plan_within(caller, recording, outputs, origin);
        eddy_scope_end(scope);
    }
    if (status != EDDY_OK || recording->plan->root_count == 0) {
        eddy_gradient_plan_destroy(recording->plan);
        recording->plan = NULL;
    }
    return status;
}

void eddy_gradient_plan_destroy(eddy_gradient_plan *plan) {
    if (!plan)
        return;
    for (uint32_t i = 0; i < EDDY_GRADIENT_ROOTS_MOST; i++)
        if (plan->seeds[i])
            eddy_tensor_drop(plan->seeds[i]);
    for (uint32_t i = 0; i < plan->pass_count; i++)
        eddy_backward_found_fini(&plan->passes[i].found);
    eddy_memory_release(plan, sizeof(*plan), EDDY_MEMORY_PROGRAM);
}
