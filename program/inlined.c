#include <program/inlined.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/status.h>
#include <program/late_calls.h>
#include <program/late_read.h>

/* What a value of the program is to the recording. */
typedef struct mapped {
    uint32_t value;   /* EDDY_CODE_NONE: nothing so far */
    uint32_t operand; /* of the run's instruction; EDDY_CODE_NONE: none of it */
    int64_t shift;    /* bytes */
} mapped;

typedef struct inlining {
    const eddy_run *run;
    const eddy_program *program;
    const eddy_code *from;
    eddy_recording *recording;
    eddy_code *to;
    mapped *values;
    uint32_t first_ordinal;
    uint32_t first_draw;
} inlining;

eddy_status eddy_inlined_check(const eddy_run *r) {
    const eddy_recorder *recorder = r->caller->recorder;
    const eddy_code *code = &r->program->code;
    if (r->turn || r->program->donated_count > 0)
        return eddy_recorder_refuse(
            r->caller,
            r->turn ? "no run would turn the ring: take outputs that are new, or targets"
                    : "no run would give up what is donated to it: record it with inputs",
            r->origin);
    if (code->late_calls.count == 0)
        return EDDY_OK;
    const char *reason = eddy_late_read_is_in(code) ? recorder->refuse_again(recorder) : NULL;
    if (reason)
        return eddy_recorder_refuse(r->caller, reason, r->origin);
    if (recorder->mode != EDDY_RECORDER_NOTES || !eddy_late_calls_have_late_shape(code))
        return EDDY_OK;
    return eddy_fail(EDDY_UNSUPPORTED, r->origin,
                     "the shape of an output depends on data, and the recording does not run its "
                     "calls");
}

/* ---- what the run reads and writes ---- */

static eddy_tensor *external_of(const eddy_run *r, uint32_t e) {
    return r->given[e] ? r->given[e] : eddy_program_external_at(r->program, e)->tensor;
}

static bool is_made(const eddy_run *r, uint32_t made) {
    return r->operands[r->program->externals.count + made].is_new;
}

/* What the run writes has the versions of that already. */
static void count_writes(const eddy_run *r, eddy_recording *recording) {
    const eddy_program *program = r->program;
    for (uint32_t e = 0; e < program->externals.count; e++)
        if (r->operands[e].access != EDDY_ACCESS_CONST)
            eddy_recording_count_write(recording, external_of(r, e), r->origin);
    for (uint32_t i = 0; i < program->made.count; i++)
        if (!is_made(r, i))
            eddy_recording_count_write(recording, r->roots[i], r->origin);
}

static void check_uses(const eddy_run *r, eddy_recording *recording) {
    const eddy_program *program = r->program;
    for (uint32_t e = 0; e < program->externals.count; e++)
        eddy_recording_check_use(recording, external_of(r, e), r->origin);
    for (uint32_t i = 0; i < program->made.count; i++)
        if (!is_made(r, i))
            eddy_recording_check_use(recording, r->roots[i], r->origin);
}

/* ---- values ---- */

static bool map_externals(inlining *in) {
    const eddy_run *r = in->run;
    for (uint32_t e = 0; e < in->program->externals.count; e++) {
        mapped *to = &in->values[eddy_program_external_at(in->program, e)->value];
        to->operand = e;
        to->shift = r->arguments->words[e];
        if (!eddy_recording_find_value(in->recording, external_of(r, e), &to->value))
            return false;
    }
    return true;
}

static bool map_made(inlining *in) {
    const eddy_run *r = in->run;
    for (uint32_t i = 0; i < in->program->made.count; i++) {
        uint32_t value = eddy_program_made_at(in->program, i)->value;
        mapped *to = &in->values[value];
        if (is_made(r, i) && !r->roots[i]) /* it lives within a fusion alone (fusions.h) */
            continue;
        to->operand = in->program->externals.count + i;
        if (is_made(r, i)) /* the handle says so once it is handed out, which is later */
            eddy_tensor_set_device(r->roots[i],
                                   eddy_code_value_device(eddy_code_value_at(in->from, value)));
        if (!(is_made(r, i) ? eddy_recording_make_value(in->recording, r->roots[i],
                                                        eddy_code_value_at(in->from, value)->bytes,
                                                        &to->value)
                            : eddy_recording_find_value(in->recording, r->roots[i], &to->value)))
            return false;
    }
    return true;
}

