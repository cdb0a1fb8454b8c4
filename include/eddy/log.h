/* The log: lines about errors, warnings, and, by room and level, about everything that the library does.
 *
 * EDDY_LOG in the environment selects the lines that are written to stderr: `error` writes errors of calls when they are recorded,
 * with file and line if known; `warning` also calls that the program may not have meant; `stderr` (or `info`) every line; 0, or no
 * variable, nothing. It is read once. Rooms with levels, EDDY_LOG=vm:2,interpreter:1, also beside such a word, tell what the library does (docs/debugging.md). */
#ifndef EDDY_LOG_H
#define EDDY_LOG_H

#include <eddy/export.h>
#include <eddy/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One line without a newline, borrowed for the call. Called from any thread, several at a time; it may not call the
 * library except for eddy_log_set. */
typedef void eddy_log_sink(void *context, const char *line);

/* Sets the sink of the process, in place of EDDY_LOG's; NULL drops all lines but those that eddy_log_levels_set asks for. The sink gets warnings and the output of
 * eddy_dump, eddy_leaks_report and eddy_print to NULL; it does not get errors. After the call the former sink is not called any
 * more, unless the call came from inside it. Blocks no longer than the sink does. */
EDDY_API void eddy_log_set(eddy_log_sink *sink, void *context);

/* What the library does from now on, as lines, by room and level: "vm:2,interpreter:1" (docs/debugging.md). Rooms that are not named are silent; NULL or "" silences all. Without a sink they
 * are written to stderr, where they happen; a sink gets them from a thread of the library's, in their order; what it does not take in time is dropped and counted (4096 lines). INVALID_ARGUMENT, which lists rooms and levels; OUT_OF_MEMORY. Any
 * thread, but not in a sink. */
EDDY_API eddy_status eddy_log_levels_set(const char *levels);

#ifdef __cplusplus
}
#endif
#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_log_levels_set(...) EDDY_AT_CALL_SITE(eddy_log_levels_set(__VA_ARGS__))
#endif
#endif
