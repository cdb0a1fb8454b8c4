#include "library_error.h"

#include <eddy/status.h>
#include <stdio.h>
#include <string.h>

void library_error_take(char *text, size_t size) {
    eddy_error error = {0};
    (void)eddy_error_take(&error);
    const char *sentence = error.message[0] ? error.message : eddy_status_text(error.status);
    size_t length = strlen(error.op);
    if (length > 0 && strncmp(sentence, error.op, length) == 0 &&
        strncmp(sentence + length, ": ", 2) == 0)
        sentence += length + 2;
    snprintf(text, size, "%s", sentence);
}

int tool_fail_library(const tool_arguments *arguments, const char *what) {
    char text[sizeof(((eddy_error *)0)->message)];
    library_error_take(text, sizeof(text));
    return tool_fail(arguments, "%s%s%s", what ? what : "", what ? ": " : "", text);
}
