#include <program/verifier.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/shape.h>
#include <program/cut.h>
#include <program/late_calls.h>
#include <stdarg.h>
#include <stdio.h>

/* Pairs of operands that are compared element by element, in the whole program; four more for each instruction. Each may take some 100 us
 * where it is made to. */
#define PAIRS_MOST 65536

bool eddy_verifier_fail(eddy_verifier *v, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(v->verdict->reason, sizeof(v->verdict->reason), format, arguments);
    va_end(arguments);
    v->status = EDDY_INVALID_ARGUMENT;
    return false;
}

bool eddy_verifier_fail_memory(eddy_verifier *v) {
    snprintf(v->verdict->reason, sizeof(v->verdict->reason), "no memory for the program");
    v->status = EDDY_OUT_OF_MEMORY;
    return false;
}

/* ---- values ---- */

static bool check_values(eddy_verifier *v) {
    for (uint32_t i = 0; i < v->code->values.count; i++) {
        const eddy_code_value *value = eddy_code_value_at(v->code, i);
        v->values[i] = (eddy_verifier_value){.dtype = EDDY_DTYPE_COUNT};
        if (value->kind > EDDY_VALUE_CAPTURED)
            return eddy_verifier_fail(v, "value %u is of no kind that there is", i);
        if (value->bytes < 0 || value->bytes > EDDY_VERIFIER_BYTES_MOST)
            return eddy_verifier_fail(v, "a storage of %lld bytes", (long long)value->bytes);
    }
    return true;
}

static bool check_externals(eddy_verifier *v) {
    uint32_t inputs = 0;
    for (uint32_t e = 0; e < v->program->externals.count; e++) {
        const eddy_program_external *external = eddy_program_external_at(v->program, e);
        if (external->value >= v->code->values.count || v->values[external->value].is_external)
            return eddy_verifier_fail(v, "external %u has no value of its own", e);
        uint8_t kind = eddy_code_value_at(v->code, external->value)->kind;
        bool is_input = external->input != EDDY_CODE_NONE;
        if (kind == EDDY_VALUE_MADE || is_input != (kind == EDDY_VALUE_INPUT) ||
            (is_input && external->input != inputs))
            return eddy_verifier_fail(v, "external %u is of another kind than its value", e);
        inputs += is_input;
        v->values[external->value].is_external = true;
    }
    for (uint32_t i = 0; i < v->code->values.count; i++)
        if (!v->values[i].is_external && eddy_code_value_at(v->code, i)->kind != EDDY_VALUE_MADE)
            return eddy_verifier_fail(v, "value %u is there before a run, and nothing holds it", i);
    return inputs == v->program->input_count ||
           eddy_verifier_fail(v, "there are %u inputs", inputs);
}

/* ---- bindings ---- */

static bool check_role(eddy_verifier *v, const eddy_program_binding *binding, uint8_t kind) {
    eddy_verifier_value *of = &v->values[binding->value];
    bool is_input = binding->role == EDDY_ROLE_INPUT, is_state = binding->role == EDDY_ROLE_STATE,
         is_constant = binding->role == EDDY_ROLE_CONSTANT;
    if ((is_input && (kind != EDDY_VALUE_INPUT || of->is_bound)) ||
        (is_state && kind != EDDY_VALUE_STATE) || (is_constant && kind != EDDY_VALUE_CONSTANT))
        return eddy_verifier_fail(v, "the value has another role");
    if (eddy_code_value_at(v->code, binding->value)->is_donated != binding->is_donated)
        return eddy_verifier_fail(v, "what is donated is gone behind a run");
    if (is_input && binding->layout.offset != 0)
        return eddy_verifier_fail(v, "an input begins at its first element");
    of->is_bound |= is_input || is_state || is_constant;
    if (is_constant && of->is_written)
        return eddy_verifier_fail(v, "a constant is written");
    return true;
}

/* What a call behind a run gives is one output, as it is. */
static bool check_late_binding(eddy_verifier *v, const eddy_program_binding *binding) {
    eddy_verifier_value *of = &v->values[binding->value];
    if (!eddy_code_value_at(v->code, binding->value)->is_late)
        return true;
    if (binding->role != EDDY_ROLE_OUTPUT || binding->is_storage || binding->layout.rank != 1 ||
        binding->layout.dims[0] != 0)
        return eddy_verifier_fail(v, "a value without a known shape is an output, as a vector "
                                     "without elements, and nothing else");
    if (of->is_bound)
        return eddy_verifier_fail(v, "a value without a known shape has two names");
    of->is_bound = true;
    return true;
}

