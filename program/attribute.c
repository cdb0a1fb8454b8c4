#include <program/attribute.h>

#include <base/dtype.h>
#include <base/shape.h>
#include <inttypes.h>
#include <program/decimal.h>
#include <stdio.h>
#include <string.h>

/* ---- writing ---- */

static void format_double(eddy_text *text, double value) {
    char digits[EDDY_DECIMAL_BYTES];
    eddy_decimal_format(value, digits);
    eddy_text_add(text, "%s", digits);
}

static void format_bool(eddy_text *text, bool value) {
    eddy_text_add(text, "%s", value ? "true" : "false");
}

static void format_scalar(eddy_text *text, const eddy_scalar *scalar) {
    if (scalar->kind == EDDY_SCALAR_FLOAT)
        format_double(text, scalar->value.floating);
    else if (scalar->kind == EDDY_SCALAR_INT)
        eddy_text_add(text, "%" PRId64, scalar->value.integer);
    else
        format_bool(text, scalar->value.integer != 0);
}

/* The name of that number in "mean sum none"; empty if there is none. */
static eddy_lexeme choice_at(const char *choices, int32_t number) {
    for (; number > 0 && *choices; number--) {
        choices += strcspn(choices, " ");
        choices += *choices == ' ';
    }
    return (eddy_lexeme){choices, strcspn(choices, " ")};
}

static void format_axes(eddy_text *text, uint32_t mask) {
    const char *comma = "";
    eddy_text_add(text, "[");
    for (int axis = 0; axis < EDDY_RANK_MAX; axis++)
        if (mask >> axis & 1u) {
            eddy_text_add(text, "%s%d", comma, axis);
            comma = ", ";
        }
    eddy_text_add(text, "]");
}

static void format_shape(eddy_text *text, const eddy_shape *shape) {
    char dims[EDDY_RANK_MAX * 22];
    eddy_shape_format(shape->rank, shape->dims, dims, sizeof(dims));
    eddy_text_add(text, "%s", dims);
}

void eddy_attribute_format(eddy_text *text, const eddy_op_attribute *attribute, const char *place) {
    const void *value = place;
    eddy_lexeme choice;
    switch (attribute->type) {
    case EDDY_ATTRIBUTE_INT:
        eddy_text_add(text, "%" PRId64, *(const int64_t *)value);
        break;
    case EDDY_ATTRIBUTE_FLOAT:
        format_double(text, *(const double *)value);
        break;
    case EDDY_ATTRIBUTE_BOOL:
        format_bool(text, *(const bool *)value);
        break;
    case EDDY_ATTRIBUTE_SCALAR:
        format_scalar(text, value);
        break;
    case EDDY_ATTRIBUTE_DTYPE:
        eddy_text_add(text, "%s", eddy_dtype_name(*(const eddy_dtype *)value));
        break;
    case EDDY_ATTRIBUTE_SHAPE:
        format_shape(text, value);
        break;
    case EDDY_ATTRIBUTE_AXES:
        format_axes(text, *(const uint32_t *)value);
        break;
    case EDDY_ATTRIBUTE_AXIS:
        eddy_text_add(text, "%" PRId32, *(const int32_t *)value);
        break;
    case EDDY_ATTRIBUTE_CHOICE:
        choice = choice_at(attribute->choices, *(const int32_t *)value);
        eddy_text_add(text, "%.*s", (int)choice.length, choice.start);
        break;
    case EDDY_ATTRIBUTE_PAIR:
        eddy_text_add(text, "[%" PRId64 ", %" PRId64 "]", ((const eddy_pair *)value)->height,
                      ((const eddy_pair *)value)->width);
        break;
    default:
        eddy_text_add(text, "?"); /* of a type that stands in no struct */
    }
}

/* ---- reading ---- */

static bool parse_double(eddy_cursor *cursor, double *value) {
    size_t length = eddy_decimal_parse(cursor->at, (size_t)(cursor->end - cursor->at), value);
    cursor->at += length;
    return length > 0 || eddy_cursor_expected(cursor, "a number");
}

static bool parse_bool(eddy_cursor *cursor, bool *value) {
    *value = eddy_cursor_take(cursor, "true");
    return *value || eddy_cursor_take(cursor, "false") ||
           eddy_cursor_expected(cursor, "true or false");
}

/* Whether what stands here reads as a double: integers have neither '.' nor an exponent. */
static bool is_double(const eddy_cursor *cursor) {
    const char *at = cursor->at;
    at += at < cursor->end && *at == '-';
    if (at < cursor->end && (*at == 'n' || *at == 'i'))
        return true;
    while (at < cursor->end && *at >= '0' && *at <= '9')
        at++;
    return at < cursor->end && (*at == '.' || *at == 'e');
}

