/* Cuts a bound recording into the program, its forward program and its ways back. */
#include <base/memory.h>
#include <base/status.h>
#include <program/gradient.h>
#include <program/late_calls.h>
#include <string.h>

/* Values that the forward calls make; of passes, this and more. */
#define FORWARD 1

typedef struct splitter {
    const eddy_program *whole;
    const eddy_gradient_plan *plan;
    const eddy_bindings *given;
    const eddy_recording *recording;
    eddy_origin origin;
    eddy_program_gradient *gradient; /* being made */
    uint8_t *made_in; /* per value: FORWARD, FORWARD + 1 + pass, or 0: it was there before */
    uint32_t *bound;  /* per value: 1 + the binding of its input, or 0 */
    bool *is_used;    /* per value: by the part that is being made */
} splitter;

static eddy_status fail_memory(const splitter *s) {
    return eddy_fail(EDDY_OUT_OF_MEMORY, s->origin, "no memory for the program");
}

static const eddy_program_binding *binding_at(const splitter *s, uint32_t i) {
    return eddy_program_binding_at(s->whole, i);
}

static uint32_t given_count(const splitter *s) {
    return (uint32_t)s->given->count;
}

/* ---- values ---- */

static void find_makers(const splitter *s) {
    const eddy_code *code = &s->whole->code;
    uint32_t pass = 0;
    for (uint32_t i = 0; i < code->instructions.count; i++) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(code, i);
        bool is_forward = i < s->plan->instruction_count;
        while (!is_forward && i >= s->plan->passes[pass].end)
            pass++;
        for (uint32_t k = 0; k < instruction->operand_count; k++) {
            const eddy_code_operand *operand =
                eddy_code_operand_at(code, instruction->operands_at + k);
            if (operand->access & EDDY_CODE_MAKES)
                s->made_in[operand->value] = (uint8_t)(is_forward ? FORWARD : FORWARD + 1 + pass);
        }
    }
}

/* The values of inputs, and the seeds among them. */
static void find_inputs(const splitter *s) {
    for (uint32_t i = 0; i < given_count(s) + s->plan->root_count; i++)
        if (binding_at(s, i)->role == EDDY_ROLE_INPUT)
            s->bound[binding_at(s, i)->value] = 1 + i;
}

static bool is_seed(const splitter *s, uint32_t value) {
    return s->bound[value] > given_count(s);
}

static void use_instructions(const splitter *s, const eddy_program *part) {
    for (uint32_t i = 0; i < part->code.operands.count; i++) {
        uint32_t value = eddy_code_operand_at(&part->code, i)->value;
        if (value != EDDY_CODE_NONE)
            s->is_used[value] = true;
    }
}

/* ---- parts ---- */

/* Code and what every part has; NULL without memory. */
static eddy_program *begin_part(const splitter *s, uint32_t first, uint32_t end,
                                uint32_t scalar_count) {
    eddy_program *part = eddy_program_create(s->whole->runtime);
    if (!part)
        return NULL;
    part->passes = s->whole->passes;
    if (!eddy_code_copy_part(&part->code, &s->whole->code, first, end, s->plan->draw_count,
                             scalar_count)) {
        eddy_program_destroy(part);
        return NULL;
    }
    memset(s->is_used, 0, s->whole->code.values.count * sizeof(*s->is_used));
    use_instructions(s, part);
    return part;
}

static eddy_program_binding *add_binding(eddy_program *part, const eddy_program_binding *from) {
    uint32_t index;
    if (!eddy_code_array_add(&part->bindings, sizeof(*from), 1, &index))
        return NULL;
    eddy_program_binding *binding = eddy_program_binding_at(part, index);
    *binding = *from;
    binding->name = NULL;
    if (from->name && !(binding->name = eddy_program_name_copy(from->name)))
        return NULL;
    part->input_count += from->role == EDDY_ROLE_INPUT;
    part->output_count += from->role == EDDY_ROLE_OUTPUT;
    return binding;
}

