#include <program/loop_tape.h>

#include <base/memory.h>
#include <base/status.h>
#include <eddy/ops.h>
#include <interpreter/call/copy.h>
#include <interpreter/handle/scope.h>
#include <program/block_node.h>
#include <program/quiet.h>
#include <string.h>

/* ---- starts ---- */

static eddy_status refuse(const eddy_gradient_call *call) {
    return eddy_fail(EDDY_UNSUPPORTED, (eddy_origin){call->op->name, NULL},
                     "a backward pass within a loop goes on to what was before it");
}

static const eddy_gradient start_gradient = {.run = refuse};
static const eddy_op start_op = {
    .name = "while", .id = EDDY_OP_REGISTERED, .gradient = &start_gradient};

static eddy_autograd_node *make_start(const eddy_block_call *call, const eddy_tensor *carried) {
    uint32_t dims_at = 0;
    eddy_autograd_node *node =
        eddy_autograd_node_make(&(eddy_autograd_size){.outputs = 1, .dims = (size_t)carried->rank});
    if (!node)
        return NULL;
    node->op = &start_op;
    node->address = call->origin.address;
    node->device = eddy_tensor_device(carried);
    eddy_autograd_node_note(node, 0, carried, &dims_at);
    return node;
}

bool eddy_loop_tape_is_start(const eddy_autograd_node *node) {
    return node->op == &start_op;
}

static eddy_autograd start_of(const eddy_loop_tape *tape, int64_t i) {
    return tape->starts[i] ? eddy_autograd_make(tape->starts[i], 0) : 0;
}

/* ---- life ---- */

static eddy_loop_tape *acquire(int64_t count) {
    size_t n = (size_t)count, outputs = sizeof(eddy_loop_tape),
           starts = outputs + 2 * n * sizeof(eddy_tensor *);
    size_t before = starts + n * sizeof(eddy_autograd_node *),
           leads = before + n * sizeof(eddy_autograd), bytes = leads + n * n + n;
    char *memory = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_TAPE);
    eddy_loop_tape *tape = (eddy_loop_tape *)(void *)memory;
    if (!tape)
        return NULL;
    tape->count = count;
    tape->bytes = bytes;
    tape->starts = (eddy_autograd_node **)(void *)(memory + starts);
    tape->before = (eddy_autograd *)(void *)(memory + before);
    tape->leads = (bool *)(memory + leads);
    tape->leaves = tape->leads + n * n;
    eddy_way_tape_init(&tape->body, tape->outputs, count);
    eddy_way_tape_init(&tape->due, tape->outputs + n, count);
    return tape;
}

eddy_loop_tape *eddy_loop_tape_create(const eddy_block_call *call, eddy_tensor *const *carried,
                                      const bool *carries, int64_t most_steps) {
    eddy_loop_tape *tape = acquire(call->output_count);
    bool has_memory = tape != NULL;
    for (int64_t i = 0; i < call->output_count && has_memory; i++) {
        tape->starts[i] = carries[i] ? make_start(call, carried[i]) : NULL;
        has_memory = !carries[i] || tape->starts[i];
        tape->before[i] = carried[i]->autograd;
        if (tape->before[i])
            eddy_autograd_node_retain(eddy_autograd_node_of(tape->before[i]));
    }
    if (!has_memory) {
        eddy_loop_tape_destroy(tape);
        eddy_fail(EDDY_OUT_OF_MEMORY, call->origin, "no memory to record the call");
        return NULL;
    }
    tape->recording = call->recording->number;
    tape->most_steps = most_steps;
    return tape;
}

void eddy_loop_tape_destroy(eddy_loop_tape *tape) {
    if (!tape)
        return;
    eddy_saved_fini(&tape->saved);
    eddy_way_tape_fini(&tape->body);
    eddy_way_tape_fini(&tape->due);
    for (int64_t i = 0; i < tape->count; i++) {
        if (tape->starts[i])
            eddy_autograd_node_release(tape->starts[i]);
        if (tape->before[i])
            eddy_autograd_node_release(eddy_autograd_node_of(tape->before[i]));
    }
    eddy_memory_release(tape, tape->bytes, EDDY_MEMORY_TAPE);
}

static void destroy_tape(void *context) {
    eddy_loop_tape_destroy(context);
}

