/* The long way: any op, any layout. */
#ifndef EDDY_INTERPRETER_PLAN_H
#define EDDY_INTERPRETER_PLAN_H

#include <interpreter/apply.h>
#include <interpreter/caller.h>

/* Checks, promotes, casts, infers, packs and submits one call. `caller` may call. On success the results, where no
 * targets are given, are the scope's or the caller's. */
EDDY_MUST_USE eddy_status eddy_plan_apply(eddy_caller *caller, const eddy_apply *apply);

#endif
