/* The nodes of a recording's calls, copied without tensors. */
#include <program/gradient_calls.h>

#include <base/memory.h>
#include <base/shape.h>
#include <interpreter/tape/function_node.h>
#include <program/block_node.h>
#include <program/branch_tape.h>
#include <program/control.h>
#include <string.h>

void eddy_gradient_calls_fini(eddy_gradient_calls *calls) {
    for (uint32_t i = 0; i < calls->calls.count; i++)
        if (eddy_calls_call_at(calls, i)->node)
            eddy_autograd_node_release(eddy_calls_call_at(calls, i)->node);
    eddy_code_array_fini(&calls->calls, sizeof(eddy_calls_call));
    eddy_code_array_fini(&calls->loops, sizeof(eddy_calls_loop));
    eddy_code_array_fini(&calls->edges, sizeof(eddy_calls_word));
    eddy_code_array_fini(&calls->places, sizeof(eddy_calls_place));
    eddy_code_array_fini(&calls->saved, sizeof(eddy_calls_saved));
    eddy_code_array_fini(&calls->numbers, sizeof(eddy_calls_number));
    eddy_code_array_fini(&calls->roots, sizeof(eddy_calls_word));
}

/* ---- finding ---- */

/* Calls of a function that has a tape of its own. */
typedef struct met_way {
    uint64_t serial;
    uint32_t loop; /* in whose steps they are; EDDY_CODE_NONE */
} met_way;

typedef struct met_loop {
    const eddy_autograd_node *node;
    const eddy_loop_tape *tape;
    uint32_t
        first; /* of its calls: what it gives, then what a step is given, then what a step gives */
} met_loop;

typedef struct finder {
    const eddy_gradient_source *source;
    eddy_gradient_calls *calls;
    eddy_code_array met; /* eddy_autograd_node *, per call */
    uint32_t *map; /* open addressing by node: 1 + its call; a power of two, at most half full */
    uint32_t map_count;
    eddy_code_array ways;   /* met_way: of branches, and bodies of loops */
    eddy_code_array loops;  /* met_loop, per loop of the calls */
    uint32_t *instructions; /* per recorded call: its instruction */
    uint32_t event_count;
} finder;

static eddy_autograd_node *met_at(const finder *f, uint32_t i) {
    return ((eddy_autograd_node **)f->met.items)[i];
}

static const met_loop *loop_at(const finder *f, uint32_t i) {
    return (const met_loop *)f->loops.items + i;
}

static const eddy_code *code_of(const finder *f) {
    return &f->source->program->code;
}

static bool add(eddy_code_array *array, const void *item, size_t bytes) {
    uint32_t index;
    if (!eddy_code_array_add(array, bytes, 1, &index))
        return false;
    memcpy((char *)array->items + index * bytes, item, bytes);
    return true;
}

static uint32_t *map_slot(const finder *f, const eddy_autograd_node *node) {
    uint32_t mask = f->map_count - 1, at = (uint32_t)((uintptr_t)node / EDDY_CACHE_LINE) & mask;
    while (f->map[at] != 0 && met_at(f, f->map[at] - 1) != node)
        at = (at + 1) & mask;
    return &f->map[at];
}

static bool map_grow(finder *f) {
    if (2 * (f->met.count + 1) <= f->map_count)
        return true;
    uint32_t count = f->map_count ? 2 * f->map_count : 64;
    uint32_t *map = eddy_memory_acquire_zeroed(count * sizeof(*map), EDDY_MEMORY_PROGRAM);
    if (!map)
        return false;
    eddy_memory_release(f->map, f->map_count * sizeof(*map), EDDY_MEMORY_PROGRAM);
    f->map = map;
    f->map_count = count;
    for (uint32_t i = f->met.count; i-- > 0;) /* a branch or loop: its first */
        *map_slot(f, met_at(f, i)) = i + 1;
    return true;
}

/* The way whose calls the node is one of; NULL: none that is known. */
static const met_way *way_of(const finder *f, const eddy_autograd_node *node) {
    const met_way *ways = f->ways.items;
    for (uint32_t i = 0; i < f->ways.count; i++)
        if (ways[i].serial == node->recording)
            return &ways[i];
    return NULL;
}

