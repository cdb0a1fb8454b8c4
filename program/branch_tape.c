#include <program/branch_tape.h>

#include <base/memory.h>
#include <base/status.h>
#include <interpreter/call/copy.h>
#include <interpreter/handle/scope.h>
#include <interpreter/tape/autograd.h>
#include <interpreter/tape/backward_within.h>
#include <program/quiet.h>
#include <string.h>

/* ---- life ---- */

static size_t tape_bytes(int64_t output_count) {
    return sizeof(eddy_branch_tape) +
           EDDY_BRANCH_WAYS * (size_t)output_count * sizeof(eddy_tensor *);
}

static uint32_t version_of(const eddy_tensor *tensor) {
    return eddy_load_relaxed(&tensor->root->version);
}

eddy_branch_tape *eddy_branch_tape_create(const eddy_block_call *call, eddy_tensor *predicate) {
    eddy_branch_tape *tape =
        eddy_memory_acquire_zeroed(tape_bytes(call->output_count), EDDY_MEMORY_TAPE);
    if (!tape)
        return NULL;
    tape->recording = call->recording->number;
    tape->output_count = call->output_count;
    tape->predicate = predicate;
    tape->version = version_of(predicate);
    tape->events = call->recording->recorder.events;
    eddy_tensor_retain(predicate);
    for (int way = 0; way < EDDY_BRANCH_WAYS; way++)
        tape->serials[way] = eddy_recording_next_serial();
    return tape;
}

void eddy_branch_tape_destroy(eddy_branch_tape *tape) {
    eddy_block_drop(tape->outputs, EDDY_BRANCH_WAYS * tape->output_count);
    eddy_tensor_drop(tape->predicate);
    eddy_memory_release(tape, tape_bytes(tape->output_count), EDDY_MEMORY_TAPE);
}

static void destroy_tape(void *context) {
    eddy_branch_tape_destroy(context);
}

/* ---- ways ---- */

uint64_t eddy_branch_tape_begin(const eddy_block_call *call, const eddy_branch_tape *tape,
                                int way) {
    uint64_t before = call->recording->recorder.serial;
    call->recording->recorder.serial = tape->serials[way];
    return before;
}

void eddy_branch_tape_end(const eddy_block_call *call, uint64_t before) {
    call->recording->recorder.serial = before;
}

/* Whether the tensor was made by a call of the way that a gradient goes back through. */
static bool is_of(const eddy_branch_tape *tape, int way, const eddy_tensor *tensor) {
    return tensor->autograd &&
           eddy_autograd_node_of(tensor->autograd)->recording == tape->serials[way];
}

eddy_status eddy_branch_tape_hold(const eddy_block_call *call, eddy_branch_tape *tape, int way,
                                  eddy_tensor *const *given) {
    eddy_tensor **held = eddy_branch_tape_outputs(tape, way);
    for (int64_t i = 0; i < tape->output_count; i++) {
        if (given[i]->autograd && !is_of(tape, way, given[i])) {
            eddy_status status = eddy_block_copy(call, given[i], &held[i]);
            if (status != EDDY_OK)
                return status;
            continue;
        }
        eddy_tensor_retain(given[i]);
        held[i] = given[i];
    }
    return EDDY_OK;
}

bool eddy_branch_tape_is_wanted(const eddy_branch_tape *tape) {
    for (int64_t i = 0; i < EDDY_BRANCH_WAYS * tape->output_count; i++)
        if (tape->outputs[i] && tape->outputs[i]->autograd)
            return true;
    return false;
}

/* ---- a pass through one way ---- */

/* Gradients come to some outputs (grads: NULL for others); NULL for `grads`: to all, and what they are does not matter. */
static eddy_status go_back(eddy_branch_tape *tape, int way, eddy_tensor *const *grads,
                           eddy_origin origin, eddy_backward_found *found) {
    size_t bytes = 2 * (size_t)tape->output_count * sizeof(eddy_tensor *);
    eddy_tensor **from = eddy_memory_acquire(bytes + 1, EDDY_MEMORY_TAPE),
                **seeds = from + tape->output_count;
    int64_t count = 0;
    *found = (eddy_backward_found){0};
    if (!from)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory to go back");
    for (int64_t i = 0; i < tape->output_count; i++) {
        eddy_tensor *output = eddy_branch_tape_outputs(tape, way)[i];
        if (!is_of(tape, way, output) || (grads && !grads[i]))
            continue;
        from[count] = output;
        seeds[count++] = grads ? grads[i] : output;
    }
    eddy_status status = EDDY_OK;
    if (count > 0)
        status = eddy_backward_within(tape->serials[way], (eddy_list){from, count},
                                      (eddy_list){seeds, count}, origin, found);
    eddy_memory_release(from, bytes + 1, EDDY_MEMORY_TAPE);
    return status;
}