static eddy_program_external *add_external(eddy_program *part, uint32_t value) {
    uint32_t index;
    if (!eddy_code_array_add(&part->externals, sizeof(eddy_program_external), 1, &index))
        return NULL;
    eddy_program_external *external = eddy_program_external_at(part, index);
    *external = (eddy_program_external){.value = value, .input = EDDY_CODE_NONE};
    return external;
}

/* The held tensors that the part uses, in the order of the whole. */
static bool add_held(const splitter *s, eddy_program *part) {
    for (uint32_t i = 0; i < part->bindings.count; i++)
        s->is_used[eddy_program_binding_at(part, i)->value] = true;
    for (uint32_t e = 0; e < s->whole->externals.count; e++) {
        const eddy_program_external *from = eddy_program_external_at(s->whole, e);
        if (!from->tensor || !s->is_used[from->value])
            continue;
        eddy_program_external *external = add_external(part, from->value);
        if (!external)
            return false;
        *external = *from;
        eddy_tensor_retain(from->tensor);
    }
    return true;
}

/* ---- the program, and its forward program ---- */

/* All of the storage, as bytes: between the forward program and a way. */
static eddy_program_binding hidden_binding(const splitter *s, uint32_t value, uint8_t role) {
    int64_t bytes = eddy_code_value_at(&s->whole->code, value)->bytes;
    eddy_program_binding binding = {.value = value,
                                    .role = role,
                                    .is_storage = true,
                                    .dtype = EDDY_U8,
                                    .count = bytes,
                                    .layout = {.rank = 1, .dims = {bytes}, .strides = {1}}};
    eddy_program_binding_place(s->whole, &binding);
    return binding;
}

/* has_hidden: with the saved values that it makes as outputs, numbered behind its own. */
static bool add_forward_bindings(const splitter *s, eddy_program *part, bool has_hidden) {
    for (uint32_t i = 0; i < given_count(s); i++)
        if (!add_binding(part, binding_at(s, i)))
            return false;
    for (uint32_t i = 0; i < s->gradient->saved.count && has_hidden; i++) {
        eddy_program_saved *saved = eddy_program_saved_at(s->gradient, i);
        if (s->made_in[saved->value] != FORWARD)
            continue;
        saved->output = part->output_count;
        eddy_program_binding hidden = hidden_binding(s, saved->value, EDDY_ROLE_OUTPUT);
        if (!add_binding(part, &hidden))
            return false;
    }
    return true;
}

static bool add_kept(const splitter *s, eddy_program *part) {
    const eddy_program_kept *from = s->whole->kept.items;
    for (uint32_t i = 0; i < s->whole->kept.count; i++) {
        eddy_program_kept kept = from[i];
        uint32_t index;
        if (kept.binding != EDDY_CODE_NONE) {
            if (!add_binding(part, binding_at(s, kept.binding)))
                return false;
            kept.binding = part->bindings.count - 1;
        }
        if (!eddy_code_array_add(&part->kept, sizeof(kept), 1, &index))
            return false;
        eddy_autograd_node_retain(kept.node);
        ((eddy_program_kept *)part->kept.items)[index] = kept;
    }
    return true;
}

static bool add_inputs(eddy_program *part) {
    uint32_t input = 0;
    for (uint32_t i = 0; i < part->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(part, i);
        if (binding->role != EDDY_ROLE_INPUT)
            continue;
        eddy_program_external *external = add_external(part, binding->value);
        if (!external)
            return false;
        external->input = input++;
    }
    return true;
}

/* The forward calls as a program; NULL without memory. */
static eddy_program *make_forward(const splitter *s, bool has_hidden) {
    eddy_program *part = begin_part(s, 0, s->plan->instruction_count, s->plan->scalar_count);
    if (!part)
        return NULL;
    if (!eddy_late_calls_put_last(&part->code)) {
        eddy_program_destroy(part);
        return NULL;
    }
    part->state_count = s->whole->state_count;
    part->constant_count = s->whole->constant_count;
    if (add_forward_bindings(s, part, has_hidden) && add_kept(s, part) &&
        eddy_program_tape_copy(part, s->whole) && add_held(s, part) && add_inputs(part) &&
        eddy_program_hold_generators(part, s->whole) &&
        eddy_program_inner_copy(&part->inner, &s->whole->inner))
        return part;
    eddy_program_destroy(part);
    return NULL;
}

