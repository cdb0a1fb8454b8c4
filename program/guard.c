#include <program/guard.h>

#include <base/dtype.h>
#include <base/shape.h>
#include <base/status.h>
#include <eddy/host.h>
#include <interpreter/call/describe.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const eddy_guard *guard_at(const eddy_code_array *guards, uint32_t i) {
    return (const eddy_guard *)guards->items + i;
}

static bool is_same(const eddy_guard *a, const eddy_guard *b) {
    return a->input == b->input && a->own == b->own && a->dtype == b->dtype &&
           eddy_layout_is_equal(&a->layout, &b->layout);
}

static bool has(const eddy_code_array *guards, const eddy_guard *guard) {
    for (uint32_t i = 0; i < guards->count; i++)
        if (is_same(guard_at(guards, i), guard))
            return true;
    return false;
}

static size_t bytes_of(const eddy_code_array *guards) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < guards->count; i++)
        bytes += guard_at(guards, i)->bytes;
    return bytes;
}

static uint32_t count_own(const eddy_code_array *guards) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < guards->count; i++)
        count += guard_at(guards, i)->own != NULL;
    return count;
}

static bool add(eddy_code_array *guards, const eddy_guard *guard) {
    uint32_t index;
    if (has(guards, guard))
        return true;
    if (bytes_of(guards) + guard->bytes > EDDY_GUARD_BYTES_MOST ||
        (guard->own && count_own(guards) == EDDY_GUARD_OWN_MOST) ||
        !eddy_code_array_add(guards, sizeof(*guard), 1, &index))
        return false;
    ((eddy_guard *)guards->items)[index] = *guard;
    if (guard->own)
        eddy_tensor_retain(guard->own);
    return true;
}

void eddy_guard_fini(eddy_code_array *guards) {
    for (uint32_t i = 0; i < guards->count; i++)
        if (guard_at(guards, i)->own)
            eddy_tensor_drop(guard_at(guards, i)->own);
    eddy_code_array_fini(guards, sizeof(eddy_guard));
}

/* The inputs that the tensor is a view of, and the last of them. */
static int64_t count_inputs(eddy_list inputs, const eddy_tensor *tensor, uint32_t *last) {
    int64_t count = 0;
    *last = EDDY_CODE_NONE;
    for (int64_t i = 0; i < inputs.count; i++) {
        if (inputs.items[i]->root != tensor->root)
            continue;
        count++;
        *last = (uint32_t)i;
    }
    return count;
}

/* The whole that a guard is a part of. */
static eddy_tensor *whole_of(const eddy_guard *guard, eddy_list inputs) {
    return guard->own ? guard->own : inputs.items[guard->input];
}

static bool is_small(const eddy_tensor *root) {
    return root->count * eddy_dtype_size((eddy_dtype)root->dtype) <= EDDY_GUARD_OWN_BYTES_MOST;
}

/* Elements from the first to the last. */
static int64_t reach_of(const eddy_layout *layout) {
    int64_t reach = 0;
    for (int32_t d = 0; d < layout->rank; d++)
        reach += layout->dims[d] > 0 ? (layout->dims[d] - 1) * layout->strides[d] : 0;
    return reach;
}

/* The guard of what is read; false: there can be none. */
static bool make(eddy_guard *guard, eddy_list inputs, const eddy_tensor *tensor) {
    uint32_t input;
    int64_t input_count = count_inputs(inputs, tensor, &input);
    eddy_layout whole;
    if (input_count > 1 || (input_count == 0 && !is_small(tensor->root)) || tensor->count == 0 ||
        tensor->count > EDDY_GUARD_BYTES_MOST)
        return false;
    *guard = (eddy_guard){.input = input,
                          .own = input_count == 0 ? tensor->root : NULL,
                          .dtype = tensor->dtype,
                          .bytes = (uint32_t)tensor->count *
                                   (uint32_t)eddy_dtype_size((eddy_dtype)tensor->dtype)};
    eddy_tensor_layout(whole_of(guard, inputs), &whole);
    eddy_tensor_layout(tensor, &guard->layout);
    guard->layout.offset -= whole.offset;
    return guard->dtype == whole_of(guard, inputs)->dtype && guard->layout.offset >= 0 &&
           guard->layout.offset + reach_of(&guard->layout) <= reach_of(&whole);
}

bool eddy_guard_add(eddy_code_array *guards, eddy_list inputs, const eddy_tensor *tensor) {
    eddy_guard guard;
    return make(&guard, inputs, tensor) && add(guards, &guard);
}

