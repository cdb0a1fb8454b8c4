/* In place: the result of an elementwise instruction lies where one of its operands did.
 *
 * That operand's value lives within the run, or is a donated input, is all of its storage and used there for the last time, and has the layout and dtype of the
 * result, so that the loop reads each element before it writes it. The operands of a group that is one chain are those of its last member. */
#include <base/memory.h>
#include <program/control.h>
#include <program/passes/passes.h>
#include <string.h>

typedef struct placing {
    eddy_code *code;
    const uint32_t *bases;
    uint32_t *last; /* per value: the instruction that uses it last */
} placing;

/* Whether instruction i alone names the value in its group, and with this layout alone. Members of a group run in turns, and another one
 * may read elements in another order (of axes), which later tiles would find overwritten. */
static bool is_alone(const placing *p, uint32_t i, uint32_t first, uint32_t count,
                     const eddy_code_operand *shown) {
    for (uint32_t m = first; m < first + count; m++) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(p->code, m);
        for (uint32_t k = 0; k < instruction->operand_count; k++) {
            const eddy_code_operand *operand =
                eddy_code_operand_at(p->code, instruction->operands_at + k);
            if (operand->value == shown->value &&
                (m != i || !eddy_code_has_same_layout(p->code, operand, shown)))
                return false;
        }
    }
    return true;
}

static bool lives_within(const placing *p, uint32_t value) {
    const eddy_code_value *of = eddy_code_value_at(p->code, value);
    return p->bases[value] == 0 && of->kind == EDDY_VALUE_MADE && !of->is_in_tile;
}

/* Whether nobody needs the value behind its last use. */
static bool is_used_up(const placing *p, uint32_t value) {
    return lives_within(p, value) || eddy_code_value_at(p->code, value)->is_donated;
}

/* Members of a group run in turns, so that all of the group counts as one instruction. */
static eddy_code_group extent_of(const eddy_code *code, uint32_t i, uint32_t *group) {
    while (*group < code->groups.count &&
           eddy_code_group_at(code, *group)->first + eddy_code_group_at(code, *group)->count <= i)
        ++*group;
    if (*group < code->groups.count && eddy_code_group_at(code, *group)->first <= i)
        return *eddy_code_group_at(code, *group);
    return (eddy_code_group){.first = i, .count = 1};
}

/* The operand of instruction i in whose place the result may lie: 1 + its value, or 0. */
static uint32_t place_of(const placing *p, uint32_t i, const eddy_code_group *extent,
                         const eddy_code_operand *result) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(p->code, i);
    const eddy_code_operand *operands = eddy_code_operand_at(p->code, instruction->operands_at);
    int64_t bytes = eddy_code_value_at(p->code, result->value)->bytes;
    if (!instruction->op->is_elementwise || instruction->op->is_registered ||
        !instruction->op->allows_alias)
        return 0;
    uint32_t inputs = instruction->op->alias_is_first ? 1 : instruction->operand_count - 1;
    for (uint32_t k = 0; k < inputs; k++) {
        uint32_t value = operands[k].value;
        if (value == EDDY_CODE_NONE || operands[k].access & EDDY_CODE_WRITES ||
            !is_used_up(p, value) || p->last[value] != i ||
            eddy_code_value_at(p->code, value)->bytes != bytes ||
            !eddy_code_has_same_layout(p->code, &operands[k], result) ||
            !is_alone(p, i, extent->first, extent->count, &operands[k]))
            continue;
        /* The one whose memory it is, so that no chain has to be followed. */
        uint32_t holder = eddy_code_value_at(p->code, value)->shares;
        return holder != 0 ? holder : 1 + value;
    }
    return 0;
}

/* Whether the members of a chain see what they hand on with one layout. Then an index is the same element for all of them; a transposed view in between makes
 * it another one. */