eddy_status eddy_loop_tape_give(const eddy_block_call *call, const eddy_loop_tape *tape, int64_t i,
                                eddy_tensor *value, eddy_tensor **given) {
    *given = value;
    if (!tape->starts[i]) {
        eddy_tensor_retain(value);
        return EDDY_OK;
    }
    *given = eddy_tensor_acquire(call->caller, value->runtime, call->origin.address);
    if (!*given)
        return eddy_fail(EDDY_OUT_OF_MEMORY, call->origin, "no memory to record the call");
    eddy_tensor_alias(*given, value);
    (*given)->stands_in = true;
    eddy_autograd_node_name(tape->starts[i], 0, *given);
    return EDDY_OK;
}

/* ---- where gradients go ---- */

typedef struct walk {
    const eddy_loop_tape *tape;
    eddy_code_array nodes; /* eddy_autograd_node *: met so far */
    bool *leads, *leaves;  /* of one output */
} walk;

static bool is_met(const walk *w, const eddy_autograd_node *node) {
    eddy_autograd_node **met = w->nodes.items;
    for (uint32_t i = w->nodes.count; i-- > 0;)
        if (met[i] == node)
            return true;
    return false;
}

static bool meet(walk *w, eddy_autograd word) {
    eddy_autograd_node *node = eddy_autograd_node_of(word);
    uint32_t index;
    if (!word || is_met(w, node))
        return true;
    for (int64_t j = 0; j < w->tape->count; j++)
        if (node == w->tape->starts[j]) {
            w->leads[j] = true;
            return true;
        }
    if (node->recording != w->tape->body.serial) {
        *w->leaves = true;
        return true;
    }
    if (!eddy_code_array_add(&w->nodes, sizeof(node), 1, &index))
        return false;
    ((eddy_autograd_node **)w->nodes.items)[index] = node;
    return true;
}

static bool walk_output(walk *w, const eddy_tensor *output) {
    bool has_memory = meet(w, output->autograd);
    for (uint32_t next = 0; next < w->nodes.count && has_memory; next++) {
        const eddy_autograd_node *node = ((eddy_autograd_node **)w->nodes.items)[next];
        for (uint32_t e = 0; e < node->input_count && has_memory; e++)
            has_memory = meet(w, node->edges[e]);
    }
    return has_memory;
}

bool eddy_loop_tape_find_leads(eddy_loop_tape *tape) {
    bool has_memory = true;
    for (int64_t i = 0; i < tape->count && has_memory; i++) {
        walk w = {.tape = tape, .leads = tape->leads + i * tape->count, .leaves = &tape->leaves[i]};
        has_memory = walk_output(&w, tape->body.outputs[i]);
        eddy_code_array_fini(&w.nodes, sizeof(eddy_autograd_node *));
    }
    return has_memory;
}

/* A step leads from output i to start j: where gradients come to output i they come, one step before, to carried tensor j, which was output j. */
static bool spread(const eddy_loop_tape *tape, bool *comes) {
    bool is_changed = false;
    for (int64_t i = 0; i < tape->count; i++)
        for (int64_t j = 0; j < tape->count && comes[i]; j++) {
            is_changed |= tape->leads[i * tape->count + j] && !comes[j];
            comes[j] |= tape->leads[i * tape->count + j];
        }
    return is_changed;
}

/* Carried tensor i depends on what wants a gradient if output i does, or a tensor that it was computed from. */
void eddy_loop_tape_close(const eddy_loop_tape *tape, bool *carries) {
    bool is_changed = true;
    while (is_changed) {
        is_changed = false;
        for (int64_t i = 0; i < tape->count; i++) {
            bool depends = tape->leaves[i];
            for (int64_t j = 0; j < tape->count; j++)
                depends |= tape->leads[i * tape->count + j] && carries[j];
            is_changed |= depends && !carries[i];
            carries[i] |= depends;
        }
    }
}

/* ---- the node's gradient ---- */

/* A backward pass that is recorded. */
typedef struct back {
    eddy_block_pass *pass;
    eddy_loop_tape *tape;
    eddy_tensor **gradients; /* per carried tensor: references; NULL: none comes there */
    eddy_tensor *
        *aside;      /* the same: what a step gives, where it must not be read from `gradients` */
    bool *comes;     /* per carried tensor */
    eddy_tensor *at; /* a reference: the steps that are left */
} back;

/* Where gradients come to, once they have come to some outputs. */
static void find_comes(const eddy_loop_tape *tape, const eddy_gradient_call *gradient,
                       bool *comes) {
    for (int64_t i = 0; i < tape->count; i++)
        comes[i] = tape->starts[i] && gradient->grads[i];
    while (spread(tape, comes))
        ;
}

static eddy_loop_tape *tape_of(const eddy_block_pass *p) {
    return p->op->tape;
}

