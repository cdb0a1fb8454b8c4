/* Loops as a recording holds them. */
#include <base/dtype.h>
#include <base/memory.h>
#include <base/shape.h>
#include <base/status.h>
#include <eddy/ops.h>
#include <eddy/view.h>
#include <interpreter/call/copy.h>
#include <interpreter/handle/scope.h>
#include <program/block_node.h>
#include <program/loop.h>
#include <program/tensor_list.h>
#include <stdio.h>
#include <string.h>

/* With gradients a body is called three times at most for each call of what it is in. */
#define LOOPS_MOST 4

/* What a call of the body has shown. */
typedef struct probed {
    eddy_loop_tape *tape; /* NULL: nobody wants to know, or it cannot be recorded */
    bool knows_gradients; /* it was called with a tape */
    bool has_gradient;
} probed;

typedef struct noting {
    eddy_loop *loop;
    const eddy_block_call *call; /* the loop's, or a probe's */
    eddy_loop_tape *tape;        /* NULL: no gradient goes back */
    const eddy_loop_tape *
        probed; /* what a call of the body has shown, or NULL: it was not needed, or this is the probe */
    uint32_t first_value; /* of the recording that belongs to the loop */
    eddy_tensor **values; /* references: what is carried */
    eddy_tensor **inputs; /* references: what the body is given */
    eddy_tensor **given;  /* what it gives */
    eddy_tensor **made;   /* references: what the loop gives */
    eddy_tensor **rows;   /* references: of each output, the list that its rows go to */
    eddy_tensor **xs;     /* references: lists of slices */
    eddy_tensor *
        *lists; /* references: the number of steps so far, then a list for each row that is saved */
    uint32_t *versions;     /* per slice: of its storage when the body is given it */
    bool *stays;            /* per carried tensor: a step gives it as it was given */
    eddy_tensor *at;        /* a reference, in a step: the row of slices and of outputs */
    eddy_tensor *predicate; /* a reference, once there is a test */
} noting;

static eddy_status fail_memory(const eddy_block_call *call) {
    return eddy_fail(EDDY_OUT_OF_MEMORY, call->origin, "no memory to record the call");
}

static int64_t list_count(const noting *n) {
    return 1 + (n->probed ? (int64_t)n->probed->saved.row_count : 0);
}

static int64_t reference_count(const noting *n) {
    const eddy_loop_counts *counts = &n->loop->counts;
    return 4 * counts->outputs + eddy_loop_input_count(counts) + counts->slices + list_count(n);
}

static size_t noting_bytes(const noting *n) {
    return (size_t)reference_count(n) * sizeof(eddy_tensor *) +
           (size_t)n->loop->counts.slices * sizeof(uint32_t) +
           (size_t)n->loop->counts.carried * sizeof(bool);
}

static eddy_status noting_init(noting *n) {
    const eddy_loop_counts *counts = &n->loop->counts;
    n->values = eddy_memory_acquire_zeroed(noting_bytes(n), EDDY_MEMORY_PROGRAM);
    if (!n->values)
        return fail_memory(n->call);
    n->given = n->values + counts->outputs;
    n->made = n->given + counts->outputs;
    n->rows = n->made + counts->outputs;
    n->inputs = n->rows + counts->outputs;
    n->xs = n->inputs + eddy_loop_input_count(counts);
    n->lists = n->xs + counts->slices;
    n->versions = (uint32_t *)(n->lists + list_count(n));
    n->stays = (bool *)(n->versions + counts->slices);
    return EDDY_OK;
}

static void noting_fini(noting *n) {
    if (!n->values)
        return;
    memset(n->given, 0, (size_t)n->loop->counts.outputs * sizeof(eddy_tensor *)); /* not owned */
    eddy_block_drop(n->values, reference_count(n));
    eddy_block_drop(&n->at, 1);
    eddy_block_drop(&n->predicate, 1);
    eddy_memory_release(n->values, noting_bytes(n), EDDY_MEMORY_PROGRAM);
}

/* Whether steps are counted: they have a number where something has rows, or there is no test. */
static bool is_counted(const noting *n) {
    const eddy_loop_counts *counts = &n->loop->counts;
    return n->tape || !n->loop->test || counts->outputs > counts->carried;
}

