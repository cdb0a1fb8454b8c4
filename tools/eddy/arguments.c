#include "command.h"
#include "screen.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tool_value(const tool_arguments *arguments, const char *option) {
    for (int o = 0; arguments->command->options[o].name; o++)
        if (strcmp(arguments->command->options[o].name, option) == 0)
            return arguments->values[o];
    return NULL;
}

bool tool_is_repeated(const tool_option *option) {
    size_t length = option->value ? strlen(option->value) : 0;
    return length > 3 && strcmp(option->value + length - 3, "...") == 0;
}

const char *tool_value_at(const tool_arguments *arguments, const char *option, int index) {
    for (int r = 0; r < arguments->repeated_count; r++) {
        const tool_option *of = &arguments->command->options[arguments->repeated[r].option];
        if (strcmp(of->name, option) == 0 && index-- == 0)
            return arguments->repeated[r].value;
    }
    return NULL;
}

bool tool_integer(const tool_arguments *arguments, const char *option, int64_t least, int64_t most,
                  int64_t *to) {
    const char *text = tool_value(arguments, option);
    char *end;
    if (!text)
        return true;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno != 0 || value < least || value > most) {
        (void)tool_fail(arguments, "%s is %s, and takes a number from %" PRId64 " to %" PRId64,
                        option, text, least, most);
        return false;
    }
    *to = value;
    return true;
}

bool tool_has(const tool_arguments *arguments, const char *option) {
    return tool_value(arguments, option) != NULL;
}

int tool_fail(const tool_arguments *arguments, const char *format, ...) {
    char text[2048];
    va_list list;
    /* What was printed so far comes first where both go to one file. */
    fflush(stdout);
    fprintf(stderr, "eddy %s: ", arguments->command->name);
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    tool_put_plain(stderr, text, strlen(text));
    fputc('\n', stderr);
    return TOOL_FAILED;
}
