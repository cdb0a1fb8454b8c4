/* The log by room and level (trace/event_log.h), as options and calls set it. */
#ifndef EDDY_INTERPRETER_HANDLE_LOG_H
#define EDDY_INTERPRETER_HANDLE_LOG_H

#include <base/assert.h>
#include <eddy/options.h>
#include <eddy/status.h>

/* What the options of a runtime ask for, if they name a room. As eddy_log_levels_set fails. */
EDDY_MUST_USE eddy_status eddy_log_look(const eddy_runtime_options *given,
                                        const eddy_runtime_options *resolved);
/* At exit, once all threads of runtimes stand still. */
void eddy_log_exit(void);

#endif
