#include "op_list.h"

#include "place.h"

#include <string.h>

json_t *op_list_load(const tool_arguments *arguments) {
    char path[TOOL_PATH_BYTES];
    json_error_t error;
    if (!tool_find(arguments, "ops.json", TOOL_OPS_JSON, "../../functional/ops.json", path))
        return NULL;
    json_t *list = json_load_file(path, 0, &error);
    if (list && json_is_array(json_object_get(list, "ops")))
        return list;
    (void)tool_fail(arguments, "%s is no op list: %s", path, list ? "it has no ops" : error.text);
    json_decref(list);
    return NULL;
}

json_t *op_list_at(const json_t *list, size_t i) {
    const json_t *ops = json_object_get(list, "ops");
    size_t count = json_array_size(ops);
    return i < count ? json_array_get(ops, i)
                     : json_array_get(json_object_get(list, "compositions"), i - count);
}

json_t *op_list_find(const json_t *list, const char *name) {
    json_t *op;
    for (size_t i = 0; (op = op_list_at(list, i)); i++)
        if (strcmp(op_text(op, "name"), name) == 0)
            return op;
    return NULL;
}

const char *op_text(const json_t *object, const char *field) {
    const char *text = json_string_value(json_object_get(object, field));
    return text ? text : "";
}

/* Functions that are made of ops have none of their own. */
const char *op_family(const json_t *op) {
    const char *family = op_text(op, "family");
    return *family ? family : "composition";
}
