#include <program/block_node.h>

#include <base/memory.h>
#include <base/status.h>
#include <interpreter/handle/scope.h>
#include <interpreter/tape/overwritten.h>
#include <string.h>

/* ---- calls around a branch or loop ---- */

eddy_autograd_node *eddy_block_node_call(const eddy_op *op, const eddy_autograd_node *block,
                                         const eddy_spec *from, const eddy_spec *to) {
    eddy_autograd_node *node = eddy_autograd_node_make(
        &(eddy_autograd_size){.inputs = 1,
                              .outputs = 1,
                              .dims = (size_t)from->shape.rank + (size_t)to->shape.rank,
                              .attribute_bytes = op->attribute_bytes});
    if (!node)
        return NULL;
    node->op = op;
    node->address = block->address;
    node->device = block->device;
    node->recording = node->recorded_at = 0;
    if (op->attribute_bytes > 0)
        memset(node->attributes, 0, op->attribute_bytes);
    node->specs[0] =
        (eddy_autograd_spec){.dtype = (uint8_t)from->dtype, .rank = (int8_t)from->shape.rank};
    node->specs[1] = (eddy_autograd_spec){.dtype = (uint8_t)to->dtype,
                                          .rank = (int8_t)to->shape.rank,
                                          .device_kind = (int8_t)node->device.kind,
                                          .device_index = (int8_t)node->device.index,
                                          .dims_at = (uint32_t)from->shape.rank};
    memcpy(node->dims, from->shape.dims, (size_t)from->shape.rank * sizeof(*node->dims));
    memcpy(node->dims + from->shape.rank, to->shape.dims,
           (size_t)to->shape.rank * sizeof(*node->dims));
    return node;
}

eddy_autograd_node *eddy_block_node_copy(const eddy_autograd_node *block, uint32_t output) {
    eddy_spec spec;
    eddy_autograd_spec_of(block, block->input_count + output, &spec);
    return eddy_block_node_call(eddy_op_find("clone"), block, &spec, &spec);
}

/* ---- nodes ---- */

/* Outside of recordings what was due stands for the node, as if there had been none. In one, nobody would record its calls; and by another thread that one may
 * still be open. */
static eddy_status unfold(eddy_autograd_node *node, eddy_autograd *words) {
    const eddy_block_op *op = node->attributes;
    if (eddy_caller_self != op->caller || op->caller->recorder || !op->due->outputs[0])
        return EDDY_UNSUPPORTED;
    for (uint32_t i = 0; i < node->output_count; i++) {
        words[i] = op->due->outputs[i]->autograd;
        if (words[i]) {
            eddy_autograd_node_retain(eddy_autograd_node_of(words[i]));
            continue;
        }
        /* No gradient goes back from it on the way that was due. */
        eddy_autograd_node *nowhere = eddy_block_node_copy(node, i);
        if (!nowhere)
            return EDDY_OUT_OF_MEMORY;
        words[i] = eddy_autograd_make(nowhere, 0);
    }
    return EDDY_OK;
}

static eddy_autograd_node *make_node(const eddy_block_node_parts *parts) {
    size_t rooms = parts->edge_count + (size_t)parts->made_count;
    return eddy_autograd_node_make(&(eddy_autograd_size){.inputs = parts->edge_count,
                                                         .outputs = (uint32_t)parts->made_count,
                                                         .extras = parts->saved_count,
                                                         .dims = rooms * EDDY_RANK_MAX,
                                                         .attribute_bytes = sizeof(eddy_block_op)});
}

static void note_operands(eddy_autograd_node *node, const eddy_block_node_parts *parts) {
    uint32_t dims_at = 0;
    for (uint32_t i = 0; i < parts->edge_count; i++) {
        eddy_autograd word = parts->edges[i].word;
        eddy_autograd_node_note(node, i, parts->edges[i].gradient, &dims_at);
        if (word)
            eddy_autograd_node_retain(eddy_autograd_node_of(word));
        node->edges[i] = word;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        node->device = eddy_tensor_device(parts->made[i]);
        eddy_autograd_node_note(node, node->input_count + i, parts->made[i], &dims_at);
    }
}

