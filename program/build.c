/* eddy_record_begin, eddy_record_end: a recording becomes a program. */
#include <base/dtype.h>
#include <base/memory.h>
#include <base/option.h>
#include <base/shape.h>
#include <base/status.h>
#include <interpreter/tape/unfold.h>
#include <program/cut.h>
#include <program/gradient.h>
#include <program/inlined.h>
#include <program/late_calls.h>
#include <program/recording.h>
#include <program/variant.h>
#include <stdio.h>
#include <string.h>

/* ---- begin, cancel ---- */

static eddy_status choose_passes(const eddy_record_options *options, eddy_origin origin,
                                 eddy_recording *recording) {
    const char *passes = EDDY_HAS_OPTION(options, passes) ? options->passes : NULL;
    uint32_t chosen;
    if (!passes)
        return EDDY_OK;
    eddy_status status = eddy_runtime_parse_passes(passes, "passes", origin, &chosen);
    if (status == EDDY_OK && recording->runtime->allows_passes)
        recording->passes = chosen;
    return status;
}

eddy_status eddy_record_begin(const eddy_record_options *options) {
    eddy_origin origin = EDDY_ORIGIN("record_begin");
    eddy_caller *caller = eddy_caller_get();
    eddy_recording *recording = NULL;
    if (!eddy_caller_may_call(caller))
        return eddy_caller_refuse(caller, origin);
    eddy_status status = eddy_recording_open(caller, origin, &recording);
    if (status != EDDY_OK)
        return status;
    status = choose_passes(options, origin, recording);
    if (status == EDDY_OK && EDDY_OPTION(options, records_only))
        status = eddy_recording_note_only(recording, origin);
    if (status != EDDY_OK)
        eddy_recording_destroy(eddy_recording_close(caller));
    return status;
}

/* The recording that the program's code has opened, outside of branches and loops; NULL if there is none. */
static eddy_recording *own_recording(const eddy_caller *caller) {
    eddy_recording *open = caller ? (eddy_recording *)(void *)caller->recorder : NULL;
    return open && !open->is_owned && open->block_count == 0 ? open : NULL;
}

void eddy_record_cancel(void) {
    eddy_caller *caller = eddy_caller_get();
    if (own_recording(caller))
        eddy_recording_destroy(eddy_recording_close(caller));
}

/* ---- bindings ---- */

/* A program being made of a recording. */
typedef struct maker {
    eddy_recording *recording;
    eddy_program *program;
    eddy_origin origin;
    eddy_reach reach; /* behind the last instruction, if there are branches or loops */
} maker;

static eddy_status fail_memory(const maker *m) {
    return eddy_fail(EDDY_OUT_OF_MEMORY, m->origin, "no memory for the program");
}

static eddy_status check_name(const maker *m, const eddy_bindings *bindings, int64_t i) {
    const char *name = bindings->items[i].name;
    if (!name || !*name)
        return eddy_fail(EDDY_INVALID_ARGUMENT, m->origin, "binding %lld has no name",
                         (long long)i);
    for (int64_t k = 0; k < i; k++)
        if (strcmp(bindings->items[k].name, name) == 0)
            return eddy_fail(EDDY_INVALID_ARGUMENT, m->origin, "two bindings are named %s", name);
    return EDDY_OK;
}

/* Whether a recorded call makes it with a shape that depends on data: none has to be known, nor come to be, as where the data have failed. */
static bool is_late(const maker *m, const eddy_tensor *tensor) {
    uint32_t value = eddy_recording_value_of(m->recording, tensor);
    return value != EDDY_CODE_NONE && eddy_code_value_at(&m->program->code, value)->is_late;
}

static eddy_status check_binding(const maker *m, const eddy_bindings *bindings, int64_t i) {
    const eddy_binding *binding = &bindings->items[i];
    eddy_status status = check_name(m, bindings, i);
    if (status == EDDY_OK)
        status = eddy_tensor_check(binding->tensor, binding->name, m->origin);
    if (status == EDDY_OK && !is_late(m, binding->tensor))
        status = eddy_tensor_await_shape(binding->tensor, m->origin);
    if (status != EDDY_OK)
        return status;
    if (binding->tensor->runtime != m->recording->runtime)
        return eddy_fail(EDDY_RUNTIME_MISMATCH, m->origin,
                         "%s belongs to another runtime than the recording", binding->name);
    if ((unsigned)binding->role > EDDY_ROLE_DONATED)
        return eddy_fail(EDDY_INVALID_ARGUMENT, m->origin, "%s has no role", binding->name);
    if (binding->role == EDDY_ROLE_DONATED && m->recording->plan)
        return eddy_fail(EDDY_UNSUPPORTED, m->origin,
                         "%s is donated, and a program whose outputs carry gradients keeps its "
                         "inputs for them",
                         binding->name);
    return EDDY_OK;
}

