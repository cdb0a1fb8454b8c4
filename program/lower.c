#include <program/lower.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/status.h>
#include <program/control.h>
#include <program/cut.h>
#include <program/draw_ops.h>
#include <program/gradient.h>
#include <program/group.h>
#include <program/late_calls.h>
#include <program/passes/passes.h>
#include <string.h>

static eddy_status fail_memory(eddy_origin origin) {
    return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for the program");
}

/* Programs of two sizes being lowered: the largest, then the least. */
typedef struct lowering {
    eddy_program *programs[2];
    eddy_bases bases[2]; /* the same of both */
    eddy_origin origin;
} lowering;

/* ---- the code ---- */

/* What a startup program would fold is different at each size, and would be run once for each: it stays. */
static eddy_status reduce(lowering *l, int which) {
    eddy_program *program = l->programs[which];
    eddy_bases *bases = &l->bases[which];
    program->code.draws_late = eddy_control_has_draws(&program->code);
    program->code.sets_draws = eddy_draw_ops_has_set(&program->code);
    for (uint32_t i = 0; i < program->code.instructions.count; i++)
        eddy_code_instruction_at(&program->code, i)->source = i;
    eddy_status status = eddy_program_number_operands(program, bases, l->origin);
    if (status == EDDY_OK &&
        !eddy_passes_run(&program->code, bases, program->passes & EDDY_PASSES_REDUCING))
        status = fail_memory(l->origin);
    if (status == EDDY_OK)
        status = eddy_program_drop_unused(program, l->origin);
    return status == EDDY_OK ? eddy_program_number_operands(program, bases, l->origin) : status;
}

/* Whether the same instructions of the recorded ones are left, on the same values. */
static bool is_alike(const lowering *l) {
    const eddy_code *a = &l->programs[0]->code, *b = &l->programs[1]->code;
    if (a->instructions.count != b->instructions.count || a->words.count != b->words.count ||
        memcmp(l->bases[0].of, l->bases[1].of, a->values.count * sizeof(uint32_t)) != 0)
        return false;
    for (uint32_t i = 0; i < a->instructions.count; i++) {
        const eddy_code_instruction *x = eddy_code_instruction_at(a, i),
                                    *y = eddy_code_instruction_at(b, i);
        if (x->source != y->source)
            return false;
        for (uint32_t k = 0; k < x->operand_count; k++) {
            const eddy_code_operand *one = eddy_code_operand_at(a, x->operands_at + k),
                                    *other = eddy_code_operand_at(b, y->operands_at + k);
            if (one->value != other->value || one->access != other->access ||
                one->words_at != other->words_at)
                return false;
        }
    }
    return true;
}

static eddy_status fail_unlike(const lowering *l) {
    return eddy_fail(EDDY_INVALID_ARGUMENT, l->origin,
                     "the passes do not do the same at the least and the largest size");
}

/* ---- the arena ---- */

/* Small sizes run where there is no memory for the largest. A run takes it as the workspace of its instruction, within the limit of those. */
static bool has_memory(int64_t bytes) {
    void *taken = eddy_memory_acquire((size_t)bytes, EDDY_MEMORY_WORKSPACE);
    eddy_memory_release(taken, (size_t)bytes, EDDY_MEMORY_WORKSPACE);
    return taken != NULL;
}

static eddy_status lay_out(const lowering *l) {
    const eddy_code *code = &l->programs[0]->code;
    eddy_arena_layout *layout =
        eddy_arena_layout_create(code->values.count, code->instructions.count);
    eddy_status status = layout ? EDDY_OK : fail_memory(l->origin);
    for (int which = 0; which < 2 && status == EDDY_OK; which++) {
        const eddy_program *program = l->programs[which];
        status = eddy_executable_measure(&program->code, l->bases[0].of,
                                         1 + program->externals.count + program->made.count, layout,
                                         l->origin);
    }
    if (status == EDDY_OK && !eddy_arena_layout_plan(layout))
        status = fail_memory(l->origin);
    if (status == EDDY_OK && !has_memory(layout->plan.bytes))
        status = eddy_fail(EDDY_INVALID_ARGUMENT, l->origin,
                           "there is no memory for %lld bytes of the largest size",
                           (long long)layout->plan.bytes);
    for (int which = 0; which < 2 && status == EDDY_OK; which++)
        l->programs[which]->layout = eddy_arena_layout_retain(layout);
    eddy_arena_layout_release(layout);
    return status;
}

/* ---- all of it ---- */

