#include "output.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

int tool_output(const tool_arguments *arguments, void (*put)(FILE *to, const void *what),
                const void *what) {
    const char *path = tool_value(arguments, "--output");
    FILE *to = path ? fopen(path, "we") : stdout;
    if (!to)
        return tool_fail(arguments, "%s cannot be written: %s", path, strerror(errno));
    put(to, what);
    /* Of standard output main says it. What was refused before is refused again. */
    bool is_written = !path || (fflush(to) == 0 && !ferror(to));
    int why = errno;
    if (path && fclose(to) != 0 && is_written) {
        is_written = false;
        why = errno;
    }
    return is_written ? TOOL_OK
                      : tool_fail(arguments, "%s could not be written: %s", path, strerror(why));
}

void tool_put_json(FILE *to, const void *json) {
    json_dumpf(json, to, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    fputc('\n', to);
}
