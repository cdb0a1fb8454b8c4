#include <program/loop_tape.h>

#include <base/memory.h>
#include <base/status.h>
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

/* ---- life ---- */

static eddy_loop_tape *acquire(const eddy_loop_counts *counts) {
    size_t in = (size_t)eddy_loop_input_count(counts), out = (size_t)counts->outputs;
    size_t outputs = sizeof(eddy_loop_tape), starts = outputs + 2 * out * sizeof(eddy_tensor *);
    size_t before = starts + in * sizeof(eddy_autograd_node *),
           rows = before + in * sizeof(eddy_autograd);
    size_t slices = rows + out * sizeof(eddy_spec),
           carries = slices + (size_t)counts->slices * sizeof(eddy_view_attributes);
    size_t leads = carries + in, leaves = leads + in * out, owns = leaves + out;
    char *memory = eddy_memory_acquire_zeroed(owns + out, EDDY_MEMORY_TAPE);
    eddy_loop_tape *tape = (eddy_loop_tape *)(void *)memory;
    if (!tape)
        return NULL;
    tape->counts = *counts;
    tape->bytes = owns + out;
    tape->starts = (eddy_autograd_node **)(void *)(memory + starts);
    tape->before = (eddy_autograd *)(void *)(memory + before);
    tape->rows = (eddy_spec *)(void *)(memory + rows);
    tape->slices = (eddy_view_attributes *)(void *)(memory + slices);
    tape->carries = (bool *)(memory + carries);
    tape->leads = (bool *)(memory + leads);
    tape->leaves = (bool *)(memory + leaves);
    eddy_way_tape_init(&tape->body, tape->outputs, (bool *)(memory + owns), counts->outputs);
    eddy_way_tape_init(&tape->due, tape->outputs + out, NULL, counts->outputs);
    return tape;
}

eddy_loop_tape *eddy_loop_tape_create(const eddy_block_call *call, const eddy_loop_counts *counts,
                                      eddy_tensor *const *carried, eddy_tensor *const *xs,
                                      const bool *carries) {
    eddy_loop_tape *tape = acquire(counts);
    if (!tape) {
        eddy_fail(EDDY_OUT_OF_MEMORY, call->origin, "no memory to record the call");
        return NULL;
    }
    for (int64_t i = 0; i < eddy_loop_input_count(counts); i++) {
        const eddy_tensor *from = i < counts->carried ? carried[i] : xs[i - counts->carried];
        tape->carries[i] = carries[i];
        tape->before[i] = from->autograd;
        if (tape->before[i])
            eddy_autograd_node_retain(eddy_autograd_node_of(tape->before[i]));
    }
    return tape;
}

