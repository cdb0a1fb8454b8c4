/* eddy info */
#include "info_parts.h"
#include "library_error.h"
#include "output.h"
#include "screen.h"

#include <eddy/device.h>
#include <eddy/device_memory.h>
#include <eddy/dtype.h>
#include <eddy/runtime.h>
#include <eddy/version.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 600

static void put(json_t *object, const char *name, int64_t value) {
    if (object)
        json_object_set_new(object, name, json_integer(value));
}

/* Of bytes that are no UTF-8 jansson makes nothing. */
static void put_text(json_t *object, const char *name, const char *text) {
    json_t *value = object ? json_string(text) : NULL;
    if (object)
        json_object_set_new(object, name, value ? value : json_string("?"));
}

void info_say(int indent, const char *format, ...) {
    char text[TEXT_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    printf("%*s", indent, "");
    tool_wrap(text, indent + 4, indent);
}

/* ---- the library and its runtime ---- */

static void show_version(json_t *json) {
    if (json) {
        put_text(json, "version", eddy_version_text());
        return;
    }
    char text[64];
    snprintf(text, sizeof(text), "Eddy %s", eddy_version_text());
    tool_heading(text);
}

/* What a runtime starts with is found out by starting the default one. */
static bool show_runtime(json_t *json) {
    char why[TEXT_BYTES];
    bool runs = eddy_runtime_current() != NULL;
    if (!runs)
        library_error_take(why, sizeof(why));
    int32_t threads = runs ? eddy_thread_count() : 0;
    if (json && runs) {
        put(json, "threads", threads);
    } else if (json) {
        put_text(json, "runtime_error", why);
    } else if (runs) {
        printf("Threads that run kernels: %" PRId32 "\n", threads);
    } else {
        info_say(0, "No runtime can be started: %s", why);
    }
    return runs;
}

static void show_isa(json_t *json, bool runs) {
    const char *used = runs ? info_isa_used() : NULL;
    char words[TEXT_BYTES];
    info_processor_words(words, sizeof(words));
    if (json) {
        json_t *object = json_object();
        if (used)
            put_text(object, "used", used);
        put_text(object, "built", TOOL_ISAS);
        put_text(object, "offered", info_isa_offered());
        put_text(object, "extensions", words);
        json_object_set_new(json, "isa", object);
        return;
    }
    info_say(0, "Instruction set of kernels: %s. This build has %s; the processor offers %s (%s).",
             used ? used : "not known", TOOL_ISAS, info_isa_offered(), words);
}

/* ---- options ---- */

typedef struct option_list {
    json_t *array; /* NULL: text */
    int name_width;
} option_list;

static void show_option(const option_list *list, const char *name, const char *variable,
                        const char *default_value, const char *sentence) {
    const char *set = getenv(variable);
    bool is_set = set && *set;
    if (list->array) {
        json_t *object = json_object();
        put_text(object, "name", name);
        put_text(object, "variable", variable);
        put_text(object, "value", is_set ? set : default_value);
        put_text(object, "source", is_set ? "environment" : "default");
        put_text(object, "sentence", sentence);
        json_array_append_new(list->array, object);
        return;
    }
    printf("  %-*s  ", list->name_width, name);
    const char *value = is_set ? set : *default_value ? default_value : "\"\"";
    (void)tool_put_plain(stdout, value, strlen(value));
    if (is_set)
        printf("  (%s)", variable);
    putchar('\n');
}

/* Of the list in <eddy/options.h>. A runtime that a program starts may have others: what it sets in its struct goes before. */
static void show_options(json_t *json) {
    option_list list = {.array = json ? json_array() : NULL};
    char text[32];
    if (!json) {
        printf("\n");
        tool_heading("Options of a runtime, by default or by the environment");
    }
#define OPTION_WIDTH(name, ...)                                                                    \
    if ((int)strlen(#name) > list.name_width)                                                      \
        list.name_width = (int)strlen(#name);
    EDDY_RUNTIME_OPTION_LIST(OPTION_WIDTH, OPTION_WIDTH, OPTION_WIDTH)
#undef OPTION_WIDTH
#define OPTION_BOOL(name, variable, sentence) show_option(&list, #name, variable, "0", sentence);
#define OPTION_INT(name, variable, least, most, default_value, sentence)                           \
    snprintf(text, sizeof(text), "%" PRId64, (int64_t)(default_value));                            \
    show_option(&list, #name, variable, text, sentence);
#define OPTION_STRING(name, variable, default_value, sentence)                                     \
    show_option(&list, #name, variable, default_value, sentence);
    EDDY_RUNTIME_OPTION_LIST(OPTION_BOOL, OPTION_INT, OPTION_STRING)
#undef OPTION_BOOL
#undef OPTION_INT
#undef OPTION_STRING
    if (json)
        json_object_set_new(json, "options", list.array);
}

/* ---- devices ---- */

static void show_memory(eddy_device device, json_t *json) {
    eddy_device_memory memory = {.size = sizeof(memory)};
    char why[TEXT_BYTES], limit[TOOL_CELL_BYTES], live[TOOL_CELL_BYTES];
    if (eddy_device_memory_read(device, &memory) != EDDY_OK) {
        library_error_take(why, sizeof(why));
        put_text(json, "error", why);
        if (!json)
            info_say(4, "cannot be started: %s", why);
        return;
    }
    put(json, "limit_bytes", memory.limit_bytes);
    put(json, "live_bytes", memory.live_bytes);
    tool_format_bytes(memory.limit_bytes, limit);
    tool_format_bytes(memory.live_bytes, live);
    if (!json)
        printf("    tensors may have %s, and have %s\n", limit, live);
}

static void show_device(eddy_device device, json_t *array, bool runs) {
    eddy_device_info info = {.size = sizeof(info)};
    char name[32], why[TEXT_BYTES], memory[TOOL_CELL_BYTES];
    json_t *json = array ? json_object() : NULL;
    eddy_device_format(device, name, sizeof(name));
    put_text(json, "name", name);
    if (eddy_device_describe(device, &info) != EDDY_OK) {
        library_error_take(why, sizeof(why));
        put_text(json, "error", why);
        if (!json)
            info_say(2, "%s: %s", name, why);
    } else {
        put_text(json, "product", info.name);
        put(json, "memory_bytes", info.memory_bytes);
        put(json, "processors", info.processor_count);
        if (json)
            json_object_set_new(json, "is_simulated", json_boolean(info.is_simulated));
        tool_format_bytes(info.memory_bytes, memory);
        if (!json)
            info_say(2, "%s: %s%s%s, %" PRId32 " %s", name, info.name, *info.name ? ", " : "",
                     memory, info.processor_count,
                     device.kind == EDDY_DEVICE_CUDA ? "multiprocessors"
                     : info.processor_count == 1     ? "processor"
                                                     : "processors");
        if (runs)
            show_memory(device, json);
        if (device.kind == EDDY_DEVICE_CUDA)
            info_show_cuda(&info, json);
    }
    if (array)
        json_array_append_new(array, json);
}

static void show_devices(json_t *json, bool runs) {
    json_t *array = json ? json_array() : NULL;
    static const eddy_device_kind kinds[] = {EDDY_DEVICE_CPU, EDDY_DEVICE_CUDA, EDDY_DEVICE_FAR};
    if (!json) {
        printf("\n");
        tool_heading("Devices");
    }
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
        int32_t count = eddy_device_count(kinds[k]);
        /* Of far ones, which are all alike, the first. What there is none of says why. */
        int32_t shown = count == 0 || kinds[k] == EDDY_DEVICE_FAR ? 1 : count;
        for (int32_t i = 0; i < shown; i++)
            show_device(eddy_device_make(kinds[k], i), array, runs);
        if (!json && kinds[k] == EDDY_DEVICE_FAR && count > 1)
            printf("    %" PRId32 " of them, simulated\n", count);
    }
    if (json)
        json_object_set_new(json, "devices", array);
}

/* ---- the command ---- */

int tool_info(const tool_arguments *arguments) {
    json_t *json = tool_has(arguments, "--json") ? json_object() : NULL;
    show_version(json);
    bool runs = show_runtime(json);
    show_isa(json, runs);
    show_options(json);
    show_devices(json, runs);
    info_show_libraries(json);
    if (json)
        tool_put_json(stdout, json);
    json_decref(json);
    return TOOL_OK;
}