/* ---- the body ---- */

static uint32_t version_of(const eddy_tensor *tensor) {
    return eddy_load_relaxed(&tensor->root->version);
}

static eddy_status give(const noting *n, int64_t i, eddy_tensor *value) {
    if (i >= n->loop->counts.carried)
        n->versions[i - n->loop->counts.carried] = version_of(value);
    if (n->tape)
        return eddy_loop_tape_give(n->call, n->tape, i, value, &n->inputs[i]);
    eddy_tensor_retain(value);
    n->inputs[i] = value;
    return EDDY_OK;
}

/* With a tape they are values that nobody else has: backwards, each step sees what it saw forwards. */
static eddy_status make_values(const noting *n) {
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < n->loop->counts.carried && status == EDDY_OK; i++) {
        eddy_tensor *carried = n->loop->carried[i];
        if (n->tape) {
            status = eddy_copy_contiguous(n->call->caller, carried, n->call->origin.address,
                                          &n->values[i]);
            continue;
        }
        eddy_tensor_retain(carried);
        n->values[i] = carried;
    }
    return status;
}

static eddy_status give_values(const noting *n) {
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < n->loop->counts.carried && status == EDDY_OK; i++)
        status = give(n, i, n->values[i]);
    return status;
}

/* Whether a gradient goes back from one of the tensors: what is recorded without a tape has no way for it. */
static void find_lost(eddy_loop *l, eddy_tensor *const *tensors, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        l->loses_gradient |= tensors[i]->autograd != 0;
}

/* Only where the loop has been recorded: else the reason is that it could not be, with a tape or without. */
static void refuse_lost(const eddy_loop *l) {
    char reason[320];
    if (!l->loses_gradient)
        return;
    snprintf(reason, sizeof(reason), "a gradient goes back through a loop%s%s",
             l->no_tape[0] ? ": " : "", l->no_tape);
    eddy_recording_spoil(l->call.recording, EDDY_UNSUPPORTED, l->call.origin, reason);
}

/* Step by step a slice is a view, and a write to it one to xs; here it is a copy. */
static eddy_status check_slices(const noting *n) {
    for (int64_t i = 0; i < n->loop->counts.slices; i++)
        if (version_of(n->inputs[n->loop->counts.carried + i]) != n->versions[i])
            return eddy_fail(EDDY_UNSUPPORTED, n->call->origin,
                             "a step of a rolled scan writes to a slice of xs[%lld]", (long long)i);
    return EDDY_OK;
}

/* A list has an axis more than its rows. */
static eddy_status check_rows(const noting *n) {
    for (int64_t i = n->loop->counts.carried; i < n->loop->counts.outputs; i++)
        if (n->given[i]->rank == EDDY_RANK_MAX)
            return eddy_fail(
                EDDY_SHAPE_MISMATCH, n->call->origin,
                "a list of rows of rank %d would have more axes than a tensor may have",
                EDDY_RANK_MAX);
    return EDDY_OK;
}

/* `end` with what the body has given, while that lives. */
static eddy_status take(const noting *n, eddy_status (*end)(const noting *n)) {
    eddy_status status = check_slices(n);
    if (status == EDDY_OK)
        status = check_rows(n);
    if (status != EDDY_OK)
        return status;
    if (!n->tape) {
        find_lost(n->loop, n->given, n->loop->counts.outputs);
        return end(n);
    }
    status = eddy_way_tape_hold(n->call, &n->tape->body, n->given);
    /* What is carried stays where it is, also if it was written in place. */
    for (int64_t i = 0; i < n->loop->counts.carried; i++)
        n->tape->body.owns[i] |=
            n->given[i] == n->inputs[i] && eddy_way_tape_has(&n->tape->body, n->given[i]);
    if (status == EDDY_OK && eddy_loop_tape_is_watched(n->tape))
        status = eddy_fail(EDDY_UNSUPPORTED, n->call->origin,
                           "a step adds a hook to what it was given, or keeps its gradient");
    if (status == EDDY_OK && !eddy_loop_tape_find_leads(n->tape))
        status = fail_memory(n->call);
    return status == EDDY_OK ? end(n) : status;
}