/* Of a value that nobody sees. */
static bool map_hidden(const inlining *in, uint32_t value) {
    const eddy_code_value *from = eddy_code_value_at(in->from, value);
    eddy_code_value made = {
        .bytes = from->bytes, .kind = EDDY_VALUE_MADE, .is_turned = from->is_turned};
    eddy_code_value_set_device(&made, eddy_code_value_device(from));
    return in->values[value].value != EDDY_CODE_NONE ||
           eddy_code_add_value(in->to, &made, &in->values[value].value);
}

/* ---- instructions ---- */

/* What was given may be a part of its storage, or be there where the program makes a storage. */
static uint8_t access_of(const inlining *in, const eddy_code_operand *operand) {
    const mapped *value = &in->values[operand->value];
    uint8_t access = operand->access;
    if (value->operand == EDDY_CODE_NONE || !(access & EDDY_CODE_WRITES))
        return access;
    const eddy_vm_operand *given = &in->run->operands[value->operand];
    if (given->is_new)
        return access;
    if (access & EDDY_CODE_MAKES)
        return EDDY_CODE_WRITES | EDDY_CODE_COVERS;
    if (access & (EDDY_CODE_COVERS | EDDY_CODE_COVERS_INPUT))
        return given->covers_all ? EDDY_CODE_WRITES | EDDY_CODE_COVERS
                                 : EDDY_CODE_WRITES | EDDY_CODE_READS;
    return access;
}

static bool add_operand(const inlining *in, const eddy_code_operand *operand) {
    eddy_code_operand added = {.value = EDDY_CODE_NONE};
    eddy_layout layout = {0};
    if (eddy_code_operand_is_absent(operand))
        return eddy_code_add_operand(in->to, &added, &layout);
    if (!map_hidden(in, operand->value))
        return false;
    const mapped *value = &in->values[operand->value];
    added = *operand;
    added.value = value->value;
    added.access = access_of(in, operand);
    eddy_code_operand_layout(in->from, operand, &layout);
    layout.offset += value->shift / eddy_dtype_size((eddy_dtype)operand->dtype);
    if (added.access & EDDY_CODE_WRITES)
        eddy_code_value_at(in->to, added.value)->is_written = true;
    return eddy_code_add_operand(in->to, &added, &layout);
}

static bool add_patches(const inlining *in, const eddy_code_instruction *instruction) {
    for (uint32_t k = 0; k < instruction->patch_count; k++) {
        eddy_code_patch patch = *eddy_code_patch_at(in->from, instruction->patches_at + k);
        patch.draw += in->first_draw; /* numbers are given to a recorded function's program alone */
        if (!eddy_code_add_patch(in->to, &patch))
            return false;
    }
    return true;
}

static bool add_instruction(const inlining *in, const eddy_code_instruction *instruction) {
    eddy_code_instruction added = *instruction;
    uint32_t index;
    added.operands_at = in->to->operands.count;
    added.patches_at = in->to->patches.count;
    added.ordinal += in->first_ordinal;
    added.draw = instruction->draw ? in->first_draw + instruction->draw : 0;
    for (uint32_t k = 0; k < instruction->operand_count; k++)
        if (!add_operand(in, eddy_code_operand_at(in->from, instruction->operands_at + k)))
            return false;
    in->recording->recorder.events++;
    return eddy_code_add_words(in->to, eddy_code_words(in->from, instruction->attributes_at),
                               added.op->attribute_bytes, &added.attributes_at) &&
           add_patches(in, instruction) && eddy_code_add_instruction(in->to, &added, &index);
}

static bool add_marked(const inlining *in, const eddy_code_instruction *instruction) {
    eddy_control control = eddy_control_of(instruction->op);
    if (control == EDDY_CONTROL_NONE)
        return add_instruction(in, instruction);
    if (control == EDDY_CONTROL_CUT)
        return true;
    eddy_recording_begin_mark(in->recording, control, in->run->origin);
    bool is_added = add_instruction(in, instruction);
    eddy_recording_end_mark(in->recording, control);
    return is_added;
}

/* Of draws that the run takes while it runs the numbers are those that were drawn last. Those of its loops nobody asks for: gradients go back through no
 * loop of it. */
static bool add_draws(inlining *in) {
    eddy_generator **generators = in->program->generators.items;
    const int64_t *words =
        in->run->late ? in->run->late->words
                      : in->run->arguments->words + in->program->executable->base_count - 1;
    in->first_draw = in->to->draws.count;
    for (uint32_t i = 0; i < in->from->draws.count; i++) {
        uint32_t held = eddy_code_draw_at(in->from, i)->generator, number;
        if (!eddy_recording_add_draw(in->recording,
                                     held == EDDY_CODE_NONE ? NULL : generators[held],
                                     words + 2 * (size_t)i, &number))
            return false;
    }
    return true;
}

