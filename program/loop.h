/* A call of eddy_while or eddy_scan.
 *
 * What it carries, and a slice of each of xs, are the inputs of a step; what it carries on, and rows of lists, the outputs. eddy_while has a test
 * and no xs, eddy_scan as many steps as xs have slices. */
#ifndef EDDY_PROGRAM_LOOP_H
#define EDDY_PROGRAM_LOOP_H

#include <program/block.h>
#include <program/loop_tape.h>

typedef struct eddy_loop {
    eddy_block_call call; /* output_count: of a step, and of the loop */
    eddy_block *test;     /* NULL: there are `rows` steps */
    eddy_block *body;
    eddy_list xs;
    int64_t most_steps; /* with a test; 0: no bound */
    eddy_loop_counts counts;
    eddy_tensor **
        carried; /* references: copies of what was given, then what the steps give; in the end all that the loop gives */
    eddy_tensor **first;  /* recorded: references of the copies */
    eddy_tensor **next;   /* what a step gives; room for as many */
    eddy_tensor **inputs; /* of a step */
    const eddy_spec
        *rows; /* of each list's rows, where they are known before a step has run; or NULL */
    eddy_code_array kept; /* eddy_tensor *: references of the rows of each step so far */
    char no_tape
        [256]; /* why the body cannot be recorded with its tape; "": nobody has tried, or it can */
    bool loses_gradient; /* it is recorded without a tape, and a gradient goes back */
} eddy_loop;

/* The call, once it is checked: copies what it begins with, runs or records it. outputs: as eddy_while says. */
EDDY_MUST_USE eddy_status eddy_loop_call(eddy_loop *loop, eddy_list carried, bool is_recorded,
                                         eddy_tensor **outputs);
EDDY_MUST_USE eddy_status eddy_loop_check_list(const eddy_loop *loop, eddy_list list,
                                               const char *name);

/* ---- loop.c ---- */

/* All steps, as calls that run. */
EDDY_MUST_USE eddy_status eddy_loop_run(void *loop);

/* ---- loop_note.c ---- */

/* Records the loop, and runs it where calls run. */
EDDY_MUST_USE eddy_status eddy_loop_record(eddy_loop *loop);
/* Calls the body, run by nobody, to see what its rows are like: room for a spec for each. */
EDDY_MUST_USE eddy_status eddy_loop_find_rows(eddy_loop *loop, eddy_spec *rows);

#endif
