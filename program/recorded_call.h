/* A call of a recorded function while it is made: running the function, and what a recording of that comes to.
 *
 * Of the calling thread. No lock is held. */
#ifndef EDDY_PROGRAM_RECORDED_CALL_H
#define EDDY_PROGRAM_RECORDED_CALL_H

#include <program/recorded_function.h>
#include <program/recording.h>

/* A call being made. */
typedef struct eddy_calling {
    eddy_recorded *recorded;
    eddy_caller *caller;
    eddy_origin origin;
    eddy_list inputs;
    eddy_scalars scalars;
    eddy_tensor **outputs; /* output_count, in the caller's scratch */
    void *key;             /* of the kinds of its arguments, then what the guards have read */
    size_t key_bytes, kind_bytes;
    eddy_code_array guards;          /* eddy_guard: a copy of those of its kind */
    uint32_t path_bytes;             /* of the key: what the function has computed and read */
    const eddy_code_array *computed; /* eddy_guard: its values, while a recording is looked at */
    bool has_failed;                 /* a call of the function, whatever that returned */
    char no_way[EDDY_RECORDING_REASON_BYTES]; /* why its backward pass could not be recorded; "" */
} eddy_calling;

/* Calls the function, with these numbers. Its failure, or that of an output that it has left out, recorded. */
EDDY_MUST_USE eddy_status eddy_calling_run(eddy_calling *c, const eddy_scalar *scalars);
/* The same in a recording, which the caller destroys; NULL where none could be opened. What it computes is the call's result in any case. */
EDDY_MUST_USE eddy_status eddy_calling_record(eddy_calling *c, eddy_recording **recording);
/* The program of a recording, which is not built. Failures are recorded. */
EDDY_MUST_USE eddy_status eddy_calling_make_program(const eddy_calling *c,
                                                    eddy_recording *recording,
                                                    eddy_program **program);
/* Why gradients cannot go back through a replay as they would through the function; "" if they can. */
void eddy_calling_judge_gradient(const eddy_calling *c, const eddy_recording *recording,
                                 char *reason, size_t size);
/* Why a gradient that comes back to some of the outputs alone finds no way; "" where it finds one. */
void eddy_calling_judge_ways(const eddy_program *program, char *reason, size_t size);

/* ---- recorded.c ---- */

/* Reads what decides, behind the key. False where that fails, as it would for the function. */
EDDY_MUST_USE bool eddy_calling_read_guards(eddy_calling *c);
/* Replays a program, records the function, or just runs it. Failures are recorded. */
EDDY_MUST_USE eddy_status eddy_calling_choose(eddy_calling *c);

#endif