static bool add_all(inlining *in) {
    if (!map_externals(in) || !map_made(in) || !add_draws(in))
        return false;
    for (uint32_t i = 0; i < in->from->instructions.count; i++)
        if (!add_marked(in, eddy_code_instruction_at(in->from, i)))
            return false;
    in->to->recorded_count += in->from->recorded_count + 1; /* the run's own number is the last */
    return true;
}

/* Its constants stay what they are, as long as there are runs. */
static bool hold_constants(const inlining *in) {
    bool has_constants = in->program->constant_count > 0 || in->program->inner.count > 0;
    return !has_constants || eddy_program_inner_add(&in->recording->inner, in->run->program);
}

static bool record(const eddy_run *r, eddy_recording *recording) {
    inlining in = {.run = r,
                   .program = r->program,
                   .from = &r->program->code,
                   .recording = recording,
                   .to = &recording->code,
                   .first_ordinal = recording->code.recorded_count};
    size_t bytes = in.from->values.count * sizeof(*in.values);
    in.values = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    if (!in.values)
        return false;
    for (uint32_t i = 0; i < in.from->values.count; i++)
        in.values[i] = (mapped){EDDY_CODE_NONE, EDDY_CODE_NONE, 0};
    bool is_recorded = add_all(&in) && hold_constants(&in);
    eddy_memory_release(in.values, bytes, EDDY_MEMORY_PROGRAM);
    return is_recorded;
}

void eddy_inlined_record(const eddy_run *r) {
    eddy_recording *recording = (eddy_recording *)(void *)r->caller->recorder;
    count_writes(r, recording);
    if (recording->status != EDDY_OK || recording->recorder.mode == EDDY_RECORDER_WATCHES)
        return;
    if (r->program->runtime != recording->runtime)
        eddy_recording_spoil(recording, EDDY_RUNTIME_MISMATCH, r->origin,
                             "it belongs to another runtime than the recording");
    else
        check_uses(r, recording);
    if (recording->status == EDDY_OK && !record(r, recording))
        eddy_recording_spoil(recording, EDDY_OUT_OF_MEMORY, r->origin, "no memory to record it");
}

/* ---- constants ---- */

/* The program may have folded what depends on its constants, and looks at them at each run: they are no other role's, and nobody writes them. */
static eddy_status check_constants_of(const eddy_program *program, const eddy_recording *recording,
                                      const eddy_bindings *bindings, const eddy_program *inner,
                                      eddy_origin origin) {
    for (uint32_t i = 0; i < inner->bindings.count; i++) {
        const eddy_program_binding *constant = eddy_program_binding_at(inner, i);
        if (constant->role != EDDY_ROLE_CONSTANT)
            continue;
        const eddy_tensor *root = eddy_program_external_at(inner, constant->operand)->tensor;
        for (int64_t k = 0; k < bindings->count; k++)
            if (bindings->items[k].tensor->root == root &&
                bindings->items[k].role != EDDY_ROLE_CONSTANT &&
                bindings->items[k].role != EDDY_ROLE_OUTPUT)
                return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                                 "%s is constant %s of a program that was run in the recording: it "
                                 "is a constant here, too",
                                 bindings->items[k].name, constant->name);
        uint32_t value = eddy_recording_value_of(recording, root);
        if (value != EDDY_CODE_NONE && eddy_code_value_at(&program->code, value)->is_written)
            return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                             "a recorded call writes constant %s of a program that was run in the "
                             "recording",
                             constant->name);
    }
    eddy_program **within = inner->inner.items;
    eddy_status status = EDDY_OK;
    for (uint32_t i = 0; i < inner->inner.count && status == EDDY_OK; i++)
        status = check_constants_of(program, recording, bindings, within[i], origin);
    return status;
}

eddy_status eddy_inlined_check_constants(const eddy_program *program,
                                         const eddy_recording *recording,
                                         const eddy_bindings *bindings, eddy_origin origin) {
    eddy_program **inner = program->inner.items;
    eddy_status status = EDDY_OK;
    for (uint32_t i = 0; i < program->inner.count && status == EDDY_OK; i++)
        status = check_constants_of(program, recording, bindings, inner[i], origin);
    return status;
}
