/* Operands of a program that is verified: layouts, dtypes, access, and what they share. */
#include <program/verifier.h>

#include <base/dtype.h>
#include <base/shape.h>
#include <interpreter/call/joint.h>
#include <interpreter/call/overlap.h>
#include <interpreter/host/transfer.h>
#include <program/lists.h>
#include <program/product_op.h>
#include <stdlib.h>
#include <string.h>

/* Of a view that is broadcast: what calls take too (interpreter/call/check.c). */
#define ELEMENTS_MOST (INT64_C(1) << 56)

/* ---- layouts ---- */

bool eddy_verifier_layout(eddy_verifier *v, const eddy_layout *layout, uint8_t dtype,
                          int64_t bytes) {
    eddy_shape shape = {.rank = layout->rank};
    __int128 last = layout->offset;
    int64_t count = 0;
    if (layout->rank < 0 || layout->rank > EDDY_RANK_MAX)
        return eddy_verifier_fail(v, "the rank %d is not within 0 and %d", (int)layout->rank,
                                  EDDY_RANK_MAX);
    if (!eddy_dtype_is_valid((eddy_dtype)dtype))
        return eddy_verifier_fail(v, "%d is no dtype", (int)dtype);
    memcpy(shape.dims, layout->dims, (size_t)layout->rank * sizeof(shape.dims[0]));
    if (!eddy_shape_is_valid(&shape) || !eddy_shape_count(layout->rank, layout->dims, &count) ||
        count > ELEMENTS_MOST)
        return eddy_verifier_fail(
            v, "the shape has a negative dim, or more elements than ops work on");
    for (int32_t d = 0; d < layout->rank; d++) {
        if (layout->strides[d] < 0)
            return eddy_verifier_fail(v, "a stride is negative");
        last += layout->dims[d] > 0 ? (__int128)(layout->dims[d] - 1) * layout->strides[d] : 0;
    }
    if (count == 0)
        return (layout->offset > -EDDY_VERIFIER_BYTES_MOST &&
                layout->offset < EDDY_VERIFIER_BYTES_MOST) ||
               eddy_verifier_fail(v, "the first element lies outside of any storage");
    if (layout->offset < 0 || (last + 1) * eddy_dtype_size((eddy_dtype)dtype) > bytes)
        return eddy_verifier_fail(v, "elements lie outside of their storage of %lld bytes",
                                  (long long)bytes);
    return true;
}

static int64_t count_of(const eddy_layout *layout) {
    int64_t count = 0;
    return eddy_shape_count(layout->rank, layout->dims, &count) ? count : 0;
}

/* All elements of a storage of that many bytes, each once. */
static bool is_whole(const eddy_layout *layout, uint8_t dtype, int64_t bytes) {
    return (layout->offset == 0 || bytes == 0) && eddy_layout_is_injective(layout) &&
           count_of(layout) * eddy_dtype_size((eddy_dtype)dtype) == bytes;
}

bool eddy_verifier_dtype(eddy_verifier *v, uint32_t value, uint8_t dtype) {
    eddy_verifier_value *of = &v->values[value];
    if (of->dtype == EDDY_DTYPE_COUNT)
        of->dtype = dtype;
    return of->dtype == dtype || eddy_verifier_fail(v, "the storage holds %s, not %s",
                                                    eddy_dtype_name((eddy_dtype)of->dtype),
                                                    eddy_dtype_name((eddy_dtype)dtype));
}

/* ---- operands ---- */

/* of: NULL for an output. */
static bool check_access(eddy_verifier *v, const eddy_code_operand *operand,
                         const eddy_op_operand *of) {
    bool is_output = !of, is_mut = of && of->is_mut;
    uint8_t access = operand->access;
    const eddy_code_value *value = eddy_code_value_at(v->code, operand->value);
    bool makes = access == (EDDY_CODE_WRITES | EDDY_CODE_MAKES);
    bool is_input = value->kind == EDDY_VALUE_INPUT;
    bool covers = access == (is_input ? EDDY_CODE_WRITES | EDDY_CODE_READS | EDDY_CODE_COVERS_INPUT
                                      : EDDY_CODE_WRITES | EDDY_CODE_COVERS);
    bool changes = access == (EDDY_CODE_WRITES | EDDY_CODE_READS);
    bool replaces = access == (EDDY_CODE_WRITES | EDDY_CODE_READS | EDDY_CODE_REPLACES) &&
                    (is_output || of == eddy_product_op_sum) && value->kind != EDDY_VALUE_INPUT;
    if (is_output || is_mut ? !(covers || changes || replaces || (makes && is_output))
                            : access != EDDY_CODE_READS)
        return eddy_verifier_fail(
            v, "an operand is written that is read only, or the other way round");
    if (makes && (value->kind != EDDY_VALUE_MADE || v->values[operand->value].is_begun))
        return eddy_verifier_fail(v, "a value is made twice");
    return eddy_reach_allows(&v->reach, operand) ||
           eddy_verifier_fail(v, "a value is used before it is made");
}

