/* eddy_cond. */
#include <base/memory.h>
#include <base/option.h>
#include <base/status.h>
#include <interpreter/call/copy.h>
#include <interpreter/handle/scope.h>
#include <interpreter/tape/autograd.h>
#include <program/block_node.h>
#include <program/branch_tape.h>
#include <string.h>

typedef struct branch {
    eddy_block_call call;
    eddy_tensor *predicate;
    eddy_block *ways[2]; /* where it is true, where it is false */
    eddy_list inputs;
    eddy_tensor **given;    /* what a way gives while it is recorded */
    eddy_tensor **joined;   /* what the marks give: lost */
    eddy_tensor **made;     /* what the way gives that is due */
    eddy_branch_tape *tape; /* while it is recorded and gradients are; or NULL */
} branch;

static eddy_status run_way(void *context) {
    branch *b = context;
    bool holds;
    eddy_status status = eddy_block_read(&b->call, b->predicate, &holds);
    return status == EDDY_OK ? eddy_block_run(&b->call, b->ways[!holds], b->inputs, b->made)
                             : status;
}

/* The first way makes what the branch gives, the second one sets it. */
static eddy_status join(const branch *b, int way, int64_t i) {
    const eddy_block_call *call = &b->call;
    if (way == 0)
        return eddy_copy_contiguous(call->caller, b->given[i], call->origin.address, &b->joined[i]);
    eddy_status status = eddy_block_check_same(call, i, b->given[i], b->joined[i]);
    return status == EDDY_OK
               ? eddy_copy_to(call->caller, b->given[i], b->joined[i], call->origin.address)
               : status;
}

/* A gradient goes back to a way's outputs: the tape holds those that its calls have made. */
static eddy_status hold(const branch *b, int way, eddy_tensor **given) {
    return b->tape ? eddy_way_tape_hold(&b->call, &b->tape->ways[way], given) : EDDY_OK;
}

static eddy_status give_way(const branch *b, int way) {
    const eddy_block_call *call = &b->call;
    eddy_scope *scope;
    eddy_status status =
        eddy_block_begin(call, b->ways[way], b->inputs, b->given, call->output_count, &scope);
    if (status != EDDY_OK)
        return status;
    status = hold(b, way, b->given);
    for (int64_t i = 0; i < call->output_count && status == EDDY_OK; i++)
        status = join(b, way, i);
    eddy_block_end(scope);
    return status;
}

static eddy_status note_way(const void *context, int way) {
    const branch *b = context;
    eddy_way_before before;
    if (b->tape)
        eddy_way_tape_begin(&b->call, &b->tape->ways[way], &before);
    eddy_status status = give_way(b, way);
    if (b->tape)
        eddy_way_tape_end(&b->call, &before);
    return status;
}

static eddy_status note_ways(void *context) {
    const branch *b = context;
    return eddy_block_note_ways(&b->call, b->predicate, note_way, b);
}

static eddy_status watch_way(void *context) {
    branch *b = context;
    eddy_way_before before;
    if (b->tape)
        eddy_way_tape_begin(&b->call, &b->tape->ways[EDDY_BRANCH_DUE], &before);
    eddy_status status = run_way(b);
    if (status == EDDY_OK)
        status = hold(b, EDDY_BRANCH_DUE, b->made);
    if (b->tape)
        eddy_way_tape_end(&b->call, &before);
    return status;
}

/* Whether others may write the predicate between a run and its backward pass. What the steps of a loop read they keep themselves, and on a way of another
 * branch it is left as it is. */
static bool is_from_outside(const branch *b) {
    const eddy_recording *recording = b->call.recording;
    uint32_t value = eddy_recording_value_of(recording, b->predicate);
    return recording->depth == 0 && value != EDDY_CODE_NONE &&
           eddy_code_value_at(&recording->code, value)->kind == EDDY_VALUE_CAPTURED;
}

/* A gradient takes the way that was taken, whatever has become of the predicate: it reads a copy. */
static eddy_status copy_predicate(const branch *b) {
    eddy_tensor *copy;
    if (!is_from_outside(b) || !eddy_branch_tape_has_predicate(b->tape))
        return EDDY_OK;
    eddy_status status =
        eddy_copy_contiguous(b->call.caller, b->predicate, b->call.origin.address, &copy);
    if (status == EDDY_OK)
        eddy_branch_tape_set_predicate(b->tape, copy, b->call.recording->recorder.events);
    return status;
}

static eddy_status name_made(branch *b) {
    eddy_autograd_node *node;
    eddy_status status = copy_predicate(b);
    if (status == EDDY_OK)
        status = eddy_branch_tape_make_node(&b->call, b->tape, b->made, &node);
    if (status != EDDY_OK || !node)
        return status;
    for (int64_t i = 0; i < b->call.output_count && status == EDDY_OK; i++)
        status = eddy_block_node_name(&b->call, node, i, eddy_branch_tape_is_wanted_of(b->tape, i),
                                      &b->made[i]);
    b->tape = NULL; /* the node's */
    eddy_autograd_node_release(node);
    return status;
}

