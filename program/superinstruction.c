#include <program/superinstruction.h>

static bool is_call_of(const eddy_code_instruction *member, const eddy_op *op, eddy_dtype dtype) {
    return member->op == op && member->kernel == op->kernels[dtype];
}

/* Whether the member is a call of the chain's first op, in a dtype that the chain has a loop for. */
static bool begins(const eddy_code_instruction *member, eddy_superinstruction *s) {
    static const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64};
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(*dtypes); i++) {
        s->kernel = eddy_chain_kernel(s->chain, dtypes[i]);
        s->dtype = dtypes[i];
        if (s->kernel && is_call_of(member, s->chain->members[0].op, dtypes[i]))
            return true;
    }
    return false;
}

/* Whether the only use of the value is the member's operand. */
static bool takes(const eddy_code *code, const uint32_t *uses, const eddy_code_instruction *member,
                  int8_t operand, uint32_t value) {
    return uses[value] == 2 &&
           eddy_code_operand_at(code, member->operands_at + (uint32_t)operand)->value == value;
}

/* Whether the member takes the value, as the operand, and is the one to overwrite it. Members of a group see what one of them writes in the
 * same places, so that it overwrites all of that. */
static bool overwrites(const eddy_code *code, const eddy_code_instruction *member, int8_t operand,
                       uint32_t value) {
    const eddy_code_operand *operands = eddy_code_operand_at(code, member->operands_at);
    for (uint32_t k = 0; k < member->operand_count; k++)
        if ((operands[k].value == value) !=
            (k == (uint32_t)operand || k == member->operand_count - 1))
            return false;
    return true;
}

/* Finds the members of the chain behind the first one. */
static bool follow(const eddy_code *code, const uint32_t *uses, const eddy_group_slots *group,
                   uint32_t others, eddy_superinstruction *s) {
    for (uint32_t k = 1, at = s->members[0]; k < s->chain->count; k++) {
        const eddy_code_instruction *before = group->members[at];
        uint32_t result = before->operand_count - 1,
                 value = eddy_code_operand_at(code, before->operands_at + result)->value;
        bool is_in_tile = group->slots[at][result] >= 0;
        const eddy_chain_member *wanted = &s->chain->members[k];
        for (at++; at < group->count; at++)
            if (!(others >> at & 1) && is_call_of(group->members[at], wanted->op, s->dtype) &&
                (is_in_tile ? takes(code, uses, group->members[at], wanted->taken, value)
                            : overwrites(code, group->members[at], wanted->taken, value)))
                break;
        if (at == group->count)
            return false;
        s->members[k] = at;
    }
    return true;
}

/* Whether the member writes into a slot that the other reads. */
static bool reuses_slot(const eddy_group_slots *group, uint32_t writer, uint32_t reader) {
    int8_t slot = group->slots[writer][group->members[writer]->operand_count - 1];
    for (uint32_t k = 0; k + 1 < group->members[reader]->operand_count; k++)
        if (slot >= 0 && group->slots[reader][k] == slot)
            return true;
    return false;
}

/* Whether the chain's members may run where its last one stands. */
static bool can_wait(const eddy_code *code, const eddy_group_slots *group,
                     const eddy_superinstruction *s) {
    uint32_t last = s->members[s->chain->count - 1];
    for (uint32_t k = 0; k + 1 < s->chain->count; k++)
        for (uint32_t m = s->members[k] + 1, next = k + 1; m < last; m++) {
            if (m == s->members[next])
                next++;
            else if (eddy_group_orders(code, group->members[s->members[k]], group->members[m]) ||
                     reuses_slot(group, m, s->members[k]))
                return false;
        }
    return true;
}

/* Whether the member would be called for each row, of less than so many elements. */
static bool has_short_rows(const eddy_code *code, const eddy_code_instruction *member,
                           int64_t least) {
    eddy_plane plane;
    bool is_member = eddy_plane_make(code, member, &plane), is_flat = true;
    EDDY_ASSERT(is_member);
    for (uint32_t k = 0; k < member->operand_count; k++)
        is_flat = is_flat && plane.strides[k][0] == plane.columns * plane.strides[k][1];
    return plane.rows > 1 && plane.columns < least && !is_flat;
}

static bool is_worth(const eddy_code *code, const eddy_group_slots *group,
                     const eddy_superinstruction *s) {
    for (uint32_t k = 0; k < s->chain->count && s->chain->least_row > 0; k++)
        if (has_short_rows(code, group->members[s->members[k]], s->chain->least_row))
            return false;
    return true;
}

bool eddy_superinstruction_find(const eddy_code *code, const uint32_t *uses,
                                const eddy_group_slots *group, uint32_t first, uint32_t others,
                                eddy_superinstruction *found) {
    for (uint32_t c = 0; c < eddy_chain_count; c++) {
        *found = (eddy_superinstruction){.chain = &eddy_chains[c], .members = {first}};
        if (begins(group->members[first], found) && follow(code, uses, group, others, found) &&
            is_worth(code, group, found) && can_wait(code, group, found))
            return true;
    }
    return false;
}

bool eddy_superinstruction_is_all(const eddy_code *code, const uint32_t *uses,
                                  const eddy_group_slots *group) {
    eddy_superinstruction s;
    return eddy_superinstruction_find(code, uses, group, 0, 0, &s) &&
           s.chain->count == group->count;
}