static eddy_status call_body(const noting *n, eddy_status (*end)(const noting *n)) {
    eddy_list inputs = {n->inputs, eddy_loop_input_count(&n->loop->counts)};
    eddy_way_before before;
    if (n->tape)
        eddy_way_tape_begin(n->call, &n->tape->body, &before);
    eddy_scope *scope;
    eddy_status status =
        eddy_block_begin(n->call, n->loop->body, inputs, n->given, n->loop->counts.outputs, &scope);
    if (status == EDDY_OK) {
        status = take(n, end);
        eddy_block_end(scope);
    }
    if (n->tape)
        eddy_way_tape_end(n->call, &before);
    return status;
}

static eddy_status find_saved(const noting *n) {
    int64_t carried = n->loop->counts.carried;
    eddy_saved_known slices = {n->inputs + carried, n->loop->counts.slices};
    return eddy_saved_find(n->call, &n->tape->body, n->first_value, &slices, &n->tape->saved);
}

/* ---- the probe ---- */

/* Like a slice of x. */
static eddy_status probe_slice(const noting *n, int64_t i) {
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    eddy_tensor *slice = eddy_select(n->loop->xs.items[i], 0, 0), *copy;
    eddy_outcome_end(&outcome);
    if (!slice)
        return eddy_outcome_why(&outcome);
    eddy_status status =
        eddy_copy_contiguous(n->call->caller, slice, n->call->origin.address, &copy);
    if (status != EDDY_OK)
        return status;
    status = give(n, n->loop->counts.carried + i, copy);
    eddy_tensor_drop(copy);
    return status;
}

static eddy_status note_probe(void *context) {
    const noting *n = context;
    eddy_scope *scope;
    eddy_status status = eddy_scope_open(n->call->caller, n->call->origin, &scope);
    if (status != EDDY_OK)
        return status;
    status = make_values(n);
    if (status == EDDY_OK)
        status = give_values(n);
    for (int64_t i = 0; i < n->loop->counts.slices && status == EDDY_OK; i++)
        status = probe_slice(n, i);
    if (status == EDDY_OK)
        status = call_body(n, find_saved);
    eddy_scope_end(scope);
    return status;
}

/* The part of the recording, if there is one, that the probe stands in. */
static void stand_in(const eddy_recording *recording, eddy_recording *scratch) {
    if (!recording)
        return;
    scratch->depth = recording->depth + 1;
    scratch->taped_depth = recording->taped_depth + 1;
    scratch->first_slot = recording->first_slot;
    scratch->scalar_count = recording->scalar_count;
    scratch->scalars = recording->scalars;
    scratch->is_owned = recording->is_owned;
}

/* In a recording of its own, which is thrown away. *is_fine: the body can be recorded with its tape. */
static eddy_status probe_in(noting *n, eddy_recording *scratch, eddy_runtime *runtime,
                            bool *is_fine) {
    eddy_loop *l = n->loop;
    eddy_caller *caller = n->call->caller;
    eddy_recorder *recorder = caller->recorder;
    eddy_recording_init(scratch, runtime);
    stand_in(l->call.recording, scratch);
    caller->recorder = &scratch->recorder;
    eddy_status status = eddy_block_note(n->call, note_probe, n);
    caller->recorder = recorder;
    *is_fine = status == EDDY_OK && scratch->status == EDDY_OK;
    if (scratch->status != EDDY_OK)
        snprintf(l->no_tape, sizeof(l->no_tape), "%s", scratch->reason);
    if (scratch->status == EDDY_OUT_OF_MEMORY && l->call.recording)
        eddy_recording_spoil(l->call.recording, EDDY_OUT_OF_MEMORY, n->call->origin, l->no_tape);
    noting_fini(n);
    if (l->call.recording)
        eddy_recording_disown(l->call.recording, scratch, n->call->origin);
    eddy_recording_fini(scratch);
    return status;
}