static bool check_binding(eddy_verifier *v, const eddy_program_binding *binding) {
    if (binding->role > EDDY_PROGRAM_KEPT ||
        (!binding->name != (binding->role == EDDY_PROGRAM_KEPT) && !binding->is_storage))
        return eddy_verifier_fail(v, "the binding has no role, or no name");
    if (binding->value >= v->code->values.count)
        return eddy_verifier_fail(v, "there is no such value");
    const eddy_code_value *value = eddy_code_value_at(v->code, binding->value);
    eddy_device device = eddy_code_value_device(value);
    if (binding->device_kind != (int8_t)device.kind || binding->device_index != device.index)
        return eddy_verifier_fail(v, "it is said to be on another device than its value");
    int64_t count = 0;
    return check_role(v, binding, value->kind) && check_late_binding(v, binding) &&
           eddy_verifier_layout(v, &binding->layout, binding->dtype, value->bytes) &&
           ((eddy_shape_count(binding->layout.rank, binding->layout.dims, &count) &&
             binding->count == count) ||
            eddy_verifier_fail(v, "its elements are miscounted")) &&
           (binding->is_storage || eddy_verifier_dtype(v, binding->value, binding->dtype));
}

/* After the instructions: what outputs show is there then. */
static bool check_bindings(eddy_verifier *v) {
    uint32_t inputs = 0;
    for (uint32_t i = 0; i < v->program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(v->program, i);
        v->verdict->binding = i;
        if (!check_binding(v, binding))
            return false;
        /* A run that takes another way saves what it does not make. */
        if (!eddy_reach_has(&v->reach, binding->value) &&
            !(binding->is_storage && v->values[binding->value].is_begun))
            return eddy_verifier_fail(v, "no instruction makes its value");
        inputs += binding->role == EDDY_ROLE_INPUT;
    }
    v->verdict->binding = EDDY_CODE_NONE;
    if (inputs != v->program->input_count)
        return eddy_verifier_fail(v, "%u inputs are named, and there are %u", inputs,
                                  v->program->input_count);
    for (uint32_t i = 0; i < v->code->values.count; i++) {
        uint8_t kind = eddy_code_value_at(v->code, i)->kind;
        if ((kind == EDDY_VALUE_STATE || kind == EDDY_VALUE_CONSTANT) && !v->values[i].is_bound)
            return eddy_verifier_fail(v, "a state or a constant has no name");
        if (kind == EDDY_VALUE_CAPTURED && v->values[i].dtype == EDDY_DTYPE_COUNT)
            return eddy_verifier_fail(v, "a captured storage is not used");
        if (v->values[i].is_written != eddy_code_value_at(v->code, i)->is_written)
            return eddy_verifier_fail(v, "a storage is %s",
                                      v->values[i].is_written ? "written, and not said to be"
                                                              : "said to be written, and is not");
    }
    return true;
}

/* ---- instructions ---- */

/* Who does not draw when the run is made draws when its instruction runs: each draw has one. */
static bool check_draws(eddy_verifier *v) {
    for (uint32_t i = 0; i < v->code->draws.count && eddy_control_has_draws(v->code); i++)
        if (!v->draws[i])
            return eddy_verifier_fail(
                v, "no instruction takes draw %u, and there are draws in branches or loops", i);
    return true;
}

/* What the instruction makes is there for the next one. */
static bool note_made(eddy_verifier *v, const eddy_code_instruction *instruction) {
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand =
            eddy_code_operand_at(v->code, instruction->operands_at + k);
        if (eddy_code_operand_is_absent(operand) || !(operand->access & EDDY_CODE_WRITES))
            continue;
        eddy_verifier_value *of = &v->values[operand->value];
        bool makes = operand->access & EDDY_CODE_MAKES;
        if (makes && of->is_begun)
            return eddy_verifier_fail(v, "a value is made twice");
        of->is_written = true;
        of->is_begun |= makes;
    }
    return eddy_reach_pass(&v->reach, instruction) || eddy_verifier_fail_memory(v);
}

