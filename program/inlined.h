/* A run that is made while its thread records. The recording gets the instructions of the program in place of the run: programs may be parts of others, those from
 * files too, and passes, arena and streams are those of the whole.
 *
 *   run    submitted as one instruction (with NOTES: its outputs are lost), which gives this time's results
 *   code   the program's instructions, behind those of the recording; its values are
 *            externals       what the tensors are to the recording that were given, or that the program holds
 *            made, outputs   values of the storages that the run has made
 *            others          values that nobody sees
 *
 * What its passes have done stays, but for what a build does anew: groups, and values that share memory. Its constants are checked at each run of what the recording
 * becomes. Calls behind the run (late_calls.h) are recorded as calls.
 *
 * Thread: the recording one's. */
#ifndef EDDY_PROGRAM_INLINED_H
#define EDDY_PROGRAM_INLINED_H

#include <program/recording.h>
#include <program/run.h>

/* Whether the calling thread's recording, which is open, takes the run: UNSUPPORTED, recorded, where the run fails for that. The recording of a recorded function is
 * spoiled in its place, as by calls that it does not take, and the run goes on: OK. */
EDDY_MUST_USE eddy_status eddy_inlined_check(const eddy_run *r);

/* Records a run that was submitted, whose roots and words are known. Never fails: what goes wrong is the recording's, and shows when it ends. */
void eddy_inlined_record(const eddy_run *r);

/* Of a program that is being made of the recording: whether the constants of inner programs have no other role, and no call writes them. INVALID_ARGUMENT, recorded. */
EDDY_MUST_USE eddy_status eddy_inlined_check_constants(const eddy_program *program,
                                                       const eddy_recording *recording,
                                                       const eddy_bindings *bindings,
                                                       eddy_origin origin);

#endif