/* The body with gradients that come to the inputs with `carries`. *tape: NULL if it cannot be recorded so. */
static eddy_status probe_with(eddy_loop *l, const bool *carries, eddy_loop_tape **tape) {
    eddy_recording *scratch = eddy_memory_acquire(sizeof(*scratch), EDDY_MEMORY_PROGRAM);
    eddy_block_call call = l->call;
    noting n = {.loop = l, .call = &call};
    eddy_runtime *runtime;
    bool is_fine = false;
    *tape = NULL;
    if (!scratch)
        return fail_memory(&l->call);
    call.recording = scratch;
    eddy_status status = eddy_runtime_of_caller(call.caller, call.origin, &runtime);
    if (status == EDDY_OK) {
        n.tape = eddy_loop_tape_create(&l->call, &l->counts, l->carried, l->xs.items, carries);
        status = n.tape ? noting_init(&n) : EDDY_OUT_OF_MEMORY;
    }
    if (status == EDDY_OK)
        status = probe_in(&n, scratch, runtime, &is_fine);
    if (is_fine)
        *tape = n.tape;
    else
        eddy_loop_tape_destroy(n.tape);
    eddy_memory_release(scratch, sizeof(*scratch), EDDY_MEMORY_PROGRAM);
    return status;
}

/* Those to which gradients come indeed. *changed: other ones than the tape was made with. */
static bool find_carries(const eddy_loop *l, const eddy_loop_tape *tape, bool *carries,
                         bool *changed) {
    bool has_any = false;
    int64_t inputs = eddy_loop_input_count(&l->counts);
    for (int64_t i = 0; i < inputs; i++)
        carries[i] = tape->carries[i] && tape->before[i];
    eddy_loop_tape_close(tape, carries);
    *changed = false;
    for (int64_t i = 0; i < inputs; i++) {
        has_any |= carries[i] && i < l->counts.carried;
        *changed |= carries[i] != tape->carries[i];
    }
    for (int64_t i = l->counts.carried; i < l->counts.outputs; i++)
        has_any |= eddy_loop_tape_wants(tape, i, carries);
    return has_any;
}

static bool is_floating(const eddy_tensor *tensor) {
    return eddy_dtype_category_of((eddy_dtype)tensor->dtype) == EDDY_CATEGORY_FLOAT;
}

static eddy_status probe_gradients(eddy_loop *l, bool *carries, probed *p) {
    for (int64_t i = 0; i < l->counts.carried; i++)
        carries[i] = is_floating(l->carried[i]);
    for (int64_t i = 0; i < l->counts.slices; i++)
        carries[l->counts.carried + i] = is_floating(l->xs.items[i]);
    bool is_again = true;
    eddy_status status = probe_with(l, carries, &p->tape);
    if (status != EDDY_OK || !p->tape)
        return status;
    p->knows_gradients = true;
    p->has_gradient = find_carries(l, p->tape, carries, &is_again);
    if (!p->has_gradient || !is_again)
        return status;
    eddy_loop_tape_destroy(p->tape);
    status = probe_with(l, carries, &p->tape);
    p->has_gradient = p->knows_gradients = p->tape != NULL;
    return status;
}

static eddy_status probe_rows(eddy_loop *l, bool *carries, probed *p) {
    memset(carries, 0, (size_t)eddy_loop_input_count(&l->counts));
    return probe_with(l, carries, &p->tape);
}

static eddy_status probe(eddy_loop *l, bool wants_gradients, probed *p) {
    size_t bytes = (size_t)eddy_loop_input_count(&l->counts);
    bool has_rows = l->counts.outputs > l->counts.carried;
    *p = (probed){0};
    bool *carries = eddy_memory_acquire_zeroed(bytes + 1, EDDY_MEMORY_PROGRAM);
    if (!carries)
        return fail_memory(&l->call);
    eddy_status status = EDDY_OK;
    if (wants_gradients && l->counts.outputs > 0)
        status = probe_gradients(l, carries, p);
    if (status == EDDY_OK && !p->tape && has_rows)
        status = probe_rows(l, carries, p);
    eddy_memory_release(carries, bytes + 1, EDDY_MEMORY_PROGRAM);
    return status;
}

