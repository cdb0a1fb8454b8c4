/* eddy_while. */
#include <base/memory.h>
#include <base/option.h>
#include <base/status.h>
#include <interpreter/call/copy.h>
#include <program/loop.h>
#include <stdio.h>
#include <string.h>

static eddy_list carried_list(const eddy_loop *l) {
    return (eddy_list){l->carried, l->call.output_count};
}

/* ---- running ---- */

/* On OK the predicate lives until eddy_block_end. */
static eddy_status begin_test(const eddy_loop *l, eddy_list carried, eddy_tensor **predicate,
                              eddy_scope **scope) {
    eddy_status status = eddy_block_begin(&l->call, l->test, carried, predicate, 1, scope);
    if (status != EDDY_OK)
        return status;
    status = eddy_block_check_predicate(&l->call, *predicate);
    if (status != EDDY_OK)
        eddy_block_end(*scope);
    return status;
}

static eddy_status run_test(const eddy_loop *l, bool *holds) {
    eddy_tensor *predicate;
    eddy_scope *scope;
    eddy_status status = begin_test(l, carried_list(l), &predicate, &scope);
    if (status != EDDY_OK)
        return status;
    status = eddy_block_read(&l->call, predicate, holds);
    eddy_block_end(scope);
    return status;
}

static eddy_status run_step(eddy_loop *l) {
    eddy_status status = eddy_block_run(&l->call, l->body, carried_list(l), l->next);
    if (status != EDDY_OK)
        return status;
    eddy_block_drop(l->carried, l->call.output_count);
    memcpy(l->carried, l->next, (size_t)l->call.output_count * sizeof(*l->next));
    return EDDY_OK;
}

eddy_status eddy_loop_run(void *context) {
    eddy_loop *l = context;
    for (int64_t step = 0;; step++) {
        bool holds = false;
        eddy_status status = run_test(l, &holds);
        if (status != EDDY_OK || !holds)
            return status;
        if (l->most_steps > 0 && step == l->most_steps)
            return eddy_fail(EDDY_INVALID_ARGUMENT, l->call.origin,
                             "the predicate still holds after %lld steps, the most there may be",
                             (long long)step);
        status = run_step(l);
        if (status != EDDY_OK)
            return status;
    }
}

/* ---- recording ---- */

eddy_status eddy_loop_note_test(const eddy_loop *l, eddy_list carried) {
    eddy_tensor *predicate;
    eddy_scope *scope;
    eddy_status status = begin_test(l, carried, &predicate, &scope);
    if (status != EDDY_OK)
        return status;
    eddy_recording_mark(l->call.recording, EDDY_CONTROL_LOOP_WHILE, predicate, NULL,
                        l->call.origin);
    eddy_block_end(scope);
    return EDDY_OK;
}

static bool is_value(const eddy_loop *l, eddy_tensor *const *values, const eddy_tensor *tensor) {
    for (int64_t i = 0; i < l->call.output_count; i++)
        if (values[i]->storage == tensor->storage)
            return true;
    return false;
}

/* Two tensors that change places: what is carried in another place is read before any place is written. */
static eddy_status set_aside(const eddy_loop *l, eddy_tensor *const *values,
                             eddy_tensor *const *inputs, eddy_tensor **given) {
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < l->call.output_count && status == EDDY_OK; i++) {
        status = eddy_block_check_same(&l->call, i, given[i], values[i]);
        if (status != EDDY_OK || given[i] == inputs[i] || !is_value(l, values, given[i]))
            continue;
        status =
            eddy_copy_contiguous(l->call.caller, given[i], l->call.origin.address, &l->next[i]);
        given[i] = l->next[i];
    }
    return status;
}

eddy_status eddy_loop_set(const eddy_loop *l, eddy_tensor *const *values,
                          eddy_tensor *const *inputs, eddy_tensor **given) {
    eddy_status status = set_aside(l, values, inputs, given);
    for (int64_t i = 0; i < l->call.output_count && status == EDDY_OK; i++)
        if (given[i] != inputs[i])
            status = eddy_copy_to(l->call.caller, given[i], values[i], l->call.origin.address);
    eddy_block_drop(l->next, l->call.output_count);
    return status;
}

/* Spoils the recording if a gradient goes back from one of the tensors: what is recorded has no way for it. */
static void refuse_gradients(const eddy_loop *l, eddy_tensor *const *tensors) {
    char reason[320];
    for (int64_t i = 0; i < l->call.output_count; i++) {
        if (!tensors[i]->autograd)
            continue;
        snprintf(reason, sizeof(reason), "a gradient goes back through a loop%s%s",
                 l->no_tape[0] ? ": " : "", l->no_tape);
        eddy_recording_spoil(l->call.recording, EDDY_UNSUPPORTED, l->call.origin, reason);
        return;
    }
}

static eddy_status note_body(const eddy_loop *l, eddy_tensor **given) {
    int64_t count = l->call.output_count;
    eddy_scope *scope;
    eddy_status status = eddy_block_begin(&l->call, l->body, carried_list(l), given, count, &scope);
    if (status != EDDY_OK)
        return status;
    refuse_gradients(l, given);
    status = eddy_loop_set(l, l->carried, l->carried, given);
    eddy_block_end(scope);
    return status;
}