static bool check_operand(eddy_verifier *v, uint32_t index, const eddy_op_operand *of) {
    const eddy_code_operand *operand = eddy_code_operand_at(v->code, index);
    eddy_layout layout;
    if (eddy_code_operand_is_absent(operand))
        return (of && of->kind == EDDY_OPERAND_OPTIONAL && operand->access == 0) ||
               eddy_verifier_fail(v, "an operand is missing");
    if (operand->value >= v->code->values.count || operand->rank < 0 ||
        operand->rank > EDDY_RANK_MAX ||
        operand->words_at + 2 * (uint64_t)operand->rank > v->code->words.count)
        return eddy_verifier_fail(v, "an operand is no part of the code");
    eddy_code_operand_layout(v->code, operand, &layout);
    int64_t bytes = eddy_code_value_at(v->code, operand->value)->bytes;
    if (!eddy_verifier_layout(v, &layout, operand->dtype, bytes) ||
        !eddy_verifier_dtype(v, operand->value, operand->dtype) || !check_access(v, operand, of))
        return false;
    if (of && of->is_bool && operand->dtype != EDDY_BOOL)
        return eddy_verifier_fail(v, "%s has to be bool", of->name);
    if (operand->access & EDDY_CODE_WRITES && !eddy_layout_is_injective(&layout))
        return eddy_verifier_fail(v, "some elements of an operand that is written share memory");
    if (operand->access &
            (EDDY_CODE_MAKES | EDDY_CODE_COVERS | EDDY_CODE_COVERS_INPUT | EDDY_CODE_REPLACES) &&
        !is_whole(&layout, operand->dtype, bytes))
        return eddy_verifier_fail(v, "an operand is not all of its storage");
    return true;
}

/* ---- operands that share a storage ---- */

/* An operand's elements, from the first to the last. */
typedef struct span {
    uint32_t value, operand; /* the operand's place among the instruction's */
    int64_t low, high;
    int64_t reach; /* the highest end of this span and those before it, of the same value */
    bool is_target;
} span;

static int compare_spans(const void *a, const void *b) {
    const span *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->low < y->low ? -1 : x->low > y->low;
}

/* Lists the operands by storage and place; returns whether one is written to that was there before. */
static bool list_spans(eddy_verifier *v, const eddy_code_instruction *instruction,
                       uint32_t *count) {
    bool has_target = false;
    *count = 0;
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand =
            eddy_code_operand_at(v->code, instruction->operands_at + k);
        if (eddy_code_operand_is_absent(operand))
            continue;
        eddy_layout layout;
        span *s = (span *)v->spans.items + (*count)++;
        *s = (span){.value = operand->value,
                    .operand = k,
                    .is_target =
                        operand->access & EDDY_CODE_WRITES && !(operand->access & EDDY_CODE_MAKES)};
        eddy_code_operand_layout(v->code, operand, &layout);
        eddy_layout_extent(&layout, &s->low, &s->high);
        has_target |= s->is_target;
    }
    return has_target;
}

/* What a call with these targets is checked for (interpreter/call/targets.c). */
static bool check_pair(eddy_verifier *v, const eddy_code_instruction *instruction,
                       const span *written, const span *other) {
    const eddy_op *op = instruction->op;
    bool is_input = other->operand < instruction->input_count,
         is_output = written->operand >= instruction->input_count;
    eddy_layout a, b;
    eddy_code_operand_layout(
        v->code, eddy_code_operand_at(v->code, instruction->operands_at + written->operand), &a);
    eddy_code_operand_layout(
        v->code, eddy_code_operand_at(v->code, instruction->operands_at + other->operand), &b);
    bool allows_alias =
        op->allows_alias && is_input && (!is_output || other->operand == 0 || !op->alias_is_first);
    return (allows_alias && eddy_overlap_is_same_layout(&a, &b)) || !eddy_overlap_layouts(&a, &b) ||
           eddy_verifier_fail(v, "an operand that is written overlaps another one in memory");
}

/* Span i against those before it, which begin no later, from the last one down to where none reaches it. */
static bool check_before(eddy_verifier *v, const eddy_code_instruction *instruction, uint32_t i) {
    const span *spans = v->spans.items, *s = &spans[i];
    for (uint32_t k = i; k > 0 && spans[k - 1].value == s->value; k--) {
        const span *other = &spans[k - 1];
        if (other->reach <= s->low)
            break;
        if (other->high <= s->low || s->low == s->high || !(s->is_target || other->is_target))
            continue;
        if (v->pairs-- == 0)
            return eddy_verifier_fail(v, "too many operands share memory");
        if ((s->is_target && !check_pair(v, instruction, s, other)) ||
            (other->is_target && !check_pair(v, instruction, other, s)))
            return false;
    }
    return true;
}

