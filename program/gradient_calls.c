/* The nodes of a recording's calls, copied without tensors. */
#include <program/gradient_calls.h>

#include <base/memory.h>
#include <program/branch_tape.h>
#include <program/control.h>
#include <string.h>

void eddy_gradient_calls_fini(eddy_gradient_calls *calls) {
    for (uint32_t i = 0; i < calls->calls.count; i++)
        if (eddy_calls_call_at(calls, i)->node)
            eddy_autograd_node_release(eddy_calls_call_at(calls, i)->node);
    eddy_code_array_fini(&calls->calls, sizeof(eddy_calls_call));
    eddy_code_array_fini(&calls->edges, sizeof(eddy_calls_word));
    eddy_code_array_fini(&calls->saved, sizeof(eddy_calls_saved));
    eddy_code_array_fini(&calls->numbers, sizeof(eddy_calls_number));
    eddy_code_array_fini(&calls->roots, sizeof(eddy_calls_word));
}

/* ---- finding ---- */

typedef struct finder {
    const eddy_gradient_source *source;
    eddy_gradient_calls *calls;
    eddy_code_array met; /* eddy_autograd_node *, per call */
    uint32_t *map; /* open addressing by node: 1 + its call; a power of two, at most half full */
    uint32_t map_count;
    eddy_code_array ways;   /* uint64_t: the serials of ways of branches */
    uint32_t *instructions; /* per recorded call: its instruction */
    uint32_t event_count;
} finder;

static eddy_autograd_node *met_at(const finder *f, uint32_t i) {
    return ((eddy_autograd_node **)f->met.items)[i];
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
    for (uint32_t i = f->met.count; i-- > 0;) /* a branch: its first */
        *map_slot(f, met_at(f, i)) = i + 1;
    return true;
}

