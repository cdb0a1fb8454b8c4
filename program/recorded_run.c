/* eddy_recorded_run: checks a call, and gives it memory for its numbers, outputs and key. */
#include <base/memory.h>
#include <base/status.h>
#include <program/recorded_call.h>

static eddy_status check_inputs(const eddy_calling *c) {
    for (int64_t i = 0; i < c->inputs.count; i++) {
        eddy_status status =
            eddy_tensor_check_item_shape(c->inputs.items[i], "inputs", i, c->origin);
        if (status != EDDY_OK)
            return status;
    }
    return EDDY_OK;
}

static eddy_status check_kinds(const eddy_calling *c) {
    for (int64_t i = 0; i < c->scalars.count; i++)
        if ((uint32_t)c->scalars.items[i].kind > EDDY_SCALAR_FLOAT)
            return eddy_fail(EDDY_INVALID_ARGUMENT, c->origin, "number %lld is of an unknown kind",
                             (long long)i);
    return EDDY_OK;
}

static eddy_status check_call(const eddy_calling *c) {
    if (!c->recorded)
        return eddy_fail(EDDY_INVALID_ARGUMENT, c->origin, "the recorded function is NULL");
    if (!eddy_caller_may_call(c->caller))
        return eddy_caller_refuse(c->caller, c->origin);
    eddy_status status =
        eddy_program_check_list(c->inputs.items, c->inputs.count, "inputs", c->origin);
    if (status == EDDY_OK)
        status = eddy_program_check_list(c->scalars.items, c->scalars.count, "numbers", c->origin);
    if (status != EDDY_OK)
        return status;
    if (c->inputs.count > EDDY_RECORDED_INPUTS_MOST || c->scalars.count > EDDY_RECORDED_INPUTS_MOST)
        return eddy_fail(EDDY_INVALID_ARGUMENT, c->origin,
                         "%lld inputs and %lld numbers, and the most is %d of each",
                         (long long)c->inputs.count, (long long)c->scalars.count,
                         EDDY_RECORDED_INPUTS_MOST);
    return check_kinds(c);
}

/* The arrays of a call lie in one block: its own numbers, its outputs and its key. */
static eddy_status call_with(eddy_calling *c, char *memory) {
    eddy_scalar *scalars = (eddy_scalar *)(void *)memory;
    memory += (size_t)c->scalars.count * sizeof(*scalars);
    c->outputs = (eddy_tensor **)(void *)memory;
    memory += (size_t)c->recorded->output_count * sizeof(*c->outputs);
    c->key = memory;
    /* Inside a recording its ops are a part of that, and numbers of an outer function stay its numbers. */
    if (c->caller->recorder)
        return eddy_calling_run(c, c->scalars.items);
    for (int64_t i = 0; i < c->scalars.count; i++) {
        scalars[i] = c->scalars.items[i];
        scalars[i].slot = 0;
    }
    c->scalars.items = scalars;
    c->kind_bytes = c->key_bytes = eddy_signature_key_make(c->key, c->inputs, c->scalars);
    eddy_status status = eddy_calling_read_guards(c) ? eddy_calling_choose(c)
                                                     : eddy_calling_run(c, c->scalars.items);
    eddy_guard_fini(&c->guards);
    return status;
}

static eddy_status call_in_memory(eddy_calling *c, eddy_tensor **outputs) {
    int64_t output_count = c->recorded->output_count;
    size_t bytes = (size_t)c->scalars.count * sizeof(eddy_scalar) +
                   (size_t)output_count * sizeof(eddy_tensor *) +
                   eddy_signature_key_room(c->inputs.count, c->scalars.count) +
                   EDDY_GUARD_BYTES_MOST + EDDY_PATH_BYTES_MOST;
    char *memory = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    if (!memory)
        return eddy_fail(EDDY_OUT_OF_MEMORY, c->origin, "no memory for a call");
    eddy_status status = call_with(c, memory);
    for (int64_t i = 0; i < output_count && status == EDDY_OK; i++)
        outputs[i] = c->outputs[i];
    eddy_memory_release(memory, bytes, EDDY_MEMORY_PROGRAM);
    return status;
}

eddy_status eddy_recorded_run(eddy_recorded *recorded, eddy_list inputs, eddy_scalars scalars,
                              eddy_tensor **outputs) {
    eddy_calling c = {.recorded = recorded,
                      .caller = eddy_caller_get(),
                      .origin = EDDY_ORIGIN("recorded_run"),
                      .inputs = inputs,
                      .scalars = scalars};
    eddy_status status = check_call(&c);
    if (status == EDDY_OK)
        status = check_inputs(&c);
    if (status == EDDY_OK && recorded->output_count > 0 && !outputs)
        status = eddy_fail(EDDY_INVALID_ARGUMENT, c.origin, "there is no room for the outputs");
    if (status != EDDY_OK)
        return status;
    /* The function may release it. */
    c.recorded = eddy_recorded_retain(recorded);
    status = call_in_memory(&c, outputs);
    eddy_recorded_release(&c.recorded);
    return status;
}
