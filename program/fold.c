#include <program/fold.h>

#include <base/memory.h>
#include <base/status.h>
#include <interpreter/call/recorder.h>
#include <program/control.h>
#include <program/passes/passes.h>
#include <string.h>

/* What a value depends on. */
typedef enum origin_of_value {
    FROM_ANYTHING,
    FROM_NOTHING,   /* an op without operands has made it */
    FROM_CONSTANTS, /* and from values of the kind above */
    DECLARED,       /* a constant itself */
} origin_of_value;

typedef struct folding {
    eddy_program *program;
    eddy_code *code;
    const uint32_t *bases;
    eddy_origin origin;
    uint8_t *from;     /* per value: origin_of_value */
    bool *is_kept;     /* per value: the program needs it of the startup program */
    uint32_t *written; /* per value: how often instructions write it */
    bool *is_folded;   /* per instruction */
    eddy_regions regions;
    uint32_t kept_count;
} folding;

static const eddy_code_operand *operands_of(const folding *f, uint32_t i) {
    return eddy_code_operand_at(f->code, eddy_code_instruction_at(f->code, i)->operands_at);
}

/* ---- finding ---- */

static void count_writes(const folding *f) {
    for (uint32_t i = 0; i < f->code->instructions.count; i++)
        for (uint32_t k = 0; k < eddy_code_instruction_at(f->code, i)->operand_count; k++)
            if (operands_of(f, i)[k].access & EDDY_CODE_WRITES)
                f->written[operands_of(f, i)[k].value]++;
}

/* Whether the instruction does nothing but make values within the run that stay as they are. */
static bool is_pure(const folding *f, uint32_t i) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(f->code, i);
    /* On a way that is never taken it takes no memory, and fails for none. */
    if (eddy_region_of(&f->regions, i) != EDDY_CODE_NONE)
        return false;
    if (instruction->op->has_late_shape)
        return false;
    if (instruction->op->may_fail || instruction->op->is_random || instruction->patch_count > 0)
        return false;
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand = &operands_of(f, i)[k];
        if (operand->access & EDDY_CODE_WRITES &&
            (!(operand->access & EDDY_CODE_MAKES) || f->bases[operand->value] != 0 ||
             f->written[operand->value] != 1))
            return false;
    }
    return true;
}

static void follow(const folding *f, uint32_t i) {
    const eddy_code_operand *operands = operands_of(f, i);
    uint32_t count = eddy_code_instruction_at(f->code, i)->operand_count, reads = 0;
    origin_of_value from = is_pure(f, i) ? FROM_NOTHING : FROM_ANYTHING;
    for (uint32_t k = 0; k < count; k++)
        if (operands[k].access & EDDY_CODE_READS) {
            reads++;
            if (f->from[operands[k].value] == FROM_ANYTHING)
                from = FROM_ANYTHING;
        }
    if (from == FROM_NOTHING && reads > 0)
        from = FROM_CONSTANTS;
    f->is_folded[i] = from == FROM_CONSTANTS;
    for (uint32_t k = 0; k < count; k++)
        if (operands[k].access & EDDY_CODE_WRITES)
            f->from[operands[k].value] = (uint8_t)from;
}

/* Whether there is something to fold, and not too much to keep. */
static bool find(folding *f) {
    int64_t bytes = 0;
    for (uint32_t v = 0; v < f->code->values.count; v++)
        if (eddy_code_value_at(f->code, v)->kind == EDDY_VALUE_CONSTANT)
            f->from[v] = DECLARED;
    count_writes(f);
    for (uint32_t i = 0; i < f->code->instructions.count; i++)
        follow(f, i);
    for (uint32_t i = 0; i < f->code->instructions.count; i++)
        for (uint32_t k = 0; k < eddy_code_instruction_at(f->code, i)->operand_count; k++) {
            const eddy_code_operand *operand = &operands_of(f, i)[k];
            if (f->is_folded[i] || !(operand->access & EDDY_CODE_READS) ||
                f->from[operand->value] != FROM_CONSTANTS || f->is_kept[operand->value])
                continue;
            f->is_kept[operand->value] = true;
            f->kept_count++;
            bytes += eddy_code_value_at(f->code, operand->value)->bytes;
        }
    return f->kept_count > 0 && bytes <= EDDY_FOLD_BYTES_MOST;
}

/* ---- the startup program ---- */

static eddy_status fail_memory(const folding *f) {
    return eddy_fail(EDDY_OUT_OF_MEMORY, f->origin, "no memory to fold constants");
}

/* The instructions that are folded, and those that may make their operands. */
static bool copy_instructions(const folding *f, eddy_code *to) {
    if (!eddy_code_copy(to, f->code))
        return false;
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->code->instructions.count; i++) {
        uint32_t operands = eddy_code_instruction_at(f->code, i)->operand_count;
        if (operands == 0)
            continue; /* a mark (control.h) */
        const eddy_code_operand *last = operands_of(f, i) + operands - 1;
        bool makes = last->access & EDDY_CODE_MAKES && f->from[last->value] == FROM_NOTHING;
        if (!f->is_folded[i] && !makes)
            continue;
        *eddy_code_instruction_at(to, count) = *eddy_code_instruction_at(f->code, i);
        eddy_code_instruction_at(to, count)->ordinal = count;
        count++;
    }
    to->instructions.count = to->recorded_count = count;
    to->draws.count = to->scalars.count = 0;
    return true;
}

