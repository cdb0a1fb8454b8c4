/* The bindings of a program by name and by number. */
#include <base/memory.h>
#include <base/status.h>
#include <program/program.h>
#include <stdio.h>
#include <string.h>

char *eddy_program_name_copy(const char *name) {
    size_t bytes = strlen(name) + 1;
    char *copy = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    if (copy)
        memcpy(copy, name, bytes);
    return copy;
}

uint32_t eddy_program_named_count(const eddy_program *program) {
    uint32_t count = 0;
    while (count < program->bindings.count && eddy_program_binding_at(program, count)->name)
        count++;
    return count;
}

int64_t eddy_program_find(const eddy_program *program, eddy_role role, const char *name) {
    int64_t number = 0;
    for (uint32_t i = 0; i < program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(program, i);
        if (binding->role != role)
            continue;
        if (strcmp(binding->name, name) == 0)
            return number;
        number++;
    }
    return -1;
}

const eddy_program_binding *eddy_program_binding_of(const eddy_program *program, eddy_role role,
                                                    int64_t number) {
    for (uint32_t i = 0; i < program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(program, i);
        if (binding->role == role && number-- == 0)
            return binding;
    }
    return NULL;
}

/* So many bytes of a name stand in a list. */
#define LISTED_BYTES 48

/* The bytes of the name that are listed: not a part of a character of UTF-8. */
static size_t listed_bytes(const char *name) {
    size_t length = strlen(name);
    if (length <= LISTED_BYTES)
        return length;
    length = LISTED_BYTES - 3;
    while (length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80)
        length--;
    return length;
}

void eddy_program_list_names(const eddy_program *program, eddy_role role, char *buffer,
                             size_t size) {
    static const char more[] = ", ...";
    size_t used = 0;
    const char *comma = "";
    const eddy_program_binding *binding;
    snprintf(buffer, size, "none");
    for (int64_t i = 0; (binding = eddy_program_binding_of(program, role, i)) != NULL;
         i++, comma = ", ") {
        const char *name = binding->name;
        size_t bytes = listed_bytes(name);
        const char *rest = name[bytes] ? "..." : "";
        if (used + strlen(comma) + bytes + strlen(rest) + sizeof(more) > size) {
            snprintf(buffer + used, size - used, "%s...", comma);
            return;
        }
        used +=
            (size_t)snprintf(buffer + used, size - used, "%s%.*s%s", comma, (int)bytes, name, rest);
    }
}

static bool is_bound(const eddy_program *program, const char *name) {
    for (uint32_t i = 0; i < eddy_program_named_count(program); i++)
        if (strcmp(eddy_program_binding_at(program, i)->name, name) == 0)
            return true;
    return false;
}

eddy_status eddy_program_refuse_name(const eddy_program *program, eddy_role role, const char *name,
                                     eddy_origin origin) {
    char names[256];
    const char *what = role == EDDY_ROLE_INPUT ? "input" : "output";
    if (!name)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the name of an %s is NULL", what);
    eddy_program_list_names(program, role, names, sizeof(names));
    if (is_bound(program, name))
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                         "%.100s is a binding of the program, but no %s: there are %s", name, what,
                         names);
    return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the program has no %s %.100s: there are %s",
                     what, name, names);
}

static int64_t number_of(const eddy_program *program, eddy_role role, const char *name,
                         eddy_origin origin) {
    if (eddy_program_check(program, origin) != EDDY_OK)
        return -1;
    int64_t number = name ? eddy_program_find(program, role, name) : -1;
    if (number < 0)
        (void)!eddy_program_refuse_name(program, role, name, origin);
    return number;
}

int64_t eddy_program_input(const eddy_program *program, const char *name) {
    return number_of(program, EDDY_ROLE_INPUT, name, EDDY_ORIGIN("program_input"));
}

int64_t eddy_program_output(const eddy_program *program, const char *name) {
    return number_of(program, EDDY_ROLE_OUTPUT, name, EDDY_ORIGIN("program_output"));
}

static int64_t number_in_role(const eddy_program *program, uint32_t index) {
    int64_t number = 0;
    for (uint32_t i = 0; i < index; i++)
        number += eddy_program_binding_at(program, i)->role ==
                  eddy_program_binding_at(program, index)->role;
    return number;
}

eddy_status eddy_program_binding_describe(const eddy_program *program, int64_t index,
                                          eddy_program_binding_info *info) {
    eddy_origin origin = EDDY_ORIGIN("program_binding_describe");
    eddy_status status = eddy_program_check(program, origin);
    if (status != EDDY_OK)
        return status;
    if (!info)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "there is no room for the info");
    uint32_t count = eddy_program_named_count(program);
    if (index < 0 || index >= count)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "there is no binding %lld: there are %u",
                         (long long)index, count);
    const eddy_program_binding *binding = eddy_program_binding_at(program, (uint32_t)index);
    eddy_program_binding_info found = {
        .size = info->size,
        .name = binding->name,
        .role = binding->is_donated ? EDDY_ROLE_DONATED : (eddy_role)binding->role,
        .number = number_in_role(program, (uint32_t)index),
        .dtype = (eddy_dtype)binding->dtype,
        .device = {(eddy_device_kind)binding->device_kind, binding->device_index},
        .shape = {.rank = binding->layout.rank}};
    if (eddy_code_value_at(&program->code, binding->value)->is_late)
        found.shape.rank = -1;
    for (int32_t d = 0; d < found.shape.rank; d++) {
        found.shape.dims[d] = binding->layout.dims[d];
        found.strides[d] = binding->layout.strides[d];
    }
    size_t bytes = info->size > 0 && info->size < sizeof(found) ? info->size : sizeof(found);
    memcpy(info, &found, bytes);
    return EDDY_OK;
}