eddy_status eddy_loop_find_rows(eddy_loop *l, eddy_spec *rows) {
    probed p;
    eddy_status status = probe(l, false, &p);
    if (status != EDDY_OK)
        return status;
    if (!p.tape)
        return eddy_fail(EDDY_INVALID_ARGUMENT, l->call.origin,
                         "there was no step, and the body does not show what it would give: %s",
                         l->no_tape);
    memcpy(rows, p.tape->rows, (size_t)(l->counts.outputs - l->counts.carried) * sizeof(eddy_spec));
    eddy_loop_tape_destroy(p.tape);
    return EDDY_OK;
}

/* ---- what is made before the loop ---- */

static eddy_status keep(eddy_tensor *made, const eddy_outcome *outcome, eddy_tensor **kept) {
    if (!made)
        return eddy_outcome_why(outcome);
    eddy_tensor_retain(made);
    *kept = made;
    return EDDY_OK;
}

/* What the rows of output i go to, and that as a list. */
static eddy_status make_rows(const noting *n, int64_t i, const eddy_outcome *outcome) {
    const eddy_spec *row = &n->probed->rows[i - n->loop->counts.carried];
    eddy_shape shape = {.rank = row->shape.rank + 1, .dims = {n->loop->counts.rows}};
    memcpy(shape.dims + 1, row->shape.dims, (size_t)row->shape.rank * sizeof(int64_t));
    eddy_status status =
        keep(eddy_zeros(shape, row->dtype, EDDY_OPTIONS(zeros, .device = n->call->device)), outcome,
             &n->made[i]);
    return status == EDDY_OK
               ? eddy_tensor_list_view(n->call->caller, n->made[i], n->loop->counts.rows,
                                       n->call->origin, &n->rows[i])
               : status;
}

static eddy_status make_all(const noting *n, const eddy_outcome *outcome) {
    const eddy_loop_counts *counts = &n->loop->counts;
    eddy_status status = make_values(n);
    for (int64_t i = counts->carried; i < counts->outputs && status == EDDY_OK; i++)
        status = make_rows(n, i, outcome);
    for (int64_t i = 0; i < counts->slices && status == EDDY_OK; i++)
        status = eddy_tensor_list_view(n->call->caller, n->loop->xs.items[i], counts->rows,
                                       n->call->origin, &n->xs[i]);
    if (status == EDDY_OK && is_counted(n))
        status = keep(
            eddy_zeros((eddy_shape){0}, EDDY_I64, EDDY_OPTIONS(zeros, .device = n->call->device)),
            outcome, &n->lists[0]);
    if (status == EDDY_OK && n->tape)
        status =
            eddy_saved_make_lists(n->call, &n->probed->saved, counts->rows, n->xs, n->lists + 1);
    return status;
}

/* ---- a step ---- */

static bool is_value(const noting *n, const eddy_tensor *tensor) {
    for (int64_t i = 0; i < n->loop->counts.carried; i++)
        if (n->values[i]->storage == tensor->storage)
            return true;
    return false;
}

/* Two tensors that change places: what is carried in another place is read before any place is written. */
static eddy_status set_aside(const noting *n) {
    eddy_tensor **aside = n->loop->next;
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < n->loop->counts.carried && status == EDDY_OK; i++) {
        status = eddy_block_check_same(n->call, i, n->given[i], n->values[i]);
        if (status != EDDY_OK || n->given[i] == n->inputs[i] || !is_value(n, n->given[i]))
            continue;
        status =
            eddy_copy_contiguous(n->call->caller, n->given[i], n->call->origin.address, &aside[i]);
        n->given[i] = aside[i];
    }
    return status;
}

/* The tape sees no write to what the loop carries: backwards each step is given what it was given forwards. */
static eddy_status set_value(const noting *n, int64_t i) {
    n->stays[i] = n->given[i] == n->inputs[i];
    if (n->stays[i])
        return EDDY_OK;
    eddy_status status =
        eddy_copy_to(n->call->caller, n->given[i], n->values[i], n->call->origin.address);
    if (status == EDDY_OK && n->tape)
        eddy_recording_unwrite(n->call->recording, n->values[i]);
    return status;
}

static eddy_status set_values(const noting *n) {
    eddy_status status = set_aside(n);
    for (int64_t i = 0; i < n->loop->counts.carried && status == EDDY_OK; i++)
        status = set_value(n, i);
    eddy_block_drop(n->loop->next, n->loop->counts.carried);
    return status;
}

