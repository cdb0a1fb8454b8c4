/* Environment variables, typed. Each reads the environment as it is now, without allocating. */
#ifndef EDDY_BASE_ENVIRONMENT_H
#define EDDY_BASE_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

/* The text of a variable; NULL when it is not set or empty. Borrowed until the environment changes. */
const char *eddy_environment_string(const char *variable);

/* Parsing of the values themselves: false if the text is no value; *value is then unchanged. */

/* 1, true, yes, on and 0, false, no, off, in any case. */
bool eddy_environment_parse_bool(const char *text, bool *value);
/* Decimal or 0x hexadecimal, with an optional K, M or G (1024 each), nothing after it; false on overflow. */
bool eddy_environment_parse_int(const char *text, int64_t *value);

#endif
