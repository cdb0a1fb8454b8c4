/* eddy_while with gradients: what its recording holds more than that of other loops. */
#include <base/dtype.h>
#include <base/memory.h>
#include <base/status.h>
#include <eddy/ops.h>
#include <interpreter/call/copy.h>
#include <interpreter/handle/scope.h>
#include <program/block_node.h>
#include <program/loop.h>
#include <stdio.h>
#include <string.h>

/* A body is called three times at most for each call of what it is in. */
#define LOOPS_MOST 4

/* A recording of the loop. */
typedef struct taped {
    eddy_loop *loop;
    const eddy_block_call *call; /* the loop's, or a probe's */
    eddy_loop_tape *tape;
    const eddy_loop_tape *probed; /* NULL: this is the probe */
    uint32_t first_value;         /* of the recording that belongs to the loop */
    eddy_tensor **values;         /* references: what is carried */
    eddy_tensor **inputs;         /* references: what the body is given */
    eddy_tensor **given;          /* what it gives */
    eddy_tensor **made;           /* references: what the loop gives */
    eddy_tensor **lists;          /* references: the number of steps, then a list for each row */
} taped;

static eddy_status fail_memory(const eddy_block_call *call) {
    return eddy_fail(EDDY_OUT_OF_MEMORY, call->origin, "no memory to record the call");
}

static size_t taped_bytes(const taped *t) {
    size_t lists = t->probed ? 1 + t->probed->saved.row_count : 0;
    return (4 * (size_t)t->call->output_count + lists) * sizeof(eddy_tensor *);
}

static eddy_status taped_init(taped *t) {
    int64_t count = t->call->output_count;
    t->values = eddy_memory_acquire_zeroed(taped_bytes(t), EDDY_MEMORY_PROGRAM);
    if (!t->values)
        return fail_memory(t->call);
    t->inputs = t->values + count;
    t->given = t->inputs + count;
    t->made = t->given + count;
    t->lists = t->made + count;
    return EDDY_OK;
}

static void taped_fini(taped *t) {
    if (!t->values)
        return;
    eddy_block_drop(t->values, t->call->output_count);
    eddy_block_drop(t->inputs, t->call->output_count);
    eddy_block_drop(t->made, t->call->output_count);
    if (t->probed)
        eddy_block_drop(t->lists, 1 + (int64_t)t->probed->saved.row_count);
    eddy_memory_release(t->values, taped_bytes(t), EDDY_MEMORY_PROGRAM);
}

/* ---- the body ---- */

/* Values of the loop that nobody else has, and what the body sees of them. */
static eddy_status make_values(const taped *t) {
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < t->call->output_count && status == EDDY_OK; i++) {
        status = eddy_copy_contiguous(t->call->caller, t->loop->carried[i], t->call->origin.address,
                                      &t->values[i]);
        if (status == EDDY_OK)
            status = eddy_loop_tape_give(t->call, t->tape, i, t->values[i], &t->inputs[i]);
    }
    return status;
}

/* Calls the body with its tape, then `end(t)` while its results live. */
static eddy_status call_body(const taped *t, eddy_status (*end)(const taped *t)) {
    eddy_list inputs = {t->inputs, t->call->output_count};
    uint64_t before = eddy_way_tape_begin(t->call, &t->tape->body);
    eddy_scope *scope;
    eddy_status status =
        eddy_block_begin(t->call, t->loop->body, inputs, t->given, inputs.count, &scope);
    if (status == EDDY_OK) {
        status = eddy_way_tape_hold(t->call, &t->tape->body, t->given);
        if (status == EDDY_OK && !eddy_loop_tape_find_leads(t->tape))
            status = fail_memory(t->call);
        if (status == EDDY_OK)
            status = end(t);
        eddy_block_end(scope);
    }
    eddy_way_tape_end(t->call, before);
    return status;
}

/* ---- the probe ---- */

static eddy_status end_probe(const taped *t) {
    return eddy_saved_find(t->call, &t->tape->body, t->first_value, &t->tape->saved);
}

static eddy_status note_probe(void *context) {
    const taped *t = context;
    eddy_status status = make_values(t);
    return status == EDDY_OK ? call_body(t, end_probe) : status;
}

/* In a recording of its own, which is thrown away. *is_fine: the body can be recorded with its tape. */
static eddy_status probe_in(taped *t, eddy_recording *scratch, bool *is_fine) {
    const eddy_recording *recording = t->loop->call.recording;
    eddy_caller *caller = t->call->caller;
    eddy_recorder *recorder = caller->recorder;
    eddy_recording_init(scratch, recording->runtime);
    scratch->depth = recording->depth + 1;
    scratch->taped_depth = recording->taped_depth + 1;
    scratch->first_slot = recording->first_slot;
    scratch->scalar_count = recording->scalar_count;
    scratch->is_owned = recording->is_owned;
    caller->recorder = &scratch->recorder;
    eddy_status status = eddy_block_note(t->call, note_probe, t);
    caller->recorder = recorder;
    *is_fine = status == EDDY_OK && scratch->status == EDDY_OK;
    if (scratch->status == EDDY_OUT_OF_MEMORY)
        eddy_recording_spoil(t->loop->call.recording, EDDY_OUT_OF_MEMORY, t->call->origin,
                             scratch->reason);
    else if (scratch->status != EDDY_OK)
        snprintf(t->loop->no_tape, sizeof(t->loop->no_tape), "%s", scratch->reason);
    taped_fini(t);
    eddy_recording_disown(t->loop->call.recording, scratch, t->call->origin);
    eddy_recording_fini(scratch);
    return status;
}

