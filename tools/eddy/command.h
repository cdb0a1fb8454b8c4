/* A command of `eddy`: what it is called with, and what it does. commands.c has the table, from which parsing, help, manual pages and completions come. */
#ifndef TOOLS_EDDY_COMMAND_H
#define TOOLS_EDDY_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

/* Exit codes. */
enum { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_USAGE = 2 };

#define TOOL_OPTIONS_MOST 8
#define TOOL_OPERANDS_MOST 8
#define TOOL_REPEATED_MOST 256 /* values of options that may come again */

typedef struct tool_option {
    const char *name; /* "--by"; NULL ends the list */
    const char *
        value; /* "WHAT"; "WHAT...": it may come again, each time with one more (tool_value_at); NULL: it takes none */
    const char *choices; /* "op|phase": nothing else is a value; NULL: anything */
    const char *sentence;
} tool_option;

typedef struct tool_arguments tool_arguments;

typedef struct tool_command {
    const char *name;           /* "trace summary": one word or two */
    const char *operands;       /* "FILE", "[NAME]", "A B", "" */
    int least, most;            /* operands */
    const char *sentence;       /* what it does, without a full stop */
    const char *text;           /* more of it, for --help and the manual */
    const tool_option *options; /* all also take --help */
    int (*run)(const tool_arguments *arguments);
} tool_command;

struct tool_arguments {
    const tool_command *command;
    int operand_count;
    const char *operands[TOOL_OPERANDS_MOST];
    const char *values
        [TOOL_OPTIONS_MOST]; /* of command->options, in that order; NULL: not given; "" where it takes none */
    int repeated_count; /* of options that may come again, in the order of the command line */
    struct {
        int option;
        const char *value;
    } repeated[TOOL_REPEATED_MOST];
};

/* By its name; NULL is the end. */
extern const tool_command tool_commands[];

/* The value of an option of the command; NULL: not given. */
const char *tool_value(const tool_arguments *arguments, const char *option);
bool tool_has(const tool_arguments *arguments, const char *option);
/* Whether the option may come again. */
bool tool_is_repeated(const tool_option *option);
/* The value number `index` of an option that may come again; NULL: there are not so many. */
const char *tool_value_at(const tool_arguments *arguments, const char *option, int index);
/* The whole number that is the option's value, *to as it was if it is not given; false: it is none from least to most, which is told. */
bool tool_integer(const tool_arguments *arguments, const char *option, int64_t least, int64_t most,
                  int64_t *to);

/* "eddy trace summary: ..." to stderr, without control characters; returns TOOL_FAILED. */
int tool_fail(const tool_arguments *arguments, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- of each file ---- */

int tool_bench(const tool_arguments *arguments);
int tool_info(const tool_arguments *arguments);
int tool_ops(const tool_arguments *arguments);
int tool_print(const tool_arguments *arguments);
int tool_run(const tool_arguments *arguments);
int tool_dot(const tool_arguments *arguments);
int tool_plan(const tool_arguments *arguments);
int tool_top(const tool_arguments *arguments);
int tool_trace_summary(const tool_arguments *arguments);
int tool_trace_svg(const tool_arguments *arguments);
int tool_trace_diff(const tool_arguments *arguments);

#endif