/* ---- saved values ---- */

static uint32_t find_saved(const splitter *s, uint32_t value) {
    uint32_t i = 0;
    while (i < s->gradient->saved.count && eddy_program_saved_at(s->gradient, i)->value != value)
        i++;
    return i;
}

static uint32_t input_number(const splitter *s, uint32_t binding) {
    uint32_t number = 0;
    for (uint32_t i = 0; i < binding; i++)
        number += binding_at(s, i)->role == EDDY_ROLE_INPUT;
    return number;
}

static eddy_tensor *held_for(const splitter *s, uint32_t value) {
    for (uint32_t e = 0; e < s->whole->externals.count; e++)
        if (eddy_program_external_at(s->whole, e)->value == value)
            return eddy_program_external_at(s->whole, e)->tensor;
    return NULL;
}

/* Whether the forward calls write the value. */
static bool is_written_before(const splitter *s, uint32_t value) {
    const eddy_code *code = &s->whole->code;
    for (uint32_t i = 0; i < s->plan->instruction_count; i++) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(code, i);
        for (uint32_t k = 0; k < instruction->operand_count; k++) {
            const eddy_code_operand *operand =
                eddy_code_operand_at(code, instruction->operands_at + k);
            if (operand->value == value && (operand->access & EDDY_CODE_WRITES))
                return true;
        }
    }
    return false;
}

static eddy_status save(const splitter *s, uint32_t value) {
    uint32_t index;
    if (find_saved(s, value) < s->gradient->saved.count)
        return EDDY_OK;
    if (!eddy_code_array_add(&s->gradient->saved, sizeof(eddy_program_saved), 1, &index))
        return fail_memory(s);
    uint32_t binding = s->bound[value];
    *eddy_program_saved_at(s->gradient, index) =
        (eddy_program_saved){.value = value,
                             .output = EDDY_CODE_NONE,
                             .input = binding ? input_number(s, binding - 1) : EDDY_CODE_NONE,
                             .tensor = held_for(s, value),
                             .is_written = is_written_before(s, value)};
    return EDDY_OK;
}

/* What the pass uses, and does neither make nor get as a seed. */
static eddy_status save_of(const splitter *s, uint32_t p, const eddy_program *way) {
    use_instructions(s, way);
    for (uint32_t v = 0; v < s->whole->code.values.count; v++) {
        if (!s->is_used[v] || is_seed(s, v) || s->made_in[v] == FORWARD + 1 + p)
            continue;
        if (s->made_in[v] > FORWARD || eddy_code_value_at(&way->code, v)->is_written)
            return eddy_fail(EDDY_UNSUPPORTED, s->origin,
                             "the backward pass writes to a tensor that it has not made");
        eddy_status status = save(s, v);
        if (status != EDDY_OK)
            return status;
    }
    return EDDY_OK;
}

/* ---- ways ---- */

static bool note(eddy_code_array *array, uint32_t number) {
    uint32_t index;
    if (!eddy_code_array_add(array, sizeof(number), 1, &index))
        return false;
    ((uint32_t *)array->items)[index] = number;
    return true;
}

/* The binding of the first gradient that the pass has found. */
static uint32_t gradients_at(const splitter *s, uint32_t p) {
    uint32_t at = given_count(s) + s->plan->root_count;
    for (uint32_t i = 0; i < p; i++)
        at += s->plan->passes[i].found.count;
    return at;
}

static void use_gradients(const splitter *s, uint32_t p) {
    for (uint32_t i = 0; i < s->plan->passes[p].found.count; i++)
        s->is_used[binding_at(s, gradients_at(s, p) + i)->value] = true;
}

