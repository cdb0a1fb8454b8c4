/* What ops.json and docs/ops.md list is what ops take: each op is called with every dtype, listed or not, and without each
 * attribute that may be left out. */
#include "described.h"

#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <interpreter/handle/tensor.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef struct listing {
    const char *op;
    uint32_t taken; /* bits by dtype */
} listing;

static const listing listings[] = {
#define OP(name, refused, taken) {#name, taken},
#include <functional/op_dtypes.h>
};

typedef struct call_row {
    const char *op, *operands, *attributes;
} call_row;

static const call_row calls[] = {
#define CALL(name, operands, attributes) {#name, operands, attributes},
#include <functional/op_calls.h>
};

static uint32_t taken_by(const eddy_op *op) {
    size_t i = 0;
    while (i < COUNT(listings) && strcmp(listings[i].op, op->name) != 0)
        i++;
    cr_assert_lt(i, COUNT(listings), "%s", op->name);
    return listings[i].taken;
}

static const call_row *row_of(const char *op) {
    for (size_t i = 0; i < COUNT(calls); i++)
        if (strcmp(calls[i].op, op) == 0)
            return &calls[i];
    return NULL;
}

/* A call that the op accepts, its operands of the dtype where it is elementwise. */
static void make_call(described *call, const eddy_op *op, eddy_dtype dtype) {
    const call_row *row = row_of(op->name);
    if (row) {
        described_read(call, op, row->operands, row->attributes);
        return;
    }
    cr_assert(op->is_elementwise, "the entry of %s has no example", op->name);
    *call = (described){.op = op};
    for (int32_t i = 0; i < op->operand_count; i++)
        call->operands[call->operand_count++] =
            described_ones(op->operands[i].is_bool ? EDDY_BOOL : dtype, EDDY_SHAPE(2, 3));
    /* A number of the lowest category promotes nothing. */
    for (int32_t i = 0; i < op->scalar_count; i++)
        described_attribute(call, op->attributes[i].name, EDDY_ATTRIBUTE_SCALAR)->value.scalar =
            eddy_scalar_bool(true);
}

static bool is_accepted(const described *call, eddy_error *error) {
    eddy_tensor *outputs[DESCRIBED_MAX] = {0};
    *error = (eddy_error){0};
    eddy_status status = described_call(call, "", outputs);
    for (int32_t i = 0; i < call->op->output_count && status == EDDY_OK; i++)
        status = eddy_error_of(outputs[i], INT64_MAX, error);
    if (status != EDDY_OK && error->status == EDDY_OK)
        (void)eddy_error_take(error);
    (void)eddy_error_take(NULL);
    return status == EDDY_OK;
}

/* ---- dtypes ---- */

static const eddy_op_operand *operand_at(const described *call, int64_t i) {
    for (int32_t k = 0; k < call->op->operand_count; k++) {
        if (call->op->operands[k].kind == EDDY_OPERAND_LIST || i == 0)
            return &call->op->operands[k];
        i--;
    }
    return &call->op->operands[call->op->operand_count - 1];
}

/* The dtypes of an op are those of its first operand that it cannot do without and that is neither an index nor a condition; of an
 * op without one (one_hot, bincount) those of the first. All operands that share its dtype in its example go along. */
static int64_t main_operand(const described *call) {
    for (int64_t i = 0; i < call->operand_count; i++) {
        const eddy_op_operand *operand = operand_at(call, i);
        if (operand->kind != EDDY_OPERAND_OPTIONAL && !operand->is_index && !operand->is_bool)
            return i;
    }
    return 0;
}

static void set_dtype(described *call, eddy_dtype dtype) {
    if (call->operand_count == 0) {
        described_attribute(call, "dtype", EDDY_ATTRIBUTE_DTYPE)->value.dtype = dtype;
        return;
    }
    eddy_dtype shared = eddy_dtype_of(call->operands[main_operand(call)]);
    for (int64_t i = 0; i < call->operand_count; i++) {
        eddy_tensor *operand = call->operands[i];
        if (!eddy_tensor_is_none(operand) && !operand_at(call, i)->is_bool &&
            eddy_dtype_of(operand) == shared)
            call->operands[i] = described_ones(dtype, eddy_shape_of(operand));
    }
}

