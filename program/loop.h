/* A call of eddy_while. */
#ifndef EDDY_PROGRAM_LOOP_H
#define EDDY_PROGRAM_LOOP_H

#include <program/block.h>
#include <program/loop_tape.h>

typedef struct eddy_loop {
    eddy_block_call call;
    eddy_block *test, *body;
    int64_t most_steps;
    eddy_tensor **carried; /* references: copies of what was given, then what the steps give */
    eddy_tensor **first;   /* recorded: the copies, which are the values of the loop */
    eddy_tensor **next;    /* what a step gives */
    char no_tape
        [256]; /* why the body cannot be recorded with its tape; "": nobody has tried, or it can */
} eddy_loop;

/* ---- while.c ---- */

/* Steps until the test gives false. */
EDDY_MUST_USE eddy_status eddy_loop_run(void *loop);
/* Records the test and its mark. */
EDDY_MUST_USE eddy_status eddy_loop_note_test(const eddy_loop *loop, eddy_list carried);
/* Records how a step leaves what it has given, which is checked, in the carried values. given[i] is inputs[i] where it stays as it is. */
EDDY_MUST_USE eddy_status eddy_loop_set(const eddy_loop *loop, eddy_tensor *const *values,
                                        eddy_tensor *const *inputs, eddy_tensor **given);

/* ---- loop_gradient.c ---- */

/* Calls the body, recorded and run by nobody, to see whether gradients go back through the loop: *tape is the body's then, else NULL. */
EDDY_MUST_USE eddy_status eddy_loop_probe(eddy_loop *loop, eddy_loop_tape **tape);
/* Records the loop with what its gradient needs, which `probed` has shown. *is_done: `carried` is what the loop gives; else the recording is spoiled,
 * and nothing has run. */
EDDY_MUST_USE eddy_status eddy_loop_record(eddy_loop *loop, const eddy_loop_tape *probed,
                                           bool *is_done);

#endif
