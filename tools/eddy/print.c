/* eddy print */
#include "program_file.h"
#include "program_json.h"
#include "screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Names are what the file says. The text stays as it is where no terminal reads it. */
static void put_lines(const char *text, size_t length) {
    if (!isatty(STDOUT_FILENO)) {
        fwrite(text, 1, length, stdout);
        return;
    }
    for (const char *end = text + length; text < end;) {
        const char *feed = memchr(text, '\n', (size_t)(end - text));
        size_t count = (size_t)((feed ? feed : end) - text);
        (void)tool_put_plain(stdout, text, count);
        putchar('\n');
        text += count + 1;
    }
}

int tool_print(const tool_arguments *arguments) {
    size_t length;
    if (tool_has(arguments, "--json"))
        return program_file_draw(arguments, tool_has(arguments, "--plan"), program_json_write);
    eddy_program *program = program_file_load(arguments);
    if (!program)
        return TOOL_FAILED;
    char *text = program_file_text(arguments, program, tool_has(arguments, "--plan"), &length);
    if (text)
        put_lines(text, length);
    free(text);
    eddy_program_release(&program);
    return text ? TOOL_OK : TOOL_FAILED;
}