static bool check_op(eddy_verifier *v, const eddy_code_instruction *instruction) {
    const eddy_op *op = instruction->op;
    if (!op || op->is_registered)
        return eddy_verifier_fail(v, "%s is no op of the library that a program may have",
                                  op ? op->name : "nothing");
    if (!instruction->kernel)
        return eddy_verifier_fail(v, "%s is not supported for its operands", op->name);
    if (instruction->operands_at + (uint64_t)instruction->operand_count > v->code->operands.count ||
        instruction->input_count > instruction->operand_count ||
        instruction->attributes_at + (op->attribute_bytes + 7) / 8 > v->code->words.count)
        return eddy_verifier_fail(v, "operands or attributes are no part of the code");
    if (!eddy_inference_fits(op, instruction->input_count,
                             instruction->operand_count - instruction->input_count))
        return eddy_verifier_fail(v, "%u operands and %u results do not fit %s",
                                  instruction->input_count,
                                  instruction->operand_count - instruction->input_count, op->name);
    return true;
}

/* Calls behind a run come last, and nothing uses what they make. */
static bool check_late(eddy_verifier *v, uint32_t i) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(v->code, i);
    bool is_behind = eddy_late_calls_include(instruction->op),
         is_last = i + 1 == v->code->instructions.count ||
                   eddy_late_calls_include(eddy_code_instruction_at(v->code, i + 1)->op);
    if (is_behind && !is_last)
        return eddy_verifier_fail(v, "%s is called behind a run, and is not at the end",
                                  instruction->op->name);
    if (is_behind && eddy_code_reads_donated(v->code, instruction))
        return eddy_verifier_fail(v, "%s is called behind a run, when what it reads is gone",
                                  instruction->op->name);
    if (is_behind && instruction->patch_count > 0)
        return eddy_verifier_fail(v, "%s takes no number of a run", instruction->op->name);
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand =
            eddy_code_operand_at(v->code, instruction->operands_at + k);
        if (eddy_code_operand_is_absent(operand) ||
            !eddy_code_value_at(v->code, operand->value)->is_late)
            continue;
        if (k < instruction->input_count || !instruction->op->has_late_shape)
            return eddy_verifier_fail(v, "a value without a known shape is used");
    }
    return true;
}

static bool check_instruction(eddy_verifier *v, uint32_t i) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(v->code, i);
    v->verdict->instruction = i;
    return check_op(v, instruction) && check_late(v, i) && eddy_verifier_operands(v, instruction) &&
           eddy_verifier_attributes(v, i) && note_made(v, instruction);
}

static bool check_all(eddy_verifier *v) {
    uint32_t wrong;
    if (!check_values(v) || !check_externals(v))
        return false;
    if (!eddy_control_is_nested(v->code, &wrong)) {
        v->verdict->instruction = wrong < v->code->instructions.count ? wrong : EDDY_CODE_NONE;
        return eddy_verifier_fail(v, "branches and loops are not nested, or more than %d deep",
                                  EDDY_CONTROL_DEPTH_MOST);
    }
    for (uint32_t i = 0; i < v->code->instructions.count; i++)
        if (!check_instruction(v, i))
            return false;
    v->verdict->instruction = EDDY_CODE_NONE;
    char reason[128];
    eddy_cut_judge(v->code, reason, sizeof(reason));
    if (reason[0])
        return eddy_verifier_fail(v, "%s", reason);
    return check_draws(v) && check_bindings(v);
}

eddy_status eddy_verify_program(const eddy_program *program, eddy_verdict *verdict) {
    eddy_verifier v = {.program = program,
                       .code = &program->code,
                       .verdict = verdict,
                       .pairs = PAIRS_MOST + 4 * (int64_t)program->code.instructions.count};
    size_t values = program->code.values.count * sizeof(*v.values),
           draws = program->code.draws.count * sizeof(*v.draws);
    *verdict = (eddy_verdict){.instruction = EDDY_CODE_NONE, .binding = EDDY_CODE_NONE};
    v.values = eddy_memory_acquire_zeroed(values, EDDY_MEMORY_PROGRAM);
    v.draws = eddy_memory_acquire_zeroed(draws, EDDY_MEMORY_PROGRAM);
    bool is_fine = v.values && v.draws && eddy_reach_init(&v.reach, v.code)
                       ? check_all(&v)
                       : eddy_verifier_fail_memory(&v);
    EDDY_ASSERT(is_fine == (v.status == EDDY_OK));
    eddy_inference_fini(&v.inference);
    eddy_verifier_spans_fini(&v);
    eddy_reach_fini(&v.reach);
    eddy_memory_release(v.values, values, EDDY_MEMORY_PROGRAM);
    eddy_memory_release(v.draws, draws, EDDY_MEMORY_PROGRAM);
    return v.status;
}
