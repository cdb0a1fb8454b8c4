#include "help.h"

#include "screen.h"
#include <stdio.h>
#include <string.h>

/* `text` in lines of the screen's width, each after `indent` spaces; the first line goes on where the cursor is, in column `at`. */
static void wrap(const char *text, int indent, int at) {
    int width = tool_width();
    while (*text) {
        size_t length = strcspn(text, " ");
        if (at > indent && at + 1 + (int)length > width) {
            printf("\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            putchar(' ');
            at++;
        }
        printf("%.*s", (int)length, text);
        at += (int)length;
        text += length + strspn(text + length, " ");
    }
    putchar('\n');
}

void tool_help_all(void) {
    printf("eddy COMMAND [OPTION]... [OPERAND]...\n\n");
    for (const tool_command *command = tool_commands; command->name; command++) {
        int at = printf("  %-14s ", command->name);
        wrap(command->sentence, at, at);
    }
    printf("\neddy COMMAND --help says more. Exit codes: 0, 1 (it failed), 2 (usage).\n");
}

void tool_help_command(const tool_command *command) {
    printf("eddy %s %s%s\n\n", command->name, command->options[0].name ? "[OPTION]... " : "",
           command->operands);
    wrap(command->sentence, 0, 0);
    if (command->text) {
        putchar('\n');
        wrap(command->text, 0, 0);
    }
    if (command->options[0].name)
        putchar('\n');
    for (const tool_option *option = command->options; option->name; option++) {
        char name[64];
        snprintf(name, sizeof(name), "%s%s%s", option->name, option->value ? "=" : "",
                 option->value ? option->value : "");
        int at = printf("  %-16s ", name);
        wrap(option->sentence, at, at);
    }
}

/* ---- manual page ---- */

/* In roff a line must not begin with a dot or an apostrophe, and a hyphen is a minus. */
static void put_roff(const char *text) {
    for (; *text; text++) {
        if (*text == '-' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
}

static void generate_man(void) {
    printf(
        ".TH EDDY 1 \"\" Eddy\n.SH NAME\neddy \\- look at Eddy, its traces and its programs\n.SH "
        "SYNOPSIS\n.B eddy\n.I COMMAND\n[\\fIOPTION\\fR]... [\\fIOPERAND\\fR]...\n.SH COMMANDS\n");
    for (const tool_command *command = tool_commands; command->name; command++) {
        printf(".SS eddy ");
        put_roff(command->name);
        putchar(' ');
        put_roff(command->operands);
        putchar('\n');
        put_roff(command->sentence);
        printf(".\n");
        if (command->text) {
            put_roff(command->text);
            putchar('\n');
        }
        for (const tool_option *option = command->options; option->name; option++) {
            printf(".TP\n\\fB");
            put_roff(option->name);
            printf("\\fR");
            if (option->value)
                printf("=\\fI%s\\fR", option->value);
            putchar('\n');
            put_roff(option->sentence);
            putchar('\n');
        }
    }
    printf(".SH EXIT STATUS\n0, 1 where it failed, 2 for a mistake in the command line.\n.SH "
           "ENVIRONMENT\n.TP\n.B NO_COLOR\nNo colours.\n.TP\n.B COLUMNS\nThe width of the "
           "terminal.\n");
}

/* ---- completions ---- */

static void put_options(const tool_command *command, const char *form) {
    for (const tool_option *option = command->options; option->name; option++)
        printf(form, option->name);
}

static void generate_bash(void) {
    printf("# Completion of eddy in bash.\n_eddy() {\n    local word=\"${COMP_WORDS[COMP_CWORD]}\" "
           "line=\"${COMP_WORDS[*]:1:COMP_CWORD-1}\"\n    case \"$line\" in\n");
    for (const tool_command *command = tool_commands; command->name; command++) {
        printf("    \"%s\"*) COMPREPLY=($(compgen -W \"--help", command->name);
        put_options(command, " %s");
        printf("\" -- \"$word\") $(compgen -f -- \"$word\")) ;;\n");
    }
    printf("    trace) COMPREPLY=($(compgen -W \"");
    for (const tool_command *command = tool_commands; command->name; command++)
        if (strncmp(command->name, "trace ", 6) == 0)
            printf("%s ", command->name + 6);
    printf("\" -- \"$word\")) ;;\n    *) COMPREPLY=($(compgen -W \"trace");
    for (const tool_command *command = tool_commands; command->name; command++)
        if (!strchr(command->name, ' '))
            printf(" %s", command->name);
    printf(" help --help --version\" -- \"$word\")) ;;\n    esac\n}\ncomplete -o filenames -F "
           "_eddy eddy\n");
}

static void generate_zsh(void) {
    printf("#compdef eddy\nautoload -U +X bashcompinit && bashcompinit\n");
    generate_bash();
}

static void generate_fish(void) {
    printf("# Completion of eddy in fish.\n");
    for (const tool_command *command = tool_commands; command->name; command++) {
        const char *space = strchr(command->name, ' ');
        if (space)
            printf(
                "complete -c eddy -n '__fish_use_subcommand' -a trace -d 'Look at a "
                "trace'\ncomplete -c eddy -n '__fish_seen_subcommand_from trace' -a %s -d '%s'\n",
                space + 1, command->sentence);
        else
            printf("complete -c eddy -n '__fish_use_subcommand' -a %s -d '%s'\n", command->name,
                   command->sentence);
        for (const tool_option *option = command->options; option->name; option++)
            printf("complete -c eddy -n '__fish_seen_subcommand_from %s' -l %s%s\n",
                   space ? space + 1 : command->name, option->name + 2, option->value ? " -r" : "");
    }
}

int tool_generate(const char *what) {
    static const struct {
        const char *what;
        void (*generate)(void);
    } kinds[] = {{"man", generate_man},
                 {"bash", generate_bash},
                 {"zsh", generate_zsh},
                 {"fish", generate_fish}};
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strcmp(what, kinds[i].what) == 0) {
            kinds[i].generate();
            return TOOL_OK;
        }
    fprintf(stderr, "eddy: --generate takes man, bash, zsh or fish\n");
    return TOOL_USAGE;
}