static bool is_row(const eddy_tensor *given, const eddy_spec *row) {
    eddy_shape shape;
    eddy_tensor_shape(given, &shape);
    return (eddy_dtype)given->dtype == row->dtype &&
           eddy_shape_equal(shape.rank, shape.dims, row->shape.rank, row->shape.dims);
}

static eddy_status fail_other(const noting *n) {
    return eddy_fail(EDDY_UNSUPPORTED, n->call->origin, "a function gives other results each time");
}

static eddy_status put_row(const noting *n, int64_t i) {
    eddy_tensor *row;
    if (!is_row(n->given[i], &n->probed->rows[i - n->loop->counts.carried]))
        return fail_other(n);
    eddy_status status =
        eddy_tensor_list_flatten(n->call->caller, n->given[i], n->call->origin, &row);
    if (status != EDDY_OK)
        return status;
    status = eddy_tensor_list_set(n->call->caller, row, n->at, n->rows[i], n->call->origin.address);
    eddy_tensor_drop(row);
    return status;
}

static eddy_status put_saved(const noting *n) {
    eddy_status status = find_saved(n);
    if (status != EDDY_OK)
        return status;
    return eddy_saved_is_alike(&n->tape->saved, &n->probed->saved)
               ? eddy_saved_put(n->call, &n->tape->saved, n->lists + 1, n->lists[0])
               : fail_other(n);
}

static eddy_status end_step(const noting *n) {
    eddy_status status = n->tape ? put_saved(n) : EDDY_OK;
    for (int64_t i = n->loop->counts.carried; i < n->loop->counts.outputs && status == EDDY_OK; i++)
        status = put_row(n, i);
    if (status == EDDY_OK && is_counted(n))
        status = eddy_add_s_inplace(n->lists[0], EDDY_S(1));
    return status == EDDY_OK ? set_values(n) : status;
}

static eddy_status get_slice(const noting *n, int64_t i) {
    const eddy_tensor *x = n->loop->xs.items[i];
    eddy_shape shape, row = {.rank = x->rank - 1};
    eddy_tensor *made, *slice;
    eddy_tensor_shape(x, &shape);
    memcpy(row.dims, shape.dims + 1, (size_t)row.rank * sizeof(int64_t));
    eddy_status status =
        eddy_tensor_list_get(n->call->caller, n->xs[i], n->at, n->call->origin.address, &made);
    if (status != EDDY_OK)
        return status;
    status = eddy_tensor_list_shape(n->call->caller, made, &row, n->call->origin, &slice);
    eddy_tensor_drop(made);
    if (status != EDDY_OK)
        return status;
    status = give(n, n->loop->counts.carried + i, slice);
    eddy_tensor_drop(slice);
    return status;
}

static eddy_status note_step(noting *n) {
    eddy_status status =
        is_counted(n) ? eddy_loop_tape_row_at(&n->loop->counts, n->lists[0], &n->at) : EDDY_OK;
    if (status == EDDY_OK)
        status = give_values(n);
    for (int64_t i = 0; i < n->loop->counts.slices && status == EDDY_OK; i++)
        status = get_slice(n, i);
    return status == EDDY_OK ? call_body(n, end_step) : status;
}

/* ---- the loop ---- */

static eddy_status note_predicate(const noting *n, eddy_tensor *predicate) {
    eddy_recording_mark(n->call->recording, EDDY_CONTROL_LOOP_WHILE, predicate, NULL,
                        n->call->origin);
    return EDDY_OK;
}

static eddy_status note_test(noting *n) {
    eddy_list carried = {n->values, n->loop->counts.carried};
    eddy_tensor *predicate;
    eddy_scope *scope;
    if (!n->loop->test) {
        predicate = eddy_lt_s(n->lists[0], EDDY_S(n->loop->counts.rows));
        return predicate ? note_predicate(n, predicate) : EDDY_OUT_OF_MEMORY;
    }
    eddy_status status = eddy_block_begin(n->call, n->loop->test, carried, &predicate, 1, &scope);
    if (status != EDDY_OK)
        return status;
    status = eddy_block_check_predicate(n->call, predicate);
    if (status == EDDY_OK) {
        status = note_predicate(n, predicate);
        eddy_tensor_retain(predicate);
        n->predicate = predicate;
    }
    eddy_block_end(scope);
    return status;
}