/* In whose steps the node's call is. */
static uint32_t loop_of(const finder *f, const eddy_autograd_node *node) {
    const met_way *of = way_of(f, node);
    return of ? of->loop : EDDY_CODE_NONE;
}

static uint32_t part_count(const eddy_branch_tape *branch, const eddy_loop_tape *loop,
                           const eddy_autograd_node *node) {
    if (loop)
        return (uint32_t)(2 * loop->counts.outputs + eddy_loop_input_count(&loop->counts));
    return branch ? node->output_count : 1;
}

static bool meet_loop(finder *f, const eddy_autograd_node *node, const eddy_loop_tape *tape) {
    eddy_gradient_calls *calls = f->calls;
    uint32_t index = calls->loops.count, outer = loop_of(f, node);
    eddy_calls_loop loop = {.outer = outer, .counts = tape->counts};
    uint32_t *inner = outer == EDDY_CODE_NONE ? &calls->loop_count
                                              : &eddy_calls_loop_at(calls, outer)->loop_count;
    loop.number = (*inner)++;
    return add(&calls->loops, &loop, sizeof(loop)) &&
           add(&f->loops, &(met_loop){node, tape, f->met.count}, sizeof(met_loop)) &&
           add(&f->ways, &(met_way){tape->body.serial, index}, sizeof(met_way));
}

/* A branch is as many calls as it has outputs, a loop as many as it and a step of it have outputs and inputs, in a row. */
static bool meet(finder *f, eddy_autograd_node *node) {
    const eddy_branch_tape *branch = eddy_branch_tape_of(node);
    const eddy_loop_tape *loop = eddy_loop_tape_of(node);
    bool has_memory = !loop || meet_loop(f, node, loop);
    for (int i = 0; branch && i < 2 && has_memory; i++)
        has_memory =
            add(&f->ways, &(met_way){branch->ways[i].serial, loop_of(f, node)}, sizeof(met_way));
    for (uint32_t i = 0; i < part_count(branch, loop, node) && has_memory; i++)
        has_memory = add(&f->met, &node, sizeof(node));
    return has_memory;
}

/* The call of a node, or the first of them, which is noted if it is new. */
static bool find_call(finder *f, eddy_autograd_node *node, uint32_t *call) {
    *call = f->met.count;
    if (!map_grow(f))
        return false;
    uint32_t *slot = map_slot(f, node);
    if (*slot == 0) {
        *slot = f->met.count + 1;
        return meet(f, node);
    }
    *call = *slot - 1;
    return true;
}

/* Whether a recorded call made the node, in a function of a branch or loop or outside. */
static bool is_recorded(const finder *f, const eddy_autograd_node *node) {
    return node->recording == f->source->recording->recorder.serial || way_of(f, node);
}

/* The call that is what a step is given, which begins at the node. */
static uint32_t find_input(const finder *f, const eddy_autograd_node *start) {
    for (uint32_t i = 0; i < f->loops.count; i++) {
        const met_loop *loop = loop_at(f, i);
        for (int64_t k = 0; k < eddy_loop_input_count(&loop->tape->counts); k++)
            if (loop->tape->starts[k] == start)
                return loop->first + (uint32_t)(loop->tape->counts.outputs + k);
    }
    return EDDY_CODE_NONE;
}

static bool find_edge(const finder *f, eddy_autograd word, uint32_t *edge) {
    eddy_code_array *edges = f->source->edges;
    const eddy_autograd *words = edges->items;
    for (*edge = 0; *edge < edges->count; ++*edge)
        if (words[*edge] == word)
            return true;
    return add(edges, &word, sizeof(word));
}

static bool find_word(finder *f, eddy_autograd word, eddy_calls_word *found) {
    *found = (eddy_calls_word){EDDY_CODE_NONE, EDDY_CODE_NONE};
    if (!word)
        return true;
    eddy_autograd_node *node = eddy_autograd_node_of(word);
    if (eddy_loop_tape_is_start(node)) {
        *found = (eddy_calls_word){find_input(f, node), 0};
        return true;
    }
    if (!is_recorded(f, node))
        return find_edge(f, word, &found->output);
    if (!find_call(f, node, &found->call))
        return false;
    found->output = eddy_autograd_output_of(word);
    if (eddy_branch_tape_of(node) || eddy_loop_tape_of(node)) {
        found->call += found->output;
        found->output = 0;
    }
    return true;
}

