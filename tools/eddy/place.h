/* Files that are installed with the command, or lie beside it in a build. */
#ifndef TOOLS_EDDY_PLACE_H
#define TOOLS_EDDY_PLACE_H

#include "command.h"

#define TOOL_PATH_BYTES 4096

/* The path of `what`: `installed` or `built` from where the command lies, whichever is there. False: neither, which it says. */
bool tool_find(const tool_arguments *arguments, const char *what, const char *installed,
               const char *built, char path[TOOL_PATH_BYTES]);

#endif