/* What no step writes would be there after a loop that has failed, too. So it depends on the predicate, which is lost then. */
static eddy_status make_dependent(const noting *n, int64_t i, const eddy_outcome *outcome) {
    eddy_caller *caller = n->call->caller;
    caller->no_grad++;
    n->made[i] = eddy_where(n->predicate, n->values[i], n->values[i]);
    caller->no_grad--;
    if (!n->made[i])
        return eddy_outcome_why(outcome);
    eddy_tensor_retain(n->made[i]);
    if (n->tape)
        eddy_recording_put_past(n->call->recording, n->values[i]);
    return EDDY_OK;
}

/* With a tape the values are the loop's own. */
static eddy_status make_carried(const noting *n, const eddy_outcome *outcome) {
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < n->loop->counts.carried && status == EDDY_OK; i++) {
        if (n->stays[i] && n->predicate) {
            status = make_dependent(n, i, outcome);
            continue;
        }
        if (n->tape) {
            status = eddy_copy_contiguous(n->call->caller, n->values[i], n->call->origin.address,
                                          &n->made[i]);
            eddy_recording_put_past(n->call->recording, n->values[i]);
            continue;
        }
        eddy_tensor_retain(n->values[i]);
        n->made[i] = n->values[i];
    }
    return status;
}

static eddy_status note_all(noting *n, const eddy_outcome *outcome) {
    eddy_recording *recording = n->call->recording;
    const eddy_loop *l = n->loop;
    eddy_control_loop attributes = {.most_steps = l->test ? l->most_steps : l->counts.rows};
    eddy_status status = make_all(n, outcome);
    if (status != EDDY_OK)
        return status;
    eddy_recording_mark(recording, EDDY_CONTROL_LOOP, NULL, &attributes, n->call->origin);
    status = note_test(n);
    if (status == EDDY_OK)
        status = note_step(n);
    if (status != EDDY_OK)
        return status;
    eddy_recording_mark(recording, EDDY_CONTROL_END_LOOP, NULL, NULL, n->call->origin);
    return make_carried(n, outcome);
}

static eddy_status note_loop(void *context) {
    noting *n = context;
    eddy_outcome outcome;
    eddy_scope *scope;
    eddy_status status = eddy_scope_open(n->call->caller, n->call->origin, &scope);
    if (status != EDDY_OK)
        return status;
    n->first_value = n->call->recording->code.values.count;
    eddy_outcome_begin(&outcome);
    status = note_all(n, &outcome);
    eddy_outcome_end(&outcome);
    eddy_scope_end(scope);
    return status;
}

static eddy_status watch_loop(void *context) {
    noting *n = context;
    eddy_way_before before;
    if (n->tape)
        eddy_way_tape_begin(n->call, &n->tape->due, &before);
    eddy_status status = eddy_loop_run(n->loop);
    if (status == EDDY_OK && n->tape)
        status = eddy_way_tape_hold(n->call, &n->tape->due, n->loop->carried);
    if (n->tape)
        eddy_way_tape_end(n->call, &before);
    return status;
}

static eddy_status name(noting *n) {
    eddy_loop *l = n->loop;
    const eddy_loop_tape *tape = n->tape;
    eddy_autograd_node *node;
    eddy_status status =
        eddy_loop_tape_make_node(n->call, n->tape, l->xs.items, l->carried, n->lists, &node);
    if (status != EDDY_OK || !node)
        return status;
    for (int64_t i = 0; i < l->counts.outputs && status == EDDY_OK; i++) {
        bool is_wanted =
            i < l->counts.carried ? tape->carries[i] : eddy_loop_tape_wants(tape, i, tape->carries);
        status = eddy_block_node_name(n->call, node, i, is_wanted, &l->carried[i]);
    }
    n->tape = NULL; /* the node's */
    eddy_autograd_node_release(node);
    return status;
}