static bool has_one_index(const placing *p, const eddy_code_group *chain) {
    for (uint32_t m = chain->first; m < chain->first + chain->count; m++) {
        const eddy_code_instruction *maker = eddy_code_instruction_at(p->code, m);
        const eddy_code_operand *made =
            eddy_code_operand_at(p->code, maker->operands_at + maker->operand_count - 1);
        for (uint32_t i = m + 1; i < chain->first + chain->count; i++) {
            const eddy_code_instruction *user = eddy_code_instruction_at(p->code, i);
            for (uint32_t k = 0; k < user->operand_count; k++) {
                const eddy_code_operand *used =
                    eddy_code_operand_at(p->code, user->operands_at + k);
                if (used->value == made->value && !eddy_code_has_same_layout(p->code, used, made))
                    return false;
            }
        }
    }
    return true;
}

/* Where the result of the instruction may lie: 1 + a value, or 0. */
static uint32_t place_for(const placing *p, uint32_t i, const eddy_code_group *extent) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(p->code, i);
    const eddy_code_operand *result =
        eddy_code_operand_at(p->code, instruction->operands_at + instruction->operand_count - 1);
    if (!(result->access & EDDY_CODE_MAKES) || !lives_within(p, result->value))
        return 0;
    uint32_t taken = place_of(p, i, extent, result);
    if (taken == 0 && extent->is_chain && i == extent->first + extent->count - 1 &&
        has_one_index(p, extent))
        for (uint32_t m = extent->first; m < i && taken == 0; m++)
            taken = place_of(p, m, extent, result);
    return taken;
}

/* A donated input is there before the first instruction, and so before any loop. */
static uint32_t last_of_donated(const eddy_regions *regions, uint32_t user) {
    uint32_t last = user, r = eddy_region_of(regions, user);
    for (; r != EDDY_CODE_NONE; r = eddy_region_at(regions, r)->outer)
        if (eddy_region_at(regions, r)->is_loop)
            last = eddy_region_at(regions, r)->end;
    return last;
}

/* A value that a loop finds there is used by each step, and so until the loop ends. */
static void find_last(const placing *p, const eddy_regions *regions, uint32_t *first) {
    size_t bytes = p->code->values.count * sizeof(*p->last);
    memset(p->last, 0xff, bytes);
    memset(first, 0xff, bytes);
    for (uint32_t i = 0; i < p->code->instructions.count; i++) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(p->code, i);
        for (uint32_t k = 0; k < instruction->operand_count; k++) {
            uint32_t value = eddy_code_operand_at(p->code, instruction->operands_at + k)->value;
            if (value == EDDY_CODE_NONE)
                continue;
            if (first[value] == EDDY_CODE_NONE)
                first[value] = i;
            uint32_t last = eddy_code_value_at(p->code, value)->is_donated
                                ? last_of_donated(regions, i)
                                : eddy_regions_last(regions, first[value], i);
            if (p->last[value] == EDDY_CODE_NONE || p->last[value] < last)
                p->last[value] = last;
        }
    }
}

bool eddy_pass_place(eddy_code *code, const uint32_t *bases) {
    placing p = {.code = code, .bases = bases};
    size_t bytes = 2 * (size_t)code->values.count * sizeof(*p.last);
    eddy_regions regions;
    p.last = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    if (!p.last || !eddy_regions_find(code, &regions)) {
        eddy_memory_release(p.last, bytes, EDDY_MEMORY_PROGRAM);
        return false;
    }
    find_last(&p, &regions, p.last + code->values.count);
    eddy_regions_fini(&regions);
    uint32_t group = 0;
    for (uint32_t i = 0; i < code->instructions.count; i++) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(code, i);
        eddy_code_group extent = extent_of(code, i, &group);
        uint32_t taken = instruction->operand_count > 1 ? place_for(&p, i, &extent) : 0;
        if (taken == 0)
            continue;
        const eddy_code_operand *result =
            eddy_code_operand_at(code, instruction->operands_at + instruction->operand_count - 1);
        eddy_code_value_at(code, result->value)->shares = taken;
    }
    eddy_memory_release(p.last, bytes, EDDY_MEMORY_PROGRAM);
    return true;
}
