/* A run in rounds, on a device that runs no code of the host (cut.h; vm/DEVICES.md, section 6).
 *
 *   launch: steps up to a mark that decides, whose predicate is copied to the host --complete--> go_on: what became of them; the mark is passed --> launch ... over
 *
 * Both walk over the same steps from where the round begins. The first launches them, each with a ticket and the tickets of those of the round that wrote what it reads; the other
 * looks at their words, and at the predicate. What a step does depends on the round's beginning alone, so that the two walks are one.
 *
 * Threads: the launcher launches; the thread with the engine's role goes on; never both. */
#ifndef EDDY_PROGRAM_ROUNDS_H
#define EDDY_PROGRAM_ROUNDS_H

#include <program/executable.h>

/* The most calls that a round of this part has. */
uint32_t eddy_rounds_call_count(const eddy_executable *executable,
                                const eddy_executable_given *given);
/* Bytes of run->state. */
size_t eddy_rounds_state_bytes(const eddy_executable *executable);
/* Launches a round. run->workspace is the arena. */
void eddy_rounds_launch(const eddy_executable *executable, const eddy_code *code,
                        const eddy_executable_given *given, const eddy_vm_run *run);
/* Whether another round follows the one that is complete. Else the poison of every operand that the code writes is set, as eddy_executable_run does. */
bool eddy_rounds_go_on(const eddy_executable *executable, const eddy_code *code,
                       const eddy_executable_given *given, const eddy_vm_run *run);

#endif
