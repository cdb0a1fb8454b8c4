/* Lists with gaps: if an item of the list that the op names (grads) is EDDY_NONE, the items at its position are left out of all
 * lists of the same length. Kernels never see them. */
#ifndef EDDY_INTERPRETER_CALL_LIST_GAPS_H
#define EDDY_INTERPRETER_CALL_LIST_GAPS_H

#include <base/assert.h>
#include <interpreter/call/apply.h>
#include <interpreter/call/op.h>
#include <stdbool.h>

/* Whether the call has such gaps. */
bool eddy_list_gaps_is_needed(const eddy_apply *apply);
/* The call without them. */
EDDY_MUST_USE eddy_status eddy_list_gaps_apply(eddy_caller *caller, const eddy_apply *apply);

#endif