/* What is recorded is what the loop gives where nothing runs. */
static void take_made(const noting *n) {
    int64_t count = n->loop->counts.outputs;
    eddy_block_drop(n->loop->carried, count);
    memcpy(n->loop->carried, n->made, (size_t)count * sizeof(*n->made));
    memset(n->made, 0, (size_t)count * sizeof(*n->made));
}

/* Holds what the loop began with until all is shown: a step may give its memory back to others. */
static void hold_first(const eddy_loop *l) {
    for (int64_t i = 0; i < l->counts.carried; i++) {
        eddy_tensor_retain(l->carried[i]);
        l->first[i] = l->carried[i];
    }
}

static eddy_status run_and_show(noting *n) {
    const eddy_loop *l = n->loop;
    hold_first(l);
    eddy_status status = eddy_block_watch(n->call, watch_loop, n);
    for (int64_t i = 0; i < l->counts.outputs && status == EDDY_OK; i++)
        if (n->made[i] && l->carried[i] != n->made[i])
            eddy_block_show(n->call, l->carried[i], n->made[i]);
    return status;
}

static eddy_status record(noting *n) {
    eddy_recording *recording = n->call->recording;
    bool runs = recording->recorder.mode == EDDY_RECORDER_RUNS;
    recording->taped_depth += n->tape != NULL;
    eddy_status status = eddy_block_note(n->call, note_loop, n);
    recording->taped_depth -= n->tape != NULL;
    if (status != EDDY_OK)
        return status;
    refuse_lost(n->loop);
    if (runs)
        status = run_and_show(n);
    else
        take_made(n);
    return status == EDDY_OK && n->tape && recording->status == EDDY_OK ? name(n) : status;
}

static eddy_status record_probed(eddy_loop *l, const probed *p) {
    noting n = {.loop = l, .call = &l->call, .probed = p->tape};
    l->rows = p->tape ? p->tape->rows : NULL;
    eddy_status status = EDDY_OK;
    if (p->has_gradient) {
        n.tape =
            eddy_loop_tape_create(&l->call, &l->counts, l->carried, l->xs.items, p->tape->carries);
        status = n.tape ? EDDY_OK : EDDY_OUT_OF_MEMORY;
    } else {
        find_lost(l, l->carried, l->counts.carried);
        /* Slices are got without a tape. */
        bool may_lose = !p->knows_gradients && l->call.caller->no_grad == 0;
        find_lost(l, l->xs.items, may_lose ? l->counts.slices : 0);
    }
    if (status == EDDY_OK)
        status = noting_init(&n);
    if (status == EDDY_OK)
        status = record(&n);
    noting_fini(&n);
    eddy_loop_tape_destroy(n.tape);
    return status;
}

/* The rows of a body that cannot be recorded are not known: only the calls go on. */
static eddy_status run_alone(eddy_loop *l) {
    eddy_recording *recording = l->call.recording;
    eddy_recording_spoil(recording, EDDY_UNSUPPORTED, l->call.origin, l->no_tape);
    return recording->recorder.mode == EDDY_RECORDER_RUNS
               ? eddy_block_watch(&l->call, eddy_loop_run, l)
               : eddy_fail(EDDY_UNSUPPORTED, l->call.origin, "%s", l->no_tape);
}

eddy_status eddy_loop_record(eddy_loop *l) {
    eddy_recording *recording = l->call.recording;
    bool wants_gradients = l->call.caller->no_grad == 0 && recording->status == EDDY_OK;
    probed p;
    if (wants_gradients && recording->taped_depth == LOOPS_MOST)
        eddy_recording_spoil(recording, EDDY_UNSUPPORTED, l->call.origin,
                             "loops lie too deep within each other for gradients");
    eddy_status status = probe(l, wants_gradients && recording->status == EDDY_OK, &p);
    if (status != EDDY_OK)
        return status;
    if (p.has_gradient && l->counts.rows == 0) {
        eddy_recording_spoil(recording, EDDY_UNSUPPORTED, l->call.origin,
                             "a gradient goes back through a loop without most_steps");
        p.has_gradient = false;
    }
    status = !p.tape && l->counts.outputs > l->counts.carried ? run_alone(l) : record_probed(l, &p);
    eddy_loop_tape_destroy(p.tape);
    return status;
}
