#include <program/branch_tape.h>

#include <base/memory.h>
#include <base/status.h>
#include <interpreter/call/copy.h>
#include <interpreter/handle/scope.h>
#include <program/block_node.h>
#include <program/quiet.h>
#include <string.h>

/* ---- life ---- */

static size_t tape_bytes(int64_t output_count) {
    return sizeof(eddy_branch_tape) +
           EDDY_BRANCH_WAYS * (size_t)output_count * (sizeof(eddy_tensor *) + sizeof(bool));
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
    bool *owns = (bool *)(tape->outputs + EDDY_BRANCH_WAYS * call->output_count);
    for (int way = 0; way < EDDY_BRANCH_WAYS; way++)
        eddy_way_tape_init(&tape->ways[way], tape->outputs + way * call->output_count,
                           way == EDDY_BRANCH_DUE ? NULL : owns + way * call->output_count,
                           call->output_count);
    return tape;
}

void eddy_branch_tape_destroy(eddy_branch_tape *tape) {
    for (int way = 0; way < EDDY_BRANCH_WAYS; way++)
        eddy_way_tape_fini(&tape->ways[way]);
    eddy_tensor_drop(tape->predicate);
    eddy_memory_release(tape, tape_bytes(tape->output_count), EDDY_MEMORY_TAPE);
}

static void destroy_tape(void *context) {
    eddy_branch_tape_destroy(context);
}

bool eddy_branch_tape_has_predicate(const eddy_branch_tape *tape) {
    return version_of(tape->predicate) == tape->version;
}

void eddy_branch_tape_set_predicate(eddy_branch_tape *tape, eddy_tensor *predicate,
                                    uint64_t events) {
    eddy_tensor_drop(tape->predicate);
    tape->predicate = predicate;
    tape->version = version_of(predicate);
    tape->events = events;
}

bool eddy_branch_tape_is_wanted(const eddy_branch_tape *tape) {
    bool is_wanted = false;
    for (int way = 0; way < EDDY_BRANCH_WAYS; way++)
        is_wanted |= eddy_way_tape_is_wanted(&tape->ways[way]);
    return is_wanted;
}

bool eddy_branch_tape_is_wanted_of(const eddy_branch_tape *tape, int64_t i) {
    bool is_wanted = false;
    for (int way = 0; way < EDDY_BRANCH_WAYS; way++) {
        const eddy_tensor *held = tape->ways[way].outputs[i];
        is_wanted |= held && held->autograd;
    }
    return is_wanted;
}

/* ---- the node's gradient ---- */

static const eddy_branch_tape *tape_of(const eddy_block_pass *p) {
    return p->op->tape;
}

/* The gradient for an edge, or zeros where the way does not lead there; the open scope's or the pass's. */
static eddy_status find_gradient(const eddy_block_pass *p, const eddy_backward_found *found,
                                 int64_t edge, eddy_tensor **gradient) {
    *gradient = eddy_way_tape_gradient(found, p->op->edges[edge]);
    return *gradient ? EDDY_OK
                     : eddy_gradient_ops_table.zeros(&p->gradient->input_specs[edge],
                                                     p->gradient->device, gradient);
}

static eddy_status join(const eddy_block_pass *p, int way, int64_t edge, eddy_tensor *gradient) {
    const void *address = p->call.origin.address;
    return way == 0 ? eddy_copy_contiguous(p->call.caller, gradient, address, &p->joined[edge])
                    : eddy_copy_to(p->call.caller, gradient, p->joined[edge], address);
}

static eddy_status note_way(const void *context, int way) {
    const eddy_block_pass *p = context;
    eddy_backward_found found;
    eddy_scope *scope;
    eddy_status status = eddy_scope_open(p->call.caller, p->call.origin, &scope);
    if (status != EDDY_OK)
        return status;
    status =
        eddy_way_tape_go_back(&tape_of(p)->ways[way], p->gradient->grads, p->call.origin, &found);
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
    const eddy_block_pass *p = context;
    return eddy_block_note_ways(&p->call, tape_of(p)->predicate, note_way, p);
}

