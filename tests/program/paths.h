/* What tests of recorded functions share that read what they have computed. */
#ifndef TESTS_PROGRAM_PATHS_H
#define TESTS_PROGRAM_PATHS_H

#include <eddy/eddy.h>
#include <stdbool.h>

typedef struct counted {
    int calls, recorded;
    eddy_tensor *state, *w, *late;
} counted;

/* Whether the sum of all elements is, as the function's code sees it; false where it could not be computed. */
bool is_positive(eddy_tensor *x);

/* A function of a `counted`, or NULL where several threads call it, and one input: its negative, or three times that. */
eddy_status turns(void *context, eddy_recorded_call *call);

/* The result of a call with one input and one output, which has to succeed. */
eddy_tensor *call_once(eddy_recorded *recorded, eddy_tensor *x);
/* That of the function itself, without recording. */
eddy_tensor *call_plainly(eddy_recorded_body *body, counted *c, eddy_tensor *x);

/* The test of a loop: the sum of what it carries is below 50. */
eddy_status is_short(void *context, eddy_list carried, eddy_tensor **predicate);

#endif