static eddy_status run_both(const lowering *l, uint32_t passes) {
    if (!eddy_passes_run_both(&l->programs[0]->code, &l->programs[1]->code, l->bases[0].of,
                              l->programs[0]->passes & passes))
        return fail_memory(l->origin);
    return is_alike(l) ? EDDY_OK : fail_unlike(l);
}

static eddy_status lower_with(lowering *l) {
    eddy_status status = reduce(l, 0);
    if (status == EDDY_OK)
        status = reduce(l, 1);
    if (status == EDDY_OK && !is_alike(l))
        status = fail_unlike(l);
    if (status != EDDY_OK)
        return status;
    status = run_both(l, ~(EDDY_PASSES_REDUCING | EDDY_PASSES_GROUPING));
    if (status == EDDY_OK)
        status = run_both(l, EDDY_PASSES_GROUPING);
    if (status != EDDY_OK)
        return status;
    return eddy_late_calls_cut(&l->programs[0]->code) && eddy_late_calls_cut(&l->programs[1]->code)
               ? lay_out(l)
               : fail_memory(l->origin);
}

static eddy_status lower_one(eddy_program *most, eddy_program *least, eddy_origin origin) {
    lowering l = {.programs = {most, least}, .origin = origin};
    if (most->code.values.count != least->code.values.count)
        return fail_unlike(&l);
    if (eddy_cut_is_needed(&most->code))
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "it is on several devices");
    eddy_status status = lower_with(&l);
    eddy_bases_fini(&l.bases[0]);
    eddy_bases_fini(&l.bases[1]);
    return status;
}

eddy_status eddy_program_lower(eddy_program *most, eddy_program *least, eddy_origin origin) {
    const eddy_program_gradient *a = most->gradient, *b = least->gradient;
    eddy_status status = lower_one(most, least, origin);
    if (status != EDDY_OK || !a || !b)
        return status;
    status = lower_one(a->forward, b->forward, origin);
    for (uint32_t i = 0; i < a->ways->count && status == EDDY_OK; i++)
        status = lower_one(a->ways->items[i].program, b->ways->items[i].program, origin);
    return status;
}

/* ---- at a size in between ---- */

static bool lies_within(const eddy_layout *layout, uint8_t dtype, int64_t bytes) {
    int64_t low, high;
    eddy_layout_extent(layout, &low, &high);
    return low >= 0 && high <= bytes / eddy_dtype_size((eddy_dtype)dtype);
}

static bool has_operands_within(const eddy_code *code) {
    for (uint32_t i = 0; i < eddy_code_call_count(code); i++) {
        const eddy_code_instruction *instruction = eddy_code_call_at(code, i);
        for (uint32_t k = 0; k < instruction->operand_count; k++) {
            const eddy_code_operand *operand =
                eddy_code_operand_at(code, instruction->operands_at + k);
            eddy_layout layout;
            if (eddy_code_operand_is_absent(operand))
                continue;
            eddy_code_operand_layout(code, operand, &layout);
            if (!lies_within(&layout, operand->dtype,
                             eddy_code_value_at(code, operand->value)->bytes))
                return false;
        }
    }
    return true;
}

static bool has_bindings_within(const eddy_program *program) {
    for (uint32_t i = 0; i < program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(program, i);
        if (!lies_within(&binding->layout, binding->dtype,
                         eddy_code_value_at(&program->code, binding->value)->bytes))
            return false;
    }
    return true;
}

/* A value takes over all of another's memory. */
static bool has_room_for_shared(const eddy_code *code) {
    for (uint32_t v = 0; v < code->values.count; v++) {
        const eddy_code_value *value = eddy_code_value_at(code, v);
        if (value->shares != 0 &&
            eddy_code_value_at(code, value->shares - 1)->bytes != value->bytes)
            return false;
    }
    return true;
}

static bool has_groups(const eddy_code *code, const uint32_t *bases, const uint32_t *uses) {
    for (uint32_t g = 0; g < code->groups.count; g++)
        if (!eddy_group_holds(code, bases, uses, eddy_code_group_at(code, g)))
            return false;
    return true;
}

bool eddy_program_lowered_holds(const eddy_program *program, const uint32_t *bases,
                                bool *is_known) {
    const eddy_code *code = &program->code;
    size_t bytes = code->values.count * sizeof(uint32_t);
    uint32_t *uses = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    *is_known = uses != NULL;
    if (!uses)
        return false;
    eddy_group_count_uses(code, uses);
    bool holds = has_operands_within(code) && has_bindings_within(program) &&
                 has_room_for_shared(code) && has_groups(code, bases, uses);
    eddy_memory_release(uses, bytes, EDDY_MEMORY_PROGRAM);
    return holds;
}
