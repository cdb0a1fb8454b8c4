/* Values in the text of a program: their names and numbers, and layouts. */
#include <program/parser.h>

#include <base/dtype.h>
#include <base/hash.h>
#include <base/memory.h>
#include <base/shape.h>
#include <inttypes.h>
#include <program/attribute.h>
#include <string.h>

bool eddy_parser_fail_memory(eddy_parser *p) {
    return eddy_cursor_fail(&p->cursor, EDDY_OUT_OF_MEMORY, "no memory for the program");
}

bool eddy_parser_add_u32(eddy_code_array *array, uint32_t value) {
    uint32_t index;
    if (!eddy_code_array_add(array, sizeof(value), 1, &index))
        return false;
    ((uint32_t *)array->items)[index] = value;
    return true;
}

/* ---- names ---- */

static eddy_lexeme name_at(const eddy_parser *p, uint32_t binding) {
    return ((const eddy_lexeme *)p->names.items)[binding];
}

static bool is_same(eddy_lexeme a, eddy_lexeme b) {
    return a.length == b.length && memcmp(a.start, b.start, a.length) == 0;
}

/* The slot of the name, or the free one where it goes. */
uint32_t *eddy_parser_find_slot(const eddy_parser *p, eddy_lexeme name) {
    uint32_t at = (uint32_t)eddy_hash_64(name.start, name.length, 0) & (p->slot_count - 1);
    while (p->slots[at] != 0 && !is_same(name_at(p, p->slots[at] - 1), name))
        at = (at + 1) & (p->slot_count - 1);
    return &p->slots[at];
}

bool eddy_parser_grow_names(eddy_parser *p) {
    uint32_t *old = p->slots, old_count = p->slot_count;
    if (2 * (p->names.count + 1) <= old_count)
        return true;
    p->slot_count = old_count ? 2 * old_count : 32;
    p->slots = eddy_memory_acquire_zeroed(p->slot_count * sizeof(uint32_t), EDDY_MEMORY_PROGRAM);
    if (!p->slots) {
        p->slots = old;
        p->slot_count = old_count;
        return false;
    }
    for (uint32_t i = 0; i < old_count; i++)
        if (old[i] != 0)
            *eddy_parser_find_slot(p, name_at(p, old[i] - 1)) = old[i];
    eddy_memory_release(old, old_count * sizeof(uint32_t), EDDY_MEMORY_PROGRAM);
    return true;
}

static int digit_of(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The name without its quotes; false where an escape is none. What is written otherwise than it is printed is found by comparing the
 * texts at the end. */
static bool unquote(eddy_lexeme name, char *to) {
    if (name.start[0] != '"') {
        memcpy(to, name.start, name.length);
        to[name.length] = 0;
        return true;
    }
    const char *at = name.start + 1, *end = name.start + name.length - 1;
    while (at < end) {
        if (*at != '\\') {
            *to++ = *at++;
        } else if (end - at >= 4 && at[1] == 'x' && digit_of(at[2]) >= 0 && digit_of(at[3]) >= 0) {
            *to++ = (char)(digit_of(at[2]) * 16 + digit_of(at[3]));
            at += 4;
        } else if (end - at >= 2 && (at[1] == '"' || at[1] == '\\')) {
            *to++ = at[1];
            at += 2;
        } else {
            return false;
        }
        if (to[-1] == 0)
            return false;
    }
    *to = 0;
    return true;
}

/* A new name of exactly its bytes, as destroying the program takes it. */
bool eddy_parser_set_name(eddy_parser *p, eddy_program_binding *binding, eddy_lexeme name) {
    char *given = eddy_memory_acquire(name.length + 1, EDDY_MEMORY_TEXT);
    if (!given)
        return eddy_parser_fail_memory(p);
    bool is_name = unquote(name, given) && given[0];
    size_t bytes = is_name ? strlen(given) + 1 : 0;
    binding->name = is_name ? eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM) : NULL;
    if (binding->name)
        memcpy(binding->name, given, bytes);
    eddy_memory_release(given, name.length + 1, EDDY_MEMORY_TEXT);
    if (!is_name)
        return eddy_cursor_fail(&p->cursor, EDDY_INVALID_ARGUMENT, "expected a name");
    return binding->name || eddy_parser_fail_memory(p);
}

/* ---- layouts ---- */

static bool parse_strides(eddy_parser *p, eddy_layout *layout) {
    int32_t count = layout->rank;
    if (!eddy_parser_take(p, " strides ")) {
        eddy_shape_strides_contiguous(layout->rank, layout->dims, layout->strides);
        return true;
    }
    return eddy_cursor_integers(&p->cursor, "a stride", 0, &count, layout->strides) &&
           (count == layout->rank ||
            eddy_cursor_fail(&p->cursor, EDDY_INVALID_ARGUMENT, "expected %d strides, not %d",
                             (int)layout->rank, (int)count));
}

