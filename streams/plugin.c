#include <base/log.h>
#include <dlfcn.h>
#include <stdio.h>
#include <streams/plugin.h>
#include <string.h>

static const eddy_plugin_host host = {
    .version = EDDY_PLUGIN_VERSION,
#define EDDY_PLUGIN_HOST_ROW(result, name, parameters, arguments) .name = name,
    EDDY_PLUGIN_HOST_LIST(EDDY_PLUGIN_HOST_ROW)
#undef EDDY_PLUGIN_HOST_ROW
        .assert_failed = eddy_assert_failed,
    .log_line = eddy_log_line,
};

/* NULL: a kind without a plug-in. */
static const char *const libraries[EDDY_DEVICE_KIND_COUNT] = {
    [EDDY_DEVICE_CUDA] = "libeddy-cuda.so",
};

/* What became of the first attempt, which is the last one. */
typedef struct opened {
    const eddy_plugin *plugin; /* started; NULL: there is none, and `why` says what is missing */
    char why[160];
    _Atomic bool is_tried; /* atomic: release, under `opening`, after the rest */
} opened;

static opened all[EDDY_DEVICE_KIND_COUNT];
static eddy_lock
    opening; /* held while a library and a driver start: nothing of either calls back */

static void explain(opened *one, const char *library, const char *cause) {
    snprintf(one->why, sizeof(one->why), "%s %s", library, cause);
}

/* The release of Eddy, and which of its tables: several builds may call themselves by one release. */
static void format_version(uint32_t version, char *text, size_t size) {
    snprintf(text, size, "%u.%u.%u-%u", version / 1000000, version / 10000 % 100,
             version / 100 % 100, version % 100);
}

static void explain_version(opened *one, const char *library, uint32_t version) {
    char its[32], ours[32];
    format_version(version, its, sizeof(its));
    format_version(EDDY_PLUGIN_VERSION, ours, sizeof(ours));
    snprintf(one->why, sizeof(one->why),
             "%s is of Eddy %s, and this library of %s: install both from one build", library, its,
             ours);
}

static void open_library(opened *one, const char *library) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        /* The loader's sentence begins with the library's name. */
        const char *cause = dlerror();
        snprintf(one->why, sizeof(one->why), "%s", cause ? cause : library);
        return;
    }
    void *symbol = dlsym(handle, EDDY_PLUGIN_SYMBOL);
    eddy_plugin_open_fn *open_plugin;
    memcpy(&open_plugin, &symbol, sizeof(open_plugin));
    const eddy_plugin *plugin = symbol ? open_plugin(&host) : NULL;
    if (!plugin)
        explain(one, library, "is no plug-in of Eddy");
    else if (plugin->version != EDDY_PLUGIN_VERSION)
        explain_version(one, library, plugin->version);
    else if (plugin->start(one->why, sizeof(one->why)) == EDDY_OK)
        one->plugin = plugin;
}

const eddy_plugin *eddy_plugin_of(eddy_device_kind kind, char *why, size_t size) {
    opened *one = &all[kind];
    if (EDDY_UNLIKELY(!eddy_load_acquire(&one->is_tried))) {
        eddy_lock_acquire(&opening);
        if (!eddy_load_relaxed(&one->is_tried)) {
            if (libraries[kind])
                open_library(one, libraries[kind]);
            eddy_store_release(&one->is_tried, true);
        }
        eddy_lock_release(&opening);
    }
    if (!one->plugin && why)
        snprintf(why, size, "%s", one->why);
    return one->plugin;
}

void eddy_plugin_fork_child(void) {
    opening = (eddy_lock){0};
    for (int kind = 0; kind < EDDY_DEVICE_KIND_COUNT; kind++) {
        opened *one = &all[kind];
        if (one->plugin)
            explain(one, libraries[kind],
                    "was in use before the fork, which drivers do not survive");
        one->plugin = NULL;
    }
}