static eddy_role role_of(const eddy_binding *given) {
    return given->role == EDDY_ROLE_DONATED ? EDDY_ROLE_INPUT : given->role;
}

/* A binding that has no name and no value yet; NULL without memory. */
static eddy_program_binding *add_binding(const maker *m, const eddy_tensor *tensor, uint8_t role) {
    uint32_t index;
    if (!eddy_code_array_add(&m->program->bindings, sizeof(eddy_program_binding), 1, &index))
        return NULL;
    eddy_program_binding *binding = eddy_program_binding_at(m->program, index);
    *binding = (eddy_program_binding){.value = EDDY_CODE_NONE,
                                      .role = role,
                                      .dtype = tensor->dtype,
                                      .device_kind = tensor->device_kind,
                                      .device_index = tensor->device_index};
    if (eddy_tensor_is_late(tensor)) { /* another thread may just see its shape */
        eddy_late_calls_layout(&binding->layout);
        return binding;
    }
    binding->count = tensor->count;
    eddy_tensor_layout(tensor, &binding->layout);
    return binding;
}

/* ---- inputs ----
 *
 * An input is a tensor, and a value a storage: of a storage that several inputs view, each gets a value of its own, which the
 * operands within its elements then name. */

/* The bytes of the storage from the layout's first element to its last. */
typedef struct extent {
    int64_t low, high;
} extent;

static extent extent_of(const eddy_layout *layout, uint8_t dtype) {
    extent e;
    int64_t bytes = eddy_dtype_size((eddy_dtype)dtype);
    eddy_layout_extent(layout, &e.low, &e.high);
    return (extent){e.low * bytes, e.high * bytes};
}

static bool lies_within(extent inner, extent outer) {
    return inner.low >= inner.high || (inner.low >= outer.low && inner.high <= outer.high);
}

static bool meet(extent a, extent b) {
    return a.low < b.high && b.low < a.high;
}

static extent operand_extent(const eddy_code *code, const eddy_code_operand *operand) {
    eddy_layout layout;
    eddy_code_operand_layout(code, operand, &layout);
    return extent_of(&layout, operand->dtype);
}

/* Operands of the storage `from` within the input name `to` from now on, and count from the input's first element. */
static void rename_operands(eddy_code *code, uint32_t from, uint32_t to, const eddy_layout *given,
                            extent input) {
    bool has_gaps = input.low < input.high && !eddy_layout_is_dense(given);
    int64_t first = given->offset;
    for (uint32_t i = 0; i < code->operands.count; i++) {
        eddy_code_operand *operand = eddy_code_operand_at(code, i);
        if (operand->value != from || !lies_within(operand_extent(code, operand), input))
            continue;
        /* What lies in a gap is another tensor's: of an input with gaps only all of it is taken for the input. */
        eddy_layout layout;
        eddy_code_operand_layout(code, operand, &layout);
        if (has_gaps && !eddy_layout_is_equal(&layout, given))
            continue;
        operand->value = to;
        operand->offset -= first;
        if (operand->access & EDDY_CODE_COVERS)
            operand->access = EDDY_CODE_WRITES | EDDY_CODE_READS | EDDY_CODE_COVERS_INPUT;
        else if (operand->access & EDDY_CODE_REPLACES) /* of a program that was run (inlined.h) */
            operand->access = EDDY_CODE_WRITES | EDDY_CODE_READS;
        if (operand->access & EDDY_CODE_WRITES)
            eddy_code_value_at(code, to)->is_written = true;
    }
}

/* Operands of the same storage that are not within the input, but meet it, would be another tensor's at the next run. */
static eddy_status check_strangers(const maker *m, const eddy_binding *given, uint32_t from,
                                   extent input) {
    const eddy_code *code = &m->program->code;
    for (uint32_t i = 0; i < code->operands.count; i++) {
        const eddy_code_operand *operand = eddy_code_operand_at(code, i);
        if (operand->value != from || !meet(operand_extent(code, operand), input))
            continue;
        return eddy_fail(EDDY_INVALID_ARGUMENT, m->origin,
                         lies_within(operand_extent(code, operand), input)
                             ? "%s has gaps between its elements, and the recorded calls use a "
                               "part of it: only all of it, or a contiguous copy, can be an input"
                             : "%s is a part of a tensor that the recorded calls use beyond it",
                         given->name);
    }
    return EDDY_OK;
}