/* ---- one call ---- */

/* What lies in its own node: of a custom function, of a branch or loop. */
static bool has_own_op(const eddy_autograd_node *node) {
    return (const void *)node->op == node->attributes;
}

static bool is_pure(const eddy_autograd_node *node) {
    const eddy_function *function = eddy_function_of(node);
    return function && eddy_function_is_pure(function);
}

bool eddy_gradient_calls_depend_on_run(const eddy_gradient_calls *calls) {
    for (uint32_t i = 0; i < calls->calls.count; i++)
        if (eddy_calls_call_at(calls, i)->kind != EDDY_CALLS_OP)
            return true;
    return false;
}

eddy_autograd_node *eddy_gradient_calls_copy_node(const eddy_autograd_node *node) {
    return eddy_function_of(node) ? eddy_function_copy(node) : eddy_autograd_node_copy(node);
}

static void refuse(const finder *f, const eddy_autograd_node *node, const char *why) {
    snprintf(f->calls->reason, sizeof(f->calls->reason), "%s %s", node->op->name, why);
}

static uint32_t extra_slot(const eddy_autograd_node *node, uint32_t i) {
    return node->input_count + node->output_count + i;
}

/* A value that a step of a loop further out has made, where no list has a row of it. */
static void refuse_outer(const finder *f, const eddy_autograd_node *node, uint32_t loop,
                         uint32_t value) {
    bool is_made = eddy_code_value_at(code_of(f), value)->kind == EDDY_VALUE_MADE;
    for (; loop != EDDY_CODE_NONE; loop = eddy_calls_loop_at(f->calls, loop)->outer)
        if (is_made && value >= loop_at(f, loop)->tape->saved.first)
            refuse(f, node, "has saved what a step of a loop has made, which no list holds");
}

static void place_value(const finder *f, const eddy_autograd_node *node, const eddy_tensor *tensor,
                        eddy_calls_place *place) {
    place->dtype = tensor->dtype;
    place->device = eddy_tensor_device(tensor);
    eddy_tensor_layout(tensor, &place->layout);
    place->value = eddy_program_value_of(f->source->program, f->source->recording,
                                         f->source->bindings, tensor, &place->layout);
    if (place->value == EDDY_CODE_NONE)
        refuse(f, node, "has saved a tensor that no recorded call has used");
    else
        refuse_outer(f, node, loop_of(f, node), place->value);
}

/* Goes on from where the lists of a loop are to a row of one of them, of a step. */
static void go_on_to_row(const finder *f, uint32_t loop, const eddy_saved_row *row,
                         eddy_calls_place *place) {
    EDDY_ASSERT(place->list_count < EDDY_CALLS_DEPTH);
    place->lists[place->list_count++] = (eddy_calls_list){
        .loop = loop,
        .stride = place->layout.strides[0],
        .is_reversed = row->is_known && loop_at(f, loop)->tape->counts.is_reversed};
    int64_t offset = place->layout.offset + row->layout.offset;
    place->layout = row->layout;
    place->layout.offset = offset;
}

/* The loop in whose lists a step has what the node has saved, from the node's own outwards: one further out has what its own step has made. */
static uint32_t find_list_of_slot(const finder *f, const eddy_autograd_node *node, uint32_t slot,
                                  eddy_saved_row *row) {
    uint32_t loop = loop_of(f, node);
    while (loop != EDDY_CODE_NONE &&
           !eddy_saved_find_slot(&loop_at(f, loop)->tape->saved, node, slot, row))
        loop = eddy_calls_loop_at(f->calls, loop)->outer;
    return loop;
}

