/* Rings: outputs of a program that are valid for so many runs, and no longer.
 *
 * A run makes new tensors for its outputs, whose memory lives as long as their handles. In a loop that forgets handles, or hands them to others that keep
 * them too long, that is without bound. A ring of K runs bounds it: when run i + K is submitted to the ring, the outputs of run i are given up.
 * Their memory goes to the later run, and who reads them then, or computes with them, gets an error that names the output and both runs, never the elements of
 * another run.
 *
 *     eddy_output_ring *ring = eddy_output_ring_create(program, 2);
 *     for (;;) {
 *         eddy_output_ring_run(ring, EDDY_LIST(x), &y);
 *         ... y, and the y before it
 *     }
 *     eddy_output_ring_release(&ring);
 *
 * Giving up is ordered as a write: what was issued before on the outputs of run i, reads of other threads, backward passes and lends (eddy_map) included, sees their elements, and run
 * i + K runs behind it. Views share the fate of what they view; a backward pass that would read what was given up fails, as after an overwrite in place. Until an op
 * writes all of such a tensor (it takes memory anew then), all that is left of it is the error: INVALID_ARGUMENT, "output y of run 3 of the ring is gone".
 * (The library keeps the sentences of the last 128 tensors; of older ones the error has the number of the instruction alone, and is KERNEL_FAILED.) Memory that
 * went to another library (<eddy/dlpack.h>) stays where it is until the tensor is released.
 *
 * Rings are reference-counted and no scope owns them. Any thread; several may run one ring at once: runs are numbered from 1 in the order in which they are submitted. One that
 * K others have overtaken when it comes back (it waits for draws in a loop) is given up by the next. */
#ifndef EDDY_OUTPUT_RING_H
#define EDDY_OUTPUT_RING_H

#include <eddy/export.h>
#include <eddy/program.h>
#include <eddy/status.h>
#include <eddy/tensor.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A ring of so many runs of the program, of which it keeps a reference; one reference, the caller's. NULL with INVALID_ARGUMENT (no program;
 * runs is less than 1) or OUT_OF_MEMORY in the slot. */
EDDY_API eddy_output_ring *eddy_output_ring_create(eddy_program *program, int64_t runs);
/* One more reference; returns its argument, which may be NULL. */
EDDY_API eddy_output_ring *eddy_output_ring_retain(eddy_output_ring *ring);
/* Gives up a reference and clears the pointer; NULL and pointers to NULL do nothing. With the last one the ring ends: the outputs of its last runs stay valid as long as
 * others hold them. */
EDDY_API void eddy_output_ring_release(eddy_output_ring **ring);

/* eddy_program_run of the ring's program (eddy_program_run_named has the option `ring`). The ring holds what the run makes and hands out: outputs that were there before the run (state that
 * is returned as it is, an input), outputs written into targets, outputs that nobody fetches, and what the tape saves beside outputs are none of
 * the ring's. Where a run takes an output that it makes old as an input, it reads it before.
 *
 * The errors of eddy_program_run; INVALID_ARGUMENT without a ring, and where a target, or state that the program writes, is an output that the ring still holds. Where nothing has changed the ring has not either. Whatever becomes of a run that was submitted, also if it
 * gets no memory, it has taken its place. */
EDDY_API eddy_status eddy_output_ring_run(eddy_output_ring *ring, eddy_list inputs,
                                          eddy_tensor **outputs);

#ifdef __cplusplus
}
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_output_ring_create(...) EDDY_AT_CALL_SITE(eddy_output_ring_create(__VA_ARGS__))
#define eddy_output_ring_retain(...) EDDY_AT_CALL_SITE(eddy_output_ring_retain(__VA_ARGS__))
#define eddy_output_ring_release(...) EDDY_AT_CALL_SITE_VOID(eddy_output_ring_release(__VA_ARGS__))
#define eddy_output_ring_run(...) EDDY_AT_CALL_SITE(eddy_output_ring_run(__VA_ARGS__))
#endif
#endif
