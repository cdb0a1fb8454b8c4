/* Reads that a run hands to a callback of the user's: eddy_read_async in a recording (interpreter/host/access.h), behind the run as calls of late shape are.
 *
 * What such a read sees are the elements at its place among the calls. Where the recorded calls write them later, and where they are a tensor that is there beside the run, which
 * others may write between the run and the read, the run makes a copy in that place, and the copy is read. */
#ifndef EDDY_PROGRAM_LATE_READ_H
#define EDDY_PROGRAM_LATE_READ_H

#include <interpreter/host/access.h>
#include <program/code.h>

static inline bool eddy_late_read_is(const eddy_op *op) {
    return op == &eddy_access_op;
}

/* Whether the code has one. */
bool eddy_late_read_is_in(const eddy_code *code);

/* Whether the read at that place of the code needs a copy. */
bool eddy_late_read_needs_copy(const eddy_code *code, uint32_t at);

/* Makes `copy` the instruction that copies what the read sees, in its place, and has the read see the copy. False without memory. */
EDDY_MUST_USE bool eddy_late_read_copy(eddy_code *code, eddy_code_instruction *read,
                                       eddy_code_instruction *copy);

#endif