static eddy_status check_other_inputs(const maker *m, const eddy_binding *given,
                                      const eddy_bindings *bindings, extent input) {
    for (int64_t k = 0; &bindings->items[k] != given; k++) {
        const eddy_binding *other = &bindings->items[k];
        eddy_layout layout;
        if (role_of(other) != EDDY_ROLE_INPUT || other->tensor->storage != given->tensor->storage)
            continue;
        eddy_tensor_layout(other->tensor, &layout);
        if (other->tensor == given->tensor || meet(extent_of(&layout, other->tensor->dtype), input))
            return eddy_fail(EDDY_INVALID_ARGUMENT, m->origin, "%s and %s have elements in common",
                             other->name, given->name);
    }
    return EDDY_OK;
}

static eddy_status bind_input(const maker *m, const eddy_bindings *bindings,
                              const eddy_binding *given, eddy_program_binding *binding) {
    eddy_code *code = &m->program->code;
    uint32_t from = eddy_recording_value_of(m->recording, given->tensor), external;
    if (from != EDDY_CODE_NONE && eddy_code_value_at(code, from)->kind == EDDY_VALUE_MADE)
        return eddy_fail(EDDY_INVALID_ARGUMENT, m->origin,
                         "%s was made by the recorded calls: it can be no input", given->name);
    extent input = extent_of(&binding->layout, binding->dtype);
    eddy_status status = check_other_inputs(m, given, bindings, input);
    if (status != EDDY_OK)
        return status;
    binding->is_donated = given->role == EDDY_ROLE_DONATED;
    m->program->donated_count += binding->is_donated;
    eddy_code_value value = {.bytes = input.high > input.low ? input.high - input.low : 0,
                             .kind = EDDY_VALUE_INPUT,
                             .is_donated = binding->is_donated};
    eddy_code_value_set_device(&value, eddy_tensor_device(given->tensor));
    if (!eddy_code_add_value(code, &value, &binding->value) ||
        !eddy_code_array_add(&m->program->externals, sizeof(eddy_program_external), 1, &external))
        return fail_memory(m);
    *eddy_program_external_at(m->program, external) = (eddy_program_external){
        .value = binding->value, .input = m->program->input_count++, .tensor = NULL};
    eddy_layout given_layout = binding->layout;
    binding->layout.offset = 0;
    if (from == EDDY_CODE_NONE)
        return EDDY_OK;
    rename_operands(code, from, binding->value, &given_layout, input);
    return check_strangers(m, given, from, input);
}

/* ---- state, constants and outputs ---- */

/* Storages are gone with the runtime, which another thread may shut down. */
static eddy_status fail_unseen(const maker *m, const char *what, const char *name) {
    if (!eddy_runtime_is_running(m->recording->runtime))
        return eddy_runtime_refuse(m->recording->runtime, m->origin, "");
    return eddy_fail(EDDY_INVALID_ARGUMENT, m->origin, "no recorded call %s %s", what, name);
}

/* The captured value that the tensor becomes the name of. */
static eddy_status bind_held(const maker *m, const eddy_binding *given, const char *role,
                             eddy_program_binding *binding) {
    binding->value = eddy_recording_value_of(m->recording, given->tensor);
    if (binding->value == EDDY_CODE_NONE)
        return fail_unseen(m, "uses", given->name);
    if (eddy_code_value_at(&m->program->code, binding->value)->kind == EDDY_VALUE_MADE)
        return eddy_fail(EDDY_INVALID_ARGUMENT, m->origin,
                         "%s was made by the recorded calls: it can be no %s", given->name, role);
    return EDDY_OK;
}

/* What is fed is no state or constant: none of the tensor's elements may be an input's. */
static eddy_status check_not_fed(const maker *m, const eddy_bindings *bindings,
                                 const eddy_binding *given) {
    eddy_layout layout, input;
    eddy_tensor_layout(given->tensor, &layout);
    for (int64_t i = 0; i < bindings->count; i++) {
        const eddy_binding *other = &bindings->items[i];
        if (role_of(other) != EDDY_ROLE_INPUT || other->tensor->storage != given->tensor->storage)
            continue;
        eddy_tensor_layout(other->tensor, &input);
        if (meet(extent_of(&layout, given->tensor->dtype), extent_of(&input, other->tensor->dtype)))
            return eddy_fail(EDDY_INVALID_ARGUMENT, m->origin, "%s and %s have elements in common",
                             other->name, given->name);
    }
    return EDDY_OK;
}

