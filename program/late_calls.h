/* Calls whose results have a shape that depends on data (nonzero, masked_select, unique). No memory can be planned for what they make, so that they are no part of a run:
 * they are issued behind it, as calls, on what it has computed. So are reads for a callback (late_read.h), which have no results, and which every run makes.
 *
 *   recorded in any place --eddy_late_calls_put_last--> at the end of the instructions --passes--> the same
 *       --eddy_late_calls_cut--> code.late_calls, when the program is built --eddy_late_calls_issue--> calls behind a run
 *
 * Nothing else of the program may use what these calls make, and nothing may write what they read once they were called. Branches and loops have none: their calls are
 * recorded without being run, and these have to run. In the code a result of theirs is a value of no bytes (eddy_code_value.is_late), which is seen as a vector without
 * elements. */
#ifndef EDDY_PROGRAM_LATE_CALLS_H
#define EDDY_PROGRAM_LATE_CALLS_H

#include <program/late_read.h>
#include <program/run.h>

/* Whether calls of the op are issued behind a run. */
static inline bool eddy_late_calls_include(const eddy_op *op) {
    return op->has_late_shape || eddy_late_read_is(op);
}

/* Whether the code has calls of late shape, in any place. */
bool eddy_late_calls_have_late_shape(const eddy_code *code);

/* Why the recorded code cannot become a program because of such calls, as a sentence; "" where it can. */
void eddy_late_calls_judge(const eddy_code *code, char *reason, size_t size);

/* The calls that are issued behind a run come last, and reads get the copies that they need. Of code that eddy_late_calls_judge allows. False without memory: the code is of no
 * use then. */
EDDY_MUST_USE bool eddy_late_calls_put_last(eddy_code *code);

/* Instructions before such calls, which come last. */
static inline uint32_t eddy_late_calls_first(const eddy_code *code) {
    uint32_t count = code->instructions.count;
    while (count > 0 && eddy_late_calls_include(eddy_code_instruction_at(code, count - 1)->op))
        count--;
    return count;
}

/* Takes the calls from the end of the instructions. False without memory. */
EDDY_MUST_USE bool eddy_late_calls_cut(eddy_code *code);

/* The layout of such a result in the code. */
void eddy_late_calls_layout(eddy_layout *layout);

/* Issues the reads, and the calls of which an output is wanted, once the run is. r->late_outputs: their results, owned as those of any call. On failure, recorded, it has
 * none. */
EDDY_MUST_USE eddy_status eddy_late_calls_issue(const eddy_run *r);

#endif