/* Where a list of a loop is: among what its node has saved, which lies in a list itself if a step of another loop has made it. */
static void place_list(const finder *f, uint32_t loop, uint32_t list, eddy_calls_place *place) {
    uint32_t path[EDDY_CALLS_DEPTH], count = 0, at;
    eddy_saved_row rows[EDDY_CALLS_DEPTH], row;
    const eddy_autograd_node *node = loop_at(f, loop)->node;
    uint32_t slot = extra_slot(node, list);
    while ((at = find_list_of_slot(f, node, slot, &row)) != EDDY_CODE_NONE) {
        EDDY_ASSERT(count < EDDY_CALLS_DEPTH);
        path[count] = at;
        rows[count++] = row;
        node = loop_at(f, at)->node;
        slot = extra_slot(node, 1 + row.list);
    }
    place_value(f, node, node->saved[slot].tensor, place);
    while (count-- > 0)
        go_on_to_row(f, path[count], &rows[count], place);
}

/* Where a row of a loop's lists is. */
static void place_row(const finder *f, uint32_t loop, const eddy_saved_row *row,
                      eddy_calls_place *place) {
    place_list(f, loop, 1 + row->list, place);
    if (!f->calls->reason[0])
        go_on_to_row(f, loop, row, place);
}

static bool add_place(const finder *f, const eddy_calls_place *place, uint32_t *index) {
    *index = f->calls->places.count;
    return add(&f->calls->places, place, sizeof(*place));
}

static uint32_t find_list_of_predicate(const finder *f, const eddy_autograd_node *node,
                                       const eddy_branch_tape *branch, eddy_saved_row *row) {
    uint32_t loop = loop_of(f, node);
    while (loop != EDDY_CODE_NONE &&
           !eddy_saved_find_predicate(&loop_at(f, loop)->tape->saved, branch, row))
        loop = eddy_calls_loop_at(f->calls, loop)->outer;
    return loop;
}

static bool add_saved(finder *f, const eddy_autograd_node *node, uint32_t slot) {
    const eddy_autograd_saved *from = &node->saved[slot];
    eddy_calls_saved saved = {.slot = slot,
                              .place = EDDY_CODE_NONE,
                              .result = from->result,
                              .word = {EDDY_CODE_NONE, EDDY_CODE_NONE}};
    eddy_calls_place place = {0};
    eddy_saved_row row;
    if (!from->tensor)
        return true;
    if (eddy_tensor_is_none(from->tensor))
        return add(&f->calls->saved, &saved, sizeof(saved));
    eddy_autograd word = from->tensor->autograd;
    uint32_t loop = find_list_of_slot(f, node, slot, &row);
    if (loop != EDDY_CODE_NONE) {
        place_row(f, loop, &row, &place);
        word = row.word; /* passes have put rows in the place of what the node had saved */
    } else {
        place_value(f, node, from->tensor, &place);
    }
    return find_word(f, word, &saved.word) && add_place(f, &place, &saved.place) &&
           add(&f->calls->saved, &saved, sizeof(saved));
}

/* The instruction that the call of a node has become: the next one of its op, behind casts of its operands. */
static const eddy_code_instruction *instruction_of(const finder *f,
                                                   const eddy_autograd_node *node) {
    for (uint64_t e = node->recorded_at; e < f->event_count; e++) {
        const eddy_code_instruction *instruction =
            eddy_code_instruction_at(code_of(f), f->instructions[e]);
        if (instruction->op == node->op && instruction->address == node->address)
            return instruction;
    }
    return NULL;
}

static bool add_drawn(const finder *f, const eddy_autograd_node *node, uint32_t draw) {
    uint32_t loop = loop_of(f, node);
    eddy_calls_number number = {.draw = draw, .place = EDDY_CODE_NONE};
    eddy_calls_place place = {0};
    eddy_saved_row row;
    if (loop != EDDY_CODE_NONE &&
        eddy_saved_find_drawn(&loop_at(f, loop)->tape->saved, node, &row)) {
        place_row(f, loop, &row, &place);
        number.draw = 0;
        if (!add_place(f, &place, &number.place))
            return false;
    }
    return add(&f->calls->numbers, &number, sizeof(number));
}

