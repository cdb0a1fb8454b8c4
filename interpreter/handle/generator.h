/* The seed and counter of random ops. */
#ifndef EDDY_INTERPRETER_HANDLE_GENERATOR_H
#define EDDY_INTERPRETER_HANDLE_GENERATOR_H

#include <base/call_site.h>
#include <eddy/generator.h>
#include <interpreter/handle/caller.h>
#include <interpreter/handle/runtime.h>

/* The state for one op, and advances it: of `generator`, or, if that is NULL, of the thread's own in `runtime`. */
EDDY_MUST_USE eddy_status eddy_generator_draw(eddy_caller *caller, eddy_runtime *runtime,
                                              eddy_generator *generator, eddy_origin origin,
                                              uint64_t *seed, uint64_t *counter);

/* Takes back a draw, unless somebody has drawn from the generator since. */
void eddy_generator_undraw(eddy_caller *caller, eddy_runtime *runtime, eddy_generator *generator,
                           uint64_t seed, uint64_t counter);

/* A reference of the same generator, from which any thread may draw: of the thread's own, too, which draws on from there. */
EDDY_MUST_USE eddy_status eddy_generator_hold(eddy_caller *caller, eddy_runtime *runtime,
                                              eddy_generator *generator, eddy_origin origin,
                                              eddy_generator **held);
/* From a generator that is held: any thread, never fails. */
void eddy_generator_draw_held(eddy_generator *held, uint64_t *seed, uint64_t *counter);

/* The thread's own generators, at its end. */
void eddy_generator_forget_all(eddy_caller *caller);

/* In a forked child. */
void eddy_generator_fork_child(void);

#endif