static eddy_tensor *gradient_for(const eddy_backward_found *found, eddy_autograd edge) {
    for (uint32_t i = 0; i < found->count; i++)
        if (found->edges[i].word == edge)
            return found->edges[i].gradient;
    return NULL;
}

/* ---- the node's gradient ---- */

/* The node's attributes. */
typedef struct branch_op {
    eddy_op op;
    eddy_gradient gradient;
    eddy_branch_tape *tape; /* the hook's */
    eddy_autograd *edges;   /* the node's */
} branch_op;

typedef struct pass {
    eddy_block_call call;
    const eddy_gradient_call *gradient;
    const branch_op *op;
    eddy_tensor **joined; /* per edge: references, what the marks give */
    eddy_tensor **made;   /* per edge: references, what the way gives that was due */
} pass;

static eddy_origin origin_of(const eddy_gradient_call *call) {
    return (eddy_origin){call->op->name, NULL};
}

/* The gradient for an edge, or zeros where the way does not lead there; the open scope's or the pass's. */
static eddy_status find_gradient(const pass *p, const eddy_backward_found *found, int64_t edge,
                                 eddy_tensor **gradient) {
    *gradient = gradient_for(found, p->op->edges[edge]);
    return *gradient ? EDDY_OK
                     : eddy_gradient_ops_table.zeros(&p->gradient->input_specs[edge],
                                                     p->gradient->device, gradient);
}

static eddy_status join(const pass *p, int way, int64_t edge, eddy_tensor *gradient) {
    const void *address = p->call.origin.address;
    return way == 0 ? eddy_copy_contiguous(p->call.caller, gradient, address, &p->joined[edge])
                    : eddy_copy_to(p->call.caller, gradient, p->joined[edge], address);
}

static eddy_status note_way(const void *context, int way) {
    const pass *p = context;
    eddy_backward_found found;
    eddy_scope *scope;
    eddy_status status = eddy_scope_open(p->call.caller, p->call.origin, &scope);
    if (status != EDDY_OK)
        return status;
    status = go_back(p->op->tape, way, p->gradient->grads, p->call.origin, &found);
    for (int64_t e = 0; e < p->gradient->input_count && status == EDDY_OK; e++) {
        eddy_tensor *gradient;
        status = find_gradient(p, &found, e, &gradient);
        if (status == EDDY_OK)
            status = join(p, way, e, gradient);
    }
    eddy_backward_found_fini(&found);
    eddy_scope_end(scope);
    return status;
}

static eddy_status note_ways(void *context) {
    const pass *p = context;
    return eddy_block_note_ways(&p->call, p->op->tape->predicate, note_way, p);
}

/* The pass of the way that was due. What it does not lead to gets zeros where that is recorded. */
static eddy_status run_due(void *context) {
    const pass *p = context;
    eddy_backward_found found;
    eddy_status status =
        go_back(p->op->tape, EDDY_BRANCH_DUE, p->gradient->grads, p->call.origin, &found);
    for (int64_t e = 0; e < p->gradient->input_count && status == EDDY_OK; e++) {
        eddy_tensor *gradient = gradient_for(&found, p->op->edges[e]);
        if (!gradient && !p->call.recording)
            continue;
        status = find_gradient(p, &found, e, &gradient);
        if (status == EDDY_OK)
            status =
                eddy_copy_contiguous(p->call.caller, gradient, p->call.origin.address, &p->made[e]);
    }
    eddy_backward_found_fini(&found);
    return status;
}

static eddy_status check_predicate(const pass *p) {
    const eddy_branch_tape *tape = p->op->tape;
    eddy_recorder_needs(p->call.caller, tape->predicate, tape->recording, tape->events);
    return version_of(tape->predicate) == tape->version
               ? EDDY_OK
               : eddy_fail(EDDY_INVALID_ARGUMENT, p->call.origin,
                           "the predicate of a branch was overwritten, and its gradient needs it");
}

