/* Copies that are left out, as their source is written where they would put it.
 *
 * The source is all of a value that one instruction makes and the copy alone reads. Between the two nobody touches the target; its maker may
 * read the target itself only as an elementwise op reads what it overwrites. Both lie between two marks. So the results of ways and
 * steps (control.h) are computed in place.
 *
 * The target may be a part of a value, with other strides: so the gradients of parts are computed side by side in the gradient of the whole. That is
 * for ops whose elements have the same bits wherever they are written. Where the whole is made in between, of no operands, it is made
 * before. */
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
/* Elements in a row of a part: shorter ones cost more one by one than their copy does. */
#define LEAST_RUN 16

/* Ops beside the elementwise ones that write parts: their elements do not depend on where they are written. tests/program/test_move.c. */
static const char *const part_writers[] = {"rope", "sdpa_backward"};

#define PART_WRITERS (sizeof(part_writers) / sizeof(*part_writers))

typedef struct moving {
    eddy_code *code;
    const eddy_code *
        sized; /* whose sizes say what a copy costs: the code itself, or that of the largest size */
    const uint32_t *bases;
    uint32_t *uses; /* per value: operands that name it */
    const eddy_op *clone, *copy_into, *part_writers[PART_WRITERS];
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

/* Whether instruction i copies all of a value that nobody else reads. */
static bool is_copy(const moving *m, uint32_t i) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(m->code, i);
    const eddy_code_operand *operands = operands_of(m, i);
    if ((instruction->op != m->clone && instruction->op != m->copy_into) ||
        instruction->operand_count != 2)
        return false;
    uint32_t from = operands[0].value;
    return m->bases[from] == 0 && eddy_code_value_at(m->code, from)->kind == EDDY_VALUE_MADE &&
           m->uses[from] == 2 && operands[0].access == EDDY_CODE_READS && is_whole(m, &operands[0]);
}

/* Whether the copy's target is all of a value, and like its source. */
static bool is_to_all(const moving *m, uint32_t copy) {
    const eddy_code_operand *operands = operands_of(m, copy);
    return operands[1].access & (EDDY_CODE_MAKES | EDDY_CODE_COVERS) &&
           eddy_code_has_same_layout(m->code, &operands[0], &operands[1]) &&
           is_whole(m, &operands[1]);
}

/* Whether the copy's target is a part of a value with the source's dims, in which elements that lie in a row in the source do so too. */
static bool is_to_part(const moving *m, uint32_t copy) {
    const eddy_code_operand *from = &operands_of(m, copy)[0], *to = &operands_of(m, copy)[1];
    if (to->access != (EDDY_CODE_READS | EDDY_CODE_WRITES) || from->dtype != to->dtype ||
        !eddy_shape_equal(from->rank, eddy_code_dims(m->code, from), to->rank,
                          eddy_code_dims(m->code, to)))
        return false;
    for (int32_t d = 0; d < from->rank; d++)
        if (eddy_code_strides(m->code, from)[d] == 1 &&
            eddy_code_dims(m->sized, from)[d] >= LEAST_RUN)
            return eddy_code_strides(m->code, to)[d] == 1;
    return false;
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

/* ---- parts ---- */

/* Whether instruction i does nothing but make the value, of no operands. */
static bool makes_of_nothing(const moving *m, uint32_t i, uint32_t value) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(m->code, i);
    return instruction->operand_count == 1 && instruction->input_count == 0 &&
           instruction->patch_count == 0 && instruction->draw == 0 && made_by(m, i, value);
}

/* Whether elements that the instruction writes are the same wherever they lie. */
static bool writes_parts(const moving *m, const eddy_code_instruction *instruction) {
    const eddy_op *op = instruction->op;
    if (op->is_elementwise)
        return !op->may_fail && !op->is_registered && !op->is_random && !op->redraws;
    for (size_t i = 0; i < PART_WRITERS; i++)
        if (op == m->part_writers[i])
            return true;
    return false;
}

