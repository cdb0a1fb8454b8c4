#include "manual.h"

#include "command.h"
#include <eddy/version.h>
#include <stdio.h>
#include <string.h>

/* A hyphen is a minus, and no line begins with what roff takes for a request. */
static void put_roff(const char *text) {
    if (*text == '.' || *text == '\'')
        printf("\\&");
    for (; *text; text++)
        if (*text == '\\')
            printf("\\e");
        else if (*text == '-')
            printf("\\-");
        else
            putchar(*text);
}

/* Sentences end in a full stop, and begin on a new line, as roff wants them. */
static void put_sentences(const char *text) {
    for (const char *stop; (stop = strstr(text, ". ")); text = stop + 2) {
        char sentence[1024];
        snprintf(sentence, sizeof(sentence), "%.*s", (int)(stop - text) + 1, text);
        put_roff(sentence);
        putchar('\n');
    }
    put_roff(text);
    putchar('\n');
}

static void put_option(const tool_option *option) {
    printf(".TP\n\\fB");
    put_roff(option->name);
    printf("\\fR");
    if (option->value) {
        /* The dots of what may come again are no part of the value. */
        size_t length = strlen(option->value) - (tool_is_repeated(option) ? 3 : 0);
        printf("=\\fI%.*s\\fR", (int)length, option->value);
    }
    putchar('\n');
    put_sentences(option->sentence);
    if (option->choices) {
        printf("One of ");
        for (const char *at = option->choices; *at; at++)
            if (*at == '|')
                printf(strchr(at + 1, '|') ? ", " : " and ");
            else
                putchar(*at);
        printf(".\n");
    }
}

static void put_command(const tool_command *command) {
    printf(".SS eddy ");
    put_roff(command->name);
    if (command->operands[0]) {
        putchar(' ');
        put_roff(command->operands);
    }
    putchar('\n');
    put_roff(command->sentence);
    printf(".\n");
    if (command->text)
        put_sentences(command->text);
    for (const tool_option *option = command->options; option->name; option++)
        put_option(option);
}

void manual_put(void) {
    printf(".TH EDDY 1 \"\" \"eddy %s\" \"Eddy\"\n"
           ".SH NAME\neddy \\- look at Eddy, its traces and its programs\n"
           ".SH SYNOPSIS\n.B eddy\n.I COMMAND\n[\\fIOPTION\\fR]... [\\fIOPERAND\\fR]...\n.br\n"
           ".B eddy help\n[\\fICOMMAND\\fR]\n.br\n.B eddy \\-\\-version\n"
           ".SH DESCRIPTION\nWhat a file holds is printed without control characters.\n"
           "An option stands before or behind operands, as \\fB\\-\\-by=op\\fR or \\fB\\-\\-by "
           "op\\fR; behind \\fB\\-\\-\\fR there are operands alone.\n"
           "With \\fB\\-\\-help\\fR a command says what it does.\n"
           ".SH COMMANDS\n",
           eddy_version_text());
    for (const tool_command *command = tool_commands; command->name; command++)
        put_command(command);
    printf(".SH EXIT STATUS\n.TP\n0\nIt is done.\n.TP\n1\nIt failed; a line on standard error "
           "says why.\n.TP\n2\nThe command line has a mistake.\n"
           ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nNo colours.\n.TP\n.B COLUMNS\nThe width of the "
           "terminal.\n.PP\nThe variables of the library hold for \\fBeddy run\\fR and \\fBeddy "
           "info\\fR, and \\fBEDDY_PASSES\\fR for all commands that load a program.\n"
           ".SH SEE ALSO\n.BR eddy (3)\n");
}