static bool parse_scalar(eddy_cursor *cursor, eddy_scalar *scalar) {
    if (eddy_cursor_is_at(cursor, "true") || eddy_cursor_is_at(cursor, "false")) {
        bool value;
        scalar->kind = EDDY_SCALAR_BOOL;
        if (!parse_bool(cursor, &value))
            return false;
        scalar->value.integer = value;
        return true;
    }
    if (is_double(cursor)) {
        scalar->kind = EDDY_SCALAR_FLOAT;
        return parse_double(cursor, &scalar->value.floating);
    }
    scalar->kind = EDDY_SCALAR_INT;
    return eddy_cursor_integer(cursor, "a number", INT64_MIN, INT64_MAX, &scalar->value.integer);
}

bool eddy_attribute_dtype(eddy_cursor *cursor, eddy_dtype *dtype) {
    const char *from = cursor->at;
    eddy_lexeme word;
    if (!eddy_cursor_word(cursor, "a dtype", &word))
        return false;
    for (int d = 0; d < EDDY_DTYPE_COUNT; d++)
        if (eddy_lexeme_is(word, eddy_dtype_name((eddy_dtype)d))) {
            *dtype = (eddy_dtype)d;
            return true;
        }
    cursor->at = from;
    return eddy_cursor_expected(cursor, "a dtype");
}

static bool parse_axes(eddy_cursor *cursor, uint32_t *mask) {
    int32_t count;
    int64_t axes[EDDY_RANK_MAX];
    if (!eddy_cursor_integers(cursor, "an axis", 0, &count, axes))
        return false;
    for (int32_t i = 0; i < count; i++) {
        if (axes[i] >= EDDY_RANK_MAX || (i > 0 && axes[i] <= axes[i - 1]))
            return eddy_cursor_fail(cursor, EDDY_INVALID_ARGUMENT,
                                    "expected axes from 0 to %d, each once and in their order",
                                    EDDY_RANK_MAX - 1);
        *mask |= 1u << axes[i];
    }
    return true;
}

static bool parse_choice(eddy_cursor *cursor, const char *choices, int32_t *number) {
    const char *from = cursor->at;
    char expected[160];
    eddy_lexeme word;
    if (!eddy_cursor_word(cursor, "a choice", &word))
        return false;
    for (*number = 0; choice_at(choices, *number).length > 0; ++*number) {
        eddy_lexeme choice = choice_at(choices, *number);
        if (choice.length == word.length && memcmp(choice.start, word.start, word.length) == 0)
            return true;
    }
    cursor->at = from;
    snprintf(expected, sizeof(expected), "one of '%s'", choices);
    return eddy_cursor_expected(cursor, expected);
}

static bool parse_pair(eddy_cursor *cursor, eddy_pair *pair) {
    return eddy_cursor_pass(cursor, "[") &&
           eddy_cursor_integer(cursor, "a number", INT64_MIN, INT64_MAX, &pair->height) &&
           eddy_cursor_pass(cursor, ", ") &&
           eddy_cursor_integer(cursor, "a number", INT64_MIN, INT64_MAX, &pair->width) &&
           eddy_cursor_pass(cursor, "]");
}

static bool parse_axis(eddy_cursor *cursor, int32_t *axis) {
    int64_t number;
    if (!eddy_cursor_integer(cursor, "an axis", 0, EDDY_RANK_MAX, &number))
        return false;
    *axis = (int32_t)number;
    return true;
}

bool eddy_attribute_parse(eddy_cursor *cursor, const eddy_op_attribute *attribute, char *place) {
    void *value = place;
    eddy_shape *shape = value;
    switch (attribute->type) {
    case EDDY_ATTRIBUTE_INT:
        return eddy_cursor_integer(cursor, "a number", INT64_MIN, INT64_MAX, value);
    case EDDY_ATTRIBUTE_FLOAT:
        return parse_double(cursor, value);
    case EDDY_ATTRIBUTE_BOOL:
        return parse_bool(cursor, value);
    case EDDY_ATTRIBUTE_SCALAR:
        return parse_scalar(cursor, value);
    case EDDY_ATTRIBUTE_DTYPE:
        return eddy_attribute_dtype(cursor, value);
    case EDDY_ATTRIBUTE_SHAPE:
        return eddy_cursor_integers(cursor, "a number", INT64_MIN, &shape->rank, shape->dims);
    case EDDY_ATTRIBUTE_AXES:
        return parse_axes(cursor, value);
    case EDDY_ATTRIBUTE_AXIS:
        return parse_axis(cursor, value);
    case EDDY_ATTRIBUTE_CHOICE:
        return parse_choice(cursor, attribute->choices, value);
    case EDDY_ATTRIBUTE_PAIR:
        return parse_pair(cursor, value);
    default:
        return eddy_cursor_expected(cursor, "an attribute that has a text");
    }
}