static eddy_status zeros(const eddy_block_pass *p, int64_t edge, eddy_tensor **gradient) {
    return eddy_gradient_ops_table.zeros(&p->gradient->input_specs[edge], p->gradient->device,
                                         gradient);
}

/* To which adding changes nothing. */
static eddy_status nothing(const eddy_block_pass *p, int64_t edge, eddy_tensor **gradient) {
    const eddy_spec *spec = &p->gradient->input_specs[edge];
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    *gradient = eddy_full(
        spec->shape, EDDY_S(-0.0), spec->dtype,
        &(eddy_full_options){.size = sizeof(eddy_full_options), .device = p->gradient->device});
    eddy_outcome_end(&outcome);
    return *gradient ? EDDY_OK : eddy_outcome_why(&outcome);
}

static eddy_status hold_copy(const eddy_block_pass *p, eddy_tensor *tensor, eddy_tensor **copy) {
    return eddy_copy_contiguous(p->call.caller, tensor, p->call.origin.address, copy);
}

static eddy_status begin_gradient(const back *b, int64_t i) {
    eddy_tensor *first = b->pass->gradient->grads[i];
    eddy_status status = first ? EDDY_OK : zeros(b->pass, i, &first);
    return status == EDDY_OK ? hold_copy(b->pass, first, &b->gradients[i]) : status;
}

static eddy_status begin_sum(const back *b, int64_t edge) {
    eddy_tensor *sum;
    eddy_status status = nothing(b->pass, edge, &sum);
    if (status == EDDY_OK) {
        eddy_tensor_retain(sum);
        b->pass->joined[edge] = sum;
    }
    return status;
}

static eddy_status begin(back *b) {
    const eddy_gradient_call *gradient = b->pass->gradient;
    eddy_status status = hold_copy(b->pass, gradient->extras[0], &b->at);
    find_comes(b->tape, gradient, b->comes);
    for (int64_t i = 0; i < b->tape->count && status == EDDY_OK; i++)
        if (b->comes[i])
            status = begin_gradient(b, i);
    for (int64_t e = b->tape->count; e < gradient->input_count && status == EDDY_OK; e++)
        status = begin_sum(b, e);
    return status;
}

static bool is_of_gradients(const back *b, const eddy_tensor *tensor) {
    for (int64_t i = 0; i < b->tape->count; i++)
        if (b->gradients[i] && b->gradients[i]->storage == tensor->storage)
            return true;
    return false;
}

/* What a step gives for carried tensor i, apart from the gradients that it was computed from. */
static eddy_status take(const back *b, const eddy_backward_found *found, int64_t i) {
    eddy_tensor *gradient = eddy_way_tape_gradient(found, start_of(b->tape, i));
    eddy_status status = gradient ? EDDY_OK : zeros(b->pass, i, &gradient);
    if (status != EDDY_OK)
        return status;
    if (is_of_gradients(b, gradient))
        return hold_copy(b->pass, gradient, &b->aside[i]);
    eddy_tensor_retain(gradient);
    b->aside[i] = gradient;
    return EDDY_OK;
}

/* All of it is read before what the step was computed from is written. */
static eddy_status take_step(const back *b, const eddy_backward_found *found) {
    const eddy_gradient_call *gradient = b->pass->gradient;
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < b->tape->count && status == EDDY_OK; i++)
        if (b->comes[i])
            status = take(b, found, i);
    for (int64_t e = b->tape->count; e < gradient->input_count && status == EDDY_OK; e++) {
        eddy_tensor *part = eddy_way_tape_gradient(found, b->pass->op->edges[e]);
        if (part)
            status = eddy_gradient_ops_table.add_to(b->pass->joined[e], part);
    }
    for (int64_t i = 0; i < b->tape->count && status == EDDY_OK; i++)
        if (b->comes[i])
            status = eddy_copy_to(b->pass->call.caller, b->aside[i], b->gradients[i],
                                  b->pass->call.origin.address);
    eddy_block_drop(b->aside, b->tape->count);
    return status;
}

/* One step, from the last to the first; the open scope owns what it makes. */
static eddy_status go_back_a_step(const back *b) {
    eddy_backward_found found = {0};
    eddy_status status = eddy_sub_s_inplace(b->at, EDDY_S(1));
    if (status == EDDY_OK)
        status =
            eddy_saved_get(&b->pass->call, &b->tape->saved, b->pass->gradient->extras + 1, b->at);
    if (status == EDDY_OK)
        status = eddy_way_tape_go_back(&b->tape->body, b->gradients, b->pass->call.origin, &found);
    if (status == EDDY_OK)
        status = take_step(b, &found);
    eddy_backward_found_fini(&found);
    return status;
}