/* What runs may write does not go with a constant in one storage. */
static eddy_status check_constant_alone(const maker *m, const eddy_bindings *bindings,
                                        const eddy_binding *given) {
    for (int64_t i = 0; i < bindings->count; i++) {
        const eddy_binding *other = &bindings->items[i];
        if (other->role == EDDY_ROLE_STATE && other->tensor->storage == given->tensor->storage)
            return eddy_fail(EDDY_INVALID_ARGUMENT, m->origin,
                             "%s is a constant, and shares its memory with %s, which is state",
                             given->name, other->name);
    }
    return EDDY_OK;
}

static eddy_status bind_state(const maker *m, const eddy_bindings *bindings,
                              const eddy_binding *given, eddy_program_binding *binding) {
    eddy_status status = bind_held(m, given, "state", binding);
    if (status == EDDY_OK)
        status = check_not_fed(m, bindings, given);
    if (status != EDDY_OK)
        return status;
    eddy_code_value *value = eddy_code_value_at(&m->program->code, binding->value);
    m->program->state_count += value->kind != EDDY_VALUE_STATE;
    value->kind = EDDY_VALUE_STATE;
    for (uint32_t i = 0; i < m->program->code.operands.count; i++) {
        const eddy_code_operand *operand = eddy_code_operand_at(&m->program->code, i);
        binding->is_covered |=
            operand->value == binding->value && (operand->access & EDDY_CODE_COVERS);
    }
    return EDDY_OK;
}

static eddy_status bind_constant(const maker *m, const eddy_bindings *bindings,
                                 const eddy_binding *given, eddy_program_binding *binding) {
    /* First, so that a write from now on shows at the next run. */
    binding->version = eddy_load_relaxed(&given->tensor->root->version);
    eddy_status status = bind_held(m, given, "constant", binding);
    if (status == EDDY_OK)
        status = check_not_fed(m, bindings, given);
    if (status == EDDY_OK)
        status = check_constant_alone(m, bindings, given);
    if (status != EDDY_OK)
        return status;
    const eddy_code_instruction *writer =
        eddy_code_find_writer(&m->program->code, 0, binding->value);
    if (writer)
        return eddy_fail(EDDY_INVALID_ARGUMENT, m->origin,
                         "%s is a constant, and the recorded %s writes it", given->name,
                         writer->op->name);
    if (!eddy_recording_is_last_writer(m->recording, given->tensor))
        return eddy_fail(EDDY_INVALID_ARGUMENT, m->origin,
                         "%s is a constant, and was written after a recorded call used it",
                         given->name);
    eddy_code_value *value = eddy_code_value_at(&m->program->code, binding->value);
    m->program->constant_count += value->kind != EDDY_VALUE_CONSTANT;
    value->kind = EDDY_VALUE_CONSTANT;
    /* Instructions that wrote an input in the same storage name that input now. */
    value->is_written = false;
    return EDDY_OK;
}

/* The value of an input of which the tensor is all or a part: its layout then counts from the input's first element. */
static uint32_t input_with(const eddy_program *program, const eddy_tensor *tensor,
                           const eddy_bindings *bindings, eddy_layout *layout) {
    for (int64_t i = 0; i < bindings->count; i++) {
        const eddy_binding *given = &bindings->items[i];
        eddy_layout input;
        if (role_of(given) != EDDY_ROLE_INPUT || given->tensor->storage != tensor->storage)
            continue;
        eddy_tensor_layout(given->tensor, &input);
        if (!lies_within(extent_of(layout, tensor->dtype), extent_of(&input, given->tensor->dtype)))
            continue;
        layout->offset -= input.offset;
        return eddy_program_binding_at(program, (uint32_t)i)->value;
    }
    return EDDY_CODE_NONE;
}

uint32_t eddy_program_value_of(const eddy_program *program, const eddy_recording *recording,
                               const eddy_bindings *bindings, const eddy_tensor *tensor,
                               eddy_layout *layout) {
    uint32_t value = input_with(program, tensor, bindings, layout);
    return value != EDDY_CODE_NONE ? value : eddy_recording_value_of(recording, tensor);
}

static uint32_t output_value(const maker *m, const eddy_bindings *bindings,
                             const eddy_tensor *tensor, eddy_layout *layout) {
    return eddy_program_value_of(m->program, m->recording, bindings, tensor, layout);
}

/* Whether a run may not have made the value. Inputs are values that came later. */
static bool is_beyond_reach(const maker *m, uint32_t value) {
    return m->reach.values && value < m->reach.value_count &&
           eddy_code_value_at(&m->program->code, value)->kind == EDDY_VALUE_MADE &&
           !eddy_reach_has(&m->reach, value);
}