void eddy_loop_tape_destroy(eddy_loop_tape *tape) {
    if (!tape)
        return;
    eddy_saved_fini(&tape->saved);
    eddy_way_tape_fini(&tape->body);
    eddy_way_tape_fini(&tape->due);
    for (int64_t i = 0; i < eddy_loop_input_count(&tape->counts); i++) {
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

static eddy_status begin_at_start(const eddy_block_call *call, eddy_loop_tape *tape, int64_t i,
                                  eddy_tensor *value, eddy_tensor **given) {
    tape->starts[i] = make_start(call, value);
    *given = tape->starts[i]
                 ? eddy_tensor_acquire(call->caller, value->runtime, call->origin.address)
                 : NULL;
    if (!*given)
        return eddy_fail(EDDY_OUT_OF_MEMORY, call->origin, "no memory to record the call");
    eddy_tensor_alias(*given, value);
    (*given)->stands_in = true;
    eddy_autograd_node_name(tape->starts[i], 0, *given);
    return EDDY_OK;
}

eddy_status eddy_loop_tape_give(const eddy_block_call *call, eddy_loop_tape *tape, int64_t i,
                                eddy_tensor *value, eddy_tensor **given) {
    if (tape->carries[i])
        return begin_at_start(call, tape, i, value, given);
    eddy_tensor_retain(value);
    *given = value;
    return EDDY_OK;
}

bool eddy_loop_tape_is_watched(const eddy_loop_tape *tape) {
    bool is_watched = false;
    for (int64_t i = 0; i < eddy_loop_input_count(&tape->counts); i++) {
        eddy_autograd_node *start = tape->starts[i];
        is_watched |= start && (start->hooks || start->keeps[0]);
    }
    return is_watched;
}

/* ---- where gradients go ---- */

typedef struct walk {
    const eddy_loop_tape *tape;
    eddy_code_array nodes; /* eddy_autograd_node *: met so far */
    eddy_pointer_index met;
    bool *leads, *leaves; /* of one output */
} walk;

static bool meet(walk *w, eddy_autograd word) {
    eddy_autograd_node *node = eddy_autograd_node_of(word);
    uint32_t index;
    if (!word || eddy_pointer_index_find(&w->met, node, 0) != EDDY_CODE_NONE)
        return true;
    for (int64_t j = 0; j < eddy_loop_input_count(&w->tape->counts); j++)
        if (node == w->tape->starts[j]) {
            w->leads[j] = true;
            return true;
        }
    if (node->recording != w->tape->body.serial) {
        *w->leaves = true;
        return true;
    }
    if (!eddy_code_array_add(&w->nodes, sizeof(node), 1, &index) ||
        !eddy_pointer_index_set(&w->met, node, 0, index))
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
    for (int64_t i = 0; i < tape->counts.outputs && has_memory; i++) {
        const eddy_tensor *output = tape->body.outputs[i];
        walk w = {.tape = tape, .leads = eddy_loop_tape_leads(tape, i), .leaves = &tape->leaves[i]};
        has_memory = walk_output(&w, output);
        eddy_code_array_fini(&w.nodes, sizeof(eddy_autograd_node *));
        eddy_pointer_index_fini(&w.met);
        if (i < tape->counts.carried)
            continue;
        eddy_spec *row = &tape->rows[i - tape->counts.carried];
        row->dtype = (eddy_dtype)output->dtype;
        eddy_tensor_shape(output, &row->shape);
    }
    return has_memory;
}

bool eddy_loop_tape_wants(const eddy_loop_tape *tape, int64_t i, const bool *carries) {
    bool wants = tape->leaves[i];
    for (int64_t j = 0; j < eddy_loop_input_count(&tape->counts); j++)
        wants |= eddy_loop_tape_leads(tape, i)[j] && carries[j];
    return wants;
}

void eddy_loop_tape_close(const eddy_loop_tape *tape, bool *carries) {
    bool is_changed = true;
    while (is_changed) {
        is_changed = false;
        for (int64_t i = 0; i < tape->counts.carried; i++) {
            bool is_new = !carries[i] && eddy_loop_tape_wants(tape, i, carries);
            carries[i] |= is_new;
            is_changed |= is_new;
        }
    }
}

/* ---- the node ---- */

static bool is_start(const eddy_loop_tape *tape, eddy_autograd word) {
    for (int64_t i = 0; i < eddy_loop_input_count(&tape->counts); i++)
        if (word == eddy_loop_tape_start(tape, i))
            return true;
    return false;
}

/* One for each input, then what else a step leads to. */
static uint32_t list_edges(const eddy_loop_tape *tape, eddy_tensor *const *xs,
                           const eddy_block_node_parts *parts, const eddy_backward_found *found,
                           eddy_backward_edge *list) {
    uint32_t count = 0;
    for (int64_t i = 0; i < eddy_loop_input_count(&tape->counts); i++) {
        eddy_tensor *like =
            i < tape->counts.carried ? parts->made[i] : xs[i - tape->counts.carried];
        list[count++] = (eddy_backward_edge){tape->starts[i] ? tape->before[i] : 0, like};
    }
    for (uint32_t i = 0; i < found->count; i++)
        if (!is_start(tape, found->edges[i].word))
            list[count++] = found->edges[i];
    return count;
}

static eddy_status make_with_edges(const eddy_block_call *call, eddy_loop_tape *tape,
                                   eddy_tensor *const *xs, const eddy_backward_found *found,
                                   const eddy_block_node_parts *given, eddy_autograd_node **node) {
    size_t bytes =
        ((size_t)eddy_loop_input_count(&tape->counts) + found->count) * sizeof(eddy_backward_edge);
    eddy_backward_edge *list = eddy_memory_acquire(bytes, EDDY_MEMORY_TAPE);
    if (!list)
        return eddy_fail(EDDY_OUT_OF_MEMORY, call->origin, "no memory to record the call");
    eddy_block_node_parts parts = *given;
    parts.edges = list;
    parts.edge_count = list_edges(tape, xs, given, found, list);
    eddy_status status = eddy_block_node_make(call, &parts, tape, destroy_tape, node);
    eddy_memory_release(list, bytes, EDDY_MEMORY_TAPE);
    return status;
}

eddy_status eddy_loop_tape_make_node(const eddy_block_call *call, eddy_loop_tape *tape,
                                     eddy_tensor *const *xs, eddy_tensor *const *made,
                                     eddy_tensor *const *steps_and_lists,
                                     eddy_autograd_node **node) {
    eddy_backward_found found = {0};
    eddy_quiet quiet;
    eddy_error failed;
    eddy_block_node_parts parts = {.name = call->origin.op,
                                   .run = eddy_loop_tape_run_gradient,
                                   .due = &tape->due,
                                   .made = made,
                                   .made_count = tape->counts.outputs,
                                   .saved = steps_and_lists,
                                   .saved_count = 1 + tape->saved.row_count};
    *node = NULL;
    tape->recording = call->recording->number;
    for (int64_t i = 0; i < tape->counts.slices; i++) {
        tape->slices[i] = (eddy_view_attributes){.step = 1, .length = 1, .is_removed = true};
        eddy_tensor_find_order(xs[i], tape->slices[i].order);
    }
    eddy_quiet_begin(&quiet);
    eddy_status status = eddy_block_find_edges(call, &tape->body, 1, &found);
    eddy_quiet_end(&quiet, &failed);
    if (status == EDDY_OK)
        status = make_with_edges(call, tape, xs, &found, &parts, node);
    else
        eddy_recording_spoil(call->recording, status, call->origin, failed.message);
    eddy_backward_found_fini(&found);
    return *node || call->recording->status != EDDY_OK ? EDDY_OK : status;
}

eddy_loop_tape *eddy_loop_tape_of(const eddy_autograd_node *node) {
    return eddy_block_node_tape(node, eddy_loop_tape_run_gradient);
}
