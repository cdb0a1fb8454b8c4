#include <program/late_calls.h>

#include <base/memory.h>
#include <base/status.h>
#include <interpreter/call/apply.h>
#include <interpreter/handle/scope.h>
#include <stdio.h>
#include <string.h>

static bool is_late(const eddy_code_instruction *instruction) {
    return instruction->op->has_late_shape;
}

static const eddy_code_operand *operands_of(const eddy_code *code,
                                            const eddy_code_instruction *instruction) {
    return eddy_code_operand_at(code, instruction->operands_at);
}

static eddy_code_instruction *late_call_at(const eddy_code *code, uint32_t i) {
    return (eddy_code_instruction *)code->late_calls.items + i;
}

bool eddy_late_calls_have_late_shape(const eddy_code *code) {
    for (uint32_t i = 0; i < eddy_code_call_count(code); i++)
        if (is_late(eddy_code_call_at(code, i)))
            return true;
    return false;
}

void eddy_late_calls_layout(eddy_layout *layout) {
    *layout = (eddy_layout){.rank = 1, .dims = {0}, .strides = {1}};
}

/* ---- the code ---- */

/* The instruction from `first` on that writes what the call reads; NULL: none does. */
static const eddy_code_instruction *find_writer(const eddy_code *code, uint32_t first,
                                                const eddy_code_instruction *call) {
    const eddy_code_instruction *writer = NULL;
    for (uint32_t k = 0; k < call->input_count && !writer; k++)
        writer = eddy_code_find_writer(code, first, operands_of(code, call)[k].value);
    return writer;
}

void eddy_late_calls_judge(const eddy_code *code, char *reason, size_t size) {
    reason[0] = 0;
    for (uint32_t i = 0; i < code->instructions.count && !reason[0]; i++) {
        const eddy_code_instruction *call = eddy_code_instruction_at(code, i);
        const eddy_code_instruction *writer = is_late(call) ? find_writer(code, i + 1, call) : NULL;
        if (writer)
            snprintf(reason, size,
                     "%s is called behind each run, since the shape of its result depends on data, "
                     "and %s has written then what it reads",
                     call->op->name, writer->op->name);
        else if (is_late(call) && call->patch_count > 0)
            snprintf(reason, size,
                     "%s is called behind each run, since the shape of its result depends on data, "
                     "and a number that each run gives does not reach it",
                     call->op->name);
    }
}

/* The calls behind the instructions, in their order. */
static bool append_calls(eddy_code *code) {
    uint32_t at;
    if (!eddy_code_array_add(&code->instructions, sizeof(eddy_code_instruction),
                             code->late_calls.count, &at))
        return false;
    if (code->late_calls.count > 0)
        memcpy(eddy_code_instruction_at(code, at), code->late_calls.items,
               code->late_calls.count * sizeof(eddy_code_instruction));
    code->late_calls.count = 0;
    return true;
}

/* Those that stay move forward; the calls wait in the list behind the instructions meanwhile. The order of each of the two kinds stays. */
bool eddy_late_calls_put_last(eddy_code *code) {
    uint32_t kept = 0, at, count = code->instructions.count;
    for (uint32_t i = 0; i < count; i++) {
        eddy_code_instruction instruction = *eddy_code_instruction_at(code, i);
        if (!eddy_late_calls_include(instruction.op)) {
            *eddy_code_instruction_at(code, kept++) = instruction;
            continue;
        }
        if (eddy_late_read_is(instruction.op) && eddy_late_read_needs_copy(code, i) &&
            !eddy_late_read_copy(code, &instruction, eddy_code_instruction_at(code, kept++)))
            return false;
        if (!eddy_code_array_add(&code->late_calls, sizeof(instruction), 1, &at))
            return false;
        *late_call_at(code, at) = instruction;
    }
    code->instructions.count = kept;
    return append_calls(code);
}

bool eddy_late_calls_cut(eddy_code *code) {
    uint32_t first = eddy_late_calls_first(code), at;
    uint32_t count = code->instructions.count - first;
    if (count == 0)
        return true;
    if (!eddy_code_array_add(&code->late_calls, sizeof(eddy_code_instruction), count, &at))
        return false;
    memcpy(late_call_at(code, at), eddy_code_instruction_at(code, first),
           count * sizeof(eddy_code_instruction));
    code->instructions.count = first;
    return true;
}

/* ---- behind a run ---- */

/* The output that shows a call's result; EDDY_CODE_NONE: none does, or nobody wants it. */
static uint32_t output_of(const eddy_run *r, uint32_t value) {
    uint32_t output = 0;
    for (uint32_t i = 0; i < r->program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(r->program, i);
        if (binding->role != EDDY_ROLE_OUTPUT)
            continue;
        if (binding->value == value)
            return eddy_run_place(r, output) ? output : EDDY_CODE_NONE;
        output++;
    }
    return EDDY_CODE_NONE;
}