/* Of a view, whose maker has waited for the shape. */
static bool is_part(const eddy_tensor *tensor) {
    eddy_layout layout, all;
    if (tensor == tensor->root)
        return false;
    eddy_tensor_layout(tensor, &layout);
    eddy_tensor_layout(tensor->root, &all);
    return !eddy_layout_is_equal(&layout, &all);
}

/* An output whose shape depends on data: the result of its call, all of it, once. */
static eddy_status bind_late(const maker *m, const eddy_binding *given,
                             eddy_program_binding *binding) {
    if (is_part(given->tensor))
        return eddy_fail(EDDY_UNSUPPORTED, m->origin,
                         "%s is a view of a result whose shape depends on data", given->name);
    if (given->tensor->autograd)
        return eddy_fail(EDDY_UNSUPPORTED, m->origin,
                         "a gradient goes back through %s, whose shape depends on data",
                         given->name);
    for (uint32_t i = 0; i < m->program->bindings.count; i++)
        if (eddy_program_binding_at(m->program, i) != binding &&
            eddy_program_binding_at(m->program, i)->value == binding->value)
            return eddy_fail(EDDY_UNSUPPORTED, m->origin,
                             "%s, whose shape depends on data, has two names", given->name);
    eddy_late_calls_layout(&binding->layout);
    binding->count = 0;
    return EDDY_OK;
}

static eddy_status bind_output(const maker *m, const eddy_bindings *bindings,
                               const eddy_binding *given, eddy_program_binding *binding) {
    binding->value = output_value(m, bindings, given->tensor, &binding->layout);
    m->program->output_count++;
    if (is_beyond_reach(m, binding->value))
        return eddy_fail(EDDY_UNSUPPORTED, m->origin,
                         "one way of a branch alone has made %s, or a step of a loop", given->name);
    if (binding->value == EDDY_CODE_NONE)
        return fail_unseen(m, "makes or uses", given->name);
    return eddy_code_value_at(&m->program->code, binding->value)->is_late
               ? bind_late(m, given, binding)
               : EDDY_OK;
}

static eddy_status bind_one(const maker *m, const eddy_bindings *bindings,
                            const eddy_binding *given, eddy_program_binding *binding) {
    switch (role_of(given)) {
    case EDDY_ROLE_INPUT:
        return bind_input(m, bindings, given, binding);
    case EDDY_ROLE_STATE:
        return bind_state(m, bindings, given, binding);
    case EDDY_ROLE_CONSTANT:
        return bind_constant(m, bindings, given, binding);
    default:
        return bind_output(m, bindings, given, binding);
    }
}

/* Inputs first, whatever the order of the bindings: an output may be one. */
static eddy_status bind_all(const maker *m, const eddy_bindings *bindings) {
    static const eddy_role order[] = {EDDY_ROLE_INPUT, EDDY_ROLE_STATE, EDDY_ROLE_CONSTANT,
                                      EDDY_ROLE_OUTPUT};
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < bindings->count && status == EDDY_OK; i++) {
        const eddy_binding *given = &bindings->items[i];
        status = check_binding(m, bindings, i);
        eddy_program_binding *binding =
            status == EDDY_OK ? add_binding(m, given->tensor, (uint8_t)role_of(given)) : NULL;
        if (status == EDDY_OK &&
            (!binding || !(binding->name = eddy_program_name_copy(given->name))))
            status = fail_memory(m);
    }
    for (int k = 0; k < 4; k++)
        for (int64_t i = 0; i < bindings->count && status == EDDY_OK; i++) {
            const eddy_binding *given = &bindings->items[i];
            eddy_program_binding *binding = eddy_program_binding_at(m->program, (uint32_t)i);
            if (role_of(given) != order[k])
                continue;
            status = bind_one(m, bindings, given, binding);
        }
    return status;
}

/* What is donated is gone behind a run: no output shows it, and no call that is issued then reads it. */
static eddy_status check_donated(const maker *m) {
    const eddy_code *code = &m->program->code;
    for (uint32_t i = 0; i < m->program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(m->program, i);
        if (binding->role != EDDY_ROLE_INPUT &&
            eddy_code_value_at(code, binding->value)->is_donated)
            return eddy_fail(EDDY_INVALID_ARGUMENT, m->origin,
                             "%s is a donated input, or a part of one, which is gone behind a run",
                             binding->name ? binding->name : "a gradient that is kept");
    }
    for (uint32_t i = 0; i < code->instructions.count; i++) {
        const eddy_code_instruction *call = eddy_code_instruction_at(code, i);
        if (eddy_late_calls_include(call->op) && eddy_code_reads_donated(code, call))
            return eddy_fail(EDDY_UNSUPPORTED, m->origin,
                             "%s is called behind each run, and reads a donated input, which is "
                             "gone then",
                             call->op->name);
    }
    return EDDY_OK;
}