/* "f32[2, 3] strides [1, 2] at 4" */
bool eddy_parser_layout(eddy_parser *p, eddy_dtype *dtype, eddy_layout *layout) {
    eddy_shape shape = {0};
    *layout = (eddy_layout){0};
    if (!eddy_attribute_dtype(&p->cursor, dtype) ||
        !eddy_cursor_integers(&p->cursor, "a dim", 0, &shape.rank, shape.dims))
        return false;
    if (!eddy_shape_is_valid(&shape))
        return eddy_cursor_fail(&p->cursor, EDDY_INVALID_ARGUMENT,
                                "expected a shape whose elements can be counted");
    layout->rank = shape.rank;
    memcpy(layout->dims, shape.dims, sizeof(shape.dims));
    return parse_strides(p, layout) &&
           (!eddy_parser_take(p, " at ") ||
            eddy_cursor_integer(&p->cursor, "an offset", -(INT64_C(1) << 47), INT64_MAX,
                                &layout->offset));
}

/* The bytes from the first element to the last; false where they are more than any storage has. */
static bool span_of(const eddy_layout *layout, eddy_dtype dtype, int64_t *bytes) {
    __int128 last = 0;
    *bytes = 0;
    for (int32_t d = 0; d < layout->rank; d++) {
        if (layout->dims[d] == 0)
            return true;
        last += (__int128)(layout->dims[d] - 1) * layout->strides[d];
    }
    last = (last + 1) * eddy_dtype_size(dtype);
    *bytes = last > INT64_MAX ? 0 : (int64_t)last;
    return last <= INT64_MAX;
}

bool eddy_parser_span(eddy_parser *p, const eddy_layout *layout, eddy_dtype dtype, int64_t *bytes) {
    return span_of(layout, dtype, bytes) ||
           eddy_cursor_fail(&p->cursor, EDDY_INVALID_ARGUMENT, "expected a storage of fewer bytes");
}

/* ---- values ---- */

bool eddy_parser_add_value(eddy_parser *p, eddy_value_kind kind, int64_t bytes, uint32_t *value) {
    return eddy_code_add_value(p->code, &(eddy_code_value){.bytes = bytes, .kind = (uint8_t)kind},
                               value) ||
           eddy_parser_fail_memory(p);
}

/* " on far:0" */
bool eddy_parser_device(eddy_parser *p, uint32_t value) {
    char text[16];
    size_t length = 0;
    if (!eddy_parser_take(p, " on "))
        return true;
    const char *at = p->cursor.at;
    while (at + length < p->cursor.end && length < sizeof(text) - 1 &&
           ((at[length] >= 'a' && at[length] <= 'z') || (at[length] >= '0' && at[length] <= ':')))
        length++;
    memcpy(text, at, length);
    text[length] = 0;
    eddy_device device;
    if (!eddy_runtime_device_named(text, &device) || !eddy_runtime_has_device(device))
        return eddy_cursor_expected(&p->cursor, "a device that is here");
    p->cursor.at += length;
    eddy_code_value_set_device(eddy_code_value_at(p->code, value), device);
    return true;
}

/* A value without a name begins here: "%3", the number that is next. */
bool eddy_parser_begin(eddy_parser *p, eddy_value_kind kind, int64_t bytes, uint32_t *value) {
    return eddy_parser_add_value(p, kind, bytes, value) &&
           (eddy_parser_add_u32(&p->numbered, *value) || eddy_parser_fail_memory(p));
}

bool eddy_parser_is_next(const eddy_parser *p, int64_t number) {
    return number == p->numbered.count;
}

bool eddy_parser_number(eddy_parser *p, int64_t *number) {
    return eddy_cursor_pass(&p->cursor, "%") &&
           eddy_cursor_integer(&p->cursor, "the number of a value", 0, INT32_MAX, number);
}

/* The value of a name, which a line before has begun. */
bool eddy_parser_find_name(eddy_parser *p, eddy_lexeme name, uint32_t *value) {
    uint32_t slot = p->slot_count ? *eddy_parser_find_slot(p, name) : 0;
    if (slot != 0) {
        const eddy_program_binding *binding = eddy_program_binding_at(p->program, slot - 1);
        *value = binding->role == EDDY_ROLE_OUTPUT ? EDDY_CODE_NONE : binding->value;
    }
    return (slot != 0 && *value != EDDY_CODE_NONE) ||
           eddy_cursor_fail(&p->cursor, EDDY_INVALID_ARGUMENT,
                            "expected an input or a state, not %.*s",
                            (int)(name.length < 64 ? name.length : 64), name.start);
}

bool eddy_parser_find_number(eddy_parser *p, int64_t number, uint32_t *value) {
    if (number >= p->numbered.count)
        return eddy_cursor_fail(&p->cursor, EDDY_INVALID_ARGUMENT,
                                "expected a value that a line before begins, not %%%" PRId64,
                                number);
    *value = ((const uint32_t *)p->numbered.items)[number];
    return true;
}
