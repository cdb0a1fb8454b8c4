/* The backward pass through a recorded loop. */
#include <base/memory.h>
#include <base/status.h>
#include <eddy/ops.h>
#include <eddy/view.h>
#include <interpreter/call/copy.h>
#include <interpreter/handle/scope.h>
#include <program/block_node.h>
#include <program/loop_tape.h>
#include <program/tensor_list.h>

/* A backward pass that is recorded. */
typedef struct back {
    eddy_block_pass *pass;
    eddy_loop_tape *tape;
    bool *comes; /* per output: gradients come there */
    eddy_tensor **
        gradients; /* per output: references; carried: the gradient, else its rows; NULL: none comes there */
    eddy_tensor **seeds; /* per output, in a step: references; behind the carried ones, of a row */
    eddy_tensor **aside; /* per carried tensor: references; what a step gives */
    eddy_tensor *
        *slices;       /* per slice: references; the rows of its gradient; NULL: none comes there */
    eddy_tensor *left; /* a reference: the steps that are left */
    eddy_tensor *at;   /* a reference, in a step: its row of slices and lists of outputs */
} back;

static eddy_loop_tape *tape_of(const eddy_block_pass *p) {
    return p->op->tape;
}

/* A step leads from output i to carried tensor j: where gradients come to output i they come, one step before, to what was output j. */
static bool spread(const eddy_loop_tape *tape, bool *comes) {
    bool is_changed = false;
    for (int64_t i = 0; i < tape->counts.outputs; i++)
        for (int64_t j = 0; j < tape->counts.carried && comes[i]; j++) {
            is_changed |= eddy_loop_tape_leads(tape, i)[j] && !comes[j];
            comes[j] |= eddy_loop_tape_leads(tape, i)[j];
        }
    return is_changed;
}

/* Where gradients come to, once they have come to some outputs. */
static void find_comes(const eddy_loop_tape *tape, const eddy_gradient_call *gradient,
                       bool *comes) {
    for (int64_t i = 0; i < tape->counts.outputs; i++)
        comes[i] = gradient->grads[i] != NULL && (i >= tape->counts.carried || tape->starts[i]);
    while (spread(tape, comes))
        ;
}

/* Whether they come to the slices of an x. */
static bool comes_to_slice(const eddy_loop_tape *tape, const bool *comes, int64_t slice) {
    bool does = false;
    for (int64_t i = 0; i < tape->counts.outputs; i++)
        does |= comes[i] && eddy_loop_tape_leads(tape, i)[tape->counts.carried + slice];
    return does;
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

/* Of a carried tensor its first gradient, of rows what comes to all of them. A carried tensor that nothing comes to behind the loop has what the last step adds to nothing. */
static eddy_status begin_output(const back *b, int64_t i) {
    const eddy_block_pass *p = b->pass;
    eddy_tensor *first = p->gradient->grads[i];
    if (i >= b->tape->counts.carried)
        return eddy_tensor_list_view(p->call.caller, first, b->tape->counts.rows, p->call.origin,
                                     &b->gradients[i]);
    eddy_status status = first ? EDDY_OK : nothing(p, i, &first);
    return status == EDDY_OK ? hold_copy(p, first, &b->gradients[i]) : status;
}

static eddy_status begin_slice(const back *b, int64_t slice) {
    const eddy_block_pass *p = b->pass;
    int64_t edge = b->tape->counts.carried + slice;
    eddy_status status = EDDY_OK;
    if (!p->op->edges[edge] || !comes_to_slice(b->tape, b->comes, slice))
        return EDDY_OK;
    eddy_tensor *all;
    status = zeros(p, edge, &all);
    if (status != EDDY_OK)
        return status;
    eddy_tensor_retain(all);
    p->joined[edge] = all;
    return eddy_tensor_list_view(p->call.caller, all, b->tape->counts.rows, p->call.origin,
                                 &b->slices[slice]);
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
    eddy_status status = hold_copy(b->pass, gradient->extras[0], &b->left);
    find_comes(b->tape, gradient, b->comes);
    for (int64_t i = 0; i < b->tape->counts.outputs && status == EDDY_OK; i++)
        if (b->comes[i])
            status = begin_output(b, i);
    for (int64_t i = 0; i < b->tape->counts.slices && status == EDDY_OK; i++)
        status = begin_slice(b, i);
    for (int64_t e = eddy_loop_input_count(&b->tape->counts);
         e < gradient->input_count && status == EDDY_OK; e++)
        status = begin_sum(b, e);
    return status;
}

static eddy_status make_seed(const back *b, int64_t i) {
    const eddy_block_call *call = &b->pass->call;
    eddy_tensor *row;
    if (i < b->tape->counts.carried) {
        eddy_tensor_retain(b->gradients[i]);
        b->seeds[i] = b->gradients[i];
        return EDDY_OK;
    }
    eddy_status status =
        eddy_tensor_list_get(call->caller, b->gradients[i], b->at, call->origin.address, &row);
    if (status != EDDY_OK)
        return status;
    status =
        eddy_tensor_list_shape(call->caller, row, &b->tape->rows[i - b->tape->counts.carried].shape,
                               call->origin, &b->seeds[i]);
    eddy_tensor_drop(row);
    return status;
}

static eddy_status make_seeds(const back *b) {
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < b->tape->counts.outputs && status == EDDY_OK; i++)
        if (b->comes[i])
            status = make_seed(b, i);
    return status;
}