/* A storage that is set as a whole is no other operand's. */
static bool check_sets(eddy_verifier *v, const eddy_code_instruction *instruction, uint32_t i,
                       uint32_t count) {
    const span *spans = v->spans.items;
    const eddy_code_operand *operand =
        eddy_code_operand_at(v->code, instruction->operands_at + spans[i].operand);
    bool is_alone = (i == 0 || spans[i - 1].value != spans[i].value) &&
                    (i + 1 == count || spans[i + 1].value != spans[i].value);
    return !(operand->access & (EDDY_CODE_COVERS | EDDY_CODE_COVERS_INPUT)) || is_alone ||
           eddy_verifier_fail(v, "a storage is set as a whole and used by another operand too");
}

static bool check_overlap(eddy_verifier *v, const eddy_code_instruction *instruction) {
    uint32_t count, first;
    v->spans.count = 0;
    if (!eddy_code_array_add(&v->spans, sizeof(span), instruction->operand_count, &first))
        return eddy_verifier_fail_memory(v);
    if (!list_spans(v, instruction, &count))
        return true;
    span *spans = v->spans.items;
    qsort(spans, count, sizeof(*spans), compare_spans);
    for (uint32_t i = 0; i < count; i++) {
        bool is_next = i > 0 && spans[i - 1].value == spans[i].value;
        spans[i].reach =
            is_next && spans[i - 1].reach > spans[i].high ? spans[i - 1].reach : spans[i].high;
        if (!check_sets(v, instruction, i, count) || !check_before(v, instruction, i))
            return false;
    }
    return true;
}

/* ---- all of them ---- */

/* Operands of elementwise ops broadcast to the one that is written. */
static bool check_broadcast(eddy_verifier *v, const eddy_code_instruction *instruction) {
    uint32_t first = instruction->operands_at, count = instruction->operand_count, written = 0;
    eddy_layout layout;
    eddy_shape shape;
    int64_t strides[EDDY_RANK_MAX];
    if (count > EDDY_JOINT_VIEWS)
        return eddy_verifier_fail(v, "elementwise ops take no more than %d operands",
                                  EDDY_JOINT_VIEWS);
    while (written < count &&
           !(eddy_code_operand_at(v->code, first + written)->access & EDDY_CODE_WRITES))
        written++;
    if (written == count)
        return eddy_verifier_fail(v, "nothing is written");
    eddy_code_operand_layout(v->code, eddy_code_operand_at(v->code, first + written), &layout);
    shape.rank = layout.rank;
    memcpy(shape.dims, layout.dims, sizeof(shape.dims));
    for (uint32_t k = 0; k < count; k++) {
        const eddy_code_operand *operand = eddy_code_operand_at(v->code, first + k);
        if (eddy_code_operand_is_absent(operand))
            continue;
        eddy_code_operand_layout(v->code, operand, &layout);
        if (!eddy_layout_broadcast(&layout, &shape, strides))
            return eddy_verifier_fail(v, "operand %u cannot be broadcast", k);
    }
    return true;
}

/* Elements of a copy between devices lie in a row. */
static bool check_transfer(eddy_verifier *v, const eddy_code_instruction *instruction) {
    const eddy_code_operand *from = eddy_code_operand_at(v->code, instruction->operands_at),
                            *to = from + 1;
    for (int k = 0; k < 2; k++) {
        int64_t row[EDDY_RANK_MAX];
        eddy_layout layout;
        eddy_code_operand_layout(v->code, k ? to : from, &layout);
        eddy_shape_strides_contiguous(layout.rank, layout.dims, row);
        for (int32_t d = 0; d < layout.rank; d++)
            if (layout.dims[d] > 1 && layout.strides[d] != row[d])
                return eddy_verifier_fail(v, "what is copied to a device does not lie in a row");
    }
    return !eddy_code_has_same_device(eddy_code_value_at(v->code, from->value),
                                      eddy_code_value_at(v->code, to->value)) ||
           eddy_verifier_fail(v, "it is copied to the device that it is on");
}

static bool check_devices(eddy_verifier *v, const eddy_code_instruction *instruction) {
    if (instruction->op == &eddy_transfer_op)
        return check_transfer(v, instruction);
    return eddy_code_is_on_one_device(v->code, instruction) ||
           eddy_verifier_fail(v, "its operands are on several devices");
}

bool eddy_verifier_operands(eddy_verifier *v, const eddy_code_instruction *instruction) {
    const eddy_op *op = instruction->op;
    int64_t length = eddy_lists_length(op, instruction->input_count);
    uint32_t at = instruction->operands_at, end = at + instruction->operand_count;
    for (int32_t i = 0; i < op->operand_count; i++) {
        const eddy_op_operand *of = &op->operands[i];
        int64_t count = of->is_spec_only ? 0 : of->kind == EDDY_OPERAND_LIST ? length : 1;
        for (int64_t k = 0; k < count; k++)
            if (!check_operand(v, at++, of))
                return false;
    }
    while (at < end)
        if (!check_operand(v, at++, NULL))
            return false;
    return check_overlap(v, instruction) && check_devices(v, instruction) &&
           (!op->is_elementwise || check_broadcast(v, instruction));
}

void eddy_verifier_spans_fini(eddy_verifier *v) {
    eddy_code_array_fini(&v->spans, sizeof(span));
}
