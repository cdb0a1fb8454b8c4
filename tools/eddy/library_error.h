/* What a call of the library failed with, as the one line that a command says. */
#ifndef TOOLS_EDDY_LIBRARY_ERROR_H
#define TOOLS_EDDY_LIBRARY_ERROR_H

#include "command.h"

#include <stddef.h>

/* Takes the thread's error, which is nobody's then: its sentence, without the name of the function. */
void library_error_take(char *text, size_t size);

/* The same as the command's: "what: its sentence", or without `what` if that is NULL. Returns TOOL_FAILED. */
int tool_fail_library(const tool_arguments *arguments, const char *what);

#endif
