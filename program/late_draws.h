/* Draws that a run takes while it runs.
 *
 * In a program with draws in branches or loops (eddy_control_has_draws) the way that is taken decides how many there are. There each draw, also of those outside,
 * is taken when its instruction runs, from the generator itself, and the run is waited for: so the thread's next draw is the one that the calls would
 * come to. An instruction that is skipped for poison has drawn, as a call would have.
 *
 * The words of such a run change, and outlive its workspace: who waits reads what was drawn last. Shared by the instruction and who waits for it.
 *
 * Threads: the one that runs the instruction draws; another one reads once it has waited for it. */
#ifndef EDDY_PROGRAM_LATE_DRAWS_H
#define EDDY_PROGRAM_LATE_DRAWS_H

#include <base/assert.h>
#include <base/atomic.h>
#include <eddy/generator.h>
#include <stddef.h>
#include <stdint.h>

typedef struct eddy_late_draws {
    _Atomic uint32_t references;
    uint32_t count; /* of draws */
    size_t bytes;
    int64_t *words;               /* of the run (code.h) */
    eddy_generator *generators[]; /* per draw: a reference; NULL: the run does not draw it */
} eddy_late_draws;

/* With one reference, no generators, and these words, of which those of draws are the first. NULL without memory. */
eddy_late_draws *eddy_late_draws_create(uint32_t count, const int64_t *words, uint32_t word_count);
eddy_late_draws *eddy_late_draws_retain(eddy_late_draws *draws);
/* NULL does nothing. */
void eddy_late_draws_release(eddy_late_draws *draws);

/* Takes the draw: its words are new. */
void eddy_late_draws_take(eddy_late_draws *draws, uint32_t draw);

#endif
