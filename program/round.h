/* A round of a run, while it is launched or looked at (rounds.h): where the walk over its steps is, and what it knows of them.
 *
 * Threads: those of rounds.h. */
#ifndef EDDY_PROGRAM_ROUND_H
#define EDDY_PROGRAM_ROUND_H

#include <base/trace.h>
#include <program/executable.h>
#include <program/fusions.h>
#include <program/health.h>
#include <streams/backend.h>

/* What lies in the state of a run, behind each other (eddy_frame_take). */
typedef struct eddy_round_state {
    uint32_t step, jump; /* where the next round begins */
    uint32_t call_count; /* of the round that is under way */
    bool has_begun;
    /* What the round ends with a copy of, which decides how the run goes on: a predicate, or the words of a draw (draw_ops.h). */
    enum { FETCHED_NOTHING, FETCHED_PREDICATE, FETCHED_DRAW } fetched;
    bool predicate;
    int64_t drawn[2];
    uint64_t skipped;
} eddy_round_state;

/* One of the two walks over a round. */
typedef struct eddy_round {
    const eddy_executable *executable;
    const eddy_code *code;
    const eddy_vm_run *run;
    eddy_round_state *state;
    eddy_frame frame; /* launcher only, but for copy, words and step_counts */
    eddy_health health;
    int64_t *bytes;   /* of the run's operands, as its first launch has found them */
    uint64_t *writer; /* per value: the ticket of its last writer; of an earlier round: none */
    uint64_t first_ticket;
    uint32_t step, jump; /* where the walk is */
    uint32_t end;        /* of its steps */
    uint64_t *key;       /* launcher only: room for the key of a row of steps */
    bool *is_made;       /* launcher only, per fusion: its kernel was there as the round began */
    uint64_t fused;      /* launcher only: a hash of the fusions that are one launch so far */
    bool is_healthy;     /* launcher only: nothing is poisoned as the round begins */
} eddy_round;

static inline uint32_t eddy_round_instruction(const eddy_round *r) {
    return r->executable->first_of[r->step];
}
/* The attributes that the call runs with, as far as numbers given are among them; NULL: those of the program. */
void *eddy_round_patched(eddy_round *r);

/* ---- launching ---- */

/* Launches the call at the step, or the fusion that begins there, and passes it. False: the round ends before it. */
bool eddy_round_launch_next(eddy_round *r);
/* The same up to the step; false: the round ends before something of it. */
bool eddy_round_launch_calls(eddy_round *r, uint32_t end);
/* Passes what that launches, as if it had. */
void eddy_round_note_calls(eddy_round *r, uint32_t end);

/* Whether an error of the operand is the call's, and is known. */
bool eddy_round_is_poisoned(const eddy_round *r, const eddy_code_operand *operand);
/* What the launch has to look at of the operand. False: there is no room for it. */
bool eddy_round_add_source(const eddy_round *r, const eddy_code_operand *operand,
                           eddy_backend_launch *launch);
/* What the step writes is the launch's with the ticket. */
void eddy_round_note_writes(const eddy_round *r, uint32_t step, uint64_t ticket);
static inline void eddy_round_clear_word(const eddy_round *r, uint64_t ticket) {
    *eddy_backend_error(r->run->launch->queue->backend, ticket) =
        (eddy_kernel_error){.position = INT64_MAX};
}

/* Around the launch of what begins at the step, which is not passed yet (base/trace.h). */
static inline const char *eddy_round_op(const eddy_round *r) {
    return eddy_code_instruction_at(r->code, eddy_round_instruction(r))->op->name;
}
/* Some stream of the device: which one is known of the run alone. */
#define EDDY_ROUND_ON(r)                                                                           \
    (const eddy_trace_stream[]) {                                                                  \
        { .runtime = eddy_vm_number((r)->run->vm), .is_devices = true }                            \
    }
static inline eddy_trace_span eddy_round_trace_begin(const eddy_round *r, const char *op) {
    return EDDY_TRACE_BEGIN(
        KERNEL, .op = op, .runtime = eddy_vm_number(r->run->vm), .on = EDDY_ROUND_ON(r),
        .sequence = eddy_health_sequence(&r->health, eddy_round_instruction(r)));
}
static inline void eddy_round_trace_end(const eddy_round *r, const char *op, eddy_trace_span span) {
    EDDY_TRACE_END(span, .op = op, .runtime = eddy_vm_number(r->run->vm),
                   .sequence = eddy_health_sequence(&r->health, eddy_round_instruction(r)));
}

/* ---- fusions ---- */

typedef struct eddy_round_fusion {
    const eddy_fused_calls *calls;
    eddy_backend_launch launch; /* with the ticket of the member that is blamed */
} eddy_round_fusion;

/* The fusion that begins at the step, if it may be one launch of the round; else false. It depends on what a row is known by, and is_made. */
bool eddy_round_find_fusion(const eddy_round *r, eddy_round_fusion *fusion);
void eddy_round_launch_fusion(eddy_round *r, eddy_round_fusion *fusion);
/* Passes it as if it had been launched. */
void eddy_round_note_fusion(eddy_round *r, const eddy_round_fusion *fusion);

/* ---- rows ---- */

/* Words of the longest key. */
static inline size_t eddy_round_key_room(const eddy_executable *executable) {
    return 2 * executable->step_rows.most_bases + 2;
}
/* The row that begins at the step, if it may be launched as one; NULL: there is none. */
const eddy_step_row *eddy_round_find_row(const eddy_round *r);
/* Passes it, by one launch if the device has come to know it, else call by call. False: the round ends before something of it. */
bool eddy_round_launch_row(eddy_round *r, const eddy_step_row *steps);

#endif
