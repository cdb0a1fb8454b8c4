#include "described.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <eddy/eddy.h>
#include <functional/composition.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_MAX 64

const eddy_op *described_op(const char *name) {
    const eddy_op *op = eddy_op_find(name);
    const eddy_composition *composition = op ? NULL : eddy_composition_find(name);
    return composition ? &composition->op : op;
}

bool described_word(const char **text, char *word) {
    *text += strspn(*text, " ");
    size_t length = strcspn(*text, " ");
    cr_assert_lt(length, DESCRIBED_WORD_MAX, "%s", *text);
    memcpy(word, *text, length);
    word[length] = 0;
    *text += length;
    return length > 0;
}

static eddy_dtype read_dtype(const char *name, size_t length) {
    for (int dtype = 0; dtype < EDDY_DTYPE_COUNT; dtype++)
        if (strlen(eddy_dtype_name((eddy_dtype)dtype)) == length &&
            strncmp(eddy_dtype_name((eddy_dtype)dtype), name, length) == 0)
            return (eddy_dtype)dtype;
    cr_assert(isdigit((unsigned char)*name), "%s is no dtype", name);
    return (eddy_dtype)atoi(name);
}

eddy_shape described_shape(const char *text, const char **end) {
    eddy_shape shape = {0};
    cr_assert_eq(*text, '[', "%s", text);
    for (text++; *text != ']'; text += *text == ',') {
        char *after;
        cr_assert_lt(shape.rank, EDDY_RANK_MAX);
        shape.dims[shape.rank++] = strtoll(text, &after, 10);
        cr_assert(after > text, "%s", text);
        text = after;
    }
    *end = text + 1;
    return shape;
}

eddy_tensor *described_ones(eddy_dtype dtype, eddy_shape shape) {
    return eddy_full(shape, EDDY_S(1), dtype, NULL);
}

void described_values(const char *text, double *values, int64_t count) {
    bool is_list = strchr(text, ',');
    for (int64_t i = 0; i < count; i++) {
        values[i] = atof(text);
        text = is_list ? text + strcspn(text, ",") : text;
        cr_assert(!is_list || (*text == ',') == (i < count - 1), "not %lld numbers",
                  (long long)count);
        text += is_list && *text == ',';
    }
}

static eddy_tensor *tensor_of(eddy_dtype dtype, eddy_shape shape, const char *numbers) {
    double values[VALUE_MAX];
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    cr_assert_leq(count, VALUE_MAX, "%s", numbers);
    described_values(numbers, values, count);
    return eddy_cast(eddy_from_data(values, shape, EDDY_F64, NULL), dtype);
}

eddy_tensor *described_tensor(const char *text) {
    if (strcmp(text, "none") == 0)
        return EDDY_NONE;
    const char *end;
    size_t length = strcspn(text, "[");
    eddy_dtype dtype = read_dtype(text, length);
    eddy_shape shape = described_shape(text + length, &end);
    if (strchr(end, ','))
        return tensor_of(dtype, shape, end + 1);
    eddy_scalar value = *end == '=' ? EDDY_S(atof(end + 1)) : EDDY_S(1);
    eddy_tensor *tensor = *end == '*'
                              ? eddy_expand(eddy_full(EDDY_SHAPE(), value, dtype, NULL), shape)
                              : eddy_full(shape, value, dtype, NULL);
    cr_assert_not_null(tensor, "%s", text);
    return tensor;
}

/* ---- attributes ---- */

static eddy_scalar read_scalar(const char *text) {
    if (strcmp(text, "true") == 0)
        return eddy_scalar_bool(true);
    return text[strcspn(text, ".ni")] ? eddy_scalar_float(atof(text))
                                      : eddy_scalar_int(atoll(text));
}

/* The number of a name among choices; what is a number already stays. */
static int64_t read_choice(const char *choices, const char *text) {
    char name[DESCRIBED_WORD_MAX];
    for (int64_t i = 0; described_word(&choices, name); i++)
        if (strcmp(name, text) == 0)
            return i;
    cr_assert(isdigit((unsigned char)*text) || *text == '-', "%s is no choice", text);
    return atoll(text);
}

