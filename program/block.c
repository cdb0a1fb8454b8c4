#include <program/block.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/shape.h>
#include <base/status.h>
#include <eddy/host.h>
#include <interpreter/call/apply.h>
#include <interpreter/handle/scope.h>
#include <program/quiet.h>
#include <string.h>

eddy_recording *eddy_block_recording(const eddy_caller *caller) {
    eddy_recorder *recorder = caller->recorder;
    return recorder && recorder->mode != EDDY_RECORDER_WATCHES ? (eddy_recording *)(void *)recorder
                                                               : NULL;
}

/* ---- calling ---- */

static eddy_status check_outputs(const eddy_block_call *call, eddy_tensor **outputs,
                                 int64_t count) {
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < count && status == EDDY_OK; i++) {
        status = outputs[i] ? eddy_tensor_check_item(outputs[i], "outputs", i, call->origin)
                            : eddy_fail(EDDY_INVALID_ARGUMENT, call->origin,
                                        "the function has not set outputs[%lld]", (long long)i);
    }
    return status;
}

eddy_status eddy_block_begin(const eddy_block_call *call, eddy_block *function, eddy_list inputs,
                             eddy_tensor **outputs, int64_t count, eddy_scope **scope) {
    eddy_status status = eddy_scope_open(call->caller, call->origin, scope);
    if (status != EDDY_OK)
        return status;
    memset(outputs, 0, (size_t)count * sizeof(eddy_tensor *));
    eddy_outcome outcome;
    eddy_scope_lend(*scope, inputs);
    eddy_outcome_begin(&outcome);
    status = function(call->context, inputs, outputs);
    eddy_outcome_end(&outcome);
    eddy_scope_take_back(*scope, inputs);
    /* One that has not said why it fails has its status recorded. */
    if (status != EDDY_OK && outcome.first == EDDY_OK)
        eddy_fail(status, call->origin, "the function failed: %s", eddy_status_text(status));
    if (status == EDDY_OK)
        status = check_outputs(call, outputs, count);
    if (status != EDDY_OK)
        eddy_scope_end(*scope);
    return status;
}

void eddy_block_end(eddy_scope *scope) {
    eddy_scope_end(scope);
}

/* ---- outputs of their own ---- */

/* Whether the scope of the function has the only reference of it. */
static bool is_own(const eddy_tensor *tensor, const eddy_scope *scope) {
    return tensor->root == tensor && tensor->link.after == 0 && /* it is no memory of the user's */
           eddy_load_relaxed(&tensor->scope) == scope &&
           eddy_load_acquire(&tensor->references) == 1 && tensor->is_contiguous;
}

bool eddy_block_is_own(const eddy_block_call *call, const eddy_tensor *tensor) {
    return is_own(tensor, call->caller->scope);
}

static eddy_status copy(const eddy_block_call *call, eddy_tensor *tensor, eddy_tensor **made) {
    const eddy_op *clone = eddy_op_find("clone");
    eddy_apply apply = {.op = clone,
                        .inputs = &tensor,
                        .input_count = 1,
                        .outputs = made,
                        .address = call->origin.address,
                        .is_row_major = true};
    return eddy_interpreter_issue(call->caller, &apply);
}

static eddy_status own(const eddy_block_call *call, eddy_tensor *tensor, bool is_own,
                       eddy_tensor **made) {
    eddy_tensor *result = tensor;
    eddy_status status = is_own ? EDDY_OK : copy(call, tensor, &result);
    if (status != EDDY_OK)
        return status;
    eddy_tensor_retain(result);
    *made = result;
    return EDDY_OK;
}

eddy_status eddy_block_run(const eddy_block_call *call, eddy_block *function, eddy_list inputs,
                           eddy_tensor **outputs) {
    int64_t count = call->output_count, made_count = 0;
    size_t bytes = (size_t)count * sizeof(eddy_tensor *);
    eddy_tensor **given = eddy_memory_acquire(bytes + 1, EDDY_MEMORY_PROGRAM);
    eddy_scope *scope;
    if (!given)
        return eddy_fail(EDDY_OUT_OF_MEMORY, call->origin, "no memory for the outputs");
    eddy_status status = eddy_block_begin(call, function, inputs, given, count, &scope);
    if (status == EDDY_OK) {
        for (int64_t i = 0; i < count && status == EDDY_OK; made_count = ++i) {
            bool stays = i < call->carried_count && given[i] == inputs.items[i];
            status = own(call, given[i], stays || is_own(given[i], scope), &outputs[i]);
            if (status != EDDY_OK)
                break;
        }
        eddy_block_end(scope);
    }
    eddy_memory_release(given, bytes + 1, EDDY_MEMORY_PROGRAM);
    if (status != EDDY_OK)
        eddy_block_drop(outputs, made_count);
    return status;
}

void eddy_block_drop(eddy_tensor **made, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (made[i])
            eddy_tensor_drop(made[i]);
        made[i] = NULL;
    }
}

eddy_status eddy_block_hand_out(const eddy_block_call *call, eddy_tensor **made,
                                eddy_tensor **outputs) {
    if (!eddy_scope_reserve(call->caller, (uint32_t)call->output_count)) {
        eddy_block_drop(made, call->output_count);
        return eddy_fail(EDDY_OUT_OF_MEMORY, call->origin, "no memory for the outputs");
    }
    for (int64_t i = 0; i < call->output_count; i++) {
        eddy_scope_own(call->caller, made[i]);
        outputs[i] = made[i];
    }
    return EDDY_OK;
}

