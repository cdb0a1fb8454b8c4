#include <program/recorded_call.h>

#include <base/memory.h>
#include <base/status.h>
#include <interpreter/tape/autograd.h>
#include <program/gradient.h>
#include <program/quiet.h>
#include <stdio.h>

#define NAME_BYTES 32

/* ---- running the function ---- */

static eddy_status check_outputs(const eddy_calling *c) {
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < c->recorded->output_count && status == EDDY_OK; i++) {
        const eddy_tensor *output = c->outputs[i];
        if (!output || eddy_tensor_is_none(output))
            status =
                eddy_fail(EDDY_INVALID_ARGUMENT, c->origin, "the function has left output %lld %s",
                          (long long)i, output ? "EDDY_NONE" : "NULL");
        else
            status = eddy_tensor_check_item(output, "outputs", i, c->origin);
    }
    return status;
}

eddy_status eddy_calling_run(eddy_calling *c, const eddy_scalar *scalars) {
    eddy_recorded_call call = {.size = sizeof(call),
                               .inputs = c->inputs,
                               .scalars = scalars,
                               .scalar_count = c->scalars.count,
                               .outputs = c->outputs,
                               .output_count = c->recorded->output_count};
    for (int64_t i = 0; i < call.output_count; i++)
        c->outputs[i] = NULL;
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    eddy_status status = c->recorded->body(c->recorded->context, &call);
    eddy_outcome_end(&outcome);
    c->has_failed = outcome.first != EDDY_OK;
    if (status == EDDY_OK)
        return check_outputs(c);
    /* What failed has said so; a status of the function's own is recorded here. */
    return c->has_failed
               ? status
               : eddy_fail(status, c->origin, "the function failed: %s", eddy_status_text(status));
}

/* ---- recording the function ---- */

static bool any_output_gradient(const eddy_calling *c) {
    for (int64_t i = 0; i < c->recorded->output_count; i++)
        if (c->outputs[i]->autograd)
            return true;
    return false;
}

static bool any_input_gradient(const eddy_calling *c) {
    for (int64_t i = 0; i < c->inputs.count; i++)
        if (c->inputs.items[i]->autograd && c->caller->no_grad == 0)
            return true;
    return false;
}

/* Whether gradients may go back through a replay by recorded passes. A pass among the calls leaves them their way if it has changed no gradient that the tape keeps, and has not
 * gone on to what an input was computed from. */
static bool may_plan(const eddy_calling *c, const eddy_recording *recording) {
    return !recording->recorder.has_gone_back ||
           (recording->kept.count == 0 && !any_input_gradient(c));
}

/* The recording is open, and what it has computed is the call's result whatever comes of it. */
static void plan_quietly(eddy_calling *c, eddy_recording *recording) {
    char reason[EDDY_RECORDING_REASON_BYTES];
    eddy_recording_judge(recording, reason, sizeof(reason));
    if (reason[0] || c->caller->no_grad > 0 || !may_plan(c, recording))
        return;
    eddy_quiet q;
    eddy_error failed;
    eddy_quiet_begin(&q);
    eddy_status status = eddy_gradient_plan_make(
        c->caller, recording, (eddy_list){c->outputs, c->recorded->output_count}, c->origin);
    eddy_quiet_end(&q, &failed);
    if (status == EDDY_OUT_OF_MEMORY)
        recording->status = status; /* it says nothing about the function */
    else if (status != EDDY_OK)
        snprintf(c->no_way, sizeof(c->no_way), "%.300s", failed.message);
}

/* Slots of numbers are never used again, so that one that a tape has kept from an earlier recording means nothing. */
static uint32_t take_slots(int64_t count) {
    static _Atomic uint32_t last;
    return eddy_add_relaxed(&last, (uint32_t)count) + 1;
}