static eddy_status note_loop(void *context) {
    const eddy_loop *l = context;
    eddy_control_loop attributes = {.most_steps = l->most_steps};
    eddy_recording *recording = l->call.recording;
    size_t bytes = (size_t)l->call.output_count * sizeof(eddy_tensor *);
    eddy_recording_mark(recording, EDDY_CONTROL_LOOP, NULL, &attributes, l->call.origin);
    eddy_status status = eddy_loop_note_test(l, carried_list(l));
    if (status != EDDY_OK)
        return status;
    eddy_tensor **given = eddy_memory_acquire(bytes + 1, EDDY_MEMORY_PROGRAM);
    if (!given)
        return eddy_fail(EDDY_OUT_OF_MEMORY, l->call.origin, "no memory for the outputs");
    status = note_body(l, given);
    eddy_memory_release(given, bytes + 1, EDDY_MEMORY_PROGRAM);
    if (status == EDDY_OK)
        eddy_recording_mark(recording, EDDY_CONTROL_END_LOOP, NULL, NULL, l->call.origin);
    return status;
}

static void show_carried(const eddy_loop *l) {
    for (int64_t i = 0; i < l->call.output_count; i++)
        if (l->carried[i] != l->first[i])
            eddy_block_show(&l->call, l->carried[i], l->first[i]);
}

/* No gradient goes back through the loop, or the recording is spoiled. */
static eddy_status record_plain(eddy_loop *l) {
    eddy_recording *recording = l->call.recording;
    bool runs = recording->recorder.mode == EDDY_RECORDER_RUNS;
    refuse_gradients(l, l->carried);
    eddy_status status = eddy_block_note(&l->call, note_loop, l);
    if (status != EDDY_OK || !runs)
        return status;
    for (int64_t i = 0; i < l->call.output_count; i++) {
        l->first[i] = l->carried[i];
        eddy_tensor_retain(l->first[i]);
    }
    status = eddy_block_watch(&l->call, eddy_loop_run, l);
    if (status == EDDY_OK)
        show_carried(l);
    return status;
}

static eddy_status record(eddy_loop *l) {
    eddy_loop_tape *probed;
    bool is_done = false;
    eddy_status status = eddy_loop_probe(l, &probed);
    if (status != EDDY_OK)
        return status;
    if (probed && l->most_steps > 0)
        status = eddy_loop_record(l, probed, &is_done);
    else if (probed)
        eddy_recording_spoil(l->call.recording, EDDY_UNSUPPORTED, l->call.origin,
                             "a gradient goes back through a loop without most_steps");
    eddy_loop_tape_destroy(probed);
    return status == EDDY_OK && !is_done ? record_plain(l) : status;
}

/* ---- all of it ---- */

static eddy_status run(eddy_loop *l, eddy_list given, eddy_tensor **outputs) {
    int64_t count = l->call.output_count;
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < count && status == EDDY_OK; i++)
        status = eddy_block_copy(&l->call, given.items[i], &l->carried[i]);
    if (status == EDDY_OK)
        status = l->call.recording ? record(l) : eddy_loop_run(l);
    eddy_block_drop(l->first, count);
    if (status == EDDY_OK)
        return eddy_block_hand_out(&l->call, l->carried, outputs);
    eddy_block_drop(l->carried, count);
    return status;
}

static eddy_status check(const eddy_loop *l, eddy_list carried, eddy_tensor *const *outputs) {
    eddy_origin origin = l->call.origin;
    if (!eddy_caller_may_call(l->call.caller))
        return eddy_caller_refuse(l->call.caller, origin);
    if (!l->test || !l->body)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "a function is NULL");
    if (l->most_steps < 0)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "most_steps is negative");
    if (carried.count > 0 && !outputs)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "there is no room for the outputs");
    eddy_status status = eddy_program_check_list(carried.items, carried.count, "carried", origin);
    for (int64_t i = 0; i < carried.count && status == EDDY_OK; i++)
        status = eddy_tensor_check_item(carried.items[i], "carried", i, origin);
    return status;
}

eddy_status(eddy_while)(eddy_block *test, eddy_block *body, void *context, eddy_list carried,
                        const eddy_while_options *options, eddy_tensor **outputs) {
    eddy_loop l = {.call = {.caller = eddy_caller_get(),
                            .origin = EDDY_ORIGIN("while"),
                            .context = context,
                            .output_count = carried.count,
                            .carried_count = carried.count,
                            .timeout = EDDY_HAS_OPTION(options, timeout) ? options->timeout : 0},
                   .test = test,
                   .body = body,
                   .most_steps = EDDY_HAS_OPTION(options, most_steps) ? options->most_steps : 0};
    eddy_status status = check(&l, carried, outputs);
    if (status != EDDY_OK)
        return status;
    l.call.recording = eddy_block_recording(l.call.caller);
    size_t bytes = 3 * (size_t)carried.count * sizeof(eddy_tensor *);
    l.carried = eddy_memory_acquire_zeroed(bytes + 1, EDDY_MEMORY_PROGRAM);
    if (!l.carried)
        return eddy_fail(EDDY_OUT_OF_MEMORY, l.call.origin, "no memory for the outputs");
    l.first = l.carried + carried.count;
    l.next = l.first + carried.count;
    status = run(&l, carried, outputs);
    eddy_memory_release(l.carried, bytes + 1, EDDY_MEMORY_PROGRAM);
    return status;
}
