/* What of host access other files of the room need. */
#ifndef EDDY_INTERPRETER_HOST_H
#define EDDY_INTERPRETER_HOST_H

#include <base/assert.h>
#include <eddy/host.h>

/* eddy_read for a tensor whose handle and size were checked. */
EDDY_MUST_USE eddy_status eddy_host_read(eddy_tensor *tensor, void *buffer, const char *op, const void *address);

/* In a forked child. */
void eddy_host_fork_child(void);

#endif