static void read_value(described *call, eddy_attribute *attribute, const char *choices,
                       const char *text) {
    const char *end;
    switch (attribute->type) {
    case EDDY_ATTRIBUTE_FLOAT:
        attribute->value.floating = atof(text);
        break;
    case EDDY_ATTRIBUTE_BOOL:
        attribute->value.boolean = strcmp(text, "true") == 0;
        break;
    case EDDY_ATTRIBUTE_SCALAR:
        attribute->value.scalar = read_scalar(text);
        break;
    case EDDY_ATTRIBUTE_DTYPE:
        attribute->value.dtype = read_dtype(text, strlen(text));
        break;
    case EDDY_ATTRIBUTE_SHAPE:
        attribute->value.shape = described_shape(text, &end);
        break;
    case EDDY_ATTRIBUTE_CHOICE:
        attribute->value.integer = read_choice(choices, text);
        break;
    case EDDY_ATTRIBUTE_PAIR: {
        eddy_shape pair = described_shape(text, &end);
        cr_assert_eq(pair.rank, 2, "%s", text);
        attribute->value.pair = (eddy_pair){pair.dims[0], pair.dims[1]};
        break;
    }
    case EDDY_ATTRIBUTE_TEXT:
        cr_assert_lt(strlen(text), sizeof(call->text));
        attribute->value.text = strcpy(call->text, text);
        break;
    case EDDY_ATTRIBUTE_AXES: {
        eddy_shape axes = described_shape(text, &end);
        attribute->value.axes.count = axes.rank;
        for (int32_t i = 0; i < axes.rank; i++)
            attribute->value.axes.axes[i] = (int32_t)axes.dims[i];
        break;
    }
    default:
        attribute->value.integer = atoll(text);
        break;
    }
}

eddy_attribute *described_attribute(described *call, const char *name, eddy_attribute_type type) {
    int64_t i = 0;
    while (i < call->attribute_count && strcmp(call->attributes[i].name, name) != 0)
        i++;
    cr_assert_lt(i, DESCRIBED_MAX);
    if (i == call->attribute_count)
        call->attributes[call->attribute_count++] = (eddy_attribute){.name = name, .type = type};
    return &call->attributes[i];
}

static void read_attribute(described *call, const char *word) {
    size_t length = strcspn(word, "=");
    for (int32_t i = 0; i < call->op->attribute_count; i++) {
        const eddy_op_attribute *known = &call->op->attributes[i];
        if (strlen(known->name) == length && strncmp(known->name, word, length) == 0 &&
            word[length] == '=') {
            read_value(call, described_attribute(call, known->name, known->type), known->choices,
                       word + length + 1);
            return;
        }
    }
    cr_assert(false, "%s has no attribute %s", call->op->name, word);
}

void described_read(described *call, const eddy_op *op, const char *operands,
                    const char *attributes) {
    char word[DESCRIBED_WORD_MAX];
    *call = (described){.op = op};
    while (described_word(&operands, word)) {
        cr_assert_lt(call->operand_count, DESCRIBED_MAX);
        call->operands[call->operand_count++] = described_tensor(word);
    }
    while (described_word(&attributes, word))
        read_attribute(call, word);
}

eddy_status described_call(const described *call, const char *suffix, eddy_tensor **outputs) {
    char name[DESCRIBED_WORD_MAX];
    snprintf(name, sizeof(name), "%s%s", call->op->name, suffix);
    eddy_list inputs = {call->operands, call->operand_count};
    eddy_attribute given[DESCRIBED_MAX];
    eddy_attributes attributes = {given, call->attribute_count};
    memcpy(given, call->attributes, sizeof(given));
    for (int64_t i = 0; i < call->attribute_count; i++)
        if (given[i].type == EDDY_ATTRIBUTE_TEXT)
            given[i].value.text = call->text; /* the call may be a copy */
    return eddy_call(name, inputs, &attributes, outputs);
}
