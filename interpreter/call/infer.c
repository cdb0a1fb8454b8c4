#include <interpreter/call/infer.h>

#include <base/dtype.h>
#include <base/number.h>
#include <base/shape.h>
#include <base/status.h>
#include <interpreter/call/describe.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DESCRIBED_OPERANDS 6

int eddy_infer_describe(const eddy_infer *infer, char *buffer, size_t size) {
    eddy_text text = {buffer, size, 0};
    for (int64_t i = 0; i < infer->input_count; i++) {
        eddy_text_add(&text, i ? ", " : "");
        if (i == DESCRIBED_OPERANDS) {
            eddy_text_add(&text, "and %lld more", (long long)(infer->input_count - i));
            break;
        }
        if (infer->inputs[i].is_absent)
            eddy_text_add(&text, "none");
        else
            eddy_text_add_operand(&text, infer->inputs[i].dtype, &infer->inputs[i].shape);
    }
    return (int)text.length;
}

eddy_status eddy_infer_fail(const eddy_infer *infer, eddy_status status, const char *format, ...) {
    char sentence[320], operands[192];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    eddy_infer_describe(infer, operands, sizeof(operands));
    eddy_origin origin = {infer->op->name, infer->address};
    if (infer->input_count == 0)
        return eddy_fail(status, origin, "%s", sentence);
    return eddy_fail(status, origin, "%s (%s)", sentence, operands);
}

eddy_status eddy_infer_number(const eddy_infer *infer, const char *name, eddy_scalar *number,
                              eddy_dtype dtype) {
    if (eddy_number_convert(number, dtype, infer->op->numbers_wrap))
        return EDDY_OK;
    char text[32];
    int64_t least, most;
    eddy_number_format(*number, text, sizeof(text));
    eddy_dtype_range(dtype, &least, &most);
    return eddy_infer_fail(infer, EDDY_OUT_OF_RANGE, "%s is %s, and %s holds %lld to %lld", name,
                           text, eddy_dtype_name(dtype), (long long)least, (long long)most);
}

/* ---- operands ---- */

const eddy_op_operand *eddy_operand_iterator_next_item(eddy_operand_iterator *at) {
    for (; at->operand < at->op->operand_count; at->operand++) {
        const eddy_op_operand *operand = &at->op->operands[at->operand];
        if (operand->kind != EDDY_OPERAND_LIST)
            return eddy_operand_iterator_next(at);
        if (at->left < 0)
            at->left = at->size = at->list_counts[at->list++];
        if (at->left > 0) {
            at->item = at->size - at->left--;
            return operand;
        }
        at->left = -1;
    }
    return NULL;
}

int64_t eddy_infer_input_count(const eddy_op *op, const int64_t *list_counts) {
    int64_t count = 0;
    int32_t list = 0;
    for (int32_t i = 0; i < op->operand_count; i++) {
        int64_t items = 1;
        if (op->operands[i].kind == EDDY_OPERAND_LIST)
            items = list_counts ? list_counts[list++] : -1;
        if (items < 0 || items > INT32_MAX - count)
            return -1;
        count += items;
    }
    return count;
}

/* ---- promotion ---- */

bool eddy_infer_is_promoted(const eddy_op *op, const eddy_op_operand *operand) {
    return (op->promotion == EDDY_PROMOTE_SAME || op->promotion == EDDY_PROMOTE_FLOAT) &&
           !operand->is_bool && !operand->is_spec_only && !operand->is_mut;
}

/* A dtype, or none yet. */
typedef struct group {
    bool is_some;
    eddy_dtype dtype;
} group;

static void join(group *to, eddy_dtype dtype) {
    to->dtype = to->is_some ? eddy_dtype_promote(to->dtype, dtype) : dtype;
    to->is_some = true;
}

/* Of two groups the earlier one decides unless the later one has a higher category. */
static group combine(group earlier, group later) {
    if (!earlier.is_some)
        return later;
    if (!later.is_some ||
        eddy_dtype_category_of(later.dtype) <= eddy_dtype_category_of(earlier.dtype))
        return earlier;
    join(&earlier, later.dtype);
    return earlier;
}

static group scalar_group(const eddy_infer *infer) {
    static const eddy_dtype defaults[] = {[EDDY_SCALAR_BOOL] = EDDY_BOOL,
                                          [EDDY_SCALAR_INT] = EDDY_I64,
                                          [EDDY_SCALAR_FLOAT] = EDDY_F32};
    const eddy_op *op = infer->op;
    group all = {0};
    for (int32_t i = 0; i < op->scalar_count; i++) {
        eddy_scalar scalar;
        memcpy(&scalar, (const char *)infer->attributes + op->attributes[i].offset, sizeof(scalar));
        join(&all, defaults[scalar.kind]);
    }
    return all;
}

