#include "completion.h"

#include "command.h"
#include <stdio.h>
#include <string.h>

/* The word before the blank in "trace summary" stands for its commands until the second one is there. */
#define GROUP_SENTENCE "Look at a trace"

/* What an operand or a value is. */
typedef enum completed { NOTHING, FILES, OPS, ROWS, CHOICES } completed;

static completed kind_of(const char *operand, const char *choices) {
    if (choices)
        return CHOICES;
    if (strstr(operand, "FILE") || strcmp(operand, "A B") == 0)
        return FILES;
    if (strcmp(operand, "[ROW]...") == 0)
        return ROWS;
    return strcmp(operand, "[NAME]") == 0 ? OPS : NOTHING;
}

static completed value_kind(const tool_option *option) {
    return kind_of(option->value ? option->value : "", option->choices);
}

/* Whether no command before it begins with the same word. */
static bool is_first_of_word(const tool_command *command) {
    size_t length = strcspn(command->name, " ");
    for (const tool_command *before = tool_commands; before < command; before++)
        if (strcspn(before->name, " ") == length &&
            strncmp(before->name, command->name, length) == 0)
            return false;
    return true;
}

/* The first words of all commands. */
static void put_words(const char *between) {
    for (const tool_command *command = tool_commands; command->name; command++)
        if (is_first_of_word(command))
            printf("%s%.*s", command == tool_commands ? "" : between,
                   (int)strcspn(command->name, " "), command->name);
}

/* The second words of those that begin with this one's first. */
static void put_second_words(const tool_command *group) {
    size_t length = strcspn(group->name, " ");
    const char *between = "";
    for (const tool_command *command = group; command->name; command++)
        if (strncmp(command->name, group->name, length + 1) == 0) {
            printf("%s%s", between, command->name + length + 1);
            between = " ";
        }
}

/* "op|phase" as "op phase". */
static void put_choices(const char *choices) {
    for (; *choices; choices++)
        putchar(*choices == '|' ? ' ' : *choices);
}

/* Between single quotes, with a backslash before each of `marks`; a single quote is written as `quote`. */
static void put_quoted(const char *text, const char *marks, const char *quote) {
    for (; *text; text++) {
        if (*text == '\'') {
            printf("%s", quote);
            continue;
        }
        if (strchr(marks, *text))
            putchar('\\');
        putchar(*text);
    }
}

/* ---- bash ---- */

static const char bash_head[] =
    "# Completion of eddy in bash.\n"
    "_eddy_files() {\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <(compgen -f -- \"$1\")\n"
    "}\n"
    "_eddy_words() {\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$2\" -- \"$1\")\n"
    "}\n"
    "_eddy_ops() {\n"
    "    _eddy_words \"$1\" \"$(eddy ops 2>/dev/null | sed -n 's/^  \\([a-z0-9_]*\\) .*/\\1/p')\"\n"
    "}\n"
    "_eddy_rows() {\n"
    "    _eddy_words \"$1\" \"$(eddy bench --list 2>/dev/null | sed 's/ .*//')\"\n"
    "}\n"
    "_eddy() {\n"
    "    local word=\"${COMP_WORDS[COMP_CWORD]}\" before=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
    "    local name=\"${COMP_WORDS[1]}\" first=2\n"
    "    COMPREPLY=()\n"
    "    # Readline takes --by=op apart.\n"
    "    if [[ $word == = ]]; then\n"
    "        word=\n"
    "    elif [[ $before == = ]]; then\n"
    "        before=\"${COMP_WORDS[COMP_CWORD-2]}\"\n"
    "        if [[ $before != --* ]]; then\n"
    "            _eddy_files \"$word\"\n"
    "            return\n"
    "        fi\n"
    "    fi\n";

static void put_bash_kind(completed kind, const char *choices) {
    if (kind == FILES)
        printf("_eddy_files \"$word\"");
    else if (kind == OPS)
        printf("_eddy_ops \"$word\"");
    else if (kind == ROWS)
        printf("_eddy_rows \"$word\"");
    else if (kind == CHOICES) {
        printf("_eddy_words \"$word\" \"");
        put_choices(choices);
        printf("\"");
    } else {
        printf(":");
    }
}

