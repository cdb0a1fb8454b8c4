#include "op_list.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 4096

/* Beside the installed command, and beside the one in a build. */
static const char *const places[] = {TOOL_OPS_JSON, "../../functional/ops.json"};

/* False: the path is too long, or the system does not say where the command lies. */
static bool place_path(const char *place, char path[PATH_BYTES]) {
    ssize_t length = place[0] == '/' ? 0 : readlink("/proc/self/exe", path, PATH_BYTES - 1);
    if (length < 0 || (size_t)length + strlen(place) + 2 > PATH_BYTES)
        return false;
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    strcpy(slash ? slash + 1 : path, place);
    return true;
}

json_t *op_list_load(const tool_arguments *arguments) {
    char path[PATH_BYTES] = "";
    json_error_t error;
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        if (!place_path(places[i], path) || access(path, F_OK) != 0)
            continue;
        json_t *list = json_load_file(path, 0, &error);
        if (list && json_is_array(json_object_get(list, "ops")))
            return list;
        (void)tool_fail(arguments, "%s is no op list: %s", path,
                        list ? "it has no ops" : error.text);
        json_decref(list);
        return NULL;
    }
    (void)tool_fail(arguments,
                    "there is no ops.json: neither %s nor %s from where the command lies",
                    places[0], places[1]);
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