eddy_dtype eddy_infer_compute(const eddy_infer *infer) {
    const eddy_op *op = infer->op;
    group dimensioned = {0}, zero_dim = {0}, first = {0};
    eddy_operand_iterator at;
    eddy_operand_iterator_begin(&at, op, infer->list_counts);
    for (int64_t i = 0; i < infer->input_count; i++) {
        const eddy_spec *spec = &infer->inputs[i];
        const eddy_op_operand *operand = eddy_operand_iterator_next(&at);
        if (spec->is_absent)
            continue;
        if (!first.is_some)
            join(&first, spec->dtype);
        if (eddy_infer_is_promoted(op, operand))
            join(spec->shape.rank > 0 ? &dimensioned : &zero_dim, spec->dtype);
    }
    if (op->promotion == EDDY_PROMOTE_NONE || op->promotion == EDDY_PROMOTE_INT_SUM)
        return first.is_some ? first.dtype : EDDY_F32;
    group all = combine(dimensioned, combine(zero_dim, scalar_group(infer)));
    eddy_dtype compute = all.is_some ? all.dtype : EDDY_F32;
    if (op->promotion == EDDY_PROMOTE_FLOAT &&
        eddy_dtype_category_of(compute) != EDDY_CATEGORY_FLOAT)
        return EDDY_F32;
    return compute;
}

/* ---- shapes ---- */

static eddy_status broadcast(const eddy_infer *infer, eddy_shape *shape) {
    bool has_shape = false;
    for (int64_t i = 0; i < infer->input_count; i++) {
        const eddy_spec *spec = &infer->inputs[i];
        if (spec->is_absent)
            continue;
        eddy_shape joint = spec->shape;
        if (has_shape && !eddy_shape_broadcast(shape, &spec->shape, &joint)) {
            char left[EDDY_RANK_MAX * 22], right[EDDY_RANK_MAX * 22];
            eddy_shape_format(shape->rank, shape->dims, left, sizeof(left));
            eddy_shape_format(spec->shape.rank, spec->shape.dims, right, sizeof(right));
            return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                                   "shapes %s and %s cannot be broadcast", left, right);
        }
        *shape = joint;
        has_shape = true;
    }
    return EDDY_OK;
}

/* `format` takes the shape as text. */
static eddy_status refuse_shape(const eddy_infer *infer, eddy_status status, const char *format,
                                const eddy_shape *shape) {
    char text[EDDY_RANK_MAX * 22];
    eddy_shape_format(shape->rank, shape->dims, text, sizeof(text));
    return eddy_infer_fail(infer, status, format, text);
}

static eddy_status check_output(const eddy_infer *infer, const eddy_spec *output) {
    const eddy_shape *shape = &output->shape;
    if (infer->op->has_late_shape)
        return EDDY_OK;
    int64_t count, bytes;
    if (shape->rank < 0 || shape->rank > EDDY_RANK_MAX)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "rank %d is not within 0 and %d",
                               (int)shape->rank, EDDY_RANK_MAX);
    for (int32_t d = 0; d < shape->rank; d++)
        if (shape->dims[d] < 0)
            return refuse_shape(infer, EDDY_INVALID_ARGUMENT, "shape %s has a negative dim", shape);
    if (!eddy_dtype_is_valid(output->dtype))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "%d is no dtype", (int)output->dtype);
    if (!eddy_shape_is_valid(shape) || !eddy_shape_count(shape->rank, shape->dims, &count) ||
        __builtin_mul_overflow(count, (int64_t)eddy_dtype_bytes(output->dtype), &bytes))
        return refuse_shape(infer, EDDY_SIZE_OVERFLOW,
                            "a result of shape %s does not fit into 63 bits", shape);
    return EDDY_OK;
}

eddy_status eddy_infer_run(eddy_infer *infer, eddy_dtype compute) {
    const eddy_op *op = infer->op;
    eddy_dtype result = compute;
    if (op->result == EDDY_RESULT_BOOL)
        result = EDDY_BOOL;
    else if (op->promotion == EDDY_PROMOTE_INT_SUM &&
             eddy_dtype_category_of(compute) != EDDY_CATEGORY_FLOAT)
        result = EDDY_I64;
    for (int32_t i = 0; i < op->output_count; i++)
        infer->outputs[i] = (eddy_spec){.dtype = result};
    if (op->is_elementwise && op->output_count > 0) {
        eddy_shape shape = {0};
        eddy_status status = broadcast(infer, &shape);
        if (status != EDDY_OK)
            return status;
        for (int32_t i = 0; i < op->output_count; i++)
            infer->outputs[i].shape = shape;
    }
    if (op->infer) {
        eddy_status status = op->infer(infer);
        if (status != EDDY_OK)
            return status;
    }
    for (int32_t i = 0; i < op->output_count; i++) {
        eddy_status status = check_output(infer, &infer->outputs[i]);
        if (status != EDDY_OK)
            return status;
    }
    return EDDY_OK;
}
