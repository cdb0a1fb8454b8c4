/* The sink that everything the library has to say goes to. */
#ifndef EDDY_BASE_LOG_H
#define EDDY_BASE_LOG_H

#include <eddy/export.h>
#include <eddy/status.h>
#include <stdbool.h>

/* One line without a newline to the sink that eddy_log_set or EDDY_LOG has set; dropped where there is none. Formats on the
 * stack. */
void eddy_log_line(const char *format, ...) EDDY_PRINTF(1, 2);
bool eddy_log_is_set(void);

/* What the program may have meant otherwise: the same, also where EDDY_LOG is `warning`. */
void eddy_log_warning(const char *format, ...) EDDY_PRINTF(1, 2);
bool eddy_log_wants_warnings(void);
/* What the program has just asked for: to stderr where there is no sink. */
void eddy_log_answer(const char *format, ...) EDDY_PRINTF(1, 2);

/* Errors of calls are logged where EDDY_LOG says so and the sink is its own: a program's sink gets none, for a call may fail
 * under a lock. */
bool eddy_log_wants_errors(void);
void eddy_log_error(const eddy_error *error);

#endif
