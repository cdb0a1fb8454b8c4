#include <program/group.h>

#include <program/join.h>
#include <string.h>

static bool can_be_member(const eddy_code *code, const eddy_code_instruction *instruction) {
    uint32_t count = instruction->operand_count;
    const eddy_kernel *kernel = instruction->kernel;
    if (!instruction->op->is_elementwise || instruction->op->may_fail || count < 2 ||
        count > EDDY_PLANE_OPERANDS || kernel->run != eddy_kernel_run_elementwise ||
        kernel->prepare)
        return false;
    const eddy_code_operand *operands = eddy_code_operand_at(code, instruction->operands_at);
    for (uint32_t k = 0; k < count; k++)
        if (eddy_code_operand_is_absent(&operands[k]) ||
            ((operands[k].access & EDDY_CODE_WRITES) != 0) != (k == count - 1))
            return false;
    return true;
}

bool eddy_plane_make(const eddy_code *code, const eddy_code_instruction *instruction,
                     eddy_plane *plane) {
    if (!can_be_member(code, instruction))
        return false;
    eddy_joint joint;
    eddy_join_make(code, instruction, &joint);
    int32_t rank = joint.shape.rank;
    if (rank > 2)
        return false;
    *plane = (eddy_plane){.rows = rank == 2 ? joint.shape.dims[0] : 1,
                          .columns = rank > 0 ? joint.shape.dims[rank - 1] : 1,
                          .is_flat = rank < 2};
    for (uint32_t k = 0; k < instruction->operand_count && rank > 0; k++) {
        plane->strides[k][0] = rank == 2 ? joint.strides[k][0] : 0;
        plane->strides[k][1] = joint.strides[k][rank - 1];
    }
    return true;
}

void eddy_plane_shape(eddy_plane *plane, int64_t rows, int64_t columns) {
    EDDY_ASSERT(plane->is_flat && plane->columns == rows * columns);
    plane->rows = rows;
    plane->columns = columns;
    for (uint32_t k = 0; k < EDDY_PLANE_OPERANDS; k++)
        plane->strides[k][0] = columns * plane->strides[k][1];
}

bool eddy_group_orders(const eddy_code *code, const eddy_code_instruction *a,
                       const eddy_code_instruction *b) {
    for (uint32_t i = 0; i < a->operand_count; i++)
        for (uint32_t k = 0; k < b->operand_count; k++) {
            const eddy_code_operand *x = eddy_code_operand_at(code, a->operands_at + i),
                                    *y = eddy_code_operand_at(code, b->operands_at + k);
            if (x->value == y->value && (x->access | y->access) & EDDY_CODE_WRITES)
                return true;
        }
    return false;
}

/* Whether the operands show the same elements in the same places of the plane. */
static bool shows_same(const eddy_code_operand *x, const int64_t *strides,
                       const eddy_code_operand *y, const int64_t *others) {
    return x->offset == y->offset && x->dtype == y->dtype && strides[0] == others[0] &&
           strides[1] == others[1];
}

bool eddy_group_fits(const eddy_code *code, const eddy_code_instruction *a, const eddy_plane *x,
                     const eddy_code_instruction *b, const eddy_plane *y) {
    for (uint32_t i = 0; i < a->operand_count; i++)
        for (uint32_t k = 0; k < b->operand_count; k++) {
            const eddy_code_operand *one = eddy_code_operand_at(code, a->operands_at + i),
                                    *other = eddy_code_operand_at(code, b->operands_at + k);
            if (one->value == other->value && (one->access | other->access) & EDDY_CODE_WRITES &&
                !shows_same(one, x->strides[i], other, y->strides[k]))
                return false;
        }
    return true;
}

/* ---- slots ---- */

void eddy_group_count_uses(const eddy_code *code, uint32_t *uses) {
    memset(uses, 0, code->values.count * sizeof(*uses));
    for (uint32_t i = 0; i < code->instructions.count; i++) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(code, i);
        for (uint32_t k = 0; k < instruction->operand_count; k++) {
            uint32_t value = eddy_code_operand_at(code, instruction->operands_at + k)->value;
            if (value != EDDY_CODE_NONE)
                uses[value]++;
        }
    }
}

/* Operands within the group that name the value, and the last member with one. */
static uint32_t uses_within(const eddy_code *code, const eddy_group_slots *group, uint32_t value,
                            uint32_t *last) {
    uint32_t found = 0;
    for (uint32_t m = 0; m < group->count; m++)
        for (uint32_t k = 0; k < group->members[m]->operand_count; k++)
            if (eddy_code_operand_at(code, group->members[m]->operands_at + k)->value == value) {
                found++;
                *last = m;
            }
    return found;
}

static void set_slots(const eddy_code *code, eddy_group_slots *group, uint32_t value, int8_t slot) {
    for (uint32_t m = 0; m < group->count; m++)
        for (uint32_t k = 0; k < group->members[m]->operand_count; k++)
            if (eddy_code_operand_at(code, group->members[m]->operands_at + k)->value == value)
                group->slots[m][k] = slot;
}

bool eddy_group_find_slots(const eddy_code *code, const uint32_t *bases, const uint32_t *uses,
                           eddy_group_slots *group) {
    uint32_t busy_until[EDDY_GROUP_SLOTS] = {0}; /* 1 + the member after which the slot is free */
    memset(group->slots, -1, sizeof(group->slots));
    for (uint32_t m = 0; m < group->count; m++) {
        const eddy_code_instruction *member = group->members[m];
        const eddy_code_operand *result =
            eddy_code_operand_at(code, member->operands_at + member->operand_count - 1);
        uint32_t last = m, slot = 0;
        if (!(result->access & EDDY_CODE_MAKES) || bases[result->value] != 0 ||
            uses_within(code, group, result->value, &last) != uses[result->value])
            continue;
        while (slot < EDDY_GROUP_SLOTS && busy_until[slot] > m)
            slot++;
        if (slot == EDDY_GROUP_SLOTS)
            return false;
        busy_until[slot] = last + 1;
        set_slots(code, group, result->value, (int8_t)slot);
    }
    return true;
}