/* A branch is as many calls as it has outputs, in a row. */
static bool meet(finder *f, eddy_autograd_node *node) {
    const eddy_branch_tape *branch = eddy_branch_tape_of(node);
    for (uint32_t i = 0; i < (branch ? node->output_count : 1); i++)
        if (!add(&f->met, &node, sizeof(node)))
            return false;
    for (int way = 0; branch && way < 2; way++)
        if (!add(&f->ways, &branch->ways[way].serial, sizeof(branch->ways[way].serial)))
            return false;
    return true;
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

/* Whether a recorded call made the node, on a way of a branch or outside. */
static bool is_recorded(const finder *f, const eddy_autograd_node *node) {
    const uint64_t *serials = f->ways.items;
    bool is_one = node->recording == f->source->recording->recorder.serial;
    for (uint32_t i = 0; i < f->ways.count && !is_one; i++)
        is_one = node->recording == serials[i];
    return is_one;
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
    if (!is_recorded(f, node))
        return find_edge(f, word, &found->output);
    if (!find_call(f, node, &found->call))
        return false;
    found->output = eddy_autograd_output_of(word);
    if (eddy_branch_tape_of(node)) {
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

static void refuse(const finder *f, const eddy_autograd_node *node, const char *why) {
    snprintf(f->calls->reason, sizeof(f->calls->reason), "%s %s", node->op->name, why);
}

static bool add_saved(finder *f, const eddy_autograd_node *node, uint32_t slot,
                      const eddy_autograd_saved *from) {
    eddy_calls_saved saved = {.slot = slot,
                              .value = EDDY_CODE_NONE,
                              .saved = EDDY_CODE_NONE,
                              .result = from->result,
                              .word = {EDDY_CODE_NONE, EDDY_CODE_NONE}};
    if (!from->tensor)
        return true;
    if (!eddy_tensor_is_none(from->tensor)) {
        saved.dtype = from->tensor->dtype;
        saved.device = eddy_tensor_device(from->tensor);
        eddy_tensor_layout(from->tensor, &saved.layout);
        saved.value = eddy_program_value_of(f->source->program, f->source->recording,
                                            f->source->bindings, from->tensor, &saved.layout);
        if (!find_word(f, from->tensor->autograd, &saved.word))
            return false;
        if (saved.value == EDDY_CODE_NONE)
            refuse(f, node, "has saved a tensor that no recorded call has used");
    }
    return add(&f->calls->saved, &saved, sizeof(saved));
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

static bool add_numbers(const finder *f, const eddy_autograd_node *node) {
    const eddy_code_instruction *instruction = instruction_of(f, node);
    const eddy_code *code = code_of(f);
    if (instruction && instruction->draw &&
        !add(&f->calls->numbers, &(eddy_calls_number){.draw = instruction->draw},
             sizeof(eddy_calls_number)))
        return false;
    for (uint32_t i = 0; instruction && i < instruction->patch_count; i++) {
        const eddy_code_patch *patch = eddy_code_patch_at(code, instruction->patches_at + i);
        eddy_calls_number number = {0};
        if (patch->draw || patch->from > 0)
            continue;
        number.use = *eddy_code_scalar_at(code, patch->scalar);
        if (!add(&f->calls->numbers, &number, sizeof(number)))
            return false;
    }
    return true;
}

static bool add_call(finder *f, const eddy_autograd_node *node) {
    eddy_gradient_calls *calls = f->calls;
    eddy_calls_call call = {.edges_at = calls->edges.count,
                            .saved_at = calls->saved.count,
                            .numbers_at = calls->numbers.count};
    for (uint32_t i = 0; i < node->input_count; i++) {
        eddy_calls_word word;
        if (!find_word(f, node->edges[i], &word) || !add(&calls->edges, &word, sizeof(word)))
            return false;
    }
    for (uint32_t i = 0; i < eddy_autograd_saved_count(node); i++)
        if (!add_saved(f, node, i, &node->saved[i]))
            return false;
    if (!add_numbers(f, node))
        return false;
    call.saved_count = calls->saved.count - call.saved_at;
    call.number_count = calls->numbers.count - call.numbers_at;
    call.node = eddy_autograd_node_copy(node);
    if (!call.node || add(&calls->calls, &call, sizeof(call)))
        return call.node != NULL;
    eddy_autograd_node_release(call.node);
    return false;
}

/* ---- branches ---- */

/* A node of a copy, as calls of eddy_cond outside of recordings make it. */
static eddy_autograd_node *make_copy(const eddy_autograd_node *branch, uint32_t output) {
    const eddy_op *op = eddy_op_find("clone");
    const eddy_autograd_spec *spec = &branch->specs[branch->input_count + output];
    uint32_t rank = (uint32_t)spec->rank;
    eddy_autograd_node *node =
        eddy_autograd_node_make(&(eddy_autograd_size){.inputs = 1,
                                                      .outputs = 1,
                                                      .dims = 2 * (size_t)rank,
                                                      .attribute_bytes = op->attribute_bytes});
    if (!node)
        return NULL;
    node->op = op;
    node->address = branch->address;
    node->device = branch->device;
    if (op->attribute_bytes > 0)
        memset(node->attributes, 0, op->attribute_bytes);
    for (uint32_t i = 0; i < 2; i++) {
        node->specs[i] = (eddy_autograd_spec){spec->dtype, spec->rank, i * rank};
        memcpy(node->dims + i * rank, branch->dims + spec->dims_at, rank * sizeof(*node->dims));
    }
    return node;
}

static bool add_branch(finder *f, const eddy_autograd_node *node, const eddy_branch_tape *branch,
                       uint32_t output) {
    eddy_gradient_calls *calls = f->calls;
    eddy_calls_call call = {.edges_at = calls->edges.count,
                            .saved_at = calls->saved.count,
                            .numbers_at = calls->numbers.count,
                            .is_choice = true};
    for (int way = 0; way < 2; way++) {
        const eddy_tensor *given = branch->ways[way].outputs[output];
        eddy_calls_word word;
        if (!find_word(f, given ? given->autograd : 0, &word) ||
            !add(&calls->edges, &word, sizeof(word)))
            return false;
    }
    if (!add_saved(f, node, 0, &(eddy_autograd_saved){.tensor = branch->predicate}))
        return false;
    call.node = make_copy(node, output);
    if (!call.node || add(&calls->calls, &call, sizeof(call)))
        return call.node != NULL;
    eddy_autograd_node_release(call.node);
    return false;
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
        bool is_added = true;
        if (branch)
            is_added = add_branch(f, node, branch, i - (*map_slot(f, node) - 1));
        else if (has_own_op(node))
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
    eddy_code_array_fini(&f.ways, sizeof(uint64_t));
    eddy_memory_release(f.map, f.map_count * sizeof(*f.map), EDDY_MEMORY_PROGRAM);
    eddy_memory_release(f.instructions, source->instruction_count * sizeof(*f.instructions) + 1,
                        EDDY_MEMORY_PROGRAM);
    if (!is_made || calls->reason[0])
        source->edges->count = edge_count;
    if (is_made && calls->reason[0])
        eddy_gradient_calls_fini(calls);
    return is_made;
}

/* ---- of two recordings ---- */

static bool is_same_word(const eddy_calls_word *a, const eddy_calls_word *b) {
    return a->call == b->call && a->output == b->output;
}

static bool is_same_saved(const eddy_calls_saved *a, const eddy_calls_saved *b) {
    return a->slot == b->slot && a->value == b->value && a->result == b->result &&
           a->dtype == b->dtype && is_same_word(&a->word, &b->word) &&
           a->layout.offset == b->layout.offset &&
           eddy_shape_equal(a->layout.rank, a->layout.dims, b->layout.rank, b->layout.dims) &&
           eddy_shape_equal(a->layout.rank, a->layout.strides, b->layout.rank, b->layout.strides);
}

bool eddy_gradient_calls_is_equal(const eddy_gradient_calls *a, const eddy_gradient_calls *b) {
    if (a->calls.count != b->calls.count || a->edges.count != b->edges.count ||
        a->saved.count != b->saved.count || a->numbers.count != b->numbers.count ||
        strcmp(a->reason, b->reason) != 0)
        return false;
    for (uint32_t i = 0; i < a->calls.count; i++)
        if (eddy_calls_call_at(a, i)->node->op != eddy_calls_call_at(b, i)->node->op)
            return false;
    for (uint32_t i = 0; i < a->edges.count; i++)
        if (!is_same_word(eddy_gradient_calls_edge(a, i), eddy_gradient_calls_edge(b, i)))
            return false;
    for (uint32_t i = 0; i < a->saved.count; i++)
        if (!is_same_saved(eddy_calls_saved_at(a, i), eddy_calls_saved_at(b, i)))
            return false;
    return true;
}

int64_t eddy_gradient_calls_bytes(const eddy_gradient_calls *calls) {
    size_t bytes = calls->calls.capacity * sizeof(eddy_calls_call) +
                   calls->edges.capacity * sizeof(eddy_calls_word) +
                   calls->saved.capacity * sizeof(eddy_calls_saved) +
                   calls->numbers.capacity * sizeof(eddy_calls_number) +
                   calls->roots.capacity * sizeof(eddy_calls_word);
    for (uint32_t i = 0; i < calls->calls.count; i++)
        bytes += eddy_calls_call_at(calls, i)->node->bytes;
    return (int64_t)bytes;
}