static eddy_status note_steps(const back *b) {
    const eddy_block_call *call = &b->pass->call;
    eddy_control_loop attributes = {.most_steps = b->tape->most_steps};
    eddy_recording_mark(call->recording, EDDY_CONTROL_LOOP, NULL, &attributes, call->origin);
    eddy_tensor *is_left = eddy_gt_s(b->at, EDDY_S(0));
    if (!is_left)
        return EDDY_OUT_OF_MEMORY;
    eddy_recording_mark(call->recording, EDDY_CONTROL_LOOP_WHILE, is_left, NULL, call->origin);
    eddy_status status = go_back_a_step(b);
    if (status == EDDY_OK)
        eddy_recording_mark(call->recording, EDDY_CONTROL_END_LOOP, NULL, NULL, call->origin);
    return status;
}

static eddy_status note_in_scope(back *b) {
    eddy_scope *scope;
    eddy_outcome outcome;
    eddy_status status = eddy_scope_open(b->pass->call.caller, b->pass->call.origin, &scope);
    if (status != EDDY_OK)
        return status;
    eddy_outcome_begin(&outcome);
    status = begin(b);
    if (status == EDDY_OK)
        status = note_steps(b);
    eddy_outcome_end(&outcome);
    eddy_scope_end(scope);
    return status == EDDY_OK || outcome.first == EDDY_OK ? status : eddy_outcome_why(&outcome);
}

static eddy_status note_back(void *context) {
    back b = {.pass = context, .tape = tape_of(context)};
    size_t count = (size_t)b.tape->count, bytes = count * (2 * sizeof(eddy_tensor *) + 1);
    b.gradients = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_TAPE);
    if (!b.gradients)
        return eddy_fail(EDDY_OUT_OF_MEMORY, b.pass->call.origin, "no memory to go back");
    b.aside = b.gradients + count;
    b.comes = (bool *)(b.aside + count);
    eddy_status status = note_in_scope(&b);
    for (size_t i = 0; i < count && status == EDDY_OK; i++) {
        b.pass->joined[i] = b.gradients[i];
        b.gradients[i] = NULL;
    }
    eddy_block_drop(b.gradients, (int64_t)count);
    if (b.at)
        eddy_tensor_drop(b.at);
    eddy_memory_release(b.gradients, bytes, EDDY_MEMORY_TAPE);
    return status;
}

/* Where the steps that have run do not lead a program finds what it began with. */
static eddy_status find_missing(const eddy_block_pass *p, int64_t edge, eddy_tensor **gradient) {
    return edge < tape_of(p)->count ? zeros(p, edge, gradient) : nothing(p, edge, gradient);
}

/* The pass through the steps that have run. */
static eddy_status run_due(void *context) {
    const eddy_block_pass *p = context;
    eddy_backward_found found;
    eddy_status status =
        eddy_way_tape_go_back(&tape_of(p)->due, p->gradient->grads, p->call.origin, &found);
    for (int64_t e = 0; e < p->gradient->input_count && status == EDDY_OK; e++) {
        eddy_tensor *gradient =
            p->op->edges[e] ? eddy_way_tape_gradient(&found, p->op->edges[e]) : NULL;
        if (!gradient && !p->joined[e])
            continue;
        if (!gradient)
            status = find_missing(p, e, &gradient);
        if (status == EDDY_OK)
            status = hold_copy(p, gradient, &p->made[e]);
    }
    eddy_backward_found_fini(&found);
    return status;
}

/* Of what a step gives back where nothing has run, each gradient is like any other: it has no elements. */
static void take_lost(eddy_block_pass *p, const bool *comes, const eddy_backward_found *found) {
    const eddy_loop_tape *tape = tape_of(p);
    for (int64_t e = 0; e < p->gradient->input_count; e++) {
        bool is_carried = e < tape->count;
        eddy_tensor *gradient =
            eddy_way_tape_gradient(found, is_carried ? start_of(tape, e) : p->op->edges[e]);
        if (is_carried && !comes[e])
            continue;
        gradient = is_carried && !gradient ? tape->body.outputs[e] : gradient;
        if (gradient)
            eddy_tensor_retain(gradient);
        p->made[e] = gradient;
    }
}