/* What the marks give is what the user gets where nothing runs. */
static void take_joined(branch *b) {
    memcpy(b->made, b->joined, (size_t)b->call.output_count * sizeof(*b->made));
    memset(b->joined, 0, (size_t)b->call.output_count * sizeof(*b->made));
}

static eddy_status note_and_watch(branch *b) {
    bool runs = b->call.recording->recorder.mode == EDDY_RECORDER_RUNS;
    eddy_status status = eddy_block_note(&b->call, note_ways, b);
    if (status == EDDY_OK && runs)
        status = eddy_block_watch(&b->call, watch_way, b);
    if (status != EDDY_OK || !runs)
        take_joined(b);
    /* Where the recording is spoiled, nothing may be joined. */
    for (int64_t i = 0; status == EDDY_OK && runs && i < b->call.output_count && b->joined[i]; i++)
        eddy_block_show(&b->call, b->made[i], b->joined[i]);
    if (status == EDDY_OK && b->call.recording->status == EDDY_OK && b->tape &&
        eddy_branch_tape_is_wanted(b->tape))
        status = name_made(b);
    return status;
}

static eddy_status record(branch *b) {
    if (b->call.caller->no_grad == 0) {
        b->tape = eddy_branch_tape_create(&b->call, b->predicate);
        if (!b->tape)
            return eddy_fail(EDDY_OUT_OF_MEMORY, b->call.origin, "no memory to record the call");
    }
    eddy_status status = note_and_watch(b);
    if (b->tape)
        eddy_branch_tape_destroy(b->tape);
    return status;
}

static eddy_status run(branch *b, eddy_tensor **outputs) {
    int64_t count = b->call.output_count;
    eddy_status status = b->call.recording ? record(b) : run_way(b);
    eddy_block_drop(b->joined, count);
    if (status == EDDY_OK)
        return eddy_block_hand_out(&b->call, b->made, outputs);
    eddy_block_drop(b->made, count);
    return status;
}

static eddy_status check(const branch *b, eddy_tensor *const *outputs) {
    eddy_origin origin = b->call.origin;
    if (!eddy_caller_may_call(b->call.caller))
        return eddy_caller_refuse(b->call.caller, origin);
    if (!b->ways[0] || !b->ways[1])
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "a function is NULL");
    if (b->call.output_count < 0 || b->call.output_count > INT32_MAX)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "there can be no %lld outputs",
                         (long long)b->call.output_count);
    if (b->call.output_count > 0 && !outputs)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "there is no room for the outputs");
    eddy_status status =
        eddy_program_check_list(b->inputs.items, b->inputs.count, "inputs", origin);
    for (int64_t i = 0; status == EDDY_OK && i < b->inputs.count; i++)
        status = eddy_tensor_check_item(b->inputs.items[i], "inputs", i, origin);
    return status == EDDY_OK ? eddy_block_check_predicate(&b->call, b->predicate) : status;
}

/* Both ways are called in a recording, and then the one that is due: what the first one releases, the others are still given. */
static void retain_all(const branch *b) {
    eddy_tensor_retain(b->predicate);
    for (int64_t i = 0; i < b->inputs.count; i++)
        eddy_tensor_retain(b->inputs.items[i]);
}

static void drop_all(const branch *b) {
    for (int64_t i = 0; i < b->inputs.count; i++)
        eddy_tensor_drop(b->inputs.items[i]);
    eddy_tensor_drop(b->predicate);
}

eddy_status(eddy_cond)(eddy_tensor *predicate, eddy_block *then, eddy_block *otherwise,
                       void *context, eddy_list inputs, int64_t output_count,
                       const eddy_cond_options *options, eddy_tensor **outputs) {
    branch b = {.call = {.caller = eddy_caller_get(),
                         .origin = EDDY_ORIGIN("cond"),
                         .context = context,
                         .output_count = output_count,
                         .timeout = EDDY_HAS_OPTION(options, timeout) ? options->timeout : 0},
                .predicate = predicate,
                .ways = {then, otherwise},
                .inputs = inputs};
    eddy_status status = check(&b, outputs);
    if (status != EDDY_OK)
        return status;
    b.call.recording = eddy_block_recording(b.call.caller);
    size_t bytes = 3 * (size_t)output_count * sizeof(eddy_tensor *);
    b.given = eddy_memory_acquire_zeroed(bytes + 1, EDDY_MEMORY_PROGRAM);
    if (!b.given)
        return eddy_fail(EDDY_OUT_OF_MEMORY, b.call.origin, "no memory for the outputs");
    b.joined = b.given + output_count;
    b.made = b.joined + output_count;
    retain_all(&b);
    status = run(&b, outputs);
    drop_all(&b);
    eddy_memory_release(b.given, bytes + 1, EDDY_MEMORY_PROGRAM);
    return status;
}