/* The body with gradients that come to the tensors with `carries`. *tape: NULL if it cannot be recorded so. */
static eddy_status probe_with(eddy_loop *l, const bool *carries, eddy_loop_tape **tape) {
    eddy_recording *scratch = eddy_memory_acquire(sizeof(*scratch), EDDY_MEMORY_PROGRAM);
    eddy_block_call call = l->call;
    taped t = {.loop = l, .call = &call};
    bool is_fine = false;
    *tape = NULL;
    if (!scratch)
        return fail_memory(&l->call);
    call.recording = scratch;
    t.tape = eddy_loop_tape_create(&l->call, l->carried, carries, l->most_steps);
    eddy_status status = t.tape ? taped_init(&t) : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK)
        status = probe_in(&t, scratch, &is_fine);
    if (is_fine)
        *tape = t.tape;
    else
        eddy_loop_tape_destroy(t.tape);
    eddy_memory_release(scratch, sizeof(*scratch), EDDY_MEMORY_PROGRAM);
    return status;
}

/* Those to which gradients come indeed. *changed: other ones than the tape was made with. */
static bool find_carries(const eddy_loop *l, const eddy_loop_tape *tape, bool *carries,
                         bool *changed) {
    bool has_any = false;
    for (int64_t i = 0; i < tape->count; i++)
        carries[i] = tape->starts[i] && l->carried[i]->autograd;
    eddy_loop_tape_close(tape, carries);
    *changed = false;
    for (int64_t i = 0; i < tape->count; i++) {
        has_any |= carries[i];
        *changed |= carries[i] != (tape->starts[i] != NULL);
    }
    return has_any;
}

static eddy_status probe(eddy_loop *l, bool *carries, eddy_loop_tape **tape) {
    for (int64_t i = 0; i < l->call.output_count; i++)
        carries[i] =
            eddy_dtype_category_of((eddy_dtype)l->carried[i]->dtype) == EDDY_CATEGORY_FLOAT;
    bool is_again = true;
    eddy_status status = probe_with(l, carries, tape);
    if (status == EDDY_OK && *tape && !find_carries(l, *tape, carries, &is_again)) {
        eddy_loop_tape_destroy(*tape);
        *tape = NULL;
    }
    if (status != EDDY_OK || !*tape || !is_again)
        return status;
    eddy_loop_tape_destroy(*tape);
    return probe_with(l, carries, tape);
}

eddy_status eddy_loop_probe(eddy_loop *l, eddy_loop_tape **tape) {
    size_t bytes = (size_t)l->call.output_count;
    *tape = NULL;
    if (l->call.caller->no_grad > 0 || l->call.recording->status != EDDY_OK || bytes == 0)
        return EDDY_OK;
    if (l->call.recording->taped_depth == LOOPS_MOST) {
        eddy_recording_spoil(l->call.recording, EDDY_UNSUPPORTED, l->call.origin,
                             "loops lie too deep within each other for gradients");
        return EDDY_OK;
    }
    bool *carries = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    eddy_status status = carries ? probe(l, carries, tape) : fail_memory(&l->call);
    eddy_memory_release(carries, bytes, EDDY_MEMORY_PROGRAM);
    return status;
}

/* ---- recording ---- */

static eddy_status make_lists(const taped *t) {
    eddy_outcome outcome;
    eddy_scope *scope = t->call->caller->scope;
    t->call->caller->scope = NULL; /* no scope may own it */
    eddy_outcome_begin(&outcome);
    t->lists[0] = eddy_zeros((eddy_shape){0}, EDDY_I64, NULL);
    eddy_outcome_end(&outcome);
    t->call->caller->scope = scope;
    return t->lists[0] ? eddy_saved_make_lists(t->call, &t->probed->saved, t->loop->most_steps,
                                               t->lists + 1)
                       : eddy_outcome_why(&outcome);
}

/* The tape sees no write to what the loop carries: backwards each step is given what it was given forwards. */
static void forget_writes(const taped *t) {
    for (int64_t i = 0; i < t->call->output_count; i++)
        if (t->given[i] != t->inputs[i])
            eddy_recording_unwrite(t->call->recording, t->values[i]);
}