static eddy_status record(pass *p) {
    bool runs = p->call.recording->recorder.mode == EDDY_RECORDER_RUNS;
    eddy_status status = check_predicate(p);
    if (status == EDDY_OK)
        status = eddy_block_note(&p->call, note_ways, p);
    if (status == EDDY_OK && runs)
        status = eddy_block_watch(&p->call, run_due, p);
    for (int64_t e = 0; e < p->gradient->input_count && status == EDDY_OK; e++) {
        if (runs && p->joined[e])
            eddy_block_show(&p->call, p->made[e], p->joined[e]);
        if (runs)
            continue;
        p->made[e] = p->joined[e];
        p->joined[e] = NULL;
    }
    return status;
}

/* The results become the open scope's. */
static eddy_status hand_over(const pass *p) {
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

/* The recording that the branch is a part of, if its calls are recorded now. */
static eddy_recording *recording_of(const eddy_branch_tape *tape) {
    eddy_recording *recording = eddy_block_recording(eddy_caller_self);
    return recording && recording->number == tape->recording && recording->status == EDDY_OK
               ? recording
               : NULL;
}

/* The calls did not run, and are not recorded now: what comes of the ways has no elements. */
static eddy_status run_lost(const pass *p) {
    eddy_status status = EDDY_OK;
    for (int way = 0; way < 2 && status == EDDY_OK; way++) {
        eddy_backward_found found;
        status = go_back(p->op->tape, way, p->gradient->grads, p->call.origin, &found);
        for (int64_t e = 0; e < p->gradient->input_count && status == EDDY_OK; e++) {
            eddy_tensor *gradient = gradient_for(&found, p->op->edges[e]);
            if (!gradient || p->made[e])
                continue;
            eddy_tensor_retain(gradient);
            p->made[e] = gradient;
        }
        eddy_backward_found_fini(&found);
    }
    return status;
}

static eddy_status run_pass(pass *p) {
    bool has_run = eddy_branch_tape_outputs(p->op->tape, EDDY_BRANCH_DUE)[0] != NULL;
    eddy_status status = p->call.recording ? record(p) : has_run ? run_due(p) : run_lost(p);
    return status == EDDY_OK ? hand_over(p) : status;
}

static eddy_status run_gradient(const eddy_gradient_call *call) {
    const branch_op *op = call->attributes;
    if (call->is_recorded)
        return eddy_fail(EDDY_UNSUPPORTED, origin_of(call),
                         "a recorded branch's gradient has no gradient");
    size_t bytes = 2 * (size_t)call->input_count * sizeof(eddy_tensor *);
    eddy_tensor **memory = eddy_memory_acquire_zeroed(bytes + 1, EDDY_MEMORY_TAPE);
    if (!memory)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin_of(call), "no memory to go back");
    pass p = {.call = {.caller = eddy_caller_self,
                       .origin = origin_of(call),
                       .recording = recording_of(op->tape)},
              .gradient = call,
              .op = op,
              .joined = memory,
              .made = memory + call->input_count};
    eddy_status status = run_pass(&p);
    eddy_block_drop(memory, 2 * call->input_count);
    eddy_memory_release(memory, bytes + 1, EDDY_MEMORY_TAPE);
    return status;
}

/* ---- the node ---- */

/* Edges of the first way, then those that only the second one has. */
typedef struct edges {
    eddy_backward_found of[2];
} edges;

static uint32_t list_edges(const edges *e, const eddy_backward_edge **list) {
    uint32_t count = 0;
    for (int way = 0; way < 2; way++)
        for (uint32_t i = 0; i < e->of[way].count; i++) {
            const eddy_backward_edge *edge = &e->of[way].edges[i];
            if (way == 1 && gradient_for(&e->of[0], edge->word))
                continue;
            if (list)
                list[count] = edge;
            count++;
        }
    return count;
}

/* Passes through the ways that nobody records, with what has no elements: where they end is all that matters. */
static eddy_status find_edges(const eddy_block_call *call, eddy_branch_tape *tape, edges *e) {
    eddy_recorder *recorder = call->caller->recorder;
    eddy_scope *scope;
    *e = (edges){0};
    eddy_status status = eddy_scope_open(call->caller, call->origin, &scope);
    if (status != EDDY_OK)
        return status;
    call->caller->recorder = NULL;
    for (int way = 0; way < 2 && status == EDDY_OK; way++)
        status = go_back(tape, way, NULL, call->origin, &e->of[way]);
    call->caller->recorder = recorder;
    eddy_scope_end(scope);
    return status;
}