static bool is_wanted(const eddy_run *r, const eddy_code_instruction *call) {
    if (eddy_late_read_is(call->op))
        return true;
    for (uint32_t k = call->input_count; k < call->operand_count; k++)
        if (output_of(r, operands_of(&r->program->code, call)[k].value) != EDDY_CODE_NONE)
            return true;
    return false;
}

/* A handle of what the run has, or will have, computed; NULL without memory. */
static eddy_tensor *make_input(const eddy_run *r, const eddy_code_operand *operand) {
    eddy_program_binding binding = {.value = operand->value, .dtype = operand->dtype};
    eddy_program_binding_place(r->program, &binding);
    eddy_code_operand_layout(&r->program->code, operand, &binding.layout);
    return eddy_run_view(r, &binding);
}

/* The results that nobody wants are released. */
static void keep_results(const eddy_run *r, const eddy_code_instruction *call,
                         eddy_tensor **results) {
    for (uint32_t k = call->input_count; k < call->operand_count; k++) {
        uint32_t output = output_of(r, operands_of(&r->program->code, call)[k].value);
        if (output == EDDY_CODE_NONE)
            eddy_release(&results[k - call->input_count]);
        else
            r->late_outputs[output] = results[k - call->input_count];
    }
}

/* A call without operands belongs to the thread's runtime, which may not be the program's. */
static eddy_status apply_in(eddy_caller *caller, eddy_runtime *runtime, const eddy_apply *apply) {
    eddy_runtime *current = caller->runtime;
    caller->runtime = runtime;
    eddy_status status = eddy_interpreter_apply(apply);
    caller->runtime = current;
    return status;
}

/* memory: the handles of the call's operands, then its attributes. */
static eddy_status issue_in(const eddy_run *r, const eddy_code_instruction *call,
                            eddy_tensor **memory) {
    const eddy_code *code = &r->program->code;
    void *attributes = memory + call->operand_count;
    eddy_apply apply = {.op = call->op,
                        .inputs = memory,
                        .input_count = call->input_count,
                        .attributes = attributes,
                        .outputs = memory + call->input_count,
                        .address = call->address};
    eddy_status status = EDDY_OK;
    uint32_t made = 0;
    for (; made < call->input_count && status == EDDY_OK; made++) {
        const eddy_code_operand *operand = &operands_of(code, call)[made];
        memory[made] = eddy_code_operand_is_absent(operand) ? EDDY_NONE : make_input(r, operand);
        if (!memory[made])
            status = eddy_fail(EDDY_OUT_OF_MEMORY, r->origin, "no memory for a handle");
    }
    if (call->op->attribute_bytes > 0)
        memcpy(attributes, eddy_code_words(code, call->attributes_at), call->op->attribute_bytes);
    if (status == EDDY_OK)
        status = apply_in(r->caller, r->program->runtime, &apply);
    if (status == EDDY_OK)
        keep_results(r, call, memory + call->input_count);
    for (uint32_t i = 0; i < made; i++)
        if (memory[i] && !eddy_tensor_is_none(memory[i]))
            eddy_tensor_drop(memory[i]);
    return status;
}

static eddy_status issue_read(const eddy_run *r, const eddy_code_instruction *call) {
    const eddy_code *code = &r->program->code;
    eddy_tensor *tensor = make_input(r, operands_of(code, call));
    if (!tensor)
        return eddy_fail(EDDY_OUT_OF_MEMORY, r->origin, "no memory for a handle");
    eddy_status status =
        eddy_access_again(tensor, eddy_code_words(code, call->attributes_at), call->address);
    eddy_tensor_drop(tensor);
    return status;
}

static eddy_status issue(const eddy_run *r, const eddy_code_instruction *call) {
    if (eddy_late_read_is(call->op))
        return issue_read(r, call);
    size_t bytes = call->operand_count * sizeof(eddy_tensor *) + call->op->attribute_bytes;
    eddy_tensor **memory = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_PROGRAM);
    if (!memory)
        return eddy_fail(EDDY_OUT_OF_MEMORY, r->origin, "no memory for a call behind the run");
    eddy_status status = issue_in(r, call, memory);
    eddy_memory_release(memory, bytes, EDDY_MEMORY_PROGRAM);
    return status;
}

eddy_status eddy_late_calls_issue(const eddy_run *r) {
    const eddy_code *code = &r->program->code;
    eddy_status status = EDDY_OK;
    for (uint32_t i = 0; i < code->late_calls.count && status == EDDY_OK; i++)
        if (is_wanted(r, late_call_at(code, i)))
            status = issue(r, late_call_at(code, i));
    for (uint32_t i = 0; i < r->program->output_count && status != EDDY_OK; i++)
        eddy_release(&r->late_outputs[i]);
    return status;
}