static void save(eddy_autograd_node *node, const eddy_block_node_parts *parts) {
    for (uint32_t i = 0; i < parts->saved_count; i++) {
        eddy_tensor *tensor = parts->saved[i];
        eddy_tensor_retain(tensor);
        eddy_overwritten_watch(tensor);
        node->saved[node->input_count + node->output_count + i] = (eddy_autograd_saved){
            .tensor = tensor, .version = eddy_load_relaxed(&tensor->root->version)};
    }
}

eddy_status eddy_block_node_make(const eddy_block_call *call, const eddy_block_node_parts *parts,
                                 void *tape, void (*destroy)(void *tape),
                                 eddy_autograd_node **made) {
    eddy_autograd_node *node = make_node(parts);
    eddy_autograd_hook *hook =
        node ? eddy_memory_acquire_zeroed(sizeof(*hook), EDDY_MEMORY_TAPE) : NULL;
    *made = NULL;
    if (!hook) {
        if (node)
            eddy_autograd_node_release(node);
        return eddy_fail(EDDY_OUT_OF_MEMORY, call->origin, "no memory to record the call");
    }
    *hook = (eddy_autograd_hook){.context = tape, .destroy = destroy, .output = UINT32_MAX};
    eddy_block_op *op = node->attributes;
    *op = (eddy_block_op){
        .op = {.name = parts->name, .id = EDDY_OP_REGISTERED, .gradient = &op->gradient},
        .gradient = {.run = parts->run},
        .tape = tape,
        .due = parts->due,
        .caller = call->caller,
        .edges = node->edges};
    node->hooks = hook;
    node->op = &op->op;
    node->takes_missing = true;
    node->unfold = unfold;
    node->address = call->origin.address;
    note_operands(node, parts);
    save(node, parts);
    *made = node;
    return EDDY_OK;
}

static bool leads_somewhere(const eddy_autograd_node *node) {
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->edges[i])
            return true;
    return false;
}

eddy_status eddy_block_node_name(const eddy_block_call *call, eddy_autograd_node *node, int64_t i,
                                 bool is_wanted, eddy_tensor **made) {
    eddy_tensor *handle = eddy_tensor_acquire(call->caller, (*made)->runtime, call->origin.address);
    if (!handle)
        return eddy_fail(EDDY_OUT_OF_MEMORY, call->origin, "no memory for the outputs");
    eddy_tensor_alias(handle, *made);
    handle->stands_in = true;
    if (is_wanted && leads_somewhere(node))
        eddy_autograd_node_name(node, (uint32_t)i, handle);
    eddy_tensor_drop(*made);
    *made = handle;
    return EDDY_OK;
}

void *eddy_block_node_tape(const eddy_autograd_node *node, eddy_gradient_fn *run) {
    bool is_it = node->op && node->op->gradient && node->op->gradient->run == run;
    return is_it ? ((const eddy_block_op *)node->attributes)->tape : NULL;
}

/* ---- edges ---- */

typedef struct finding {
    const eddy_block_call *call;
    const eddy_way_tape *ways;
    int count;
    eddy_backward_found *found;
} finding;

static eddy_status go_back(void *context) {
    const finding *f = context;
    eddy_scope *scope;
    eddy_status status = eddy_scope_open(f->call->caller, f->call->origin, &scope);
    if (status != EDDY_OK)
        return status;
    for (int way = 0; way < f->count && status == EDDY_OK; way++)
        status = eddy_way_tape_go_back(&f->ways[way], NULL, f->call->origin, &f->found[way]);
    eddy_scope_end(scope);
    return status;
}

/* What a function with a gradient of its own does there may be anything: it is noted, in a recording that is thrown away. */
static eddy_status find_in(finding *f, eddy_recording *scratch, eddy_block_call *call) {
    eddy_recorder *recorder = f->call->caller->recorder;
    eddy_recording_init(scratch, f->call->recording->runtime);
    scratch->depth = f->call->recording->depth + 1;
    call->recording = scratch;
    f->call->caller->recorder = &scratch->recorder;
    scratch->recorder.mode = EDDY_RECORDER_NOTES; /* a failure is the call's */
    eddy_status status = eddy_block_note(call, go_back, f);
    f->call->caller->recorder = recorder;
    if (status == EDDY_OK && scratch->status != EDDY_OK)
        status = eddy_fail(scratch->status, f->call->origin, "%s", scratch->reason);
    eddy_recording_fini(scratch);
    return status;
}