static bool is_of_gradients(const back *b, const eddy_tensor *tensor) {
    for (int64_t i = 0; i < b->tape->counts.carried; i++)
        if (b->gradients[i] && b->gradients[i]->storage == tensor->storage)
            return true;
    return false;
}

/* What a step gives for carried tensor i, apart from the gradients that it was computed from. */
static eddy_status take(const back *b, const eddy_backward_found *found, int64_t i) {
    eddy_tensor *gradient = eddy_way_tape_gradient(found, eddy_loop_tape_start(b->tape, i));
    eddy_status status = gradient ? EDDY_OK : zeros(b->pass, i, &gradient);
    if (status != EDDY_OK)
        return status;
    if (is_of_gradients(b, gradient))
        return hold_copy(b->pass, gradient, &b->aside[i]);
    eddy_tensor_retain(gradient);
    b->aside[i] = gradient;
    return EDDY_OK;
}

static eddy_status take_slice(const back *b, const eddy_backward_found *found, int64_t slice) {
    const eddy_block_call *call = &b->pass->call;
    eddy_tensor *row, *gradient = eddy_way_tape_gradient(
                          found, eddy_loop_tape_start(b->tape, b->tape->counts.carried + slice));
    if (!b->slices[slice] || !gradient)
        return EDDY_OK;
    eddy_status status = eddy_tensor_list_flatten(call->caller, gradient, call->origin, &row);
    if (status != EDDY_OK)
        return status;
    status = eddy_tensor_list_set(call->caller, row, b->at, b->slices[slice], call->origin.address);
    eddy_tensor_drop(row);
    return status;
}

/* All of it is read before what the step was computed from is written. */
static eddy_status take_step(const back *b, const eddy_backward_found *found) {
    const eddy_gradient_call *gradient = b->pass->gradient;
    int64_t carried = b->tape->counts.carried;
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < carried && status == EDDY_OK; i++)
        if (b->comes[i])
            status = take(b, found, i);
    for (int64_t i = 0; i < b->tape->counts.slices && status == EDDY_OK; i++)
        status = take_slice(b, found, i);
    for (int64_t e = eddy_loop_input_count(&b->tape->counts);
         e < gradient->input_count && status == EDDY_OK; e++) {
        eddy_tensor *part = eddy_way_tape_gradient(found, b->pass->op->edges[e]);
        if (part)
            status = eddy_gradient_ops_table.add_to(b->pass->joined[e], part);
    }
    for (int64_t i = 0; i < carried && status == EDDY_OK; i++)
        if (b->comes[i])
            status = eddy_copy_to(b->pass->call.caller, b->aside[i], b->gradients[i],
                                  b->pass->call.origin.address);
    eddy_block_drop(b->aside, carried);
    return status;
}

eddy_status eddy_loop_tape_row_at(const eddy_loop_counts *counts, eddy_tensor *step,
                                  eddy_tensor **at) {
    eddy_tensor *made =
        counts->is_reversed ? eddy_add_s(eddy_neg(step), EDDY_S(counts->rows - 1)) : step;
    if (!made)
        return EDDY_OUT_OF_MEMORY;
    eddy_tensor_retain(made);
    *at = made;
    return EDDY_OK;
}

/* One step, from the last to the first; the open scope owns what it makes. */
static eddy_status go_back_a_step(back *b) {
    const eddy_block_call *call = &b->pass->call;
    eddy_backward_found found = {0};
    eddy_status status = eddy_sub_s_inplace(b->left, EDDY_S(1));
    if (status == EDDY_OK)
        status = eddy_loop_tape_row_at(&b->tape->counts, b->left, &b->at);
    if (status == EDDY_OK)
        status =
            eddy_saved_get(call, &b->tape->saved, b->pass->gradient->extras + 1, b->left, b->at);
    if (status == EDDY_OK)
        status = make_seeds(b);
    if (status == EDDY_OK)
        status = eddy_way_tape_go_back(&b->tape->body, b->seeds, call->origin, &found);
    if (status == EDDY_OK)
        status = take_step(b, &found);
    eddy_backward_found_fini(&found);
    eddy_block_drop(b->seeds, b->tape->counts.outputs);
    return status;
}