static bool add_numbers(const finder *f, const eddy_autograd_node *node) {
    const eddy_code_instruction *instruction = instruction_of(f, node);
    const eddy_code *code = code_of(f);
    if (instruction && instruction->draw && !add_drawn(f, node, instruction->draw))
        return false;
    for (uint32_t i = 0; instruction && i < instruction->patch_count; i++) {
        const eddy_code_patch *patch = eddy_code_patch_at(code, instruction->patches_at + i);
        eddy_calls_number number = {.place = EDDY_CODE_NONE};
        if (patch->draw || patch->from > 0)
            continue;
        number.use = *eddy_code_scalar_at(code, patch->scalar);
        if (!add(&f->calls->numbers, &number, sizeof(number)))
            return false;
    }
    return true;
}

/* A call in the steps of that loop, whose edges and so on come next. */
static eddy_calls_call begin_call(const finder *f, eddy_calls_kind kind, uint32_t loop) {
    eddy_gradient_calls *calls = f->calls;
    uint32_t *count =
        loop == EDDY_CODE_NONE ? &calls->call_count : &eddy_calls_loop_at(calls, loop)->call_count;
    return (eddy_calls_call){.kind = kind,
                             .loop = loop,
                             .number = (*count)++,
                             .of = EDDY_CODE_NONE,
                             .place = EDDY_CODE_NONE,
                             .edges_at = calls->edges.count,
                             .saved_at = calls->saved.count,
                             .numbers_at = calls->numbers.count};
}

/* Takes the call's node, NULL without memory unless it has none. */
static bool end_call(const finder *f, const eddy_calls_call *call, bool has_node) {
    if (has_node && !call->node)
        return false;
    if (add(&f->calls->calls, call, sizeof(*call)))
        return true;
    if (call->node)
        eddy_autograd_node_release(call->node);
    return false;
}

static bool add_edge(finder *f, eddy_autograd edge) {
    eddy_calls_word word;
    return find_word(f, edge, &word) && add(&f->calls->edges, &word, sizeof(word));
}

static bool add_call(finder *f, const eddy_autograd_node *node) {
    eddy_calls_call call = begin_call(f, EDDY_CALLS_OP, loop_of(f, node));
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!add_edge(f, node->edges[i]))
            return false;
    for (uint32_t i = 0; i < eddy_autograd_saved_count(node); i++)
        if (!add_saved(f, node, i))
            return false;
    if (!add_numbers(f, node))
        return false;
    call.saved_count = f->calls->saved.count - call.saved_at;
    call.number_count = f->calls->numbers.count - call.numbers_at;
    call.node = eddy_gradient_calls_copy_node(node);
    return end_call(f, &call, true);
}

/* ---- branches ---- */

/* A copy, as calls of eddy_cond outside of recordings make it. */
static bool add_branch(finder *f, const eddy_autograd_node *node, const eddy_branch_tape *branch,
                       uint32_t output) {
    eddy_calls_call call = begin_call(f, EDDY_CALLS_BRANCH, loop_of(f, node));
    eddy_calls_place place = {0};
    eddy_saved_row row;
    for (int way = 0; way < 2; way++) {
        const eddy_tensor *given = branch->ways[way].outputs[output];
        call.owns[way] = branch->ways[way].owns[output];
        if (!add_edge(f, given ? given->autograd : 0))
            return false;
    }
    uint32_t loop = find_list_of_predicate(f, node, branch, &row);
    if (loop != EDDY_CODE_NONE) {
        place_row(f, loop, &row, &place);
    } else {
        place_value(f, node, branch->predicate, &place);
    }
    if (!add_place(f, &place, &call.place))
        return false;
    call.node = eddy_block_node_copy(node, output);
    return end_call(f, &call, true);
}

/* ---- loops ---- */

/* What a step gives was copied when it was held for the tape, as calls outside of recordings do. */
static bool is_held_copy(const met_loop *loop, const eddy_tensor *given) {
    const eddy_autograd_node *node = eddy_autograd_node_of(given->autograd);
    return node->op == eddy_op_find("clone") && node->address == loop->node->address;
}