eddy_status eddy_block_copy(const eddy_block_call *call, eddy_tensor *tensor, eddy_tensor **made) {
    eddy_scope *scope = call->caller->scope;
    call->caller->scope = NULL; /* no scope may own it */
    eddy_status status = copy(call, tensor, made);
    call->caller->scope = scope;
    return status;
}

/* ---- checks ---- */

eddy_status eddy_block_check_predicate(const eddy_block_call *call, eddy_tensor *predicate) {
    eddy_status status = eddy_tensor_check(predicate, "the predicate", call->origin);
    if (status == EDDY_OK)
        status = eddy_tensor_await_shape(predicate, call->origin);
    if (status != EDDY_OK)
        return status;
    if (predicate->dtype == EDDY_BOOL && predicate->count == 1)
        return EDDY_OK;
    char text[EDDY_RANK_MAX * 22];
    eddy_tensor_describe(predicate, text, sizeof(text));
    return eddy_fail(predicate->dtype != EDDY_BOOL ? EDDY_DTYPE_MISMATCH : EDDY_SHAPE_MISMATCH,
                     call->origin, "the predicate is %s: it has to be one bool", text);
}

eddy_status eddy_block_read(const eddy_block_call *call, eddy_tensor *predicate, bool *holds) {
    return eddy_read(
        predicate, holds, sizeof(*holds),
        &(eddy_read_options){.size = sizeof(eddy_read_options), .timeout = call->timeout});
}

eddy_status eddy_block_check_same(const eddy_block_call *call, int64_t i, const eddy_tensor *given,
                                  const eddy_tensor *like) {
    eddy_layout a, b;
    eddy_tensor_layout(given, &a);
    eddy_tensor_layout(like, &b);
    bool fits = eddy_shape_equal(a.rank, a.dims, b.rank, b.dims);
    if (fits && given->dtype == like->dtype)
        return EDDY_OK;
    char texts[2][EDDY_RANK_MAX * 22];
    eddy_tensor_describe(given, texts[0], sizeof(texts[0]));
    eddy_tensor_describe(like, texts[1], sizeof(texts[1]));
    return eddy_fail(fits ? EDDY_DTYPE_MISMATCH : EDDY_SHAPE_MISMATCH, call->origin,
                     "outputs[%lld] is %s on one way and %s on another", (long long)i, texts[1],
                     texts[0]);
}

/* ---- modes ---- */

eddy_status eddy_block_note_ways(const eddy_block_call *call, eddy_tensor *predicate,
                                 eddy_status (*note_way)(const void *context, int way),
                                 const void *context) {
    eddy_recording_mark(call->recording, EDDY_CONTROL_IF, predicate, NULL, call->origin);
    eddy_status status = note_way(context, 0);
    if (status != EDDY_OK)
        return status;
    eddy_recording_mark(call->recording, EDDY_CONTROL_ELSE, NULL, NULL, call->origin);
    status = note_way(context, 1);
    if (status == EDDY_OK)
        eddy_recording_mark(call->recording, EDDY_CONTROL_END_IF, NULL, NULL, call->origin);
    return status;
}

void eddy_block_show(const eddy_block_call *call, const eddy_tensor *made, const eddy_tensor *as) {
    eddy_layout a, b;
    if (call->recording->status != EDDY_OK)
        return;
    eddy_tensor_layout(made, &a);
    eddy_tensor_layout(as, &b);
    if (!eddy_layout_is_equal(&a, &b) || made->dtype != as->dtype)
        eddy_recording_spoil(call->recording, EDDY_UNSUPPORTED, call->origin,
                             "a function gives other results each time");
    else
        eddy_recording_show_as(call->recording, made, as, call->origin);
}

eddy_status eddy_block_note(const eddy_block_call *call, eddy_status (*note)(void *context),
                            void *context) {
    eddy_recording *recording = call->recording;
    uint8_t mode = recording->recorder.mode;
    uint32_t changes = recording->changes.count, depth = recording->depth;
    eddy_quiet quiet;
    eddy_error failed;
    eddy_status status = eddy_recording_note_only(recording, call->origin);
    if (status != EDDY_OK)
        return status;
    recording->block_count++;
    eddy_quiet_begin(&quiet);
    status = note(context);
    eddy_quiet_end(&quiet, &failed);
    if (mode == EDDY_RECORDER_RUNS)
        eddy_recording_take_back(recording, changes);
    recording->depth = depth; /* where it failed, marks are open */
    recording->block_count--;
    recording->recorder.mode = mode;
    if (status == EDDY_OK)
        return EDDY_OK;
    if (failed.status == EDDY_OK)
        eddy_error_fill(&failed, status, call->origin, 0, "%s", eddy_status_text(status));
    eddy_recording_spoil(recording, failed.status, call->origin, failed.message);
    return mode == EDDY_RECORDER_RUNS ? EDDY_OK : eddy_fail_record(&failed);
}

eddy_status eddy_block_watch(const eddy_block_call *call, eddy_status (*watched)(void *context),
                             void *context) {
    eddy_recording *recording = call->recording;
    uint8_t mode = recording->recorder.mode;
    recording->recorder.mode = EDDY_RECORDER_WATCHES;
    recording->block_count++;
    eddy_status status = watched(context);
    recording->block_count--;
    recording->recorder.mode = mode;
    if (status != EDDY_OK)
        eddy_recording_spoil(recording, status, call->origin, "it failed while it was recorded");
    return status;
}
