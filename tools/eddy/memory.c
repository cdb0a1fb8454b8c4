#include "memory.h"

#include "command.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *there(void *block) {
    if (!block) {
        fputs("eddy: there is no memory\n", stderr);
        exit(TOOL_FAILED);
    }
    return block;
}

void *tool_malloc(size_t bytes) {
    return there(malloc(bytes ? bytes : 1));
}

void *tool_calloc(size_t count, size_t bytes) {
    return there(calloc(count ? count : 1, bytes));
}

void *tool_realloc(void *block, size_t count, size_t bytes) {
    return there(reallocarray(block, count, bytes));
}

char *tool_strdup(const char *text) {
    return there(strdup(text));
}