/* What output i of a step is: what the step was given, a call of it, a copy, or nothing that a gradient goes back from. */
static bool add_step_output(finder *f, const met_loop *loop, int64_t i) {
    const eddy_loop_tape *tape = loop->tape;
    const eddy_tensor *given = tape->body.outputs[i];
    uint32_t first_input = loop->first + (uint32_t)tape->counts.outputs,
             first_output = first_input + (uint32_t)eddy_loop_input_count(&tape->counts);
    eddy_calls_word word = {first_output + (uint32_t)i, 0};
    if (!given->autograd || tape->body.owns[i])
        return add_edge(f, given->autograd);
    if (is_held_copy(loop, given)) {
        eddy_autograd from = eddy_autograd_node_of(given->autograd)->edges[0];
        if (i >= tape->counts.carried || from != eddy_loop_tape_start(tape, i))
            return add_edge(f, given->autograd);
        word.call = first_input + (uint32_t)i;
    }
    return add(&f->calls->edges, &word, sizeof(word));
}

static bool add_loop(finder *f, uint32_t index) {
    met_loop loop = *loop_at(f, index);
    const eddy_loop_counts *counts = &loop.tape->counts;
    eddy_calls_loop found = *eddy_calls_loop_at(f->calls, index);
    eddy_calls_place place = {0};
    bool is_added = true;
    place_list(f, index, 0, &place);
    found.before_at = f->calls->edges.count;
    for (int64_t i = 0; i < eddy_loop_input_count(counts) && is_added; i++)
        is_added = add_edge(f, loop.tape->before[i]);
    found.outputs_at = f->calls->edges.count;
    for (int64_t i = 0; i < counts->outputs && is_added; i++)
        is_added = add_step_output(f, &loop, i);
    is_added = is_added && add_place(f, &place, &found.steps);
    /* What was met may have counted calls and loops of its steps. */
    eddy_calls_loop *to = eddy_calls_loop_at(f->calls, index);
    to->before_at = found.before_at;
    to->outputs_at = found.outputs_at;
    to->steps = found.steps;
    return is_added;
}

static bool add_loop_output(finder *f, uint32_t index, uint32_t output) {
    const met_loop *loop = loop_at(f, index);
    const eddy_autograd_node *node = loop->node;
    if (output == 0 && !add_loop(f, index))
        return false;
    eddy_calls_call call = begin_call(f, EDDY_CALLS_LOOP_OUTPUT, loop_of(f, node));
    call.of = index;
    call.index = output;
    call.node = eddy_block_node_copy(node, output);
    return end_call(f, &call, true);
}

/* Like a slice of an x. */
static eddy_autograd_node *make_slice(const met_loop *loop, uint32_t input) {
    eddy_spec from, to;
    eddy_autograd_spec_of(loop->node, input, &from);
    to = from;
    to.shape.rank--;
    memmove(to.shape.dims, from.shape.dims + 1, (size_t)to.shape.rank * sizeof(to.shape.dims[0]));
    eddy_autograd_node *node =
        eddy_block_node_call(&eddy_view_ops[EDDY_VIEW_PART], loop->node, &from, &to);
    if (node)
        memcpy(node->attributes, &loop->tape->slices[input - loop->tape->counts.carried],
               sizeof(eddy_view_attributes));
    return node;
}

static bool add_loop_input(const finder *f, uint32_t index, uint32_t input) {
    const met_loop *loop = loop_at(f, index);
    bool is_slice = input >= loop->tape->counts.carried;
    eddy_calls_call call = begin_call(f, EDDY_CALLS_LOOP_INPUT, index);
    call.of = index;
    call.index = input;
    call.node = is_slice ? make_slice(loop, input) : NULL;
    return end_call(f, &call, is_slice);
}

static bool add_step_copy(finder *f, uint32_t index, uint32_t output) {
    const met_loop *loop = loop_at(f, index);
    const eddy_tensor *given = loop->tape->body.outputs[output];
    eddy_spec spec = {.dtype = (eddy_dtype)given->dtype};
    eddy_calls_call call = begin_call(f, EDDY_CALLS_STEP_OUTPUT, index);
    eddy_tensor_shape(given, &spec.shape);
    call.node = eddy_block_node_call(eddy_op_find("clone"), loop->node, &spec, &spec);
    if (call.node && add_edge(f, given->autograd))
        return end_call(f, &call, true);
    if (call.node)
        eddy_autograd_node_release(call.node);
    return false;
}

