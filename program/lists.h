/* Which of an instruction's operands are the items of lists. Code keeps them in a row: the lists of one op are as long as each other. */
#ifndef EDDY_PROGRAM_LISTS_H
#define EDDY_PROGRAM_LISTS_H

#include <interpreter/call/op.h>

/* Operands that an op names, which are no operands of its instructions where only their dtype and shape are used. */
static inline int32_t eddy_lists_singles(const eddy_op *op) {
    int32_t count = 0;
    for (int32_t i = 0; i < op->operand_count; i++)
        count += op->operands[i].kind != EDDY_OPERAND_LIST && !op->operands[i].is_spec_only;
    return count;
}

static inline int32_t eddy_lists_count(const eddy_op *op) {
    int32_t count = 0;
    for (int32_t i = 0; i < op->operand_count; i++)
        count += op->operands[i].kind == EDDY_OPERAND_LIST;
    return count;
}

/* The length of each list of an instruction with so many inputs; -1 if there is none that fits. */
static inline int64_t eddy_lists_length(const eddy_op *op, int64_t input_count) {
    int64_t lists = eddy_lists_count(op), items = input_count - eddy_lists_singles(op);
    if (lists == 0)
        return items == 0 ? 0 : -1;
    return items >= 0 && items % lists == 0 ? items / lists : -1;
}

#endif
