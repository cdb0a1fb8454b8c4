/* A program that was saved, and its text. */
#ifndef TOOLS_EDDY_PROGRAM_FILE_H
#define TOOLS_EDDY_PROGRAM_FILE_H

#include "command.h"
#include "program_text.h"

#include <eddy/program.h>
#include <stddef.h>

/* The program of the command's first operand; NULL: it has said why it cannot be loaded. */
eddy_program *program_file_load(const tool_arguments *arguments);

/* Its text, with a final 0, freed by the caller; NULL: it has said why not. */
char *program_file_text(const tool_arguments *arguments, const eddy_program *program,
                        bool shows_plan, size_t *length);

/* Loads it, reads its text and hands that to `draw`, whose exit code is returned; or says why not. */
int program_file_draw(const tool_arguments *arguments, bool shows_plan,
                      int (*draw)(const tool_arguments *arguments, const program_text *text));

#endif