eddy_status eddy_block_find_edges(const eddy_block_call *call, const eddy_way_tape *ways, int count,
                                  eddy_backward_found *found) {
    eddy_recording *scratch = eddy_memory_acquire(sizeof(*scratch), EDDY_MEMORY_PROGRAM);
    eddy_block_call noted = *call;
    finding f = {.call = call, .ways = ways, .count = count, .found = found};
    if (!scratch)
        return eddy_fail(EDDY_OUT_OF_MEMORY, call->origin, "no memory to record the call");
    eddy_status status = find_in(&f, scratch, &noted);
    eddy_memory_release(scratch, sizeof(*scratch), EDDY_MEMORY_PROGRAM);
    return status;
}

/* ---- passes ---- */

/* The results become the open scope's. */
static eddy_status hand_over(const eddy_block_pass *p) {
    int64_t count = p->gradient->input_count;
    if (!eddy_scope_reserve(p->call.caller, (uint32_t)count))
        return eddy_fail(EDDY_OUT_OF_MEMORY, p->call.origin, "no memory to go back");
    for (int64_t e = 0; e < count; e++) {
        if (p->made[e])
            eddy_scope_own(p->call.caller, p->made[e]);
        p->gradient->results[e] = p->made[e];
        p->made[e] = NULL;
    }
    return EDDY_OK;
}

static eddy_recording *recording_with(uint64_t number) {
    eddy_recording *recording = eddy_block_recording(eddy_caller_self);
    return recording && recording->number == number && recording->status == EDDY_OK ? recording
                                                                                    : NULL;
}

eddy_status eddy_block_pass_run(const eddy_gradient_call *gradient, uint64_t recording,
                                eddy_status (*run)(eddy_block_pass *pass)) {
    const eddy_block_op *op = gradient->attributes;
    eddy_origin origin = {gradient->op->name, NULL};
    if (gradient->is_recorded)
        return eddy_fail(EDDY_UNSUPPORTED, origin,
                         "the gradient of a recorded branch or loop has no gradient");
    size_t bytes = 2 * (size_t)gradient->input_count * sizeof(eddy_tensor *);
    eddy_tensor **memory = eddy_memory_acquire_zeroed(bytes + 1, EDDY_MEMORY_TAPE);
    if (!memory)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory to go back");
    eddy_block_pass pass = {.call = {.caller = eddy_caller_self,
                                     .origin = origin,
                                     .recording = recording_with(recording),
                                     .device = gradient->device},
                            .gradient = gradient,
                            .op = op,
                            .joined = memory,
                            .made = memory + gradient->input_count};
    eddy_status status = run(&pass);
    if (status == EDDY_OK)
        status = hand_over(&pass);
    eddy_block_drop(memory, 2 * gradient->input_count);
    eddy_memory_release(memory, bytes + 1, EDDY_MEMORY_TAPE);
    return status;
}

eddy_status eddy_block_pass_record(eddy_block_pass *p, eddy_status (*note)(void *pass),
                                   eddy_status (*run)(void *pass)) {
    bool runs = p->call.recording->recorder.mode == EDDY_RECORDER_RUNS;
    eddy_status status = eddy_block_note(&p->call, note, p);
    if (status == EDDY_OK && runs)
        status = eddy_block_watch(&p->call, run, p);
    for (int64_t e = 0; e < p->gradient->input_count && status == EDDY_OK; e++) {
        if (runs && p->joined[e] && p->made[e])
            eddy_block_show(&p->call, p->made[e], p->joined[e]);
        if (runs)
            continue;
        p->made[e] = p->joined[e];
        p->joined[e] = NULL;
    }
    return status;
}