static eddy_status run_lost(eddy_block_pass *p) {
    const eddy_loop_tape *tape = tape_of(p);
    size_t count = (size_t)tape->count, bytes = count * (sizeof(eddy_tensor *) + 1);
    eddy_tensor **seeds = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_TAPE);
    eddy_backward_found found;
    if (!seeds)
        return eddy_fail(EDDY_OUT_OF_MEMORY, p->call.origin, "no memory to go back");
    bool *comes = (bool *)(seeds + count);
    find_comes(tape, p->gradient, comes);
    for (size_t i = 0; i < count; i++)
        seeds[i] = comes[i] ? tape->body.outputs[i] : NULL;
    eddy_status status = eddy_way_tape_go_back(&tape->body, seeds, p->call.origin, &found);
    if (status == EDDY_OK)
        take_lost(p, comes, &found);
    eddy_backward_found_fini(&found);
    eddy_memory_release(seeds, bytes, EDDY_MEMORY_TAPE);
    return status;
}

static eddy_status run_pass(eddy_block_pass *p) {
    if (p->call.recording)
        return eddy_block_pass_record(p, note_back, run_due);
    return tape_of(p)->due.outputs[0] ? run_due(p) : run_lost(p);
}

static eddy_status run_gradient(const eddy_gradient_call *call) {
    const eddy_loop_tape *tape = ((const eddy_block_op *)call->attributes)->tape;
    return eddy_block_pass_run(call, tape->recording, run_pass);
}

/* ---- the node ---- */

/* A pass through the body that nobody records, with what has no elements: where it ends is all that matters. */
static eddy_status find_edges(const eddy_block_call *call, const eddy_loop_tape *tape,
                              eddy_backward_found *found) {
    eddy_recorder *recorder = call->caller->recorder;
    eddy_scope *scope;
    eddy_status status = eddy_scope_open(call->caller, call->origin, &scope);
    if (status != EDDY_OK)
        return status;
    call->caller->recorder = NULL;
    status = eddy_way_tape_go_back(&tape->body, NULL, call->origin, found);
    call->caller->recorder = recorder;
    eddy_scope_end(scope);
    return status;
}

static bool is_start(const eddy_loop_tape *tape, eddy_autograd word) {
    for (int64_t i = 0; i < tape->count; i++)
        if (word == start_of(tape, i))
            return true;
    return false;
}

/* One for each carried tensor, then what else a step leads to. */
static uint32_t list_edges(const eddy_loop_tape *tape, eddy_tensor *const *made,
                           const eddy_backward_found *found, eddy_backward_edge *list) {
    uint32_t count = 0;
    for (int64_t i = 0; i < tape->count; i++)
        list[count++] = (eddy_backward_edge){tape->starts[i] ? tape->before[i] : 0, made[i]};
    for (uint32_t i = 0; i < found->count; i++)
        if (!is_start(tape, found->edges[i].word))
            list[count++] = found->edges[i];
    return count;
}

static eddy_status make_with_edges(const eddy_block_call *call, eddy_loop_tape *tape,
                                   const eddy_backward_found *found,
                                   const eddy_block_node_parts *given, eddy_autograd_node **node) {
    size_t bytes = ((size_t)tape->count + found->count) * sizeof(eddy_backward_edge);
    eddy_backward_edge *list = eddy_memory_acquire(bytes, EDDY_MEMORY_TAPE);
    if (!list)
        return eddy_fail(EDDY_OUT_OF_MEMORY, call->origin, "no memory to record the call");
    eddy_block_node_parts parts = *given;
    parts.edges = list;
    parts.edge_count = list_edges(tape, given->made, found, list);
    eddy_status status = eddy_block_node_make(call, &parts, tape, destroy_tape, node);
    eddy_memory_release(list, bytes, EDDY_MEMORY_TAPE);
    return status;
}

eddy_status eddy_loop_tape_make_node(const eddy_block_call *call, eddy_loop_tape *tape,
                                     eddy_tensor *const *made, eddy_tensor *const *steps_and_lists,
                                     eddy_autograd_node **node) {
    eddy_backward_found found = {0};
    eddy_quiet quiet;
    eddy_error failed;
    eddy_block_node_parts parts = {.name = "while",
                                   .run = run_gradient,
                                   .made = made,
                                   .made_count = tape->count,
                                   .saved = steps_and_lists,
                                   .saved_count = 1 + tape->saved.row_count};
    *node = NULL;
    eddy_quiet_begin(&quiet);
    eddy_status status = find_edges(call, tape, &found);
    eddy_quiet_end(&quiet, &failed);
    if (status == EDDY_OK)
        status = make_with_edges(call, tape, &found, &parts, node);
    else
        eddy_recording_spoil(call->recording, status, call->origin, failed.message);
    eddy_backward_found_fini(&found);
    return *node || call->recording->status != EDDY_OK ? EDDY_OK : status;
}
