#include <functional/parameter.h>

#include <base/memory.h>
#include <base/shape.h>
#include <base/status.h>
#include <interpreter/call/describe.h>
#include <interpreter/call/op.h>
#include <interpreter/handle/tensor.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DESCRIBED_OPERANDS 6

static void describe_operands(eddy_text *text, eddy_list inputs) {
    for (int64_t i = 0; i < inputs.count; i++) {
        char operand[EDDY_RANK_MAX * 22 + 8];
        eddy_text_add(text, i ? ", " : " (");
        if (i == DESCRIBED_OPERANDS) {
            eddy_text_add(text, "and %lld more", (long long)(inputs.count - i));
            break;
        }
        if (!inputs.items[i])
            eddy_text_add(text, "NULL");
        else if (eddy_tensor_is_none(inputs.items[i]))
            eddy_text_add(text, "none");
        else if (eddy_tensor_describe(inputs.items[i], operand, sizeof(operand)) > 0)
            eddy_text_add(text, "%s", operand);
    }
    if (inputs.count > 0)
        eddy_text_add(text, ")");
}

eddy_status eddy_parameter_fail(eddy_status status, eddy_origin origin, eddy_list inputs,
                                const char *format, ...) {
    char sentence[320], operands[192] = "";
    eddy_text text = {operands, sizeof(operands), 0};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    describe_operands(&text, inputs);
    return eddy_fail(status, origin, "%s%s", sentence, operands);
}

static eddy_status check_axis_count(int32_t count, eddy_origin origin, eddy_list inputs) {
    if (count >= 0 && count <= EDDY_RANK_MAX)
        return EDDY_OK;
    return eddy_parameter_fail(EDDY_INVALID_ARGUMENT, origin, inputs,
                               "%d axes are named, %d are possible", (int)count, EDDY_RANK_MAX);
}

eddy_status eddy_parameter_axes(const eddy_axes *axes, uint32_t *mask, eddy_origin origin,
                                eddy_list inputs) {
    uint32_t bits = axes->count == 0 ? EDDY_AXES_NAMELESS : 0;
    int32_t count = eddy_shape_axes_are_all(axes) ? 0 : axes->count;
    eddy_status status = check_axis_count(count, origin, inputs);
    if (status != EDDY_OK)
        return status;
    for (int32_t i = 0; i < count; i++) {
        int32_t axis = axes->axes[i];
        if (axis < -EDDY_RANK_MAX || axis >= EDDY_RANK_MAX)
            return eddy_parameter_fail(EDDY_OUT_OF_RANGE, origin, inputs, "axis %d is out of range",
                                       (int)axis);
        uint32_t bit = 1u << (axis >= 0 ? axis : 15 - axis);
        if (bits & bit)
            return eddy_parameter_fail(EDDY_INVALID_ARGUMENT, origin, inputs,
                                       "axis %d is named twice", (int)axis);
        bits |= bit;
    }
    *mask = bits;
    return EDDY_OK;
}

eddy_status eddy_parameter_axis_list(const eddy_axes *axes, eddy_shape *list, eddy_origin origin,
                                     eddy_list inputs) {
    int32_t count = eddy_shape_axes_are_all(axes) ? 0 : axes->count;
    eddy_status status = check_axis_count(count, origin, inputs);
    if (status != EDDY_OK)
        return status;
    list->rank = count;
    for (int32_t i = 0; i < count; i++)
        list->dims[i] = axes->axes[i];
    return EDDY_OK;
}

eddy_status eddy_parameter_choice(int32_t choice, int32_t count, const char *attribute,
                                  eddy_origin origin, eddy_list inputs) {
    if (choice >= 0 && choice < count)
        return EDDY_OK;
    return eddy_parameter_fail(EDDY_INVALID_ARGUMENT, origin, inputs, "%s has no choice %d",
                               attribute, (int)choice);
}

eddy_status eddy_joined_init(eddy_joined *joined, const eddy_list *pieces, int32_t piece_count,
                             eddy_origin origin) {
    int64_t count = 0;
    for (int32_t i = 0; i < piece_count; i++) {
        if (pieces[i].count < 0 || pieces[i].count > INT32_MAX - count ||
            (pieces[i].count > 0 && !pieces[i].items))
            return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "list %d is no list of tensors",
                             (int)i);
        count += pieces[i].count;
    }
    joined->memory = NULL;
    eddy_tensor **items = joined->on_stack;
    if (count > EDDY_JOINED_STACK) {
        items = joined->memory =
            eddy_memory_acquire((size_t)count * sizeof(*items), EDDY_MEMORY_ARGUMENT);
        if (!items)
            return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for %lld operands",
                             (long long)count);
    }
    joined->items = items;
    joined->count = count;
    for (int32_t i = 0; i < piece_count; i++) {
        if (pieces[i].count > 0)
            memcpy(items, pieces[i].items, (size_t)pieces[i].count * sizeof(*items));
        items += pieces[i].count;
    }
    return EDDY_OK;
}

void eddy_joined_fini(eddy_joined *joined) {
    if (joined->memory)
        eddy_memory_release(joined->memory, (size_t)joined->count * sizeof(*joined->memory),
                            EDDY_MEMORY_ARGUMENT);
}