static bool add_loop_part(finder *f, uint32_t part, uint32_t first) {
    uint32_t index = 0;
    while (loop_at(f, index)->first != first)
        index++;
    const eddy_loop_counts *counts = &loop_at(f, index)->tape->counts;
    uint32_t outputs = (uint32_t)counts->outputs, inputs = (uint32_t)eddy_loop_input_count(counts);
    if (part < outputs)
        return add_loop_output(f, index, part);
    return part < outputs + inputs ? add_loop_input(f, index, part - outputs)
                                   : add_step_copy(f, index, part - outputs - inputs);
}

/* ---- all of them ---- */

static bool find_instructions(finder *f) {
    uint32_t count = f->source->instruction_count;
    f->instructions =
        eddy_memory_acquire(count * sizeof(*f->instructions) + 1, EDDY_MEMORY_PROGRAM);
    for (uint32_t i = 0; i < count && f->instructions; i++)
        if (eddy_control_of(eddy_code_instruction_at(code_of(f), i)->op) == EDDY_CONTROL_NONE)
            f->instructions[f->event_count++] = i;
    return f->instructions != NULL;
}

/* Each call is looked at once it was met; that meets others. */
static bool find_all(finder *f) {
    for (uint32_t i = 0; i < f->source->root_count; i++) {
        eddy_calls_word word;
        if (!find_word(f, f->source->roots[i], &word) ||
            !add(&f->calls->roots, &word, sizeof(word)))
            return false;
    }
    for (uint32_t i = 0; i < f->met.count && !f->calls->reason[0]; i++) {
        const eddy_autograd_node *node = met_at(f, i);
        const eddy_branch_tape *branch = eddy_branch_tape_of(node);
        uint32_t first = *map_slot(f, node) - 1;
        bool is_added = true;
        if (branch)
            is_added = add_branch(f, node, branch, i - first);
        else if (eddy_loop_tape_of(node))
            is_added = add_loop_part(f, i - first, first);
        else if (has_own_op(node) && !is_pure(node))
            refuse(f, node, "was recorded as one call, whose gradient has none");
        else
            is_added = add_call(f, node);
        if (!is_added)
            return false;
    }
    return true;
}

bool eddy_gradient_calls_make(eddy_gradient_calls *calls, const eddy_gradient_source *source) {
    finder f = {.source = source, .calls = calls};
    uint32_t edge_count = source->edges->count;
    bool is_made = find_instructions(&f) && find_all(&f);
    eddy_code_array_fini(&f.met, sizeof(eddy_autograd_node *));
    eddy_code_array_fini(&f.ways, sizeof(met_way));
    eddy_code_array_fini(&f.loops, sizeof(met_loop));
    eddy_memory_release(f.map, f.map_count * sizeof(*f.map), EDDY_MEMORY_PROGRAM);
    eddy_memory_release(f.instructions, source->instruction_count * sizeof(*f.instructions) + 1,
                        EDDY_MEMORY_PROGRAM);
    if (!is_made || calls->reason[0])
        source->edges->count = edge_count;
    if (is_made && calls->reason[0])
        eddy_gradient_calls_fini(calls);
    return is_made;
}

/* ---- what they take ---- */

int64_t eddy_gradient_calls_bytes(const eddy_gradient_calls *calls) {
    size_t bytes = calls->calls.capacity * sizeof(eddy_calls_call) +
                   calls->loops.capacity * sizeof(eddy_calls_loop) +
                   calls->edges.capacity * sizeof(eddy_calls_word) +
                   calls->places.capacity * sizeof(eddy_calls_place) +
                   calls->saved.capacity * sizeof(eddy_calls_saved) +
                   calls->numbers.capacity * sizeof(eddy_calls_number) +
                   calls->roots.capacity * sizeof(eddy_calls_word);
    for (uint32_t i = 0; i < calls->calls.count; i++)
        if (eddy_calls_call_at(calls, i)->node)
            bytes += eddy_calls_call_at(calls, i)->node->bytes;
    return (int64_t)bytes;
}
