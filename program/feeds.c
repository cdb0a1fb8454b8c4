#include <program/feeds.h>

#include <base/memory.h>
#include <base/status.h>
#include <interpreter/call/recorder.h>
#include <interpreter/host/transfer.h>
#include <program/program.h>
#include <string.h>

/* A copy in place of inputs[i]; the same if it is on the CPU already. */
static eddy_status bring(const eddy_run *r, int64_t i, eddy_tensor **brought) {
    eddy_tensor *input = r->inputs.items[i];
    if (!eddy_tensor_is_live(input) || input->device_kind == EDDY_DEVICE_CPU)
        return EDDY_OK;
    if (input->runtime != r->program->runtime)
        return eddy_fail(EDDY_RUNTIME_MISMATCH, r->origin,
                         "input %lld belongs to another runtime than the program", (long long)i);
    if (input->autograd && r->caller->no_grad == 0)
        return eddy_fail(EDDY_DEVICE_MISMATCH, r->origin,
                         "input %lld requires a gradient and lives on another device: pass "
                         "eddy_to_device of it",
                         (long long)i);
    eddy_status status = eddy_tensor_await_shape(input, r->origin);
    if (status != EDDY_OK)
        return status;
    status = eddy_transfer_elements(r->caller, input, EDDY_CPU, r->origin, brought);
    if (status != EDDY_OK)
        return status;
    eddy_add_relaxed(&r->program->feed_copies, (int64_t)1);
    return EDDY_OK;
}

eddy_status eddy_feeds_run(eddy_run *r, eddy_status (*run)(eddy_run *r)) {
    if (!eddy_caller_may_call(r->caller))
        return eddy_caller_refuse(r->caller, r->origin);
    eddy_status status = eddy_program_check(r->program, r->origin);
    if (status == EDDY_OK)
        status = eddy_recorder_refuse(r->caller,
                                      "programs run on the CPU: copy its inputs before the "
                                      "recording",
                                      r->origin);
    if (status != EDDY_OK)
        return status;
    size_t bytes = (size_t)r->inputs.count * sizeof(eddy_tensor *);
    eddy_tensor **items = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    if (!items)
        return eddy_fail(EDDY_OUT_OF_MEMORY, r->origin, "no memory for the inputs");
    memcpy(items, r->inputs.items, bytes);
    for (int64_t i = 0; i < r->inputs.count && status == EDDY_OK; i++)
        status = bring(r, i, &items[i]);
    eddy_list given = r->inputs;
    r->inputs.items = items;
    if (status == EDDY_OK)
        status = run(r);
    r->inputs = given;
    for (int64_t i = 0; i < given.count; i++)
        if (items[i] != given.items[i])
            eddy_tensor_drop(items[i]);
    eddy_memory_release(items, bytes, EDDY_MEMORY_PROGRAM);
    return status;
}
