/* The turn of one run in a ring (<eddy/output_ring.h>).
 *
 *   begin --nothing is submitted--> end: nothing has happened
 *     \--take: the run has a number, what is too old leaves the ring--run is submitted, and gives it up--> end: the run's outputs enter the ring
 *                                                              \--it is not-----------------------------> end: it enters again
 *
 * A run takes its turn at the last moment, when it has waited for all that it waits for: so none makes others old and then fails, or is overtaken, for long. No lock is
 * held outside of the functions here: a call may run user code, which may run the same ring. A run that was overtaken by K others before it has come back leaves its outputs to the
 * next one.
 *
 * Threads: a turn is of the calling thread. What is gone belongs to the run's instruction once that is submitted. */
#ifndef EDDY_PROGRAM_OUTPUT_RING_H
#define EDDY_PROGRAM_OUTPUT_RING_H

#include <eddy/output_ring.h>
#include <program/program.h>

struct eddy_ring_place;

/* What messages say of outputs that were given up. */
typedef struct eddy_ring_gone {
    eddy_program *program; /* the ring's, a reference */
    int64_t runs;          /* of the ring */
    uint64_t taken_by;     /* number of the run */
    uint32_t count;
    struct {
        uint32_t output; /* of that program */
        uint64_t run;
    } items[];
} eddy_ring_gone;

typedef struct eddy_ring_turn {
    eddy_output_ring *ring;
    struct eddy_ring_place *place; /* owned: of this run */
    struct eddy_ring_place *stale; /* owned: of runs that it makes old, the oldest first */
    eddy_ring_gone *gone;          /* owned until it is submitted; NULL: nobody holds an old one */
    uint64_t outputs;              /* which of the program's outputs those of the run are; 0: all */
    bool is_submitted;
} eddy_ring_turn;

/* INVALID_ARGUMENT (no ring, or one of another program), OUT_OF_MEMORY, recorded: nothing has changed. */
EDDY_MUST_USE eddy_status eddy_ring_turn_begin(eddy_ring_turn *turn, eddy_output_ring *ring,
                                               const eddy_program *program, eddy_origin origin);
/* The run is about to be submitted. False without memory. */
EDDY_MUST_USE bool eddy_ring_turn_take(eddy_ring_turn *turn);
void eddy_ring_turn_end(eddy_ring_turn *turn, eddy_status status);
/* Whether the storage is an output that the ring holds. */
bool eddy_ring_turn_holds(const eddy_ring_turn *turn, eddy_storage_number storage);

/* How many storages the run gives up, and the operands that do. */
static inline uint32_t eddy_ring_turn_count(const eddy_ring_turn *turn) {
    return turn && turn->gone ? turn->gone->count : 0;
}
void eddy_ring_turn_operands(const eddy_ring_turn *turn, eddy_vm_operand *operands);
/* The run was submitted, and its instruction has what is gone. */
void eddy_ring_turn_submitted(eddy_ring_turn *turn);
/* How many outputs may be noted: a run under autograd has others behind them, which the tape keeps. */
uint32_t eddy_ring_turn_room(const eddy_ring_turn *turn);
/* The run has made output `output` (a number among its own), and hands it out. */
void eddy_ring_turn_note(eddy_ring_turn *turn, uint32_t output, const eddy_tensor *tensor);

/* The sentence for one of those that are gone. */
void eddy_ring_gone_fill(const eddy_ring_gone *gone, uint32_t i, eddy_origin origin,
                         uint64_t sequence, eddy_error *error);
/* NULL does nothing. */
void eddy_ring_gone_destroy(eddy_ring_gone *gone);

#endif