/* The maker's operand becomes the copy's target, unless the maker then leaves the groups that run tile by tile. */
static bool write_to(const moving *m, const eddy_code_instruction *maker, eddy_code_operand *made,
                     const eddy_code_operand *to) {
    const eddy_code_operand before = *made;
    eddy_plane plane;
    bool was_plane = eddy_plane_make(m->code, maker, &plane);
    *made = *to;
    if (!was_plane || eddy_plane_make(m->code, maker, &plane))
        return true;
    *made = before;
    return false;
}

/* Instruction i comes before instruction `to`, which is not behind it. */
static void put_before(const moving *m, uint32_t i, uint32_t to) {
    const eddy_code_instruction moved = *eddy_code_instruction_at(m->code, i);
    for (; i > to; i--)
        *eddy_code_instruction_at(m->code, i) = *eddy_code_instruction_at(m->code, i - 1);
    *eddy_code_instruction_at(m->code, to) = moved;
}

/* Whether maker i now writes the copy's target. `begin`: where the target is made, if that is behind i. Only then may the maker have more results:
 * they would take over an error that the target held. */
static bool write_part(const moving *m, uint32_t i, eddy_code_operand *made, uint32_t copy,
                       uint32_t begin) {
    const eddy_code_instruction *maker = eddy_code_instruction_at(m->code, i);
    const eddy_code_operand *from = &operands_of(m, copy)[0], *to = &operands_of(m, copy)[1];
    if (!writes_parts(m, maker) || touches(m, i, to->value) || !is_whole(m, made) ||
        !eddy_code_has_same_layout(m->code, made, from) ||
        (begin == EDDY_CODE_NONE && maker->operand_count - maker->input_count != 1) ||
        !write_to(m, maker, made, to))
        return false;
    if (begin != EDDY_CODE_NONE)
        put_before(m, begin, i);
    return true;
}

/* Whether the copy's source is now written to the part that is its target. */
static bool move_to_part(const moving *m, uint32_t copy) {
    uint32_t from = operands_of(m, copy)[0].value, target = operands_of(m, copy)[1].value;
    uint32_t lowest = copy > FARTHEST ? copy - FARTHEST : 0, begin = EDDY_CODE_NONE;
    for (uint32_t i = copy; i-- > lowest;) {
        eddy_code_operand *made = made_by(m, i, from);
        if (made)
            return write_part(m, i, made, copy, begin);
        if (makes_of_nothing(m, i, target))
            begin = i;
        else if (touches(m, i, target) ||
                 eddy_control_of(eddy_code_instruction_at(m->code, i)->op) != EDDY_CONTROL_NONE)
            return false;
    }
    return false;
}

static bool is_moved(const moving *m, uint32_t i) {
    return is_copy(m, i) &&
           ((is_to_all(m, i) && move(m, i)) || (is_to_part(m, i) && move_to_part(m, i)));
}

bool eddy_pass_move_as(eddy_code *code, const eddy_code *sized, const uint32_t *bases) {
    size_t bytes = code->values.count * sizeof(uint32_t);
    moving m = {.code = code,
                .sized = sized,
                .bases = bases,
                .uses = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_PROGRAM),
                .clone = eddy_op_find_built_in("clone"),
                .copy_into = eddy_op_find_built_in("copy_into")};
    if (!m.uses)
        return false;
    for (size_t i = 0; i < PART_WRITERS; i++)
        m.part_writers[i] = eddy_op_find_built_in(part_writers[i]);
    eddy_group_count_uses(code, m.uses);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < code->instructions.count; i++) {
        *eddy_code_instruction_at(code, kept) = *eddy_code_instruction_at(code, i);
        kept += !is_moved(&m, kept);
    }
    code->instructions.count = kept;
    eddy_memory_release(m.uses, bytes, EDDY_MEMORY_PROGRAM);
    return true;
}

bool eddy_pass_move(eddy_code *code, const uint32_t *bases) {
    return eddy_pass_move_as(code, code, bases);
}