static bool add_way_input(eddy_program_way *way, const eddy_program_binding *binding,
                          uint32_t from) {
    eddy_program_binding input = *binding;
    input.name = "a gradient, or a saved value";
    eddy_code_value_at(&way->program->code, input.value)->kind = EDDY_VALUE_INPUT;
    return add_binding(way->program, &input) && note(&way->from, from);
}

/* All of a tensor that was there before: a way gets it from the node, which alone keeps it for the backward pass. */
static eddy_program_binding held_binding(const eddy_program_saved *saved) {
    const eddy_tensor *tensor = saved->tensor;
    eddy_program_binding binding = {.value = saved->value,
                                    .role = EDDY_ROLE_INPUT,
                                    .dtype = tensor->dtype,
                                    .device_kind = tensor->device_kind,
                                    .device_index = tensor->device_index,
                                    .count = tensor->count};
    eddy_tensor_layout(tensor, &binding.layout);
    EDDY_ASSERT(binding.layout.offset == 0);
    return binding;
}

static bool add_way_inputs(const splitter *s, eddy_program_way *way) {
    for (uint32_t i = 0; i < s->plan->root_count; i++)
        if ((way->roots >> i & 1) && !add_way_input(way, binding_at(s, given_count(s) + i), i))
            return false;
    for (uint32_t i = 0; i < s->gradient->saved.count; i++) {
        const eddy_program_saved *saved = eddy_program_saved_at(s->gradient, i);
        if (!s->is_used[saved->value])
            continue;
        eddy_program_binding whole =
            saved->tensor ? held_binding(saved) : hidden_binding(s, saved->value, EDDY_ROLE_INPUT);
        const eddy_program_binding *binding =
            saved->input == EDDY_CODE_NONE ? &whole : binding_at(s, s->bound[saved->value] - 1);
        if (!add_way_input(way, binding, s->plan->root_count + i))
            return false;
    }
    return true;
}

static uint32_t find_edge(const splitter *s, eddy_autograd word) {
    const eddy_backward_found *all = &s->plan->passes[0].found;
    uint32_t i = 0;
    while (i < all->count && all->edges[i].word != word)
        i++;
    return i;
}

static bool add_way_outputs(const splitter *s, uint32_t p, eddy_program_way *way) {
    const eddy_backward_found *found = &s->plan->passes[p].found;
    for (uint32_t i = 0; i < found->count; i++) {
        uint32_t edge = find_edge(s, found->edges[i].word);
        EDDY_ASSERT(edge < s->gradient->edges.count);
        if (!add_binding(way->program, binding_at(s, gradients_at(s, p) + i)) ||
            !note(&way->to, edge))
            return false;
    }
    return true;
}

/* Whether passes go back by programs, and not through the calls. */
static bool has_ways(const splitter *s) {
    return s->plan->root_count <= EDDY_GRADIENT_ROOTS_FEW ||
           s->gradient->ways->calls.reason[0] != 0;
}

/* Code first, so that all passes have said what they need saved. */
static eddy_status begin_way(const splitter *s, uint32_t p) {
    const eddy_gradient_pass *pass = &s->plan->passes[p];
    eddy_program_way *way = &s->gradient->ways->items[p];
    way->roots = pass->roots;
    way->program = begin_part(s, pass->first, pass->end, s->whole->code.scalars.count);
    if (!way->program)
        return fail_memory(s);
    s->gradient->ways->count++;
    use_gradients(s, p);
    return save_of(s, p, way->program);
}

static eddy_status end_way(const splitter *s, uint32_t p) {
    eddy_program_way *way = &s->gradient->ways->items[p];
    memset(s->is_used, 0, s->whole->code.values.count * sizeof(*s->is_used));
    use_instructions(s, way->program);
    use_gradients(s, p);
    return add_way_inputs(s, way) && add_way_outputs(s, p, way) && add_inputs(way->program)
               ? EDDY_OK
               : fail_memory(s);
}

