/* Copies that are left out, as their source is written where they would put it.
 *
 * The source is all of a value that one instruction makes and the copy alone reads. Between the two nobody touches the target; its maker may
 * read the target itself only as an elementwise op reads what it overwrites. Both lie between two marks. So the results of ways and
 * steps (control.h) are computed in place. */
#include <base/dtype.h>
#include <base/memory.h>
#include <base/shape.h>
#include <interpreter/call/op.h>
#include <program/control.h>
#include <program/group.h>
#include <program/passes/passes.h>
#include <string.h>

/* Instructions that the maker may lie before its copy. */
#define FARTHEST 64

typedef struct moving {
    eddy_code *code;
    const uint32_t *bases;
    uint32_t *uses; /* per value: operands that name it */
    const eddy_op *clone, *copy_into;
} moving;

static eddy_code_operand *operands_of(const moving *m, uint32_t i) {
    return eddy_code_operand_at(m->code, eddy_code_instruction_at(m->code, i)->operands_at);
}

static bool is_whole(const moving *m, const eddy_code_operand *operand) {
    int64_t count;
    return operand->offset == 0 &&
           eddy_shape_count(operand->rank, eddy_code_dims(m->code, operand), &count) &&
           count * eddy_dtype_size((eddy_dtype)operand->dtype) ==
               eddy_code_value_at(m->code, operand->value)->bytes;
}

/* Whether instruction i copies all of a value to all of another one, element by element. */
static bool is_copy(const moving *m, uint32_t i) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(m->code, i);
    const eddy_code_operand *operands = operands_of(m, i);
    if ((instruction->op != m->clone && instruction->op != m->copy_into) ||
        instruction->operand_count != 2)
        return false;
    uint32_t from = operands[0].value;
    return m->bases[from] == 0 && eddy_code_value_at(m->code, from)->kind == EDDY_VALUE_MADE &&
           m->uses[from] == 2 && operands[0].access == EDDY_CODE_READS &&
           operands[1].access & (EDDY_CODE_MAKES | EDDY_CODE_COVERS) &&
           eddy_code_has_same_layout(m->code, &operands[0], &operands[1]) &&
           is_whole(m, &operands[0]) && is_whole(m, &operands[1]);
}

static bool touches(const moving *m, uint32_t i, uint32_t value) {
    for (uint32_t k = 0; k < eddy_code_instruction_at(m->code, i)->operand_count; k++)
        if (operands_of(m, i)[k].value == value)
            return true;
    return false;
}

/* Whether the maker may overwrite the target, which it reads, with `made`. */
static bool may_overwrite(const moving *m, uint32_t i, const eddy_code_operand *made,
                          uint32_t target) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(m->code, i);
    const eddy_op *op = instruction->op;
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand = &operands_of(m, i)[k];
        if (operand->value == target &&
            (!op->is_elementwise || !op->allows_alias || op->is_registered ||
             (k > 0 && op->alias_is_first) || operand->access != EDDY_CODE_READS ||
             !eddy_code_has_same_layout(m->code, operand, made)))
            return false;
    }
    return true;
}

/* The operand of instruction i that makes the value; NULL if it does not. */
static eddy_code_operand *made_by(const moving *m, uint32_t i, uint32_t value) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(m->code, i);
    for (uint32_t k = instruction->input_count; k < instruction->operand_count; k++)
        if (operands_of(m, i)[k].value == value && operands_of(m, i)[k].access & EDDY_CODE_MAKES)
            return &operands_of(m, i)[k];
    return NULL;
}

/* Whether the copy's source is now written to its target. */
static bool move(const moving *m, uint32_t copy) {
    const eddy_code_operand *from = &operands_of(m, copy)[0], *to = &operands_of(m, copy)[1];
    uint32_t target = to->value, lowest = copy > FARTHEST ? copy - FARTHEST : 0;
    for (uint32_t i = copy; i-- > lowest;) {
        eddy_code_operand *made = made_by(m, i, from->value);
        bool reads = touches(m, i, target);
        if (made) {
            if (!is_whole(m, made) || !eddy_code_has_same_layout(m->code, made, from) ||
                !may_overwrite(m, i, made, target))
                return false;
            made->value = target;
            made->access =
                reads ? EDDY_CODE_WRITES | EDDY_CODE_READS | EDDY_CODE_REPLACES : to->access;
            return true;
        }
        if (reads || eddy_control_of(eddy_code_instruction_at(m->code, i)->op) != EDDY_CONTROL_NONE)
            return false;
    }
    return false;
}

bool eddy_pass_move(eddy_code *code, const uint32_t *bases) {
    size_t bytes = code->values.count * sizeof(uint32_t);
    moving m = {.code = code,
                .bases = bases,
                .uses = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_PROGRAM),
                .clone = eddy_op_find_built_in("clone"),
                .copy_into = eddy_op_find_built_in("copy_into")};
    if (!m.uses)
        return false;
    eddy_group_count_uses(code, m.uses);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < code->instructions.count; i++) {
        *eddy_code_instruction_at(code, kept) = *eddy_code_instruction_at(code, i);
        if (!is_copy(&m, kept) || !move(&m, kept))
            kept++;
    }
    code->instructions.count = kept;
    eddy_memory_release(m.uses, bytes, EDDY_MEMORY_PROGRAM);
    return true;
}
