/* The sink that everything the library has to say goes to. */
#ifndef EDDY_BASE_LOG_H
#define EDDY_BASE_LOG_H

#include <eddy/export.h>
#include <stdbool.h>

/* One line without a newline to the sink set by eddy_set_log; dropped where there is none. Formats on the stack. */
void eddy_log_line(const char *format, ...) EDDY_PRINTF(1, 2);
bool eddy_log_is_set(void);

#endif
