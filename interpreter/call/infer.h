/* Shapes and dtypes of a call's results: PyTorch's promotion and broadcasting, then the op's own rule. Pure except
 * for the error slot. */
#ifndef EDDY_INTERPRETER_CALL_INFER_H
#define EDDY_INTERPRETER_CALL_INFER_H

#include <base/assert.h>
#include <interpreter/call/op.h>
#include <stdbool.h>

/* The dtype that the call computes in: tensors of rank above 0 first, then those of rank 0, then the scalar; a
 * later group counts only if its category (bool < int < float) is higher. Absent operands, bool conditions,
 * and operands of which only the spec is used do not count. With PROMOTE_NONE, the first operand's. */
eddy_dtype eddy_infer_compute(const eddy_infer *infer);

/* Whether an operand takes part in promotion and is cast to the compute dtype. */
bool eddy_infer_is_promoted(const eddy_op *op, const eddy_op_operand *operand);

/* Iterates over the inputs, the items of lists in a row, with the op's operand of each. */
typedef struct eddy_operand_iterator {
    const eddy_op *op;
    const int64_t *list_counts;
    int32_t operand;
    int32_t list;
    int64_t left; /* inputs of the present list still to come; -1 before the first */
    int64_t size; /* all inputs of the present list */
    int64_t item; /* index of the last input in its list; -1 for an operand that is no list */
} eddy_operand_iterator;

static inline void eddy_operand_iterator_begin(eddy_operand_iterator *at, const eddy_op *op,
                                               const int64_t *list_counts) {
    at->op = op;
    at->list_counts = list_counts;
    at->operand = at->list = 0;
    at->left = -1;
}

/* The next item of a list, or the operand after it. */
const eddy_op_operand *eddy_operand_iterator_next_item(eddy_operand_iterator *at);

/* The operand of the next input; NULL after the last. */
static inline const eddy_op_operand *eddy_operand_iterator_next(eddy_operand_iterator *at) {
    const eddy_op *op = at->op;
    if (at->operand >= op->operand_count || op->operands[at->operand].kind == EDDY_OPERAND_LIST)
        return eddy_operand_iterator_next_item(at);
    at->item = -1;
    return &op->operands[at->operand++];
}

/* The number of inputs of the op with all items of its lists; -1 if list counts are missing or negative. */
int64_t eddy_infer_input_count(const eddy_op *op, const int64_t *list_counts);

/* Fills infer->outputs from the compute dtype, broadcasting and the op's rule, and checks them: SHAPE_MISMATCH,
 * SIZE_OVERFLOW and the errors of the rule. */
EDDY_MUST_USE eddy_status eddy_infer_run(eddy_infer *infer, eddy_dtype compute);

/* "f32[64, 784], f32[64, 10]" as snprintf does. */
int eddy_infer_describe(const eddy_infer *infer, char *buffer, size_t size);

#endif