static void takes_what_is_listed(const eddy_op *op) {
    bool is_promoted = op->promotion == EDDY_PROMOTE_FLOAT;
    uint32_t wanted = is_promoted ? (1u << EDDY_DTYPE_COUNT) - 1 : taken_by(op);
    for (int dtype = 0; dtype < EDDY_DTYPE_COUNT; dtype++) {
        eddy_scope *scope = eddy_scope_begin();
        described call;
        eddy_error error;
        make_call(&call, op, (eddy_dtype)dtype);
        if (row_of(op->name))
            set_dtype(&call, (eddy_dtype)dtype);
        bool is_listed = wanted >> dtype & 1u;
        cr_expect_eq(is_accepted(&call, &error), is_listed, "%s: %s is %slisted: %s", op->name,
                     eddy_dtype_name((eddy_dtype)dtype), is_listed ? "" : "not ", error.message);
        eddy_scope_end(scope);
    }
}

Test(op_dtypes, every_dtype_that_is_listed_is_taken_and_none_other) {
    for (uint32_t i = 0; i < eddy_op_table_count; i++)
        takes_what_is_listed(eddy_op_table[i]);
}

/* ---- attributes ---- */

/* An example that does not give the attribute. */
static const call_row *row_without(const call_row *row, const char *attribute) {
    char word[DESCRIBED_WORD_MAX];
    size_t length = strlen(attribute);
    for (const call_row *other = row; other < calls + COUNT(calls); other++) {
        bool gives = false;
        for (const char *rest = other->attributes; described_word(&rest, word);)
            gives = gives || (strncmp(word, attribute, length) == 0 && word[length] == '=');
        if (strcmp(other->op, row->op) == 0 && !gives)
            return other;
    }
    return NULL;
}

/* Where each example gives it, the first without it. */
static void make_call_without(described *call, const eddy_op *op, const char *attribute) {
    const call_row *row = row_of(op->name), *other = row ? row_without(row, attribute) : NULL;
    if (other) {
        described_read(call, op, other->operands, other->attributes);
        return;
    }
    make_call(call, op, (eddy_dtype)__builtin_ctz(row ? 1 : taken_by(op)));
    int64_t kept = 0;
    for (int64_t i = 0; i < call->attribute_count; i++)
        if (strcmp(call->attributes[i].name, attribute) != 0)
            call->attributes[kept++] = call->attributes[i];
    call->attribute_count = kept;
}

/* Those that are required are missed, by name; all others may be left out. */
static void takes_what_is_left(const eddy_op *op) {
    for (int32_t i = 0; i < op->attribute_count; i++) {
        const eddy_op_attribute *attribute = &op->attributes[i];
        if (attribute->is_fixed)
            continue;
        eddy_scope *scope = eddy_scope_begin();
        described call;
        eddy_error error;
        make_call_without(&call, op, attribute->name);
        bool is_accepted_without = is_accepted(&call, &error);
        cr_expect_eq(is_accepted_without, !attribute->is_required, "%s without %s: %s", op->name,
                     attribute->name, error.message);
        char part[96];
        snprintf(part, sizeof(part), "attribute %s is missing", attribute->name);
        if (attribute->is_required)
            cr_expect_not_null(strstr(error.message, part), "%s: %s", op->name, error.message);
        eddy_scope_end(scope);
    }
}

Test(op_dtypes, every_attribute_may_be_left_out_that_is_not_required) {
    for (uint32_t i = 0; i < eddy_op_table_count; i++)
        takes_what_is_left(eddy_op_table[i]);
    for (size_t i = 0; i < COUNT(calls); i++)
        if (!eddy_op_find(calls[i].op))
            takes_what_is_left(described_op(calls[i].op));
}
