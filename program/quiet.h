/* Failures between begin and end are none of the call: the thread's error slot is as it was before. */
#ifndef EDDY_PROGRAM_QUIET_H
#define EDDY_PROGRAM_QUIET_H

#include <base/status.h>

typedef struct eddy_quiet {
    eddy_error before;
    eddy_outcome *outcome;
} eddy_quiet;

void eddy_quiet_begin(eddy_quiet *quiet);
/* *failed: the first failure since, or EDDY_OK. */
void eddy_quiet_end(eddy_quiet *quiet, eddy_error *failed);

#endif
