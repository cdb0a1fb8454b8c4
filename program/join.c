#include <program/join.h>

#include <string.h>

void eddy_join_make(const eddy_code *code, const eddy_code_instruction *instruction,
                    eddy_joint *joint) {
    uint32_t first = instruction->operands_at, count = instruction->operand_count, written = count;
    for (uint32_t i = 0; i < count && written == count; i++)
        if (eddy_code_operand_at(code, first + i)->access & EDDY_CODE_WRITES)
            written = i;
    eddy_layout layout;
    eddy_code_operand_layout(code, eddy_code_operand_at(code, first + written), &layout);
    joint->shape.rank = layout.rank;
    memcpy(joint->shape.dims, layout.dims, sizeof(layout.dims));
    for (uint32_t i = 0; i < count; i++) {
        const eddy_code_operand *operand = eddy_code_operand_at(code, first + i);
        layout = (eddy_layout){0};
        if (!eddy_code_operand_is_absent(operand))
            eddy_code_operand_layout(code, operand, &layout);
        bool broadcasts = eddy_joint_set(joint, i, &layout);
        EDDY_ASSERT(broadcasts);
    }
    eddy_joint_merge(joint, count);
}
