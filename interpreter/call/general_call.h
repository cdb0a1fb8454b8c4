/* A general call: any op, any layout. */
#ifndef EDDY_INTERPRETER_CALL_GENERAL_CALL_H
#define EDDY_INTERPRETER_CALL_GENERAL_CALL_H

#include <interpreter/call/apply.h>
#include <interpreter/handle/caller.h>

/* Checks, promotes, casts, infers, packs and submits one call. `caller` may call. On success the results, where no
 * targets are given, are the scope's or the caller's. */
EDDY_MUST_USE eddy_status eddy_general_call_apply(eddy_caller *caller, const eddy_apply *apply);

#endif