static eddy_status check_devices(const maker *m) {
    char reason[EDDY_RECORDING_REASON_BYTES];
    eddy_cut_judge(&m->program->code, reason, sizeof(reason));
    return reason[0] ? eddy_fail(EDDY_UNSUPPORTED, m->origin, "%s", reason) : EDDY_OK;
}

/* Whether the calls use the gradient that the tape keeps for a leaf, and which was there before them under no name: another tensor in the leaf's
 * place has another gradient. */
static bool has_own_gradient(const maker *m, const eddy_tensor *leaf) {
    if (!leaf->autograd)
        return false;
    eddy_autograd word = eddy_autograd_lock(leaf->autograd);
    eddy_tensor *kept = eddy_autograd_node_of(word)->kept[eddy_autograd_output_of(word)];
    uint32_t value = kept ? eddy_recording_value_of(m->recording, kept) : EDDY_CODE_NONE;
    eddy_autograd_unlock(word);
    return value != EDDY_CODE_NONE &&
           eddy_code_value_at(&m->program->code, value)->kind == EDDY_VALUE_CAPTURED;
}

static bool leads_to(const eddy_tensor *tensor, eddy_autograd word) {
    return tensor->autograd && eddy_unfold_end(tensor->autograd) == word;
}

/* The state whose gradient is kept for an output of the node. */
static uint32_t state_of(const eddy_bindings *bindings, eddy_autograd word) {
    for (int64_t i = 0; i < bindings->count; i++)
        if (bindings->items[i].role == EDDY_ROLE_STATE && leads_to(bindings->items[i].tensor, word))
            return (uint32_t)i;
    return EDDY_CODE_NONE;
}

/* A gradient that was there, and that no call uses, may be another one at a run. */
static void bind_befores(const maker *m) {
    eddy_kept_before *befores = m->recording->befores.items;
    for (uint32_t i = 0; i < m->recording->befores.count; i++)
        if (befores[i].root &&
            eddy_recording_value_of(m->recording, befores[i].root) == EDDY_CODE_NONE)
            eddy_kept_before_forget(&befores[i]);
    m->program->befores = m->recording->befores;
    m->program->seen_of_tape = m->recording->seen_of_tape;
    m->recording->befores = m->recording->seen_of_tape = (eddy_code_array){0};
}

/* A run leaves the gradients that the recorded calls left. One that no recorded call made is not changed by a run. */
static eddy_status bind_kept(const maker *m, const eddy_bindings *bindings) {
    const eddy_recording_kept *kept = m->recording->kept.items;
    for (int64_t i = 0; i < bindings->count; i++)
        if (bindings->items[i].role == EDDY_ROLE_STATE)
            eddy_program_binding_at(m->program, (uint32_t)i)->has_own_gradient =
                has_own_gradient(m, bindings->items[i].tensor);
    for (uint32_t i = 0; i < m->recording->kept.count; i++) {
        eddy_program_kept bound = {
            kept[i].node, kept[i].output, EDDY_CODE_NONE,
            state_of(bindings, eddy_autograd_make(kept[i].node, kept[i].output))};
        uint32_t index;
        if (kept[i].gradient) {
            eddy_program_binding *binding = add_binding(m, kept[i].gradient, EDDY_PROGRAM_KEPT);
            if (!binding)
                return fail_memory(m);
            bound.binding = m->program->bindings.count - 1;
            binding->value = output_value(m, bindings, kept[i].gradient, &binding->layout);
            if (binding->value == EDDY_CODE_NONE)
                return eddy_fail(EDDY_UNSUPPORTED, m->origin,
                                 "a gradient that is kept was made by no recorded call");
        }
        if (!eddy_code_array_add(&m->program->kept, sizeof(bound), 1, &index))
            return fail_memory(m);
        eddy_autograd_node_retain(bound.node);
        ((eddy_program_kept *)m->program->kept.items)[index] = bound;
    }
    return EDDY_OK;
}

/* ---- end ---- */

static eddy_status refuse_spoiled(const maker *m) {
    const eddy_recording *recording = m->recording;
    char reason[EDDY_RECORDING_REASON_BYTES];
    eddy_recording_judge(recording, reason, sizeof(reason));
    return eddy_fail(recording->status, (eddy_origin){m->origin.op, recording->spoiled_by.address},
                     "%s", reason);
}

