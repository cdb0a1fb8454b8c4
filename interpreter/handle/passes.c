/* The option `passes`: which passes programs go through. */
#include <base/status.h>
#include <eddy/program.h>
#include <interpreter/handle/runtime.h>
#include <string.h>

static const char *const names[] = {
#define EDDY_PASS_ROW(name, sentence) #name,
    EDDY_PASS_LIST(EDDY_PASS_ROW) EDDY_FAST_PASS_LIST(EDDY_PASS_ROW)
        EDDY_MEMORY_PASS_LIST(EDDY_PASS_ROW)
#undef EDDY_PASS_ROW
};
#define COUNT (sizeof(names) / sizeof(names[0]))

#define EDDY_PASS_ROW(name, sentence) +1
enum {
    ALL_COUNT = 0 EDDY_PASS_LIST(EDDY_PASS_ROW),
    FAST_COUNT = 0 EDDY_FAST_PASS_LIST(EDDY_PASS_ROW)
};
#undef EDDY_PASS_ROW
#define ALL ((UINT32_C(1) << ALL_COUNT) - 1)
#define FAST (((UINT32_C(1) << FAST_COUNT) - 1) << ALL_COUNT)

#define EDDY_PASS_ROW(name, sentence) " " #name
#define LISTED                                                                                     \
    EDDY_PASS_LIST(EDDY_PASS_ROW)                                                                  \
    ", fast or of" EDDY_FAST_PASS_LIST(EDDY_PASS_ROW) ", or" EDDY_MEMORY_PASS_LIST(EDDY_PASS_ROW)

static bool is_word(const char *text, size_t length, const char *word) {
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* The bits of one word; 0: there is no such pass. */
static uint32_t find(const char *text, size_t length) {
    if (is_word(text, length, "all"))
        return ALL;
    if (is_word(text, length, "fast"))
        return FAST;
    for (size_t i = 0; i < COUNT; i++)
        if (is_word(text, length, names[i]))
            return UINT32_C(1) << i;
    return 0;
}

eddy_status eddy_runtime_parse_passes(const char *text, const char *from, eddy_origin origin,
                                      uint32_t *passes) {
    *passes = 0;
    if (strcmp(text, "none") == 0)
        return EDDY_OK;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        uint32_t found = find(at, length);
        if (found == 0)
            return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                             "%s is %.100s, not all, none, or some of" LISTED
                             " with commas between them",
                             from, text);
        *passes |= found;
        at += length;
        if (*at == '\0')
            return EDDY_OK;
    }
}
