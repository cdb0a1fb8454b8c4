#include "help.h"

#include "completion.h"
#include "manual.h"
#include "screen.h"
#include <stdio.h>
#include <string.h>

void tool_help_all(void) {
    printf("eddy COMMAND [OPTION]... [OPERAND]...\n\n");
    for (const tool_command *command = tool_commands; command->name; command++) {
        int at = printf("  %-14s ", command->name);
        tool_wrap(command->sentence, at, at);
    }
    printf("\neddy COMMAND --help says more. Exit codes: 0, 1 (it failed), 2 (usage).\n");
}

void tool_help_command(const tool_command *command) {
    printf("eddy %s %s%s\n\n", command->name, command->options[0].name ? "[OPTION]... " : "",
           command->operands);
    tool_wrap(command->sentence, 0, 0);
    if (command->text) {
        putchar('\n');
        tool_wrap(command->text, 0, 0);
    }
    if (command->options[0].name)
        putchar('\n');
    for (const tool_option *option = command->options; option->name; option++) {
        char name[64];
        snprintf(name, sizeof(name), "%s%s%s", option->name, option->value ? "=" : "",
                 option->value ? option->value : "");
        int at = printf("  %-16s ", name);
        tool_wrap(option->sentence, at, at);
    }
}

int tool_generate(const char *what) {
    static const struct {
        const char *what;
        void (*generate)(void);
    } kinds[] = {{"man", manual_put},
                 {"bash", completion_put_bash},
                 {"zsh", completion_put_zsh},
                 {"fish", completion_put_fish}};
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strcmp(what, kinds[i].what) == 0) {
            kinds[i].generate();
            return TOOL_OK;
        }
    fprintf(stderr, "eddy: --generate takes man, bash, zsh or fish\n");
    return TOOL_USAGE;
}
