/* Where the library says what it has to say.
 *
 * Without a line of code: EDDY_LOG=stderr (or `info`) in the environment writes every line to stderr, `warning` only what the program may
 * have meant otherwise, `error` only errors of calls as they are recorded, with file and line where they are known; each level has those
 * below it, 0 (or nothing) drops all. Read once. */
#ifndef EDDY_LOG_H
#define EDDY_LOG_H

#include <eddy/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One line without a newline, borrowed for the call. Called from any thread, several at a time; it may not call the
 * library except for eddy_log_set. */
typedef void eddy_log_sink(void *context, const char *line);

/* Sets the sink of the process, in place of EDDY_LOG's; NULL: what there is to say is dropped. It gets warnings and what
 * the program asks for (eddy_dump, eddy_leaks_report, eddy_print to NULL); errors go to those who look for them. When it returns no line
 * is under way to the former sink, unless it was called from inside one. Blocks no longer than the sink does. */
EDDY_API void eddy_log_set(eddy_log_sink *sink, void *context);

#ifdef __cplusplus
}
#endif
#endif