static void put_bash_command(const tool_command *command) {
    printf("    \"%s\")\n        case \"$before\" in\n", command->name);
    for (const tool_option *option = command->options; option->name; option++)
        if (option->value) {
            printf("        %s) ", option->name);
            put_bash_kind(value_kind(option), option->choices);
            printf("; return ;;\n");
        }
    printf(
        "        esac\n        if [[ $word == -* ]]; then\n            _eddy_words \"$word\" \"");
    for (const tool_option *option = command->options; option->name; option++)
        printf("%s ", option->name);
    printf("--help\"\n        else\n            ");
    put_bash_kind(kind_of(command->operands, NULL), NULL);
    printf("\n        fi ;;\n");
}

void completion_put_bash(void) {
    printf("%s    if ((COMP_CWORD == 1)); then\n        _eddy_words \"$word\" \"", bash_head);
    put_words(" ");
    printf(" help --help --version\"\n        return\n    fi\n    if [[ $name == help ]]; then\n"
           "        name=\"${COMP_WORDS[2]}\" first=3\n        if ((COMP_CWORD == 2)); then\n"
           "            _eddy_words \"$word\" \"");
    put_words(" ");
    printf("\"\n            return\n        fi\n    fi\n    case \"$name\" in\n");
    for (const tool_command *command = tool_commands; command->name; command++)
        if (strchr(command->name, ' ') && is_first_of_word(command)) {
            printf("    %.*s)\n        if ((COMP_CWORD == first)); then\n            _eddy_words "
                   "\"$word\" \"",
                   (int)strcspn(command->name, " "), command->name);
            put_second_words(command);
            printf("\"\n            return\n        fi\n        "
                   "name+=\" ${COMP_WORDS[first]}\" ;;\n");
        }
    printf(
        "    esac\n    if ((first == 3)); then\n        return\n    fi\n    case \"$name\" in\n");
    for (const tool_command *command = tool_commands; command->name; command++)
        put_bash_command(command);
    printf("    esac\n}\ncomplete -F _eddy eddy\n");
}

/* ---- zsh ---- */

static void put_zsh_described(const char *word, int length, const char *sentence) {
    printf("        '%.*s:", length, word);
    put_quoted(sentence, "\\:", "'\\''");
    printf("'\n");
}

static void put_zsh_kind(completed kind, const char *choices) {
    if (kind == FILES)
        printf("_files");
    else if (kind == OPS)
        printf("_eddy_ops");
    else if (kind == ROWS)
        printf("_eddy_rows");
    else if (kind == CHOICES) {
        printf("(");
        put_choices(choices);
        printf(")");
    } else {
        printf(" ");
    }
}

/* A value with a name before its file is completed behind the sign. */
static void put_zsh_option(const tool_option *option) {
    printf(" \\\n            '%s%s%s[", tool_is_repeated(option) ? "*" : "", option->name,
           option->value ? "=" : "");
    put_quoted(option->sentence, "\\[]:", "'\\''");
    printf("]");
    if (option->value) {
        bool is_named = strncmp(option->value, "NAME=", 5) == 0;
        printf(":%.*s:", (int)strcspn(option->value, "="), option->value);
        if (is_named)
            printf("_eddy_named");
        else
            put_zsh_kind(value_kind(option), option->choices);
    }
    printf("'");
}

static void put_zsh_command(const tool_command *command) {
    completed kind = kind_of(command->operands, NULL);
    printf("    ('%s')\n        _arguments", command->name);
    for (const tool_option *option = command->options; option->name; option++)
        put_zsh_option(option);
    printf(" \\\n            '--help[Say more]'");
    for (int i = 0; i < command->most && kind != NOTHING; i++) {
        printf(" \\\n            '%d:operand:", i + 1);
        put_zsh_kind(kind, NULL);
        printf("'");
    }
    printf(" ;;\n");
}

static void put_zsh_groups(void) {
    for (const tool_command *group = tool_commands; group->name; group++) {
        size_t length = strcspn(group->name, " ");
        if (!group->name[length] || !is_first_of_word(group))
            continue;
        printf("    if [[ $name == %.*s ]]; then\n        if ((CURRENT == 2)); then\n            "
               "local -a seconds=(\n",
               (int)length, group->name);
        for (const tool_command *command = group; command->name; command++)
            if (strncmp(command->name, group->name, length + 1) == 0) {
                const char *word = command->name + length + 1;
                put_zsh_described(word, (int)strlen(word), command->sentence);
            }
        printf("            )\n            _describe command seconds\n            return\n        "
               "fi\n        name+=\" $words[2]\"\n        shift words\n        ((CURRENT--))\n    "
               "fi\n");
    }
}

