#include <base/options.h>

#include <base/environment.h>
#include <base/sleep.h>
#include <base/status.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define STRING_SIZE 1024 /* of a folder, too */

static const eddy_option rows[] = {
#define EDDY_OPTION_BOOL(name, variable, sentence)                                                 \
    {#name, variable, sentence, EDDY_OPTION_TYPE_BOOL, offsetof(eddy_runtime_options, name), 0,    \
     1,     0,        NULL},
#define EDDY_OPTION_INT(name, variable, least, most, default_value, sentence)                      \
    {#name,                                                                                        \
     variable,                                                                                     \
     sentence,                                                                                     \
     EDDY_OPTION_TYPE_INT,                                                                         \
     offsetof(eddy_runtime_options, name),                                                         \
     least,                                                                                        \
     most,                                                                                         \
     default_value,                                                                                \
     NULL},
#define EDDY_OPTION_STRING(name, variable, default_value, sentence)                                \
    {#name,                                                                                        \
     variable,                                                                                     \
     sentence,                                                                                     \
     EDDY_OPTION_TYPE_STRING,                                                                      \
     offsetof(eddy_runtime_options, name),                                                         \
     0,                                                                                            \
     0,                                                                                            \
     0,                                                                                            \
     default_value},
    EDDY_RUNTIME_OPTION_LIST(EDDY_OPTION_BOOL, EDDY_OPTION_INT, EDDY_OPTION_STRING)
#undef EDDY_OPTION_BOOL
#undef EDDY_OPTION_INT
#undef EDDY_OPTION_STRING
};

#define ROW_COUNT ((int32_t)(sizeof(rows) / sizeof(rows[0])))

const eddy_option *eddy_option_rows(int32_t *count) {
    *count = ROW_COUNT;
    return rows;
}

/* The environment at its first reading. */
static struct {
    eddy_lock lock;
    bool is_read;             /* lock: lock */
    const eddy_option *wrong; /* lock: lock; the first row whose variable cannot be read, or NULL */
    char wrong_text[STRING_SIZE]; /* lock: lock */
    eddy_runtime_options options; /* lock: lock; fields of variables that are not set are 0 */
    char strings[ROW_COUNT][STRING_SIZE]; /* const after is_read */
} environment;

/* EDDY_CHECK_FINITE=nan stands for EDDY_CHECK_NAN=1. */
static bool is_nan_mode(const eddy_option *row, const char *text) {
    bool is_it = row->offset == offsetof(eddy_runtime_options, checks_finite) &&
                 strcasecmp(text, "nan") == 0;
    if (is_it)
        environment.options.checks_nan = true;
    return is_it;
}

static bool read_row(const eddy_option *row, const char *text) {
    char *field = (char *)&environment.options + row->offset;
    switch (row->type) {
    case EDDY_OPTION_TYPE_BOOL:
        return eddy_environment_parse_bool(text, (bool *)field) || is_nan_mode(row, text);
    case EDDY_OPTION_TYPE_INT: {
        int64_t value;
        if (!eddy_environment_parse_int(text, &value) || value < row->least || value > row->most)
            return false;
        memcpy(field, &value, sizeof(value));
        return true;
    }
    case EDDY_OPTION_TYPE_STRING: {
        char *copy = environment.strings[row - rows];
        if (strlen(text) >= STRING_SIZE)
            return false;
        strcpy(copy, text);
        memcpy(field, &copy, sizeof(copy));
        return true;
    }
    }
    return false;
}

static void read_environment_locked(void) {
    for (int32_t i = 0; i < ROW_COUNT; i++) {
        const char *text = eddy_environment_string(rows[i].variable);
        if (text && !read_row(&rows[i], text) && !environment.wrong) {
            environment.wrong = &rows[i];
            snprintf(environment.wrong_text, sizeof(environment.wrong_text), "%s", text);
        }
    }
    environment.is_read = true;
}

/* The values that a row accepts, for error messages. */
static void describe_values(const eddy_option *row, char *buffer, size_t size) {
    if (row->offset == offsetof(eddy_runtime_options, checks_finite))
        snprintf(buffer, size, "1, 0 or nan");
    else if (row->type == EDDY_OPTION_TYPE_BOOL)
        snprintf(buffer, size, "1 or 0");
    else if (row->type == EDDY_OPTION_TYPE_INT)
        snprintf(buffer, size, "a number from %lld to %lld", (long long)row->least,
                 (long long)row->most);
    else
        snprintf(buffer, size, "a word of at most %d bytes", STRING_SIZE - 1);
}

/* For the first call that needs the options: the message names the variable or the field. */
static const eddy_origin origin = {NULL, NULL};

