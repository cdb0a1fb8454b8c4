/* The calling thread's error slot, filled without allocating. */
#ifndef EDDY_BASE_STATUS_H
#define EDDY_BASE_STATUS_H

#include <base/call_site.h>
#include <eddy/status.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

/* Records an error of a call: the first since the last eddy_error_take is kept, the rest are counted. Returns `status`,
 * so that a function can end in `return eddy_fail(...)`. The message is "op: " and the text. Never blocks, never
 * allocates. */
eddy_status eddy_fail(eddy_status status, eddy_origin origin, const char *format, ...)
    EDDY_PRINTF(3, 4);

/* The same for a record that exists already (a late error that a read found). */
eddy_status eddy_fail_record(const eddy_error *error);

/* A function returns its own status, and never reads one back from the slot, where an older error may stand. Where it calls what
 * fails with NULL (public functions, code of the program's), it says so around those calls:
 *
 *     eddy_outcome outcome;
 *     eddy_outcome_begin(&outcome);
 *     eddy_tensor *result = eddy_mul(eddy_exp(a), b);
 *     eddy_outcome_end(&outcome);
 *     return result ? EDDY_OK : eddy_outcome_why(&outcome);
 *
 * <calling thread> only; outcomes nest. */
typedef struct eddy_outcome {
    eddy_status first; /* failure since the beginning, recorded or counted; OK: none */
    struct eddy_outcome *outer;
} eddy_outcome;

void eddy_outcome_begin(eddy_outcome *outcome);
void eddy_outcome_end(eddy_outcome *outcome);
/* Why something failed: the first failure, or INVALID_ARGUMENT where an operand was NULL, which had failed before. */
eddy_status eddy_outcome_why(const eddy_outcome *outcome);
/* What runs between these two (a callback, inside the call of somebody else) is nobody's failure. Returns what to go on with. */
eddy_outcome *eddy_outcome_set_aside(void);
void eddy_outcome_go_on(eddy_outcome *outcome);

/* Fills *error without touching the slot. The message is the text alone. */
void eddy_error_fill(eddy_error *error, eddy_status status, eddy_origin origin, uint64_t sequence,
                     const char *format, ...) EDDY_PRINTF(5, 6);

/* Copies the slot's record without clearing it; false when there is none. And puts a record back as it was. */
bool eddy_error_peek(eddy_error *error);
void eddy_error_restore(const eddy_error *error);
/* Empties the slot of what nobody will take any more, which stays counted as unseen. */
void eddy_error_leave(void);

/* In a forked child: what the parent has not seen is the parent's. */
void eddy_error_fork_child(void);

/* The place ("file:line") that EDDY_CALL_SITES noted for this thread's next call; read and cleared. */
const char *eddy_status_place_take(void);

#endif
