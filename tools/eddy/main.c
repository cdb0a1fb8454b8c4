/* eddy: looks at the library, its traces and its programs, from a shell. */
#include "command.h"
#include "help.h"
#include "memory.h"
#include "screen.h"

#include <eddy/version.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words of the name that the arguments begin with; 0: another command. */
static int words_of(const tool_command *command, int count, char **words) {
    char name[64] = "";
    for (int i = 0; i < 2 && i < count; i++) {
        size_t length = strlen(name);
        snprintf(name + length, sizeof(name) - length, "%s%s", i ? " " : "", words[i]);
        if (strcmp(name, command->name) == 0)
            return i + 1;
    }
    return 0;
}

static const tool_command *find(int count, char **words, int *taken) {
    for (const tool_command *command = tool_commands; command->name; command++)
        if ((*taken = words_of(command, count, words)) > 0)
            return command;
    return NULL;
}

/* Whether `value` is one of "a|b|c". */
static bool is_choice(const char *choices, const char *value) {
    size_t length = strcspn(value, "|");
    if (value[length])
        return false;
    for (const char *at = choices; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        if (strncmp(at, value, length) == 0 && (at[length] == '|' || at[length] == '\0'))
            return true;
    return false;
}

/* Takes one option and its value, "--by op" or "--by=op"; returns how many words, 0 for a mistake, which is told. */
static int parse_option(tool_arguments *to, int count, char **words) {
    const char *equals = strchr(words[0], '=');
    size_t length = equals ? (size_t)(equals - words[0]) : strlen(words[0]);
    for (int o = 0; to->command->options[o].name; o++) {
        const tool_option *option = &to->command->options[o];
        if (strlen(option->name) != length || strncmp(option->name, words[0], length) != 0)
            continue;
        const char *value = equals ? equals + 1 : option->value && count > 1 ? words[1] : NULL;
        if (!option->value != !value) {
            (void)tool_fail(to, option->value ? "%s takes a value: %s" : "%s takes no value",
                            option->name, option->value);
            return 0;
        }
        if (value && option->choices && !is_choice(option->choices, value)) {
            (void)tool_fail(to, "%s is %s, and may be %s", option->name, value, option->choices);
            return 0;
        }
        if (tool_is_repeated(option) && to->repeated_count == TOOL_REPEATED_MOST) {
            (void)tool_fail(to, "%s comes too often", option->name);
            return 0;
        }
        if (tool_is_repeated(option)) {
            to->repeated[to->repeated_count].option = o;
            to->repeated[to->repeated_count++].value = value;
        }
        to->values[o] = value ? value : "";
        return option->value && !equals ? 2 : 1;
    }
    (void)tool_fail(to, "there is no option %.*s", (int)length, words[0]);
    return 0;
}

/* False: a mistake, which is told. */
static bool parse(tool_arguments *to, int count, char **words) {
    bool are_options_over = false;
    for (int i = 0; i < count;) {
        if (!are_options_over && strcmp(words[i], "--") == 0) {
            are_options_over = true;
            i++;
        } else if (!are_options_over && words[i][0] == '-' && words[i][1] != '\0') {
            int taken = parse_option(to, count - i, words + i);
            if (taken == 0)
                return false;
            i += taken;
        } else if (to->operand_count == to->command->most) {
            (void)tool_fail(to, "%s is one operand too many", words[i]);
            return false;
        } else {
            to->operands[to->operand_count++] = words[i++];
        }
    }
    if (to->operand_count < to->command->least)
        (void)tool_fail(to, "an operand is missing: %s", to->command->operands);
    return to->operand_count >= to->command->least;
}

static bool wants_help(int count, char **words) {
    for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++)
        if (strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0)
            return true;
    return false;
}

/* Output that could not be written is a failure. */
static int end(int code) {
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("eddy: standard output");
        return code == TOOL_OK ? TOOL_FAILED : code;
    }
    return code;
}

/* Returns TOOL_USAGE. */
static int fail_to_find(int count, char **words) {
    fprintf(stderr, "eddy: there is no command ");
    for (int i = 0; i < 2 && i < count && (i == 0 || words[i][0] != '-'); i++) {
        fputs(i > 0 ? " " : "", stderr);
        (void)tool_put_plain(stderr, words[i], strlen(words[i]));
    }
    fprintf(stderr, "; eddy --help lists them\n");
    return TOOL_USAGE;
}

static int help(int count, char **words) {
    int taken;
    const tool_command *about = find(count, words, &taken);
    if (count > 0 && !about)
        return fail_to_find(count, words);
    if (about)
        tool_help_command(about);
    else
        tool_help_all();
    return TOOL_OK;
}

int main(int argc, char **argv) {
    int count = argc - 1, taken = 0;
    char **words = argv + 1;
    json_set_alloc_funcs(tool_malloc, free);
    if (count > 0 && strcmp(words[0], "--version") == 0) {
        printf("eddy %s\n", eddy_version_text());
        return end(TOOL_OK);
    }
    if (count == 2 && strcmp(words[0], "--generate") == 0)
        return end(tool_generate(words[1]));
    if (count > 0 && strcmp(words[0], "help") == 0)
        return end(help(count - 1, words + 1));
    const tool_command *command = find(count, words, &taken);
    if (!command && (count == 0 || wants_help(count, words))) {
        tool_help_all();
        return end(count == 0 ? TOOL_USAGE : TOOL_OK);
    }
    if (!command)
        return fail_to_find(count, words);
    if (wants_help(count - taken, words + taken)) {
        tool_help_command(command);
        return end(TOOL_OK);
    }
    tool_arguments arguments = {.command = command};
    if (!parse(&arguments, count - taken, words + taken)) {
        fprintf(stderr, "usage: eddy %s %s%s\n", command->name,
                command->options[0].name ? "[OPTION]... " : "", command->operands);
        return TOOL_USAGE;
    }
    return end(command->run(&arguments));
}