/* The pass of the way that was due. What it does not lead to gets zeros where that is recorded. */
static eddy_status run_due(void *context) {
    const eddy_block_pass *p = context;
    eddy_backward_found found;
    eddy_status status = eddy_way_tape_go_back(&tape_of(p)->ways[EDDY_BRANCH_DUE],
                                               p->gradient->grads, p->call.origin, &found);
    for (int64_t e = 0; e < p->gradient->input_count && status == EDDY_OK; e++) {
        eddy_tensor *gradient = eddy_way_tape_gradient(&found, p->op->edges[e]);
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

/* Where the predicate was overwritten, a run could not find the way again; what has run knows its own. */
static void check_predicate(eddy_block_pass *p) {
    const eddy_branch_tape *tape = tape_of(p);
    eddy_recorder_needs(p->call.caller, tape->predicate, tape->recording, tape->events);
    if (eddy_branch_tape_has_predicate(tape))
        return;
    eddy_recording_spoil(p->call.recording, EDDY_UNSUPPORTED, p->call.origin,
                         "its predicate was overwritten, and its gradient needs that");
    p->call.recording = NULL;
}

/* What comes of one way has no elements: the calls did not run, and are not recorded now. */
static eddy_status lose_way(eddy_block_pass *p, int way) {
    eddy_backward_found found;
    eddy_status status =
        eddy_way_tape_go_back(&tape_of(p)->ways[way], p->gradient->grads, p->call.origin, &found);
    for (int64_t e = 0; e < p->gradient->input_count && status == EDDY_OK; e++) {
        eddy_tensor *gradient = eddy_way_tape_gradient(&found, p->op->edges[e]);
        if (!gradient || p->made[e])
            continue;
        eddy_tensor_retain(gradient);
        p->made[e] = gradient;
    }
    eddy_backward_found_fini(&found);
    return status;
}

static eddy_status run_lost(eddy_block_pass *p) {
    eddy_status status = lose_way(p, 0);
    return status == EDDY_OK ? lose_way(p, 1) : status;
}

static eddy_status run_pass(eddy_block_pass *p) {
    if (p->call.recording)
        check_predicate(p);
    if (p->call.recording)
        return eddy_block_pass_record(p, note_ways, run_due);
    return tape_of(p)->ways[EDDY_BRANCH_DUE].outputs[0] ? run_due(p) : run_lost(p);
}

static eddy_status run_gradient(const eddy_gradient_call *call) {
    const eddy_branch_tape *tape = ((const eddy_block_op *)call->attributes)->tape;
    return eddy_block_pass_run(call, tape->recording, run_pass);
}

eddy_branch_tape *eddy_branch_tape_of(const eddy_autograd_node *node) {
    return eddy_block_node_tape(node, run_gradient);
}

/* ---- the node ---- */

/* Edges of the first way, then those that only the second one has. */
typedef struct edges {
    eddy_backward_found of[2];
} edges;

static uint32_t list_edges(const edges *e, eddy_backward_edge *list) {
    uint32_t count = 0;
    for (int way = 0; way < 2; way++)
        for (uint32_t i = 0; i < e->of[way].count; i++) {
            const eddy_backward_edge *edge = &e->of[way].edges[i];
            if (way == 1 && eddy_way_tape_gradient(&e->of[0], edge->word))
                continue;
            list[count++] = *edge;
        }
    return count;
}

static eddy_status make_with_edges(const eddy_block_call *call, eddy_branch_tape *tape,
                                   const edges *e, eddy_tensor *const *made,
                                   eddy_autograd_node **node) {
    size_t bytes = ((size_t)e->of[0].count + e->of[1].count) * sizeof(eddy_backward_edge);
    eddy_backward_edge *list = eddy_memory_acquire(bytes + 1, EDDY_MEMORY_TAPE);
    if (!list)
        return eddy_fail(EDDY_OUT_OF_MEMORY, call->origin, "no memory to record the call");
    eddy_block_node_parts parts = {.name = "cond",
                                   .run = run_gradient,
                                   .due = &tape->ways[EDDY_BRANCH_DUE],
                                   .edges = list,
                                   .edge_count = list_edges(e, list),
                                   .made = made,
                                   .made_count = tape->output_count};
    eddy_status status = eddy_block_node_make(call, &parts, tape, destroy_tape, node);
    eddy_memory_release(list, bytes + 1, EDDY_MEMORY_TAPE);
    return status;
}

eddy_status eddy_branch_tape_make_node(const eddy_block_call *call, eddy_branch_tape *tape,
                                       eddy_tensor *const *made, eddy_autograd_node **node) {
    edges e;
    eddy_quiet quiet;
    eddy_error failed;
    *node = NULL;
    eddy_quiet_begin(&quiet);
    e = (edges){0};
    eddy_status status = eddy_block_find_edges(call, tape->ways, 2, e.of);
    eddy_quiet_end(&quiet, &failed);
    if (status == EDDY_OK)
        status = make_with_edges(call, tape, &e, made, node);
    else
        eddy_recording_spoil(call->recording, status, call->origin, failed.message);
    for (int way = 0; way < 2; way++)
        eddy_backward_found_fini(&e.of[way]);
    return *node || call->recording->status != EDDY_OK ? EDDY_OK : status;
}
