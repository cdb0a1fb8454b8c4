/* eddy_read_async as a call that a program makes again behind each run (program/late_calls.h).
 *
 * Its op, "read_async", is one of programs alone: a tensor, no results, and callback and context as attributes without names, which no text shows: they mean
 * nothing in another process. It has effects, so that it is never left out or merged.
 *
 * Any thread. */
#ifndef EDDY_INTERPRETER_HOST_ACCESS_H
#define EDDY_INTERPRETER_HOST_ACCESS_H

#include <eddy/host.h>
#include <interpreter/call/op.h>

extern const eddy_op eddy_access_op;

/* The call as its attributes have it, on a tensor whose shape is known. `address`: of the recorded call. The errors of eddy_read_async, recorded; the callback
 * is not called then. */
EDDY_MUST_USE eddy_status eddy_access_again(eddy_tensor *tensor, const void *attributes,
                                            const void *address);

#endif