/* ---- edges ---- */

/* The number of the input that the tape knows by this word; EDDY_CODE_NONE. */
static uint32_t input_with(const splitter *s, eddy_autograd word) {
    uint32_t number = 0;
    for (int64_t i = 0; i < s->given->count; i++) {
        if (s->given->items[i].role != EDDY_ROLE_INPUT)
            continue;
        if (s->given->items[i].tensor->autograd == word)
            return number;
        number++;
    }
    return EDDY_CODE_NONE;
}

static void hold(eddy_autograd word) {
    eddy_autograd_node_retain(eddy_autograd_node_of(word));
}

static bool add_edge(const splitter *s, eddy_autograd word, const eddy_spec *spec) {
    uint32_t index;
    if (!eddy_code_array_add(&s->gradient->edges, sizeof(eddy_program_edge), 1, &index))
        return false;
    eddy_program_edge *edge = eddy_program_edge_at(s->gradient, index);
    *edge = (eddy_program_edge){.input = input_with(s, word), .spec = *spec};
    if (edge->input == EDDY_CODE_NONE)
        hold(edge->word = word);
    return true;
}

static bool add_edges(const splitter *s) {
    const eddy_backward_found *all = &s->plan->passes[0].found;
    for (uint32_t i = 0; i < all->count; i++) {
        eddy_spec spec = {.dtype = (eddy_dtype)all->edges[i].gradient->dtype};
        eddy_tensor_shape(all->edges[i].gradient, &spec.shape);
        if (!add_edge(s, all->edges[i].word, &spec))
            return false;
    }
    return true;
}

/* ---- calls ---- */

static eddy_status save_for_calls(const splitter *s, eddy_gradient_calls *calls) {
    for (uint32_t i = 0; i < calls->places.count; i++) {
        eddy_calls_place *place = eddy_calls_place_at(calls, i);
        eddy_status status = save(s, place->value);
        if (status != EDDY_OK)
            return status;
        place->saved = find_saved(s, place->value);
    }
    return EDDY_OK;
}

/* The edges that the passes have found, and behind them those to which no gradient came: calls have them, too. */
static bool find_calls(const splitter *s, eddy_code_array *edges) {
    const eddy_backward_found *all = &s->plan->passes[0].found;
    for (uint32_t i = 0; i < all->count; i++) {
        uint32_t index;
        if (!eddy_code_array_add(edges, sizeof(eddy_autograd), 1, &index))
            return false;
        ((eddy_autograd *)edges->items)[index] = all->edges[i].word;
    }
    return eddy_gradient_calls_make(
        &s->gradient->ways->calls,
        &(eddy_gradient_source){.recording = s->recording,
                                .program = s->whole,
                                .bindings = s->given,
                                .instruction_count = s->plan->instruction_count,
                                .roots = s->plan->roots,
                                .root_count = s->plan->root_count,
                                .edges = edges});
}

static bool add_silent_edges(const splitter *s, const eddy_code_array *edges) {
    const eddy_autograd *words = edges->items;
    for (uint32_t i = s->plan->passes[0].found.count; i < edges->count; i++) {
        const eddy_autograd_node *node = eddy_autograd_node_of(words[i]);
        eddy_spec spec;
        eddy_autograd_spec_of(node, node->input_count + eddy_autograd_output_of(words[i]), &spec);
        if (!add_edge(s, words[i], &spec))
            return false;
    }
    return true;
}

static eddy_status make_calls(const splitter *s) {
    eddy_code_array edges = {0};
    bool is_made = find_calls(s, &edges) && add_silent_edges(s, &edges);
    eddy_code_array_fini(&edges, sizeof(eddy_autograd));
    return is_made ? save_for_calls(s, &s->gradient->ways->calls) : fail_memory(s);
}

/* ---- results ---- */

static uint32_t root_with(const splitter *s, eddy_autograd word) {
    for (uint32_t i = 0; i < s->plan->root_count; i++)
        if (s->plan->roots[i] == word)
            return i;
    return EDDY_CODE_NONE;
}

