/* Every error that the op list names is provoked: those of an entry by the calls that stand beside them, those that follow from its
 * form out of the example that the op accepts. Each message names the op and its operands with dtype and shape. */
#include "described.h"

#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <functional/op_table.h>
#include <interpreter/handle/tensor.h>
#include <stdio.h>
#include <string.h>

#define WITHOUT_END INT64_MAX
#define AXIS_TOO_HIGH 99

typedef struct form {
    const char *op;
    int refused;    /* a dtype outside the op's set, EDDY_DTYPE_COUNT where there is none */
    uint32_t taken; /* the set */
} form;

static const form forms[] = {
#define OP(name, refused, taken) {#name, EDDY_##refused, taken},
#include <functional/op_dtypes.h>
};

typedef struct call_row {
    const char *op, *operands, *attributes;
} call_row;

static const call_row calls[] = {
#define CALL(name, operands, attributes) {#name, operands, attributes},
#include <functional/op_calls.h>
};

typedef struct refusal {
    const char *op;
    eddy_status status;
    bool is_late;
    const char *operands, *attributes, *part;
} refusal;

static const refusal refusals[] = {
#define REFUSED(name, status, operands, attributes, part)                                          \
    {#name, EDDY_##status, false, operands, attributes, part},
#define LATE(name, status, operands, attributes, part)                                             \
    {#name, EDDY_##status, true, operands, attributes, part},
#include <functional/op_refusals.h>
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- messages ---- */

/* The operand of the op that input `i` of a call belongs to. */
static const eddy_op_operand *operand_at(const described *call, int64_t i) {
    int32_t lists = 0;
    for (int32_t k = 0; k < call->op->operand_count; k++)
        lists += call->op->operands[k].kind == EDDY_OPERAND_LIST;
    int64_t items = lists ? (call->operand_count - (call->op->operand_count - lists)) / lists : 1;
    for (int32_t k = 0; k < call->op->operand_count; k++) {
        i -= call->op->operands[k].kind == EDDY_OPERAND_LIST ? items : 1;
        if (i < 0)
            return &call->op->operands[k];
    }
    cr_assert(false);
    return NULL;
}

/* How messages name it: "tensors[1]" for an item of a list. */
static void name_of(const described *call, int64_t i, char *name, size_t size) {
    const eddy_op_operand *operand = operand_at(call, i);
    int64_t first = i;
    while (first > 0 && operand_at(call, first - 1) == operand)
        first--;
    if (operand->kind == EDDY_OPERAND_LIST)
        snprintf(name, size, "%s[%lld]", operand->name, (long long)(i - first));
    else
        snprintf(name, size, "%s", operand->name);
}

/* "(f32[2, 3], none)" as messages end. Those of late errors leave out what the kernel did not see. */
static void describe_operands(const described *call, bool is_late, char *text, size_t size) {
    size_t length = (size_t)snprintf(text, size, "(");
    int64_t shown = 0;
    for (int64_t i = 0; i < call->operand_count; i++) {
        char one[320] = "none";
        if (is_late && operand_at(call, i)->is_spec_only)
            continue;
        if (!eddy_tensor_is_none(call->operands[i]))
            eddy_tensor_describe(call->operands[i], one, sizeof(one));
        length += (size_t)snprintf(text + length, size - length, "%s%s", shown++ ? ", " : "", one);
    }
    snprintf(text + length, size - length, ")");
}

static void expect_message(const described *call, bool is_late, const eddy_error *error,
                           const char *part) {
    char head[64], operands[2048];
    snprintf(head, sizeof(head), "%s: ", call->op->name);
    describe_operands(call, is_late, operands, sizeof(operands));
    cr_expect_eq(strncmp(error->message, head, strlen(head)), 0,
                 "\"%s\" does not begin with the op", error->message);
    cr_expect_not_null(strstr(error->message, part), "\"%s\" lacks \"%s\"", error->message, part);
    /* Of many operands messages show the first ones. */
    if (call->operand_count > 0 && call->operand_count <= 6 && strlen(operands) < 192)
        cr_expect_not_null(strstr(error->message, operands), "\"%s\" lacks \"%s\"", error->message,
                           operands);
}

/* An older error, which nobody has taken yet, is what the slot holds. */
static void leave_older_error(void) {
    cr_assert_null(eddy_npy_load("/nonexistent/folder/array.npy"));
}

/* The call is refused with the status, whatever the slot holds, and its message has `part` in it. */
static void expect_refusal(const described *call, const char *suffix, eddy_status status,
                           const char *part) {
    eddy_tensor *outputs[EDDY_OP_OUTPUT_MAX] = {0};
    eddy_error error = {0};
    (void)eddy_error_take(NULL);
    eddy_status got = described_call(call, suffix, outputs);
    (void)eddy_error_take(&error);
    leave_older_error();
    eddy_status again = described_call(call, suffix, outputs);
    cr_expect_eq(again, got, "%s%s: %s, but %s where an older error is untaken", call->op->name,
                 suffix, eddy_status_name(got), eddy_status_name(again));
    cr_expect_eq(eddy_error_take(NULL), EDDY_IO);
    cr_expect_eq(got, status, "%s%s: %s instead of %s: %s", call->op->name, suffix,
                 eddy_status_name(got), eddy_status_name(status), error.message);
    if (got == status)
        expect_message(call, false, &error, part);
}

/* ---- the op's own errors ---- */

static void provoke(const refusal *row) {
    const eddy_op *op = described_op(row->op);
    described call;
    described_read(&call, op, row->operands, row->attributes);
    if (!row->is_late) {
        expect_refusal(&call, "", row->status, row->part);
        return;
    }
    eddy_tensor *outputs[EDDY_OP_OUTPUT_MAX] = {0};
    eddy_error error = {0};
    cr_assert_eq(described_call(&call, "", outputs), EDDY_OK, "%s", row->op);
    eddy_status status = eddy_error_of(outputs[0], WITHOUT_END, &error);
    cr_expect_eq(status, row->status, "%s: %s instead of %s", row->op, eddy_status_name(status),
                 eddy_status_name(row->status));
    if (status == row->status)
        expect_message(&call, true, &error, row->part);
}

Test(op_errors, every_row_is_refused) {
    for (size_t i = 0; i < COUNT(refusals); i++) {
        eddy_scope *scope = eddy_scope_begin();
        provoke(&refusals[i]);
        eddy_scope_end(scope);
    }
}

/* ---- what follows from an entry's form ---- */

static const form *form_of(const eddy_op *op) {
    size_t i = 0;
    while (i < COUNT(forms) && strcmp(forms[i].op, op->name) != 0)
        i++;
    cr_assert_lt(i, COUNT(forms), "%s", op->name);
    return &forms[i];
}

static eddy_dtype first_of(uint32_t dtypes) {
    return (eddy_dtype)__builtin_ctz(dtypes);
}

/* A call that an elementwise op accepts. */
static void make_elementwise_call(described *call, const eddy_op *op) {
    *call = (described){.op = op};
    for (int32_t i = 0; i < op->operand_count; i++) {
        eddy_dtype dtype = op->operands[i].is_bool ? EDDY_BOOL : first_of(form_of(op)->taken);
        call->operands[call->operand_count++] = described_ones(dtype, EDDY_SHAPE(2, 3));
    }
    for (int32_t i = 0; i < op->scalar_count; i++)
        described_attribute(call, op->attributes[i].name, EDDY_ATTRIBUTE_SCALAR)->value.scalar =
            eddy_scalar_int(1);
}

static void make_good_call(described *call, const eddy_op *op) {
    for (size_t i = 0; i < COUNT(calls); i++)
        if (strcmp(calls[i].op, op->name) == 0) {
            described_read(call, op, calls[i].operands, calls[i].attributes);
            return;
        }
    cr_assert(op->is_elementwise, "the entry of %s has no example", op->name);
    make_elementwise_call(call, op);
}

static void check_one(void (*check)(const described *good), const eddy_op *op) {
    eddy_scope *scope = eddy_scope_begin();
    described good;
    make_good_call(&good, op);
    check(&good);
    eddy_scope_end(scope);
}

/* Runs `check` with a good call of each op. */
static void for_each_op(void (*check)(const described *good)) {
    for (uint32_t i = 0; i < eddy_op_table_count; i++)
        check_one(check, eddy_op_table[i]);
}

/* What compositions check themselves; the rest their ops do, in their own names. */
static void for_each_composition(void (*check)(const described *good)) {
    for (size_t i = 0; i < COUNT(calls); i++)
        if (!eddy_op_find(calls[i].op))
            check_one(check, described_op(calls[i].op));
}

static void runs(const described *good) {
    eddy_tensor *outputs[EDDY_OP_OUTPUT_MAX] = {0};
    eddy_error error = {0};
    eddy_status status = described_call(good, "", outputs);
    (void)eddy_error_take(&error);
    cr_expect_eq(status, EDDY_OK, "%s", error.message);
    for (int32_t i = 0; i < EDDY_OP_OUTPUT_MAX && outputs[i]; i++)
        cr_expect_eq(eddy_error_of(outputs[i], WITHOUT_END, &error), EDDY_OK, "%s", error.message);
}

Test(op_errors, every_good_call_runs) {
    for_each_op(runs);
    for_each_composition(runs);
}

/* One that is missing is named, and nothing but it. */
static void expect_missing(const described *call, const char *name, const char *part) {
    eddy_tensor *outputs[EDDY_OP_OUTPUT_MAX] = {0};
    eddy_error error = {0};
    char head[96];
    snprintf(head, sizeof(head), "%s: %s is ", call->op->name, name);
    cr_expect_eq(described_call(call, "", outputs), EDDY_INVALID_ARGUMENT, "%s", call->op->name);
    (void)eddy_error_take(&error);
    cr_expect(strstr(error.message, head) == error.message && strstr(error.message, part), "%s",
              error.message);
}

static void refuses_missing_operands(const described *good) {
    for (int64_t i = 0; i < good->operand_count; i++) {
        const eddy_op_operand *operand = operand_at(good, i);
        described bad = *good;
        char name[64];
        name_of(good, i, name, sizeof(name));
        bad.operands[i] = NULL;
        expect_missing(&bad, name, "NULL");
        bad.operands[i] = EDDY_NONE;
        bool is_gap = operand - good->op->operands == good->op->skips_of - 1;
        if (operand->kind != EDDY_OPERAND_OPTIONAL && !is_gap)
            expect_missing(&bad, name, "EDDY_NONE");
    }
}

Test(op_errors, operands_that_are_missing) {
    for_each_op(refuses_missing_operands);
    for_each_composition(refuses_missing_operands);
}

static eddy_runtime *other_runtime;

static void refuses_other_runtimes(const described *good) {
    described bad = *good;
    int64_t last = good->operand_count - 1;
    while (last > 0 && eddy_tensor_is_none(good->operands[last]))
        last--;
    if (last < 1)
        return;
    eddy_tensor *mine = good->operands[last];
    eddy_runtime_use(other_runtime);
    bad.operands[last] = described_ones(eddy_dtype_of(mine), eddy_shape_of(mine));
    eddy_runtime_use(NULL);
    expect_refusal(&bad, "", EDDY_RUNTIME_MISMATCH, "runtime");
}

Test(op_errors, operands_of_two_runtimes) {
    other_runtime = eddy_runtime_create(NULL);
    for_each_op(refuses_other_runtimes);
    eddy_runtime_shutdown(other_runtime, WITHOUT_END);
    eddy_runtime_release(&other_runtime);
}

static void refuses_shapes_that_do_not_broadcast(const described *good) {
    if (!good->op->is_elementwise || good->op->operands[good->operand_count - 1].is_mut ||
        good->operand_count < 2)
        return;
    described bad = *good;
    int64_t last = good->operand_count - 1;
    bad.operands[last] = described_ones(eddy_dtype_of(good->operands[last]), EDDY_SHAPE(7));
    expect_refusal(&bad, "", EDDY_SHAPE_MISMATCH, "cannot be broadcast");
}

Test(op_errors, operands_that_do_not_broadcast) {
    for_each_op(refuses_shapes_that_do_not_broadcast);
}

static void refuses_other_dtypes(const described *good) {
    const form *f = form_of(good->op);
    if (f->refused == EDDY_DTYPE_COUNT)
        return;
    described bad = *good;
    eddy_status status = good->op->is_elementwise ? EDDY_UNSUPPORTED : EDDY_DTYPE_MISMATCH;
    for (int64_t i = 0; i < good->operand_count; i++) {
        eddy_tensor *operand = good->operands[i];
        if (!eddy_tensor_is_none(operand) && !operand_at(good, i)->is_bool &&
            f->taken >> eddy_dtype_of(operand) & 1u)
            bad.operands[i] = described_ones((eddy_dtype)f->refused, eddy_shape_of(operand));
    }
    /* A number of the lowest category promotes nothing. */
    for (int32_t i = 0; i < good->op->scalar_count; i++)
        described_attribute(&bad, good->op->attributes[i].name, EDDY_ATTRIBUTE_SCALAR)
            ->value.scalar = eddy_scalar_bool(true);
    if (good->operand_count == 0) {
        status = EDDY_INVALID_ARGUMENT;
        described_attribute(&bad, "dtype", EDDY_ATTRIBUTE_DTYPE)->value.dtype =
            (eddy_dtype)f->refused;
    }
    expect_refusal(&bad, "", status, eddy_dtype_name((eddy_dtype)f->refused));
}

Test(op_errors, dtypes_outside_the_set) {
    for_each_op(refuses_other_dtypes);
}

static void refuses_conditions_that_are_not_bool(const described *good) {
    for (int64_t i = 0; i < good->operand_count; i++) {
        if (!operand_at(good, i)->is_bool)
            continue;
        described bad = *good;
        bad.operands[i] = described_ones(EDDY_F32, eddy_shape_of(good->operands[i]));
        expect_refusal(&bad, "", EDDY_DTYPE_MISMATCH, "has to be bool");
    }
}

Test(op_errors, conditions_that_are_not_bool) {
    for_each_op(refuses_conditions_that_are_not_bool);
}

/* ---- attributes ---- */

static void refuses_axes(const described *good, const eddy_op_attribute *attribute) {
    const eddy_axes absent = {1, {5}}, beyond = {1, {AXIS_TOO_HIGH}}, twice = {2, {1, 1}},
                    again = {2, {1, -1}};
    described bad = *good;
    eddy_attribute *given = described_attribute(&bad, attribute->name, EDDY_ATTRIBUTE_AXES);
    given->value.axes = absent;
    expect_refusal(&bad, "", EDDY_OUT_OF_RANGE, "axis 5 is out of range");
    given->value.axes = beyond;
    expect_refusal(&bad, "", EDDY_OUT_OF_RANGE, "axis 99 is out of range");
    given->value.axes = twice;
    expect_refusal(&bad, "", EDDY_INVALID_ARGUMENT, "axis 1 is named twice");
    given->value.axes = again;
    expect_refusal(&bad, "", EDDY_INVALID_ARGUMENT, "axis 1 is named twice");
}

static void refuses_shapes(const described *good, const eddy_op_attribute *attribute) {
    if (good->op->operand_count > 0)
        return;
    described bad = *good;
    eddy_attribute *given = described_attribute(&bad, attribute->name, EDDY_ATTRIBUTE_SHAPE);
    given->value.shape = EDDY_SHAPE(2, -1);
    expect_refusal(&bad, "", EDDY_INVALID_ARGUMENT, "[2, -1] has a negative dim");
    given->value.shape = EDDY_SHAPE(INT64_MAX, 2);
    expect_refusal(&bad, "", EDDY_SIZE_OVERFLOW, "does not fit into 63 bits");
    given->value.shape.rank = EDDY_RANK_MAX + 1;
    expect_refusal(&bad, "", EDDY_INVALID_ARGUMENT, "shape");
}

/* The call in u8, if the op takes it: operands, and what a dtype among the attributes says. */
static bool make_u8(described *call) {
    if (!(form_of(call->op)->taken >> EDDY_U8 & 1u))
        return false;
    for (int64_t i = 0; i < call->operand_count; i++)
        if (!operand_at(call, i)->is_bool)
            call->operands[i] = described_ones(EDDY_U8, eddy_shape_of(call->operands[i]));
    if (call->operand_count == 0)
        described_attribute(call, "dtype", EDDY_ATTRIBUTE_DTYPE)->value.dtype = EDDY_U8;
    return true;
}

/* Where integers wrap around, so does the number; everywhere else the dtype has to hold it. */
static void refuses_numbers(const described *good, const eddy_op_attribute *attribute) {
    described bad = *good;
    eddy_tensor *outputs[EDDY_OP_OUTPUT_MAX];
    char part[64];
    if (!make_u8(&bad) || !attribute->is_held)
        return;
    for (int64_t number = -1; number <= 256; number += 257) {
        described_attribute(&bad, attribute->name, EDDY_ATTRIBUTE_SCALAR)->value.scalar =
            eddy_scalar_int(number);
        snprintf(part, sizeof(part), "%s is %lld, and u8 holds 0 to 255", attribute->name,
                 (long long)number);
        if (good->op->numbers_wrap)
            cr_expect_eq(described_call(&bad, "", outputs), EDDY_OK, "%s", good->op->name);
        else
            expect_refusal(&bad, "", EDDY_OUT_OF_RANGE, part);
    }
}

static void refuses_attributes(const described *good) {
    for (int32_t i = 0; i < good->op->attribute_count; i++) {
        const eddy_op_attribute *attribute = &good->op->attributes[i];
        described bad = *good;
        if (attribute->is_fixed)
            continue;
        switch (attribute->type) {
        case EDDY_ATTRIBUTE_SCALAR:
            refuses_numbers(good, attribute);
            break;
        case EDDY_ATTRIBUTE_AXIS:
            described_attribute(&bad, attribute->name, EDDY_ATTRIBUTE_AXIS)->value.integer =
                AXIS_TOO_HIGH;
            expect_refusal(&bad, "", EDDY_OUT_OF_RANGE, "axis 99 is out of range for rank");
            break;
        case EDDY_ATTRIBUTE_AXES:
            refuses_axes(good, attribute);
            break;
        case EDDY_ATTRIBUTE_CHOICE:
            described_attribute(&bad, attribute->name, EDDY_ATTRIBUTE_CHOICE)->value.integer = 99;
            expect_refusal(&bad, "", EDDY_INVALID_ARGUMENT, "no choice 99");
            break;
        case EDDY_ATTRIBUTE_DTYPE:
            described_attribute(&bad, attribute->name, EDDY_ATTRIBUTE_DTYPE)->value.dtype =
                (eddy_dtype)99;
            expect_refusal(&bad, "", EDDY_INVALID_ARGUMENT, "dtype");
            break;
        case EDDY_ATTRIBUTE_SHAPE:
            refuses_shapes(good, attribute);
            break;
        default:
            break;
        }
    }
}

Test(op_errors, attributes_out_of_range) {
    for_each_op(refuses_attributes);
    for_each_composition(refuses_attributes);
}

/* ---- targets and what is written ---- */

/* The call with a target, as _into takes it. */
static described with_target(const described *call, eddy_tensor *target) {
    described with = *call;
    with.operands[with.operand_count++] = target;
    return with;
}

/* As expect_refusal: messages name the operands without the target. */
static void expect_target_refused(const described *call, eddy_tensor *target, eddy_status status,
                                  const char *part) {
    described with = with_target(call, target);
    eddy_error error = {0};
    (void)eddy_error_take(NULL);
    eddy_status got = described_call(&with, "_into", NULL);
    (void)eddy_error_take(&error);
    cr_expect_eq(got, status, "%s_into: %s instead of %s: %s", call->op->name,
                 eddy_status_name(got), eddy_status_name(status), error.message);
    if (got == status)
        expect_message(call, false, &error, part);
}

static int64_t product(eddy_shape shape) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    return count;
}

/* A target that begins one element after an operand of the same size. */
static void refuses_overlap(const described *good, eddy_dtype dtype, eddy_shape shape) {
    int64_t count = product(shape);
    for (int64_t i = 0; i < good->operand_count; i++) {
        eddy_tensor *operand = good->operands[i];
        if (eddy_tensor_is_none(operand) || operand_at(good, i)->is_spec_only ||
            eddy_dtype_of(operand) != dtype || eddy_count_of(operand) != count || count < 2)
            continue;
        described bad = *good;
        eddy_tensor *both = described_ones(dtype, EDDY_SHAPE(count + 1));
        bad.operands[i] = eddy_view(eddy_narrow(both, 0, 0, count), eddy_shape_of(operand));
        expect_target_refused(&bad, eddy_view(eddy_narrow(both, 0, 1, count), shape), EDDY_OVERLAP,
                              "target overlaps another operand");
    }
}

static void refuses_targets(const described *good) {
    const eddy_op *op = good->op;
    eddy_tensor *output = NULL;
    if (op->output_count != 1 || op->has_late_shape || op->operand_count == 0)
        return;
    cr_assert_eq(described_call(good, "", &output), EDDY_OK, "%s", op->name);
    eddy_shape shape = eddy_shape_of(output), other = shape;
    eddy_dtype dtype = eddy_dtype_of(output);
    other.dims[other.rank++] = 5;
    expect_target_refused(good, described_ones(dtype, other), EDDY_SHAPE_MISMATCH, "the target");
    expect_target_refused(good, described_ones(dtype == EDDY_F16 ? EDDY_BF16 : EDDY_F16, shape),
                          EDDY_DTYPE_MISMATCH, "the target");
    eddy_runtime_use(other_runtime);
    eddy_tensor *foreign = described_ones(dtype, shape);
    eddy_runtime_use(NULL);
    expect_target_refused(good, foreign, EDDY_RUNTIME_MISMATCH, "another runtime");
    if (product(shape) > 1)
        expect_target_refused(good, eddy_expand(described_ones(dtype, EDDY_SHAPE()), shape),
                              EDDY_OVERLAP, "some of its elements share memory");
    refuses_overlap(good, dtype, shape);
}

Test(op_errors, targets_that_do_not_fit) {
    other_runtime = eddy_runtime_create(NULL);
    for_each_op(refuses_targets);
    eddy_runtime_shutdown(other_runtime, WITHOUT_END);
    eddy_runtime_release(&other_runtime);
}

static void refuses_to_write_repeated_elements(const described *good) {
    for (int64_t i = 0; i < good->operand_count; i++) {
        eddy_tensor *operand = good->operands[i];
        if (!operand_at(good, i)->is_mut || eddy_tensor_is_none(operand) ||
            eddy_count_of(operand) < 2)
            continue;
        described bad = *good;
        bad.operands[i] = eddy_expand(described_ones(eddy_dtype_of(operand), EDDY_SHAPE()),
                                      eddy_shape_of(operand));
        expect_refusal(&bad, "", EDDY_OVERLAP, "some of its elements share memory");
    }
}

Test(op_errors, written_operands_that_repeat_elements) {
    for_each_op(refuses_to_write_repeated_elements);
}

/* ---- the runtime ---- */

Test(op_errors, a_result_larger_than_all_memory) {
    eddy_scope *scope = eddy_scope_begin();
    described zeros, add;
    described_read(&zeros, described_op("zeros"), "", "shape=[1000000000000000] dtype=f32");
    expect_refusal(&zeros, "", EDDY_OUT_OF_MEMORY, "the result takes 4000000000000000 bytes");
    described_read(&add, described_op("add"), "f32[1000000000000000]* f32[1]", "");
    expect_refusal(&add, "", EDDY_OUT_OF_MEMORY, "the result takes 4000000000000000 bytes");
    eddy_scope_end(scope);
}

Test(op_errors, without_operands_none_are_named) {
    eddy_runtime *own = eddy_runtime_create(NULL);
    eddy_runtime_use(own);
    cr_assert_eq(eddy_runtime_shutdown(own, WITHOUT_END), EDDY_OK);
    cr_assert_null(eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL));
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), EDDY_SHUT_DOWN);
    cr_assert_str_eq(error.message, "ones: the runtime is shut down");
    eddy_runtime_use(NULL);
    eddy_runtime_release(&own);
}

Test(op_errors, a_runtime_that_was_shut_down) {
    static described good[1024];
    other_runtime = eddy_runtime_create(NULL);
    eddy_runtime_use(other_runtime);
    cr_assert_lt(eddy_op_table_count, COUNT(good));
    for (uint32_t i = 0; i < eddy_op_table_count; i++)
        make_good_call(&good[i], eddy_op_table[i]);
    eddy_runtime_use(NULL);
    eddy_runtime_shutdown(other_runtime, WITHOUT_END);
    for (uint32_t i = 0; i < eddy_op_table_count; i++)
        if (good[i].operand_count > 0)
            expect_refusal(&good[i], "", EDDY_SHUT_DOWN, "shut down");
    eddy_runtime_release(&other_runtime);
}