static eddy_status fail_value(const eddy_option *row, const char *name, const char *text) {
    char wanted[96];
    describe_values(row, wanted, sizeof(wanted));
    return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "%s is %s, not %s", name, text, wanted);
}

/* One field: that of `given` if it is set, else the environment's, else the default. */
static eddy_status complete_row(const eddy_option *row, eddy_runtime_options *options) {
    char *field = (char *)options + row->offset;
    const char *from = (const char *)&environment.options + row->offset;
    if (row->type == EDDY_OPTION_TYPE_BOOL) {
        *(bool *)field = *(const bool *)field || *(const bool *)from;
    } else if (row->type == EDDY_OPTION_TYPE_INT) {
        int64_t *value = (int64_t *)field;
        if (*value == 0)
            *value = *(const int64_t *)from;
        if (*value == 0)
            *value = row->default_int;
        if (*value < row->least || *value > row->most) {
            char text[32];
            snprintf(text, sizeof(text), "%lld", (long long)*value);
            return fail_value(row, row->name, text);
        }
    } else {
        const char **value = (const char **)field;
        if (!*value)
            *value = *(const char *const *)from;
        if (!*value)
            *value = row->default_string;
    }
    return EDDY_OK;
}

eddy_status eddy_options_check_machine(eddy_isa least, eddy_isa machine) {
    if (machine >= least)
        return EDDY_OK;
    return eddy_fail(
        EDDY_UNSUPPORTED, origin,
        "this library is built for %s and higher, but this machine has no more than %s",
        eddy_isa_name(least), eddy_isa_name(machine));
}

eddy_status eddy_options_check_isa(const char *isa, const char *from, eddy_isa least,
                                   eddy_isa machine) {
    eddy_isa found = eddy_isa_find(isa);
    if (found == EDDY_ISA_COUNT)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "%s is %s, not portable, v2, v3 or v4",
                         from, isa);
    if (found < least)
        return eddy_fail(EDDY_UNSUPPORTED, origin,
                         "%s is %s, but this library is built for %s and higher", from, isa,
                         eddy_isa_name(least));
    if (found > machine)
        return eddy_fail(EDDY_UNSUPPORTED, origin, "%s is %s, but this machine has no more than %s",
                         from, isa, eddy_isa_name(machine));
    return EDDY_OK;
}

static eddy_status check_isa(const char *isa, const char *from) {
    eddy_isa least = eddy_isa_served_by(EDDY_ISA_PORTABLE), machine = eddy_isa_machine();
    eddy_status status = eddy_options_check_machine(least, machine);
    return status != EDDY_OK || !*isa ? status : eddy_options_check_isa(isa, from, least, machine);
}

/* The caller's options in the current struct. */
static eddy_runtime_options copy_given(const eddy_runtime_options *given) {
    eddy_runtime_options options;
    memset(&options, 0, sizeof(options));
    if (given) {
        size_t bytes = given->size ? given->size : sizeof(options);
        memcpy(&options, given, bytes < sizeof(options) ? bytes : sizeof(options));
    }
    options.size = sizeof(options);
    return options;
}

eddy_status eddy_options_resolve(const eddy_runtime_options *given,
                                 eddy_runtime_options *resolved) {
    eddy_runtime_options options = copy_given(given);
    const char *isa_from = options.isa ? "isa" : "EDDY_ISA";

    eddy_lock_acquire(&environment.lock);
    if (!environment.is_read)
        read_environment_locked();
    eddy_lock_release(&environment.lock);
    if (environment.wrong)
        return fail_value(environment.wrong, environment.wrong->variable, environment.wrong_text);

    for (int32_t i = 0; i < ROW_COUNT; i++) {
        eddy_status status = complete_row(&rows[i], &options);
        if (status != EDDY_OK)
            return status;
    }
    options.checks_finite |= options.checks_nan;
    eddy_status status = check_isa(options.isa, isa_from);
    if (status != EDDY_OK)
        return status;
    *resolved = options;
    return EDDY_OK;
}

eddy_status eddy_options_choose_isa(const eddy_runtime_options *given,
                                    const eddy_runtime_options *resolved) {
    const char *asked = copy_given(given).isa;
    eddy_isa used = eddy_isa_choose(*resolved->isa ? eddy_isa_find(resolved->isa) : EDDY_ISA_COUNT);
    if (!asked || !*asked || eddy_isa_find(asked) == used)
        return EDDY_OK;
    return eddy_fail(EDDY_UNSUPPORTED, origin, "isa is %s, but this process already uses %s", asked,
                     eddy_isa_name(used));
}
