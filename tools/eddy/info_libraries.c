#include "info_parts.h"
#include "screen.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <yajl/yajl_version.h>
#include <zlib.h>

#define VERSION_BYTES 48

typedef struct library {
    const char *name, *use;
    const char *built; /* version at build time; "": not known; NULL: without it */
    /* Writes the version of what is loaded; false: it is not, or does not say. */
    bool (*version)(char version[VERSION_BYTES]);
} library;

/* ---- versions of what is loaded ---- */
/* Functions of libraries that libeddy is linked to are looked up, so that the command itself needs none of them. */

static bool say_blis(char version[VERSION_BYTES]) {
    const char *(*say)(void) =
        (const char *(*)(void))dlsym(RTLD_DEFAULT, "bli_info_get_version_str");
    if (say)
        snprintf(version, VERSION_BYTES, "%s", say());
    return say != NULL;
}

static bool say_dnnl(char version[VERSION_BYTES]) {
    /* dnnl_version_t begins so in all versions. */
    typedef struct numbers {
        int major, minor, patch;
    } numbers;
    const numbers *(*say)(void) = (const numbers *(*)(void))dlsym(RTLD_DEFAULT, "dnnl_version");
    if (say)
        snprintf(version, VERSION_BYTES, "%d.%d.%d", say()->major, say()->minor, say()->patch);
    return say != NULL;
}

static bool say_xxhash(char version[VERSION_BYTES]) {
    unsigned (*say)(void) = (unsigned (*)(void))dlsym(RTLD_DEFAULT, "XXH_versionNumber");
    if (say)
        snprintf(version, VERSION_BYTES, "%u.%u.%u", say() / 10000, say() / 100 % 100, say() % 100);
    return say != NULL;
}

static bool say_zlib(char version[VERSION_BYTES]) {
    snprintf(version, VERSION_BYTES, "%s", zlibVersion());
    return true;
}

static bool say_jansson(char version[VERSION_BYTES]) {
    const char *(*say)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "jansson_version_str");
    if (say)
        snprintf(version, VERSION_BYTES, "%s", say());
    return say != NULL;
}

static bool say_yajl(char version[VERSION_BYTES]) {
    int number = yajl_version();
    snprintf(version, VERSION_BYTES, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
    return true;
}

/* ---- the list ---- */

#ifdef EDDY_HAVE_BLIS
#define BLIS_BUILT ""
#else
#define BLIS_BUILT NULL
#endif
#ifdef EDDY_HAVE_DNNL
#define DNNL_BUILT ""
#else
#define DNNL_BUILT NULL
#endif

static const library libraries[] = {
    {"BLIS", "products of matrices of f64 on the CPU", BLIS_BUILT, say_blis},
    {"oneDNN", "convolutions, pools and products on the CPU", DNNL_BUILT, say_dnnl},
    {"xxHash", "hashes of keys, contents and files", TOOL_XXHASH, say_xxhash},
    {"Concurrency Kit", "atomic operations and queues between threads", TOOL_CK, NULL},
    {"zlib", "compressed traces and npz files", TOOL_ZLIB, say_zlib},
    {"minizip", "npz files", TOOL_MINIZIP, NULL},
    {"jansson", "headers of safetensors files; JSON of this command", TOOL_JANSSON, say_jansson},
    {"yajl", "traces that this command reads", TOOL_YAJL, say_yajl},
};

static void show_library(const library *of, json_t *array) {
    char version[VERSION_BYTES] = "";
    bool is_loaded = of->version && of->version(version);
    bool is_built = of->built && *of->built;
    const char *known = is_loaded ? version : is_built ? of->built : "";
    const char *how = !of->built  ? "not in this build"
                      : is_loaded ? "loaded"
                      : is_built  ? "of the build; what is loaded does not say"
                                  : "in this build; its version is not known";
    if (array) {
        json_array_append_new(array, json_pack("{ss ss ss ss ss}", "name", of->name, "version",
                                               known, "built", of->built ? of->built : "", "known",
                                               how, "use", of->use));
        return;
    }
    info_say(2, "%s%s%s (%s): %s", of->name, *known ? " " : "", known, how, of->use);
}

void info_show_libraries(json_t *json) {
    json_t *array = json ? json_array() : NULL;
    if (!json) {
        printf("\n");
        tool_heading("Libraries");
    }
    for (size_t l = 0; l < sizeof(libraries) / sizeof(*libraries); l++)
        show_library(&libraries[l], array);
    if (json)
        json_object_set_new(json, "libraries", array);
}

/* The library says it once it has computed some; until then it is not known what there is. */
void info_show_cuda(const eddy_device_info *info, json_t *json) {
    const struct {
        const char *what, *by;
    } libraries_of[] = {{"products", info->products}, {"convolutions", info->convolutions}};
    for (size_t i = 0; i < 2; i++) {
        if (json)
            json_object_set_new(json, libraries_of[i].what, json_string(libraries_of[i].by));
        else
            printf("    %s by %s\n", libraries_of[i].what,
                   *libraries_of[i].by ? libraries_of[i].by
                                       : "what is found at the first one (cuBLASLt, cuDNN or "
                                         "Eddy's own)");
    }
}
