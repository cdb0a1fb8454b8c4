#include "command.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *tool_value(const tool_arguments *arguments, const char *option) {
    for (int o = 0; arguments->command->options[o].name; o++)
        if (strcmp(arguments->command->options[o].name, option) == 0)
            return arguments->values[o];
    return NULL;
}

bool tool_has(const tool_arguments *arguments, const char *option) {
    return tool_value(arguments, option) != NULL;
}

int tool_fail(const tool_arguments *arguments, const char *format, ...) {
    va_list list;
    /* What was printed so far comes first where both go to one file. */
    fflush(stdout);
    fprintf(stderr, "eddy %s: ", arguments->command->name);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    return TOOL_FAILED;
}