static bool add_result(const splitter *s, const eddy_tensor *tensor) {
    uint32_t index;
    if (!eddy_code_array_add(&s->gradient->results, sizeof(eddy_program_result), 1, &index))
        return false;
    eddy_autograd word = tensor->autograd;
    eddy_program_result *result = eddy_program_result_at(s->gradient, index);
    *result = (eddy_program_result){
        .root = EDDY_CODE_NONE, .input = EDDY_CODE_NONE, .stands_in = tensor->stands_in};
    if (!word)
        return true;
    result->root = root_with(s, word);
    if (result->root == EDDY_CODE_NONE)
        result->input = input_with(s, word);
    if (result->root == EDDY_CODE_NONE && result->input == EDDY_CODE_NONE)
        hold(result->word = word);
    return true;
}

static bool add_results(const splitter *s) {
    for (int64_t i = 0; i < s->given->count; i++) {
        const eddy_binding *binding = &s->given->items[i];
        uint32_t index;
        if (binding->role == EDDY_ROLE_OUTPUT && !add_result(s, binding->tensor))
            return false;
        if (binding->role != EDDY_ROLE_INPUT)
            continue;
        if (!eddy_code_array_add(&s->gradient->wants, sizeof(bool), 1, &index))
            return false;
        ((bool *)s->gradient->wants.items)[index] = binding->tensor->autograd != 0;
    }
    return true;
}

/* ---- all of it ---- */

static eddy_status split(const splitter *s, eddy_program **program) {
    find_makers(s);
    find_inputs(s);
    if (!add_edges(s) || !add_results(s))
        return fail_memory(s);
    eddy_status status = make_calls(s);
    uint32_t way_count = has_ways(s) ? s->plan->pass_count : 0;
    for (uint32_t p = 0; p < way_count && status == EDDY_OK; p++)
        status = begin_way(s, p);
    for (uint32_t p = 0; p < way_count && status == EDDY_OK; p++)
        status = end_way(s, p);
    if (status != EDDY_OK)
        return status;
    s->gradient->forward = make_forward(s, true);
    *program = s->gradient->forward ? make_forward(s, false) : NULL;
    return *program ? EDDY_OK : fail_memory(s);
}

static eddy_status split_in(splitter *s, char *memory, eddy_program **program) {
    uint32_t values = s->whole->code.values.count;
    s->bound = (uint32_t *)(void *)memory;
    s->made_in = (uint8_t *)(s->bound + values);
    s->is_used = (bool *)(s->made_in + values);
    eddy_program *made = NULL;
    eddy_status status = split(s, &made);
    if (status == EDDY_OK) {
        made->gradient = s->gradient;
        *program = made;
    } else {
        eddy_program_gradient_destroy(s->gradient);
    }
    return status;
}

eddy_status eddy_gradient_split(const eddy_program *whole, const eddy_recording *recording,
                                const eddy_bindings *given, eddy_origin origin,
                                eddy_program **program) {
    splitter s = {.whole = whole,
                  .plan = recording->plan,
                  .given = given,
                  .recording = recording,
                  .origin = origin};
    size_t bytes = whole->code.values.count * (sizeof(uint32_t) + sizeof(uint8_t) + sizeof(bool));
    char *memory = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_PROGRAM);
    s.gradient = eddy_program_gradient_create();
    eddy_status status;
    if (memory && s.gradient) {
        s.gradient->ways->root_count = s.plan->root_count;
        s.gradient->ways->inner = s.plan->passes[0].found.inner; /* the pass of all roots */
        s.gradient->ways->draw_count = s.plan->draw_count;
        s.gradient->ways->scalar_count = recording->scalar_count;
        status = split_in(&s, memory, program);
    } else {
        eddy_program_gradient_destroy(s.gradient);
        status = fail_memory(&s);
    }
    eddy_memory_release(memory, bytes, EDDY_MEMORY_PROGRAM);
    return status;
}