static bool copy_constants(const folding *f, eddy_program *startup) {
    for (uint32_t e = 0; e < f->program->externals.count; e++) {
        const eddy_program_external *external = eddy_program_external_at(f->program, e);
        uint32_t index;
        if (f->from[external->value] != DECLARED)
            continue;
        if (!eddy_code_array_add(&startup->externals, sizeof(*external), 1, &index))
            return false;
        *eddy_program_external_at(startup, index) = *external;
        eddy_tensor_retain(external->tensor);
    }
    return true;
}

/* An output for the value that the operand makes. */
static bool add_output(eddy_program *startup, const eddy_code_operand *made) {
    uint32_t index;
    if (!eddy_code_array_add(&startup->bindings, sizeof(eddy_program_binding), 1, &index))
        return false;
    eddy_program_binding *binding = eddy_program_binding_at(startup, index);
    *binding = (eddy_program_binding){
        .value = made->value, .role = EDDY_ROLE_OUTPUT, .dtype = made->dtype};
    eddy_program_binding_place(startup, binding);
    eddy_code_operand_layout(&startup->code, made, &binding->layout);
    startup->output_count++;
    return eddy_shape_count(binding->layout.rank, binding->layout.dims, &binding->count);
}

static bool add_outputs(const folding *f, eddy_program *startup) {
    for (uint32_t i = 0; i < startup->code.instructions.count; i++) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(&startup->code, i);
        for (uint32_t k = 0; k < instruction->operand_count; k++) {
            const eddy_code_operand *operand =
                eddy_code_operand_at(&startup->code, instruction->operands_at + k);
            if (operand->access & EDDY_CODE_MAKES && f->is_kept[operand->value] &&
                !add_output(startup, operand))
                return false;
        }
    }
    return true;
}

static eddy_status make_startup(const folding *f, eddy_program **made) {
    eddy_program *startup = *made = eddy_program_create(f->program->runtime);
    if (!startup || !copy_instructions(f, &startup->code) || !copy_constants(f, startup) ||
        !add_outputs(f, startup))
        return fail_memory(f);
    startup->passes = f->program->passes & ~(1u << EDDY_PASS_NUMBER_fold);
    return eddy_program_build(startup, f->origin);
}

/* ---- taking its results over ---- */

/* The program holds the results in the order of the startup program's outputs. */
static bool capture(const folding *f, const eddy_program *startup, eddy_tensor **results) {
    for (uint32_t i = 0; i < startup->output_count; i++) {
        uint32_t index, value = eddy_program_binding_at(startup, i)->value;
        if (!eddy_code_array_add(&f->program->externals, sizeof(eddy_program_external), 1, &index))
            return false;
        eddy_tensor *root = results[i]->root;
        eddy_tensor_retain(root);
        *eddy_program_external_at(f->program, index) =
            (eddy_program_external){.value = value,
                                    .input = EDDY_CODE_NONE,
                                    .tensor = root,
                                    .view_leaves = eddy_load_relaxed(&root->view_leaves)};
        eddy_code_value_at(f->code, value)->kind = EDDY_VALUE_CAPTURED;
        eddy_code_value_at(f->code, value)->is_written = false;
    }
    return true;
}

static void leave_out(const folding *f) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->code->instructions.count; i++)
        if (!f->is_folded[i])
            *eddy_code_instruction_at(f->code, kept++) = *eddy_code_instruction_at(f->code, i);
    f->code->instructions.count = kept;
}

static eddy_status run_startup(const folding *f, eddy_program *startup) {
    size_t bytes = startup->output_count * sizeof(eddy_tensor *);
    eddy_tensor **results = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    if (!results)
        return fail_memory(f);
    /* Also while the thread records: a loaded program, or one for some outputs, is built then. */
    eddy_caller *caller = eddy_caller_get();
    eddy_recorder *recorder = eddy_recorder_set_aside(caller);
    eddy_status status =
        eddy_program_run_with(startup, (eddy_list){0}, NULL, results, NULL, NULL, f->origin);
    eddy_recorder_go_on(caller, recorder);
    if (status == EDDY_OK) {
        if (capture(f, startup, results))
            leave_out(f);
        else
            status = fail_memory(f);
        for (uint32_t i = 0; i < startup->output_count; i++)
            eddy_release(&results[i]);
    }
    eddy_memory_release(results, bytes, EDDY_MEMORY_PROGRAM);
    return status;
}

static eddy_status fold(const folding *f) {
    eddy_program *startup = NULL;
    eddy_status status = make_startup(f, &startup);
    if (status == EDDY_OK)
        status = run_startup(f, startup);
    if (startup)
        eddy_program_release(&startup);
    return status;
}

eddy_status eddy_program_fold(eddy_program *program, const uint32_t *bases, eddy_origin origin) {
    folding f = {.program = program, .code = &program->code, .bases = bases, .origin = origin};
    uint32_t values = f.code->values.count, instructions = f.code->instructions.count;
    size_t bytes = values * (sizeof(*f.written) + sizeof(*f.from) + sizeof(*f.is_kept)) +
                   instructions * sizeof(*f.is_folded);
    f.written = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_PROGRAM);
    if (!f.written || !eddy_regions_find(f.code, &f.regions)) {
        eddy_memory_release(f.written, bytes, EDDY_MEMORY_PROGRAM);
        return fail_memory(&f);
    }
    f.from = (uint8_t *)(f.written + values);
    f.is_kept = (bool *)(f.from + values);
    f.is_folded = f.is_kept + values;
    eddy_status status = find(&f) ? fold(&f) : EDDY_OK;
    eddy_regions_fini(&f.regions);
    eddy_memory_release(f.written, bytes, EDDY_MEMORY_PROGRAM);
    return status;
}
