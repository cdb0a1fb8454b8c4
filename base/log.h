/* The log's sink. */
#ifndef EDDY_BASE_LOG_H
#define EDDY_BASE_LOG_H

#include <eddy/export.h>
#include <eddy/status.h>
#include <stdbool.h>

/* One line without a newline to the sink that eddy_log_set or EDDY_LOG has set; dropped if there is none. Formats on the
 * stack. */
void eddy_log_line(const char *format, ...) EDDY_PRINTF(1, 2);
bool eddy_log_is_set(void);

/* The same for a warning, a call that the program may not have meant: written also if EDDY_LOG is `warning`. */
void eddy_log_warning(const char *format, ...) EDDY_PRINTF(1, 2);
bool eddy_log_wants_warnings(void);
/* The same for output that the program has asked for: to stderr if there is no sink. */
void eddy_log_answer(const char *format, ...) EDDY_PRINTF(1, 2);

/* Whether the program has set a sink (eddy_log_set); a line to it, whatever it wants, on the calling thread; and one to stderr, which takes no lock. */
bool eddy_log_is_programs(void);
void eddy_log_to_program(const char *line);
void eddy_log_to_stderr(const char *line);

/* Whether errors of calls are logged: if EDDY_LOG says so and the sink is EDDY_LOG's. A program's sink gets none, since a call may fail
 * while a lock is held. */
bool eddy_log_wants_errors(void);
void eddy_log_error(const eddy_error *error);

#endif