static eddy_status end_step(const taped *t) {
    eddy_status status = eddy_saved_find(t->call, &t->tape->body, t->first_value, &t->tape->saved);
    if (status != EDDY_OK)
        return status;
    if (!eddy_saved_is_alike(&t->tape->saved, &t->probed->saved))
        return eddy_fail(EDDY_UNSUPPORTED, t->call->origin,
                         "a function gives other results each time");
    status = eddy_saved_put(t->call, &t->tape->saved, t->lists + 1, t->lists[0]);
    if (status == EDDY_OK)
        status = eddy_add_s_inplace(t->lists[0], EDDY_S(1));
    if (status == EDDY_OK)
        status = eddy_loop_set(t->loop, t->values, t->inputs, t->given);
    if (status == EDDY_OK)
        forget_writes(t);
    return status;
}

static eddy_status give(const taped *t) {
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < t->call->output_count && status == EDDY_OK; i++)
        status = eddy_copy_contiguous(t->call->caller, t->values[i], t->call->origin.address,
                                      &t->made[i]);
    return status;
}

static eddy_status note_loop(void *context) {
    taped *t = context;
    eddy_recording *recording = t->call->recording;
    eddy_control_loop attributes = {.most_steps = t->loop->most_steps};
    t->first_value = recording->code.values.count;
    eddy_status status = make_values(t);
    if (status == EDDY_OK)
        status = make_lists(t);
    if (status != EDDY_OK)
        return status;
    eddy_recording_mark(recording, EDDY_CONTROL_LOOP, NULL, &attributes, t->call->origin);
    status = eddy_loop_note_test(t->loop, (eddy_list){t->values, t->call->output_count});
    if (status == EDDY_OK)
        status = call_body(t, end_step);
    if (status != EDDY_OK)
        return status;
    eddy_recording_mark(recording, EDDY_CONTROL_END_LOOP, NULL, NULL, t->call->origin);
    return give(t);
}

static eddy_status watch_loop(void *context) {
    taped *t = context;
    uint64_t before = eddy_way_tape_begin(t->call, &t->tape->due);
    eddy_status status = eddy_loop_run(t->loop);
    if (status == EDDY_OK)
        status = eddy_way_tape_hold(t->call, &t->tape->due, t->loop->carried);
    eddy_way_tape_end(t->call, before);
    return status;
}

static eddy_status name(taped *t) {
    eddy_loop *l = t->loop;
    eddy_autograd_node *node;
    eddy_status status = eddy_loop_tape_make_node(t->call, t->tape, l->carried, t->lists, &node);
    if (status != EDDY_OK || !node)
        return status;
    const eddy_loop_tape *tape = t->tape;
    for (int64_t i = 0; i < t->call->output_count && status == EDDY_OK; i++)
        status = eddy_block_node_name(t->call, node, i, tape->starts[i] != NULL, &l->carried[i]);
    t->tape = NULL; /* the node's */
    eddy_autograd_node_release(node);
    return status;
}

static void take_made(const taped *t) {
    int64_t count = t->call->output_count;
    eddy_block_drop(t->loop->carried, count);
    memcpy(t->loop->carried, t->made, (size_t)count * sizeof(*t->made));
    memset(t->made, 0, (size_t)count * sizeof(*t->made));
}

static eddy_status record(taped *t, bool *is_done) {
    eddy_loop *l = t->loop;
    eddy_recording *recording = t->call->recording;
    bool runs = recording->recorder.mode == EDDY_RECORDER_RUNS;
    int64_t count = t->call->output_count;
    recording->taped_depth++;
    eddy_status status = eddy_block_note(t->call, note_loop, t);
    recording->taped_depth--;
    if (status != EDDY_OK || recording->status != EDDY_OK)
        return status;
    *is_done = true;
    if (runs)
        status = eddy_block_watch(t->call, watch_loop, t);
    for (int64_t i = 0; i < count && status == EDDY_OK && runs; i++)
        eddy_block_show(t->call, l->carried[i], t->made[i]);
    if (status == EDDY_OK && !runs)
        take_made(t);
    return status == EDDY_OK && recording->status == EDDY_OK ? name(t) : status;
}

eddy_status eddy_loop_record(eddy_loop *l, const eddy_loop_tape *probed, bool *is_done) {
    size_t bytes = (size_t)l->call.output_count;
    taped t = {.loop = l, .call = &l->call, .probed = probed};
    bool *carries = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    *is_done = false;
    if (!carries)
        return fail_memory(&l->call);
    for (int64_t i = 0; i < l->call.output_count; i++)
        carries[i] = probed->starts[i] != NULL;
    t.tape = eddy_loop_tape_create(&l->call, l->carried, carries, l->most_steps);
    eddy_memory_release(carries, bytes, EDDY_MEMORY_PROGRAM);
    eddy_status status = t.tape ? taped_init(&t) : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK)
        status = record(&t, is_done);
    taped_fini(&t);
    eddy_loop_tape_destroy(t.tape);
    return status;
}
