/* What a program's text says, as JSON, for those who draw it otherwise. */
#ifndef TOOLS_EDDY_PROGRAM_JSON_H
#define TOOLS_EDDY_PROGRAM_JSON_H

#include "command.h"
#include "program_text.h"

/* To the file that --output names, or standard output. TOOL_OK or TOOL_FAILED. */
int program_json_write(const tool_arguments *arguments, const program_text *text);

#endif