bool eddy_guard_is_value(const eddy_code_array *guards, const void *values, eddy_list inputs,
                         const eddy_tensor *tensor, const void *elements) {
    eddy_guard guard;
    size_t at = 0;
    if (!make(&guard, inputs, tensor))
        return true;
    for (uint32_t i = 0; i < guards->count; i++) {
        if (is_same(guard_at(guards, i), &guard))
            return memcmp((const char *)values + at, elements, guard.bytes) == 0;
        at += guard_at(guards, i)->bytes;
    }
    return true;
}

bool eddy_guard_add_all(eddy_code_array *guards, const eddy_code_array *from) {
    bool has_room = true;
    for (uint32_t i = 0; i < from->count && has_room; i++)
        has_room = add(guards, guard_at(from, i));
    return has_room;
}

bool eddy_guard_has_all(const eddy_code_array *guards, const eddy_code_array *of) {
    bool has_all = true;
    for (uint32_t i = 0; i < of->count; i++)
        has_all &= has(guards, guard_at(of, i));
    return has_all;
}

static eddy_status read_one(const eddy_guard *guard, eddy_tensor *whole, eddy_origin origin,
                            void *bytes) {
    eddy_layout layout = guard->layout;
    layout.offset += whole->offset;
    eddy_tensor *view = eddy_tensor_view(eddy_caller_self, whole, &layout, origin);
    if (!view)
        return EDDY_OUT_OF_MEMORY;
    eddy_status status = eddy_read(view, bytes, guard->bytes, NULL);
    eddy_tensor_drop(view);
    return status;
}

eddy_status eddy_guard_read(const eddy_code_array *guards, eddy_list inputs, eddy_origin origin,
                            void *bytes, size_t *count) {
    eddy_status status = EDDY_OK;
    *count = 0;
    for (uint32_t i = 0; i < guards->count && status == EDDY_OK; i++) {
        const eddy_guard *guard = guard_at(guards, i);
        status = read_one(guard, whole_of(guard, inputs), origin, (char *)bytes + *count);
        *count += guard->bytes;
    }
    return status;
}

/* ---- text ---- */

static int64_t integer_of(uint8_t dtype, const char *bytes) {
    union {
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
    } as = {0};
    memcpy(&as, bytes, (size_t)eddy_dtype_size((eddy_dtype)dtype));
    return dtype == EDDY_I8    ? as.i8
           : dtype == EDDY_I16 ? as.i16
           : dtype == EDDY_I32 ? as.i32
           : dtype == EDDY_I64 ? as.i64
                               : as.u8;
}

static void describe_own(const eddy_tensor *own, char *text, size_t size) {
    char shape[EDDY_RANK_MAX * 22];
    eddy_tensor_describe(own, shape, sizeof(shape));
    snprintf(text, size, "its own %.50s", shape);
}

void eddy_guard_describe_source(const eddy_guard *guard, char *text, size_t size) {
    if (guard->own)
        describe_own(guard->own, text, size);
    else if (guard->input == EDDY_CODE_NONE)
        snprintf(text, size, "what it computes");
    else
        snprintf(text, size, "input%u", guard->input);
}

static int describe_one(const eddy_guard *guard, const char *bytes, char *text, size_t size) {
    char source[64];
    float f32;
    double f64;
    eddy_guard_describe_source(guard, source, sizeof(source));
    if (guard->bytes != (uint32_t)eddy_dtype_size((eddy_dtype)guard->dtype))
        return snprintf(text, size, "%u bytes of %s", guard->bytes, source);
    switch (guard->dtype) {
    case EDDY_F32:
        memcpy(&f32, bytes, sizeof(f32));
        return snprintf(text, size, "%s = %g", source, (double)f32);
    case EDDY_F64:
        memcpy(&f64, bytes, sizeof(f64));
        return snprintf(text, size, "%s = %g", source, f64);
    case EDDY_BOOL:
        return snprintf(text, size, "%s = %s", source, bytes[0] ? "true" : "false");
    case EDDY_I8:
    case EDDY_I16:
    case EDDY_I32:
    case EDDY_I64:
    case EDDY_U8:
        return snprintf(text, size, "%s = %" PRId64, source, integer_of(guard->dtype, bytes));
    default:
        return snprintf(text, size, "an element of %s", source);
    }
}

void eddy_guard_describe(const eddy_code_array *guards, const void *bytes, char *text,
                         size_t size) {
    size_t length = 0, at = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < guards->count && length < size; i++) {
        if (i > 0)
            length += (size_t)snprintf(text + length, size - length, ", ");
        if (length < size)
            length += (size_t)describe_one(guard_at(guards, i), (const char *)bytes + at,
                                           text + length, size - length);
        at += guard_at(guards, i)->bytes;
    }
    eddy_text_end(&(eddy_text){text, size, length});
}
