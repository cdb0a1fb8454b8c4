#include "info_parts.h"

#include <eddy/runtime.h>
#include <stdio.h>
#include <string.h>

static const char *const levels[] = {"v4", "v3", "v2", "portable"};
enum { LEVELS = sizeof(levels) / sizeof(*levels) };

/* The process has one set. A runtime that asks for another one is not started, and one that asks for it is. */
const char *info_isa_used(void) {
    const char *used = NULL;
    for (int l = 0; l < LEVELS && !used; l++) {
        eddy_runtime *runtime =
            eddy_runtime_create(EDDY_OPTIONS(runtime, .isa = levels[l], .uses_one_thread = true));
        if (runtime)
            used = levels[l];
        eddy_runtime_release(&runtime);
        (void)eddy_error_take(NULL);
    }
    return used;
}

#if defined(__x86_64__)

typedef struct extension {
    const char *name;
    bool is_there;
    int level; /* of levels: all of its extensions, and of those behind it, make it up */
} extension;

#define EXTENSION(name, level)                                                                     \
    { name, __builtin_cpu_supports(name) != 0, level }

/* Of each level those that tell it from the one below. The builtin also looks whether the system saves their registers. */
#define EXTENSION_LIST                                                                             \
    {                                                                                              \
        EXTENSION("ssse3", 2), EXTENSION("sse4.1", 2), EXTENSION("sse4.2", 2),                     \
            EXTENSION("popcnt", 2), EXTENSION("avx", 1), EXTENSION("avx2", 1),                     \
            EXTENSION("bmi", 1), EXTENSION("bmi2", 1), EXTENSION("fma", 1),                        \
            EXTENSION("avx512f", 0), EXTENSION("avx512bw", 0), EXTENSION("avx512cd", 0),           \
            EXTENSION("avx512dq", 0), EXTENSION("avx512vl", 0)                                     \
    }

const char *info_isa_offered(void) {
    const extension extensions[] = EXTENSION_LIST;
    int level = 0;
    for (size_t e = 0; e < sizeof(extensions) / sizeof(*extensions); e++)
        if (!extensions[e].is_there && extensions[e].level + 1 > level)
            level = extensions[e].level + 1;
    return levels[level];
}

void info_processor_words(char *buffer, size_t size) {
    const extension extensions[] = EXTENSION_LIST;
    buffer[0] = '\0';
    for (size_t e = 0; e < sizeof(extensions) / sizeof(*extensions); e++) {
        size_t length = strlen(buffer);
        if (extensions[e].is_there)
            snprintf(buffer + length, size - length, "%s%s", length ? " " : "", extensions[e].name);
    }
}

#else

const char *info_isa_offered(void) {
    return levels[LEVELS - 1];
}

void info_processor_words(char *buffer, size_t size) {
    snprintf(buffer, size, "none that kernels are built for");
}

#endif