/* The program takes what the recording has. */
static bool take_over(maker *m) {
    eddy_recording *recording = m->recording;
    m->program = eddy_program_create(recording->runtime);
    if (!m->program)
        return false;
    m->program->passes = recording->passes;
    m->program->uses_tape = recording->recorder.has_used_tape || recording->recorder.has_used_kept;
    m->program->uses_kept = recording->recorder.has_used_kept;
    m->program->sees_beyond = recording->sees_beyond;
    m->program->code = recording->code;
    m->program->externals = recording->externals;
    m->program->generators = recording->generators;
    m->program->inner = recording->inner;
    recording->code = (eddy_code){0};
    recording->externals = recording->generators = recording->inner = (eddy_code_array){0};
    for (uint32_t i = 0; i < m->program->externals.count; i++) {
        eddy_program_external *external = eddy_program_external_at(m->program, i);
        external->autograd = external->tensor->autograd;
        external->view_leaves = eddy_load_relaxed(&external->tensor->view_leaves);
    }
    return true;
}

static eddy_status check_reach(maker *m) {
    char reason[EDDY_RECORDING_REASON_BYTES];
    if (!eddy_recording_check_reach(m->recording, &m->program->code, &m->reach, reason,
                                    sizeof(reason)))
        return fail_memory(m);
    return reason[0] ? eddy_fail(EDDY_UNSUPPORTED, m->origin, "%s", reason) : EDDY_OK;
}

static eddy_status put_late_last(const maker *m) {
    char reason[EDDY_RECORDING_REASON_BYTES];
    eddy_late_calls_judge(&m->program->code, reason, sizeof(reason));
    if (reason[0])
        return eddy_fail(EDDY_UNSUPPORTED, m->origin, "%s", reason);
    /* With backward passes behind the calls each part has its own end (gradient_split.c). */
    return m->recording->plan || eddy_late_calls_put_last(&m->program->code) ? EDDY_OK
                                                                             : fail_memory(m);
}

static eddy_status make_program(maker *m, const eddy_bindings *bindings) {
    static const eddy_bindings none = {0};
    /* Without its VM there is no storage to look at. */
    if (!eddy_runtime_is_running(m->recording->runtime))
        return eddy_runtime_refuse(m->recording->runtime, m->origin, "");
    if (m->recording->status != EDDY_OK)
        return refuse_spoiled(m);
    eddy_status status =
        bindings ? eddy_program_check_list(bindings->items, bindings->count, "bindings", m->origin)
                 : EDDY_OK;
    if (status != EDDY_OK)
        return status;
    if (!take_over(m))
        return fail_memory(m);
    status = put_late_last(m);
    if (status == EDDY_OK)
        status = check_reach(m);
    if (status != EDDY_OK)
        return status;
    status = bind_all(m, bindings ? bindings : &none);
    if (status == EDDY_OK)
        status = bind_kept(m, bindings ? bindings : &none);
    if (status == EDDY_OK && m->program->donated_count > 0)
        status = check_donated(m);
    if (status == EDDY_OK)
        status = check_devices(m);
    if (status == EDDY_OK)
        status = eddy_inlined_check_constants(m->program, m->recording, bindings ? bindings : &none,
                                              m->origin);
    bind_befores(m);
    if (status != EDDY_OK)
        return status;
    return eddy_program_drop_unused(m->program, m->origin);
}

/* ---- with a backward pass ---- */

#define NAME_BYTES 40

/* The user's bindings, then the seeds of roots and the gradients that passes have found. */
static int64_t count_bound(const eddy_gradient_plan *plan, const eddy_bindings *given) {
    int64_t count = given->count + plan->root_count;
    for (uint32_t p = 0; p < plan->pass_count; p++)
        count += plan->passes[p].found.count;
    return count;
}

static void add_bound(eddy_binding *bound, char (*names)[NAME_BYTES], int64_t *at,
                      eddy_tensor *tensor, eddy_role role) {
    snprintf(names[*at], NAME_BYTES, "(gradient %lld)", (long long)*at);
    bound[*at] = (eddy_binding){.name = names[*at], .tensor = tensor, .role = role};
    ++*at;
}

static void fill_bound(const eddy_gradient_plan *plan, const eddy_bindings *given,
                       eddy_binding *bound, char (*names)[NAME_BYTES]) {
    int64_t at = given->count;
    if (at > 0)
        memcpy(bound, given->items, (size_t)at * sizeof(*bound));
    for (uint32_t i = 0; i < plan->root_count; i++)
        add_bound(bound, names, &at, plan->seeds[i], EDDY_ROLE_INPUT);
    for (uint32_t p = 0; p < plan->pass_count; p++)
        for (uint32_t i = 0; i < plan->passes[p].found.count; i++)
            add_bound(bound, names, &at, plan->passes[p].found.edges[i].gradient, EDDY_ROLE_OUTPUT);
}

