/* The log.
 *
 * EDDY_LOG in the environment selects the lines that are written to stderr: `error` writes errors of calls when they are recorded,
 * with file and line if known; `warning` also calls that the program may not have meant; `stderr` (or `info`) every line; 0, or no
 * variable, nothing. It is read once. */
#ifndef EDDY_LOG_H
#define EDDY_LOG_H

#include <eddy/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One line without a newline, borrowed for the call. Called from any thread, several at a time; it may not call the
 * library except for eddy_log_set. */
typedef void eddy_log_sink(void *context, const char *line);

/* Sets the sink of the process, in place of EDDY_LOG's; NULL drops all lines. The sink gets warnings and the output of
 * eddy_dump, eddy_leaks_report and eddy_print to NULL; it does not get errors. After the call the former sink is not called any
 * more, unless the call came from inside it. Blocks no longer than the sink does. */
EDDY_API void eddy_log_set(eddy_log_sink *sink, void *context);

#ifdef __cplusplus
}
#endif
#endif
