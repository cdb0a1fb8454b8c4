/* What a command writes, and where. */
#ifndef TOOLS_EDDY_OUTPUT_H
#define TOOLS_EDDY_OUTPUT_H

#include "command.h"

#include <stdio.h>

/* To the file that --output names, or standard output; `put` puts it there. TOOL_OK, or TOOL_FAILED, which is told. */
int tool_output(const tool_arguments *arguments, void (*put)(FILE *to, const void *what),
                const void *what);

/* A json_t and a newline: every --json is written so. */
void tool_put_json(FILE *to, const void *json);

#endif
