/* The library's own trace (trace/tracer.h), as options and calls start it. */
#ifndef EDDY_INTERPRETER_HANDLE_TRACE_H
#define EDDY_INTERPRETER_HANDLE_TRACE_H

#include <base/assert.h>
#include <eddy/options.h>
#include <eddy/status.h>

/* What the options of a runtime ask for, a trace unless one is being written, and the page of eddy top. As eddy_trace_start fails. */
EDDY_MUST_USE eddy_status eddy_trace_look(const eddy_runtime_options *options);
/* At exit, once all threads of runtimes stand still. */
void eddy_trace_exit(void);

#endif
