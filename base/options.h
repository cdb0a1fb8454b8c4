/* Options of a runtime, filled in from the caller's struct, then the environment, then the defaults of the list in
 * <eddy/options.h>. A new option is one row there. */
#ifndef EDDY_BASE_OPTIONS_H
#define EDDY_BASE_OPTIONS_H

#include <base/assert.h>
#include <base/cpu.h>
#include <eddy/options.h>
#include <eddy/status.h>

typedef enum eddy_option_type {
    EDDY_OPTION_TYPE_BOOL,
    EDDY_OPTION_TYPE_INT,
    EDDY_OPTION_TYPE_STRING
} eddy_option_type;

/* A row of the list, for code that prints or documents it. */
typedef struct eddy_option {
    const char *name;     /* "in_flight_high" */
    const char *variable; /* "EDDY_IN_FLIGHT_HIGH" */
    const char *sentence;
    eddy_option_type type;
    size_t offset;              /* of the field in eddy_runtime_options */
    int64_t least, most;        /* INT */
    int64_t default_int;        /* INT */
    const char *default_string; /* STRING */
} eddy_option;

/* All rows; *count of them. Static storage. */
const eddy_option *eddy_option_rows(int32_t *count);

/* *resolved = given (NULL: nothing given), filled in from the environment and the defaults. Its strings are those of `given` or
 * of static storage. INVALID_ARGUMENT, recorded, if a value is out of range or a variable cannot be read, which the
 * message names; UNSUPPORTED if machine or library lack the instruction set. The environment is read once per
 * process, by the first call. */
EDDY_MUST_USE eddy_status eddy_options_resolve(const eddy_runtime_options *given,
                                               eddy_runtime_options *resolved);

/* Whether a machine of level `machine` can run a library whose lowest kernels are those of `least`. */
EDDY_MUST_USE eddy_status eddy_options_check_machine(eddy_isa least, eddy_isa machine);

/* Whether `isa` names a level that a machine of level `machine` has, and a library of `least`; `from` is the option or the
 * variable that says so. */
EDDY_MUST_USE eddy_status eddy_options_check_isa(const char *isa, const char *from, eddy_isa least,
                                                 eddy_isa machine);

/* Sets the process's instruction set from the options of a starting runtime; `resolved` was made of `given`. If it is
 * set already: UNSUPPORTED, recorded, if `given` names another one. The variable counts for the first runtime only. */
EDDY_MUST_USE eddy_status eddy_options_choose_isa(const eddy_runtime_options *given,
                                                  const eddy_runtime_options *resolved);

#endif
