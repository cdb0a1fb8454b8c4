/* The jumps of an executable: where a run goes on at each mark of the code. */
#ifndef EDDY_PROGRAM_JUMPS_H
#define EDDY_PROGRAM_JUMPS_H

#include <program/control.h>
#include <program/executable.h>

/* step_of: the step of each instruction. The steps have their places. False without memory. */
EDDY_MUST_USE bool eddy_jumps_make(eddy_executable *executable, const eddy_code *code,
                                   const eddy_regions *regions, const uint32_t *step_of);

#endif
