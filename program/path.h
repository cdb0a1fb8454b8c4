/* The path of a call through a recorded function's code: what that reads on the host of what it has computed, value after value.
 *
 * A program has a mark (EDDY_CONTROL_READ) where the recorded call has read. A run that follows a path compares what is there with what was read then, and goes on
 * where both are the same: so would the function's code. It stops where they differ, or where something has failed before the last mark, and puts back
 * what it had written by then (front.h): nothing has happened, and the caller, who waits for that, lets the function run.
 *
 * Shared by the instruction and who waits for it. Threads: the one that runs the instruction writes; another one reads once it has waited for it. */
#ifndef EDDY_PROGRAM_PATH_H
#define EDDY_PROGRAM_PATH_H

#include <base/assert.h>
#include <base/atomic.h>
#include <base/shape.h>
#include <program/guard.h>

/* Of all values together. */
#define EDDY_PATH_BYTES_MOST EDDY_GUARD_BYTES_MOST

typedef struct eddy_path {
    _Atomic uint32_t references;
    uint32_t bytes;  /* of the recorded values */
    uint32_t seen;   /* that the run has read, one that differs included */
    bool is_left;    /* the run has stopped */
    bool has_failed; /* it has stopped since something failed, not at a value */
    unsigned char recorded[EDDY_PATH_BYTES_MOST];
    unsigned char values[EDDY_PATH_BYTES_MOST];
} eddy_path;

/* With one reference. NULL without memory. */
eddy_path *eddy_path_create(const void *recorded, uint32_t bytes);
eddy_path *eddy_path_retain(eddy_path *path);
/* NULL does nothing. */
void eddy_path_release(eddy_path *path);

/* Reads the next value, whose first element is there. False where it is another than the recorded one. */
EDDY_MUST_USE bool eddy_path_pass(eddy_path *path, const void *first, const eddy_layout *layout,
                                  int64_t element_bytes);

#endif