void completion_put_zsh(void) {
    printf(
        "#compdef eddy\n# Completion of eddy in zsh.\n_eddy_ops() {\n    local -a ops=(${(f)\""
        "$(eddy ops 2>/dev/null | sed -n 's/^  \\([a-z0-9_]*\\) .*/\\1/p')\"})\n    _describe op "
        "ops\n}\n_eddy_rows() {\n    local -a rows=(${(f)\"$(eddy bench --list 2>/dev/null | sed "
        "'s/ .*//')\"})\n    _describe row "
        "rows\n}\n_eddy_named() {\n    if compset -P '*='; then\n        _files\n    else\n        "
        "_message 'NAME=FILE.npy'\n    fi\n}\n_eddy() {\n    local -a commands=(\n");
    for (const tool_command *command = tool_commands; command->name; command++)
        if (is_first_of_word(command))
            put_zsh_described(command->name, (int)strcspn(command->name, " "),
                              strchr(command->name, ' ') ? GROUP_SENTENCE : command->sentence);
    put_zsh_described("help", 4, "Say what a command does");
    printf("    )\n    if ((CURRENT == 2)); then\n        _describe command commands\n        "
           "return\n    fi\n    local name=$words[2]\n    shift words\n    ((CURRENT--))\n    if "
           "[[ $name == help ]] && ((CURRENT == 2)); then\n        _describe command commands\n    "
           "    return\n    fi\n");
    put_zsh_groups();
    printf("    case $name in\n");
    for (const tool_command *command = tool_commands; command->name; command++)
        put_zsh_command(command);
    printf("    esac\n}\n_eddy \"$@\"\n");
}

/* ---- fish ---- */

/* The condition under which the command's options and operands are completed. */
static void put_fish_condition(const char *name) {
    const char *space = strchr(name, ' ');
    printf("complete -c eddy -n '__fish_seen_subcommand_from %.*s", (int)strcspn(name, " "), name);
    if (space)
        printf("; and __fish_seen_subcommand_from %s", space + 1);
    printf("'");
}

static void put_fish_sentence(const char *sentence) {
    printf(" -d '");
    put_quoted(sentence, "\\", "\\'");
    printf("'\n");
}

static void put_fish_option(const tool_command *command, const tool_option *option) {
    completed kind = value_kind(option);
    put_fish_condition(command->name);
    printf(" -l %s", option->name + 2);
    if (kind == CHOICES) {
        printf(" -x -a '");
        put_choices(option->choices);
        printf("'");
    } else if (option->value) {
        printf(kind == FILES ? " -r -F" : " -x");
    }
    put_fish_sentence(option->sentence);
}

static void put_fish_command(const tool_command *command) {
    completed kind = kind_of(command->operands, NULL);
    size_t length = strcspn(command->name, " ");
    bool is_group = command->name[length] != '\0';
    if (is_first_of_word(command)) {
        printf("complete -c eddy -n __fish_use_subcommand -a %.*s", (int)length, command->name);
        put_fish_sentence(is_group ? GROUP_SENTENCE : command->sentence);
    }
    if (is_group) {
        printf("complete -c eddy -n '__fish_seen_subcommand_from %.*s; and not "
               "__fish_seen_subcommand_from ",
               (int)length, command->name);
        const tool_command *group = command;
        while (group > tool_commands && strncmp(group[-1].name, command->name, length + 1) == 0)
            group--;
        put_second_words(group);
        printf("' -a %s", command->name + length + 1);
        put_fish_sentence(command->sentence);
    }
    if (kind != NOTHING && kind != CHOICES) {
        put_fish_condition(command->name);
        printf(kind == FILES ? " -F\n"
               : kind == ROWS
                   ? " -a '(eddy bench --list 2>/dev/null | string replace -r \" .*\" \"\")'\n"
                   : " -a '(eddy ops 2>/dev/null | string match -r \"^  [a-z0-9_]+\" | "
                     "string trim)'\n");
    }
    for (const tool_option *option = command->options; option->name; option++)
        put_fish_option(command, option);
}

void completion_put_fish(void) {
    printf("# Completion of eddy in fish.\ncomplete -c eddy -f\n");
    for (const tool_command *command = tool_commands; command->name; command++)
        put_fish_command(command);
    printf("complete -c eddy -n __fish_use_subcommand -a help -d 'Say what a command does'\n"
           "complete -c eddy -n __fish_use_subcommand -l version -d 'Print the version'\n"
           "complete -c eddy -l help -d 'Say more'\ncomplete -c eddy -n "
           "'__fish_seen_subcommand_from help' -a '");
    put_words(" ");
    printf("'\n");
}
