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

/* A function returns its own status and never reads one back from the slot, which may hold an older error. Around calls of functions
 * that fail with NULL (public functions, the program's code), it uses an outcome:
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
/* The reason of a failure: the first one recorded, or INVALID_ARGUMENT if an operand was NULL because of an earlier failure. */
eddy_status eddy_outcome_why(const eddy_outcome *outcome);
/* Failures between these two (of a callback that runs inside another call) count for no outcome. Returns the outcome to resume. */
eddy_outcome *eddy_outcome_set_aside(void);
void eddy_outcome_go_on(eddy_outcome *outcome);

/* Fills *error without touching the slot. The message is the text alone. */
void eddy_error_fill(eddy_error *error, eddy_status status, eddy_origin origin, uint64_t sequence,
                     const char *format, ...) EDDY_PRINTF(5, 6);

/* Copies the slot's record without clearing it; false if there is none. And restores such a record. */
bool eddy_error_peek(eddy_error *error);
void eddy_error_restore(const eddy_error *error);
/* Empties the slot; its errors, which will not be taken any more, stay counted as unseen. */
void eddy_error_leave(void);

/* In a forked child, which has no unseen errors of its parent. */
void eddy_error_fork_child(void);

/* The place ("file:line") that EDDY_CALL_SITES noted for this thread's next call; read and cleared. */
const char *eddy_status_place_take(void);

#endif
