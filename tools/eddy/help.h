/* What the table of commands says, as help, manual page and completions. */
#ifndef TOOLS_EDDY_HELP_H
#define TOOLS_EDDY_HELP_H

#include "command.h"

void tool_help_all(void);
void tool_help_command(const tool_command *command);
/* "man", "bash", "zsh", "fish"; TOOL_USAGE for another word. */
int tool_generate(const char *what);

#endif