eddy_status eddy_calling_record(eddy_calling *c, eddy_recording **recording) {
    eddy_status status = eddy_recording_open(c->caller, c->origin, recording);
    if (status != EDDY_OK)
        return status;
    eddy_scalar *scalars = (eddy_scalar *)c->scalars.items;
    (*recording)->is_owned = true;
    (*recording)->inputs = &c->inputs;
    (*recording)->known_guards = &c->guards;
    (*recording)->known_values = (const char *)c->key + c->kind_bytes;
    (*recording)->scalar_count = (uint32_t)c->scalars.count;
    (*recording)->scalars = scalars;
    (*recording)->first_slot = c->scalars.count > 0 ? take_slots(c->scalars.count) : 0;
    for (int64_t i = 0; i < c->scalars.count; i++)
        scalars[i].slot = (*recording)->first_slot + (uint32_t)i;
    status = eddy_calling_run(c, scalars);
    for (int64_t i = 0; i < c->scalars.count; i++)
        scalars[i].slot = 0;
    (*recording)->inputs = NULL; /* a backward pass reads later than the call */
    (*recording)->known_guards = NULL;
    if (status == EDDY_OK && !c->has_failed)
        plan_quietly(c, *recording);
    (void)eddy_recording_close(c->caller);
    return status;
}

/* ---- from two recordings to a program ---- */

eddy_status eddy_calling_make_program(const eddy_calling *c, eddy_recording *recording,
                                      eddy_program **program) {
    int64_t count = c->inputs.count + c->recorded->output_count;
    size_t bytes = (size_t)count * (sizeof(eddy_binding) + NAME_BYTES);
    eddy_binding *bindings = eddy_memory_acquire(bytes + 1, EDDY_MEMORY_PROGRAM);
    if (!bindings)
        return EDDY_OUT_OF_MEMORY;
    char *names = (char *)(bindings + count);
    for (int64_t i = 0; i < count; i++) {
        bool is_input = i < c->inputs.count;
        int64_t number = is_input ? i : i - c->inputs.count;
        char *name = names + i * NAME_BYTES;
        snprintf(name, NAME_BYTES, "%s%lld", is_input ? "input" : "output", (long long)number);
        bindings[i] = (eddy_binding){.name = name,
                                     .tensor = is_input ? c->inputs.items[i] : c->outputs[number],
                                     .role = is_input ? EDDY_ROLE_INPUT : EDDY_ROLE_OUTPUT};
    }
    eddy_status status =
        eddy_program_make(recording, &(eddy_bindings){bindings, count}, c->origin, program);
    eddy_memory_release(bindings, bytes + 1, EDDY_MEMORY_PROGRAM);
    return status;
}

void eddy_calling_judge_gradient(const eddy_calling *c, const eddy_recording *recording,
                                 char *reason, size_t size) {
    bool goes_out = any_output_gradient(c);
    reason[0] = 0;
    if (recording->has_redirected)
        snprintf(reason, size,
                 "a call writes in place to a tensor that was there before, and a gradient goes "
                 "back through it");
    else if (c->no_way[0])
        snprintf(reason, size, "%s", c->no_way);
    else if (!may_plan(c, recording) && (goes_out || any_input_gradient(c)))
        snprintf(reason, size,
                 "a backward pass is among its calls, and a gradient goes back through its inputs "
                 "or outputs");
    else if (goes_out && !recording->plan)
        snprintf(reason, size, "a gradient goes back through its inputs or outputs");
    else if (eddy_kept_before_has_one_of(&recording->befores, c->inputs))
        snprintf(reason, size, "it uses the gradient that the tape keeps for an input");
}

void eddy_calling_judge_ways(const eddy_program *program, char *reason, size_t size) {
    const eddy_program_ways *ways = program->gradient ? program->gradient->ways : NULL;
    reason[0] = 0;
    if (ways && ways->root_count > EDDY_GRADIENT_ROOTS_FEW && ways->calls.reason[0])
        snprintf(reason, size, "more than %d of its outputs carry a gradient, and %.240s",
                 EDDY_GRADIENT_ROOTS_FEW, ways->calls.reason);
}
