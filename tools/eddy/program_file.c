#include "program_file.h"

#include "library_error.h"
#include <eddy/options.h>
#include <stdio.h>
#include <stdlib.h>

eddy_program *program_file_load(const tool_arguments *arguments) {
    eddy_program *program = eddy_program_load(arguments->operands[0]);
    if (!program)
        (void)tool_fail_library(arguments, NULL);
    return program;
}

char *program_file_text(const tool_arguments *arguments, const eddy_program *program,
                        bool shows_plan, size_t *length) {
    char *text = NULL;
    FILE *file = open_memstream(&text, length);
    if (!file) {
        (void)tool_fail(arguments, "there is no memory");
        return NULL;
    }
    eddy_status status =
        eddy_program_print(program, file, EDDY_OPTIONS(program_print, .shows_plan = shows_plan));
    if (status != EDDY_OK)
        (void)tool_fail_library(arguments, NULL);
    bool is_closed = fclose(file) == 0;
    if (status == EDDY_OK && is_closed)
        return text;
    if (status == EDDY_OK)
        (void)tool_fail(arguments, "there is no memory");
    free(text);
    return NULL;
}

int program_file_draw(const tool_arguments *arguments, bool shows_plan,
                      int (*draw)(const tool_arguments *arguments, const program_text *text)) {
    size_t length;
    program_text read;
    eddy_program *program = program_file_load(arguments);
    if (!program)
        return TOOL_FAILED;
    char *text = program_file_text(arguments, program, shows_plan, &length);
    eddy_program_release(&program);
    if (!text)
        return TOOL_FAILED;
    int code;
    if (program_text_read(&read, text, length))
        code = draw(arguments, &read);
    else
        code = tool_fail(arguments, "line %zu of the program's text is none that is known here",
                         read.bad_line);
    program_text_fini(&read);
    free(text);
    return code;
}
