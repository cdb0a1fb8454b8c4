/* The steps of an executable: what one of them runs. */
#ifndef EDDY_PROGRAM_STEPS_H
#define EDDY_PROGRAM_STEPS_H

#include <program/executable.h>

/* What a step is made of. The arrays outlive it. */
typedef struct eddy_step_call {
    const eddy_prepared_call *prepared;
    const eddy_place *places; /* of the first elements of views that are not absent */
    uint32_t count;
    const eddy_patch *patches;
    uint32_t patch_count;
    uint32_t late_draw;   /* 1 + the draw that it takes when it runs; 0: none */
    int64_t workspace_at; /* -1: none */
    bool
        checks_finite; /* infinities that are passed in are looked for before a kernel runs: no loop is called alone */
} eddy_step_call;

/* Steps that take longer may use helpers; below, a hand-over costs more than it gains. */
#define EDDY_STEP_HELPED_PS INT64_C(8320000)

/* Chooses how the call runs: an elementwise call of one slice calls its loop, any other its kernel. */
void eddy_step_make(eddy_step *step, const eddy_step_call *call);
/* Of an instruction that is submitted as a call (cut.h). */
void eddy_step_make_call(eddy_step *step);
/* "call", "loop", "rows", "kernel", "patched kernel" (numbers or draws of the run are filled in), "drawing kernel" (that
 * draws, too), "set draw" (words of the run are filled in), "nothing", "mark". */
const char *eddy_step_kind(const eddy_step *step);
/* Whether it launches a kernel whose attributes are the program's: the same in each run. */
bool eddy_step_is_constant(const eddy_step *step);
/* Whether the frame's copy holds the call's attributes with the run's words, once it has run. */
bool eddy_step_is_patched(const eddy_step *step);
/* Fills that copy, as such a step does when it runs. */
void eddy_step_patch(const eddy_step *step, eddy_frame *frame);
/* The step of a group. */
void eddy_step_make_fused(eddy_step *step, const eddy_fused *fused);

#endif