/* All of the recording is bound as one program, which is then cut. */
static eddy_status make_with_plan(maker *m, const eddy_bindings *given) {
    int64_t count = count_bound(m->recording->plan, given);
    size_t bytes = (size_t)count * (sizeof(eddy_binding) + NAME_BYTES);
    eddy_binding *bound = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    if (!bound)
        return fail_memory(m);
    fill_bound(m->recording->plan, given, bound, (char(*)[NAME_BYTES])(bound + count));
    eddy_status status = make_program(m, &(eddy_bindings){bound, count});
    eddy_memory_release(bound, bytes, EDDY_MEMORY_PROGRAM);
    eddy_program *whole = m->program;
    if (status != EDDY_OK)
        return status;
    m->program = NULL;
    status = eddy_gradient_split(whole, m->recording, given, m->origin, &m->program);
    eddy_program_destroy(whole);
    return status;
}

eddy_status eddy_program_make(eddy_recording *recording, const eddy_bindings *bindings,
                              eddy_origin origin, eddy_program **program) {
    maker m = {.recording = recording, .origin = origin};
    eddy_status status =
        recording->plan ? make_with_plan(&m, bindings) : make_program(&m, bindings);
    eddy_reach_fini(&m.reach);
    if (status == EDDY_OK)
        *program = m.program;
    else if (m.program)
        eddy_program_destroy(m.program);
    return status;
}

/* The outputs among the bindings, in `outputs`, which has room for all. False where one is no tensor: eddy_program_make says so. */
static bool find_outputs(const eddy_bindings *bindings, eddy_tensor **outputs, int64_t *count) {
    *count = 0;
    for (int64_t i = 0; i < bindings->count; i++) {
        eddy_tensor *tensor = bindings->items[i].tensor;
        if (bindings->items[i].role != EDDY_ROLE_OUTPUT)
            continue;
        if (!eddy_tensor_is_live(tensor))
            return false;
        outputs[(*count)++] = tensor;
    }
    return true;
}

/* Records the backward pass of the outputs. */
static eddy_status plan_outputs(eddy_caller *caller, eddy_recording *recording,
                                const eddy_bindings *bindings, eddy_origin origin) {
    if (!bindings || bindings->count <= 0 || !bindings->items)
        return EDDY_OK;
    size_t bytes = (size_t)bindings->count * sizeof(eddy_tensor *);
    eddy_tensor **outputs = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    int64_t count;
    if (!outputs)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for the program");
    eddy_status status = EDDY_OK;
    if (find_outputs(bindings, outputs, &count))
        status = eddy_gradient_plan_make(caller, recording, (eddy_list){outputs, count}, origin);
    eddy_memory_release(outputs, bytes, EDDY_MEMORY_PROGRAM);
    return status;
}

static eddy_program *end_recording(const eddy_bindings *bindings, bool has_gradient,
                                   eddy_origin origin) {
    eddy_caller *caller = eddy_caller_get();
    eddy_recording *recording = own_recording(caller);
    if (!recording) {
        eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                  "no recording is open on this thread that eddy_record_begin has opened");
        return NULL;
    }
    eddy_status status = EDDY_OK;
    if (has_gradient && eddy_runtime_is_running(recording->runtime))
        status = plan_outputs(caller, recording, bindings, origin);
    (void)eddy_recording_close(caller);
    eddy_program *program = NULL;
    if (status == EDDY_OK)
        status = eddy_program_make(recording, bindings, origin, &program);
    if (status == EDDY_OK && has_gradient && !program->gradient)
        status = eddy_fail(EDDY_INVALID_ARGUMENT, origin, "no output carries a gradient");
    eddy_recording_destroy(recording);
    if (status == EDDY_OK)
        status = eddy_program_keep_source(program, origin);
    if (status == EDDY_OK)
        status = eddy_program_build(program, origin);
    if (status != EDDY_OK)
        eddy_program_release(&program);
    return program;
}

eddy_program *eddy_record_end(const eddy_bindings *bindings) {
    return end_recording(bindings, false, EDDY_ORIGIN("record_end"));
}

eddy_program *eddy_record_end_with_grad(const eddy_bindings *bindings) {
    return end_recording(bindings, true, EDDY_ORIGIN("record_end_with_grad"));
}
