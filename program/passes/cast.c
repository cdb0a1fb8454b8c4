/* Casts and copies of what stays as it is.
 *
 * The result of a copy, or of a cast back from a dtype that holds all that was cast to it, is the value itself: its dtype, dims and strides are those of the
 * operand, and neither is written from then on. A cast on to a third dtype is one of the value, since the wider one has rounded nothing. What
 * is not used then is dead code (dead.c).
 *
 * A cast quiets signalling NaN, or not: so of floats only those count that cannot hold one, since they were cast themselves. */
#include <base/dtype.h>
#include <interpreter/call/op.h>
#include <program/passes/passes.h>
#include <program/passes/stands.h>

typedef struct casting {
    eddy_code *code;
    const uint32_t *bases;
    const eddy_op *cast, *clone;
    eddy_stands stands;
} casting;

static eddy_code_operand *operands_of(const casting *c, const eddy_code_instruction *instruction) {
    return eddy_code_operand_at(c->code, instruction->operands_at);
}

/* ---- dtypes ---- */

/* Bits of numbers without rounding, the sign apart. */
static int32_t precision_of(eddy_dtype dtype) {
    switch (dtype) {
    case EDDY_F64:
        return 53;
    case EDDY_F32:
        return 24;
    case EDDY_F16:
        return 11;
    case EDDY_BF16:
        return 8;
    case EDDY_BOOL:
        return 1;
    default:
        return 8 * (int32_t)eddy_dtype_size(dtype) - (dtype != EDDY_U8);
    }
}

/* Whether a cast to `wide` keeps all elements apart and a cast back gives them. Of floats, no half holds the other. */
static bool holds(eddy_dtype wide, eddy_dtype narrow) {
    if (eddy_dtype_is_float(narrow))
        return eddy_dtype_is_float(wide) && eddy_dtype_size(wide) > eddy_dtype_size(narrow);
    bool is_signed = narrow != EDDY_U8 && narrow != EDDY_BOOL;
    return precision_of(wide) >= precision_of(narrow) && (!is_signed || wide != EDDY_U8) &&
           wide != EDDY_BOOL;
}

/* Whether elements of the operand are never a signalling NaN. */
static bool is_quiet(const casting *c, const eddy_code_operand *operand) {
    if (!eddy_dtype_is_float((eddy_dtype)operand->dtype))
        return true;
    const eddy_code_instruction *made = eddy_stands_maker(&c->stands, operand);
    return made && made->op == c->cast && operands_of(c, made)[0].dtype != operand->dtype;
}

/* Whether a cast from `wide` to the dtype gives the same as one from the narrower operand. To integers, integers wrap around, and floats do not. */
static bool is_same_cast(const casting *c, const eddy_code_operand *narrow, eddy_dtype wide,
                         eddy_dtype to) {
    switch (eddy_dtype_category_of(to)) {
    case EDDY_CATEGORY_BOOL:
        return true;
    case EDDY_CATEGORY_INT:
        return eddy_dtype_is_float((eddy_dtype)narrow->dtype) == eddy_dtype_is_float(wide);
    default:
        return is_quiet(c, narrow);
    }
}

/* ---- what stands for a result ---- */

/* The operand that a cast, whose result is all that `wide` shows, was made of, and that nobody has written since or writes again; NULL if there is
 * none. */
static const eddy_code_operand *source_of(const casting *c, const eddy_code_operand *wide) {
    const eddy_code_operand *source = eddy_stands_source(&c->stands, wide, c->cast);
    return source && holds((eddy_dtype)wide->dtype, (eddy_dtype)source->dtype) &&
                   eddy_code_has_same_layout(c->code, source + 1, wide)
               ? source
               : NULL;
}

/* Whether the result, which has the bits of the operand, is left out. */
static bool stands_for(const casting *c, const eddy_code_operand *operand,
                       const eddy_code_operand *result) {
    eddy_code_operand moved = *operand;
    moved.offset = result->offset;
    const eddy_stands *s = &c->stands;
    if (c->bases[result->value] != 0 || s->written[result->value] != 1 ||
        s->version[operand->value] != s->written[operand->value] ||
        !eddy_code_has_same_layout(c->code, &moved, result))
        return false;
    eddy_stands_set(s, result, operand->value, operand->offset);
    return true;
}

/* Whether the copy or cast is left out. One of a cast may become one of what that was made of. */
static bool is_left_out(const casting *c, const eddy_code_instruction *instruction) {
    eddy_code_operand *operands = operands_of(c, instruction);
    if ((instruction->op != c->cast && instruction->op != c->clone) ||
        instruction->operand_count != 2 || !(operands[1].access & EDDY_CODE_MAKES))
        return false;
    const eddy_code_operand *source = source_of(c, &operands[0]);
    if (source && source->dtype == operands[1].dtype && is_quiet(c, source) &&
        stands_for(c, source, &operands[1]))
        return true;
    if (source && source->dtype != operands[1].dtype && operands[0].dtype != operands[1].dtype &&
        is_same_cast(c, source, (eddy_dtype)operands[0].dtype, (eddy_dtype)operands[1].dtype))
        operands[0] = *source;
    return operands[0].dtype == operands[1].dtype && stands_for(c, &operands[0], &operands[1]);
}

static void cast_all(const casting *c) {
    uint32_t count = c->code->instructions.count, kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        eddy_code_instruction *instruction = eddy_code_instruction_at(c->code, kept);
        *instruction = *eddy_code_instruction_at(c->code, i);
        eddy_stands_rename(&c->stands, instruction);
        if (!is_left_out(c, instruction))
            eddy_stands_keep(&c->stands, kept++);
    }
    c->code->instructions.count = kept;
}

bool eddy_pass_cast(eddy_code *code, const uint32_t *bases) {
    casting c = {.code = code,
                 .bases = bases,
                 .cast = eddy_op_find_built_in("cast"),
                 .clone = eddy_op_find_built_in("clone")};
    if (!eddy_stands_begin(&c.stands, code))
        return false;
    cast_all(&c);
    eddy_stands_end(&c.stands);
    return true;
}
