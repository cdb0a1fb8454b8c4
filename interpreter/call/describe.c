#include <interpreter/call/describe.h>

#include <base/dtype.h>
#include <base/shape.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void eddy_text_add(eddy_text *text, const char *format, ...) {
    size_t room = text->length < text->size ? text->size - text->length : 0;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(room ? text->buffer + text->length : NULL, room, format, arguments);
    va_end(arguments);
    if (length > 0)
        text->length += (size_t)length;
}

void eddy_text_put(eddy_text *text, const char *words) {
    size_t length = strlen(words);
    if (text->length < text->size) {
        size_t room = text->size - text->length - 1, copied = length < room ? length : room;
        memcpy(text->buffer + text->length, words, copied);
        text->buffer[text->length + copied] = '\0';
    }
    text->length += length;
}

void eddy_text_end(eddy_text *text) {
    static const char ellipsis[] = " ...";
    if (text->length >= text->size && text->size >= sizeof(ellipsis))
        memcpy(text->buffer + text->size - sizeof(ellipsis), ellipsis, sizeof(ellipsis));
}

void eddy_text_add_operand(eddy_text *text, eddy_dtype dtype, const eddy_shape *shape) {
    char dims[EDDY_RANK_MAX * 22];
    eddy_shape_format(shape->rank, shape->dims, dims, sizeof(dims));
    eddy_text_put(text, eddy_dtype_name(dtype));
    eddy_text_put(text, dims);
}

void eddy_text_add_scalar(eddy_text *text, const void *scalar) {
    eddy_scalar value;
    memcpy(&value, scalar, sizeof(value));
    if (value.kind == EDDY_SCALAR_FLOAT)
        eddy_text_add(text, ", %.9g", value.value.floating);
    else
        eddy_text_add(text, ", %lld", (long long)value.value.integer);
}

/* "labels[37]", "index[2, 5]" */
static void add_place(eddy_text *text, const eddy_indexed *indexed, int64_t position) {
    int64_t index[EDDY_RANK_MAX];
    const eddy_shape *shape = &indexed->shape;
    for (int32_t d = shape->rank - 1; d >= 0; d--) {
        index[d] = shape->dims[d] > 0 ? position % shape->dims[d] : 0;
        position = shape->dims[d] > 0 ? position / shape->dims[d] : 0;
    }
    eddy_text_add(text, "%s", indexed->name);
    for (int32_t d = 0; d < shape->rank; d++)
        eddy_text_add(text, "%s%lld%s", d ? ", " : "[", (long long)index[d],
                      d == shape->rank - 1 ? "]" : "");
}

int eddy_describe_error(const eddy_op *op, const eddy_indexed *indexed, const char *call,
                        const eddy_kernel_error *error, char *buffer, size_t size) {
    eddy_status status = (eddy_status)eddy_load_relaxed(&error->status);
    int64_t position = eddy_load_relaxed(&error->position);
    eddy_text text = {buffer, size, 0};
    long long bound = (long long)error->bound, least = op->indices_from_end ? -bound : 0;
    eddy_text_add(&text, "%s: ", op->name);
    if (status == EDDY_OUT_OF_RANGE && indexed && position != INT64_MAX) {
        add_place(&text, indexed, position);
        eddy_text_add(&text, " is %lld, out of range [%lld, %lld)", (long long)error->value, least,
                      bound);
    } else if (status == EDDY_OUT_OF_RANGE && position != INT64_MAX) {
        eddy_text_add(&text, "%lld is out of range [%lld, %lld), at position %lld",
                      (long long)error->value, least, bound, (long long)position);
    } else if (status == EDDY_INVALID_ARGUMENT && op->late_invalid) {
        eddy_text_add(&text, "%s, at position %lld", op->late_invalid, (long long)position);
    } else if (status == EDDY_NOT_FINITE) {
        eddy_text_add(&text, "the result holds a NaN, or an infinity that was not passed in");
    } else {
        eddy_text_add(&text, "%s", eddy_status_text(status));
        if (position != INT64_MAX && status != EDDY_OUT_OF_MEMORY)
            eddy_text_add(&text, " at position %lld", (long long)position);
    }
    eddy_text_add(&text, " (%s)", call);
    return (int)text.length;
}
