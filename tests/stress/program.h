/* Random programs for the VM, and what a sequential machine makes of them.
 *
 * A program is a list of steps over a few slots, each of which may hold a storage. The oracle walks the steps in order
 * and keeps, for each slot, every cell, the poison's state and the seed of the root that is to blame. */
#ifndef EDDY_TESTS_PROGRAM_H
#define EDDY_TESTS_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <vm/vm.h>

#define PROGRAM_SLOTS 10
#define PROGRAM_STEPS 48
#define PROGRAM_CELLS 24
#define PROGRAM_STREAMS 3 /* 0 is the default one; 1 and 2 are ordered, or fakes */

typedef enum step_kind {
    STEP_MAKE,      /* a new storage from up to three inputs */
    STEP_MAKE_TWO,  /* two new storages in one instruction */
    STEP_LATE,      /* a new storage whose size turns out later */
    STEP_OVERWRITE, /* writes a slot whole */
    STEP_IN_PLACE,  /* mixes inputs into a slot */
    STEP_RELEASE,
    STEP_READ,    /* reads a cell and compares */
    STEP_LEND,    /* maps, checks, writes, ends; further steps may come in between */
    STEP_RECOVER, /* reads the error, then recovers */
    STEP_SYNC,
    STEP_ORDER, /* an event on one stream, a wait on another */
    STEP_KIND_COUNT
} step_kind;

typedef struct program_step {
    step_kind kind;
    int stream;
    int target, second;
    int inputs[3];
    int input_count;
    int64_t seed;
    int64_t count; /* cells */
    int64_t sleep_ns;
    int64_t cost_ps;
    bool fails;        /* the kernel fails half-way */
    bool stream_fails; /* the stream fails it before it runs (fakes only) */
    bool lend_stays;   /* LEND: ends at the end of the program, not at once */
} program_step;

typedef enum slot_state { SLOT_EMPTY, SLOT_HEALTHY, SLOT_LOST, SLOT_SKIPPED, SLOT_TORN } slot_state;

typedef struct program_slot {
    slot_state state;
    int64_t root_order; /* the step that failed first */
    int64_t root_seed;
    bool was_seen;
    bool is_late;
    bool is_unknown; /* a late shape whose maker failed: its size is never known */
    int64_t count;
    int64_t cells[PROGRAM_CELLS];
} program_slot;

typedef struct random_program {
    uint64_t seed;
    int step_count;
    program_step steps[PROGRAM_STEPS];
} random_program;

/* xorshift; never 0 */
uint64_t program_random(uint64_t *state);

/* Draws a program. may_fail_streams: some steps on streams above 0 are failed by the stream. */
void program_make(random_program *program, uint64_t seed, bool may_fail_streams);

/* Runs step `index` on the oracle's slots. */
void program_oracle(const random_program *program, int index, program_slot *slots);

/* Operands that a slot can be drawn for are checked before: whether the step makes sense in this state. */
bool program_step_fits(const program_step *step, const program_slot *slots);

#endif