static eddy_autograd_node *make_node(const eddy_block_call *call, eddy_branch_tape *tape,
                                     uint32_t edge_count) {
    size_t rooms = edge_count + (size_t)tape->output_count;
    eddy_autograd_node *node =
        eddy_autograd_node_make(&(eddy_autograd_size){.inputs = edge_count,
                                                      .outputs = (uint32_t)tape->output_count,
                                                      .dims = rooms * EDDY_RANK_MAX,
                                                      .attribute_bytes = sizeof(branch_op)});
    eddy_autograd_hook *hook =
        node ? eddy_memory_acquire_zeroed(sizeof(*hook), EDDY_MEMORY_TAPE) : NULL;
    if (!hook) {
        if (node)
            eddy_autograd_node_release(node);
        return NULL;
    }
    *hook = (eddy_autograd_hook){.context = tape, .destroy = destroy_tape, .output = UINT32_MAX};
    branch_op *op = node->attributes;
    *op = (branch_op){.op = {.name = "cond", .id = EDDY_OP_REGISTERED, .gradient = &op->gradient},
                      .gradient = {.run = run_gradient},
                      .tape = tape,
                      .edges = node->edges};
    node->hooks = hook;
    node->op = &op->op;
    node->takes_missing = true;
    node->address = call->origin.address;
    return node;
}

static void note_outputs(const eddy_branch_tape *tape, eddy_autograd_node *node, uint32_t dims_at,
                         eddy_tensor *const *made) {
    for (int64_t i = 0; i < tape->output_count; i++) {
        node->device = eddy_tensor_device(made[i]);
        eddy_autograd_node_note(node, node->input_count + (uint32_t)i, made[i], &dims_at);
    }
}

static eddy_status make_with_edges(const eddy_block_call *call, eddy_branch_tape *tape,
                                   const edges *e, eddy_tensor *const *made,
                                   eddy_autograd_node **node) {
    uint32_t count = list_edges(e, NULL), dims_at = 0;
    const eddy_backward_edge **list =
        eddy_memory_acquire(count * sizeof(*list) + 1, EDDY_MEMORY_TAPE);
    *node = list ? make_node(call, tape, count) : NULL;
    if (*node) {
        list_edges(e, list);
        for (uint32_t i = 0; i < count; i++) {
            eddy_autograd_node_note(*node, i, list[i]->gradient, &dims_at);
            eddy_autograd_node_retain(eddy_autograd_node_of(list[i]->word));
            (*node)->edges[i] = list[i]->word;
        }
        note_outputs(tape, *node, dims_at, made);
    }
    eddy_memory_release(list, count * sizeof(*list) + 1, EDDY_MEMORY_TAPE);
    return *node ? EDDY_OK
                 : eddy_fail(EDDY_OUT_OF_MEMORY, call->origin, "no memory to record the call");
}

eddy_status eddy_branch_tape_make_node(const eddy_block_call *call, eddy_branch_tape *tape,
                                       eddy_tensor *const *made, eddy_autograd_node **node) {
    edges e;
    eddy_quiet quiet;
    eddy_error failed;
    *node = NULL;
    eddy_quiet_begin(&quiet);
    eddy_status status = find_edges(call, tape, &e);
    eddy_quiet_end(&quiet, &failed);
    if (status == EDDY_OK)
        status = make_with_edges(call, tape, &e, made, node);
    else
        eddy_recording_spoil(call->recording, status, call->origin, failed.message);
    for (int way = 0; way < 2; way++)
        eddy_backward_found_fini(&e.of[way]);
    return *node || call->recording->status != EDDY_OK ? EDDY_OK : status;
}

void eddy_branch_tape_name(const eddy_branch_tape *tape, eddy_autograd_node *node, int64_t i,
                           eddy_tensor *output) {
    bool is_wanted = false;
    for (int way = 0; way < EDDY_BRANCH_WAYS; way++) {
        const eddy_tensor *held = tape->outputs[way * tape->output_count + i];
        is_wanted |= held && held->autograd;
    }
    if (is_wanted)
        eddy_autograd_node_name(node, (uint32_t)i, output);
}