static eddy_status note_steps(back *b) {
    const eddy_block_call *call = &b->pass->call;
    eddy_control_loop attributes = {.most_steps = b->tape->counts.rows};
    eddy_recording_mark(call->recording, EDDY_CONTROL_LOOP, NULL, &attributes, call->origin);
    eddy_tensor *is_left = eddy_gt_s(b->left, EDDY_S(0));
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

/* What the loop leaves of the carried tensors' gradients is that of what it began with. */
static void take_gradients(const back *b) {
    for (int64_t i = 0; i < b->tape->counts.carried; i++) {
        b->pass->joined[i] = b->gradients[i];
        b->gradients[i] = NULL;
    }
}

static eddy_status note_back(void *context) {
    back b = {.pass = context, .tape = tape_of(context)};
    int64_t outputs = b.tape->counts.outputs, slices = b.tape->counts.slices;
    size_t count = 3 * (size_t)outputs + (size_t)slices,
           bytes = count * sizeof(eddy_tensor *) + (size_t)outputs;
    b.gradients = eddy_memory_acquire_zeroed(bytes + 1, EDDY_MEMORY_TAPE);
    if (!b.gradients)
        return eddy_fail(EDDY_OUT_OF_MEMORY, b.pass->call.origin, "no memory to go back");
    b.seeds = b.gradients + outputs;
    b.aside = b.seeds + outputs;
    b.slices = b.aside + outputs;
    b.comes = (bool *)(b.slices + slices);
    eddy_status status = note_in_scope(&b);
    if (status == EDDY_OK)
        take_gradients(&b);
    eddy_block_drop(b.gradients, (int64_t)count);
    if (b.left)
        eddy_tensor_drop(b.left);
    if (b.at)
        eddy_tensor_drop(b.at);
    eddy_memory_release(b.gradients, bytes + 1, EDDY_MEMORY_TAPE);
    return status;
}

/* Where the steps that have run do not lead a program finds what it began with. */
static eddy_status find_missing(const eddy_block_pass *p, int64_t edge, eddy_tensor **gradient) {
    return edge < eddy_loop_input_count(&tape_of(p)->counts) ? zeros(p, edge, gradient)
                                                             : nothing(p, edge, gradient);
}

/* Whether the gradient of that edge's tensor is this edge's: of several edges to one tensor (xs that are given twice, or used as they are, too) the first
 * gets all of it. In a recording that is not spoiled, one to which the program gives nothing gets
 * nothing. */
static bool is_due_for(const eddy_block_pass *p, int64_t edge) {
    bool is_recorded = p->call.recording && p->call.recording->status == EDDY_OK;
    if (!p->op->edges[edge] || (is_recorded && !p->joined[edge]))
        return false;
    for (int64_t e = 0; e < edge; e++)
        if (p->op->edges[e] == p->op->edges[edge] && (!is_recorded || p->joined[e]))
            return false;
    return true;
}

/* The pass through the steps that have run. */
static eddy_status run_due(void *context) {
    const eddy_block_pass *p = context;
    eddy_backward_found found;
    eddy_status status =
        eddy_way_tape_go_back(&tape_of(p)->due, p->gradient->grads, p->call.origin, &found);
    for (int64_t e = 0; e < p->gradient->input_count && status == EDDY_OK; e++) {
        eddy_tensor *gradient =
            is_due_for(p, e) ? eddy_way_tape_gradient(&found, p->op->edges[e]) : NULL;
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
static void take_lost(eddy_block_pass *p, const bool *comes, const eddy_backward_found *found,
                      eddy_tensor *const *seeds) {
    const eddy_loop_tape *tape = tape_of(p);
    for (int64_t e = 0; e < p->gradient->input_count; e++) {
        bool is_carried = e < tape->counts.carried,
             is_slice = !is_carried && e < eddy_loop_input_count(&tape->counts);
        eddy_tensor *gradient =
            is_carried ? comes[e] ? seeds[e] : NULL
                       : eddy_way_tape_gradient(found, is_slice ? eddy_loop_tape_start(tape, e)
                                                                : p->op->edges[e]);
        if (gradient && is_slice)
            gradient = eddy_expand(gradient, p->gradient->input_specs[e].shape);
        if (gradient)
            eddy_tensor_retain(gradient);
        p->made[e] = gradient;
    }
}

static eddy_status run_lost(eddy_block_pass *p) {
    const eddy_loop_tape *tape = tape_of(p);
    size_t count = (size_t)tape->counts.outputs, bytes = count * (sizeof(eddy_tensor *) + 1);
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
        take_lost(p, comes, &found, seeds);
    eddy_backward_found_fini(&found);
    eddy_memory_release(seeds, bytes, EDDY_MEMORY_TAPE);
    return status;
}

static eddy_status run_pass(eddy_block_pass *p) {
    if (p->call.recording)
        return eddy_block_pass_record(p, note_back, run_due);
    return tape_of(p)->due.outputs[0] ? run_due(p) : run_lost(p);
}

eddy_status eddy_loop_tape_run_gradient(const eddy_gradient_call *call) {
    const eddy_loop_tape *tape = ((const eddy_block_op *)call->attributes)->tape;
    return eddy_block_pass_run(call, tape->recording, run_pass);
}
