/* Where the library says what it has to say. */
#ifndef EDDY_LOG_H
#define EDDY_LOG_H

#include <eddy/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One line without a newline, borrowed for the call. Called from any thread, several at a time; it may not call the
 * library except for eddy_set_log. */
typedef void eddy_log_sink(void *context, const char *line);

/* Sets the sink of the process; NULL (the state at the start): what there is to say is dropped. When it returns no line
 * is under way to the former sink, unless it was called from inside one. Blocks no longer than the sink does. */
EDDY_API void eddy_set_log(eddy_log_sink *sink, void *context);

#ifdef __cplusplus
}
#endif
#endif
