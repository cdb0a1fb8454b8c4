/* The tape of a program's forward calls, without tensors. A pass with creates_graph does not go back through a run by a backward program, whose
 * calls it could not record, but through the calls: it unfolds the run's node (interpreter/tape/unfold.h).
 *
 *   recording   nodes of the tape --copied--> calls: op, attributes, shapes; edges by number; what was saved, by its value and layout
 *   unfolding   nodes as the calls would have made them in that run: they hold views of what the run's node has saved
 *
 * A branch is one node of the recording's tape; of its two ways the one is unfolded that the run has taken, which its predicate tells.
 *
 * So is a loop, of whose body the calls are there once. They are unfolded for each step that the run has made. What the body had saved lies
 * in lists, a row a step (saved.h), and so does what it has drawn.
 *
 *   outside   before[i] ------------------------------------------------------------> LOOP_OUTPUT i (carried: what the last step gave; rows: a stack)
 *                 \--> step 0: LOOP_INPUT i --> calls --> outputs[i] --> step 1 ... --/
 *
 * So all that eager calls would do follows: sums in the same order, hooks, passes through these gradients. Nothing is computed to unfold; predicates
 * and numbers of steps are waited for.
 *
 * Threads: const once made. */
#ifndef EDDY_PROGRAM_GRADIENT_CALLS_H
#define EDDY_PROGRAM_GRADIENT_CALLS_H

#include <interpreter/tape/autograd.h>
#include <program/loop_tape.h>
#include <program/recording.h>

/* What an edge or a saved tensor of a call refers to. */
typedef struct eddy_calls_word {
    uint32_t call; /* EDDY_CODE_NONE: what was there before, or nothing */
    uint32_t
        output; /* of the call; else the number of an edge of the run's node, or EDDY_CODE_NONE */
} eddy_calls_word;

/* Loops that lie within each other, at most. */
#define EDDY_CALLS_DEPTH 4

/* A list whose row belongs to a step. */
typedef struct eddy_calls_list {
    uint32_t loop;    /* whose steps count */
    int64_t stride;   /* elements from row to row */
    bool is_reversed; /* the first step has the last row */
} eddy_calls_list;

/* Where a run has a tensor. */
typedef struct eddy_calls_place {
    uint32_t value;
    uint32_t saved; /* its number among what the run's node has saved */
    uint8_t dtype;
    uint8_t list_count;
    eddy_device device;
    eddy_layout
        layout; /* offset: from the first element of the tensor that the run's node has, in the first row of all lists */
    eddy_calls_list lists[EDDY_CALLS_DEPTH];
} eddy_calls_place;

typedef struct eddy_calls_saved {
    uint32_t slot;  /* of the call's node */
    uint32_t place; /* EDDY_CODE_NONE: the operand is absent */
    uint32_t result;
    eddy_calls_word word;
} eddy_calls_saved;

/* A number of a call that each run gives: an attribute, or seed and counter. */
typedef struct eddy_calls_number {
    uint32_t draw; /* 1 + index; 0: */
    uint32_t
        place; /* of the seed and the counter of a step; EDDY_CODE_NONE: a number that is given to the run */
    eddy_code_scalar use;
} eddy_calls_number;

typedef enum eddy_calls_kind {
    EDDY_CALLS_OP,
    /* What a branch gives, as a copy of what one of its ways does: two edges for the one input, of the way where the predicate is true and of
     * the other. */
    EDDY_CALLS_BRANCH,
    EDDY_CALLS_LOOP_OUTPUT, /* what a loop gives: no call, or a stack of rows; its node is that of a copy of it */
    EDDY_CALLS_LOOP_INPUT,  /* what a step is given: no call, or a slice */
    EDDY_CALLS_STEP_OUTPUT, /* what a step gives, as a copy */
} eddy_calls_kind;

typedef struct eddy_calls_call {
    eddy_autograd_node
        *node; /* a reference: neither edges nor tensors; NULL: never one of its own */
    eddy_calls_kind kind;
    uint32_t loop;     /* in whose steps it is; EDDY_CODE_NONE: in none */
    uint32_t number;   /* among the calls of that loop's step, or outside of loops */
    uint32_t of;       /* LOOP_OUTPUT, LOOP_INPUT: that loop */
    uint32_t index;    /* LOOP_OUTPUT, LOOP_INPUT: which one */
    uint32_t place;    /* BRANCH: of the predicate */
    bool owns[2];      /* BRANCH: calls that run give on what that way does without a copy */
    uint32_t edges_at; /* as many as the node's inputs */
    uint32_t saved_at, saved_count;
    uint32_t numbers_at, number_count;
} eddy_calls_call;

typedef struct eddy_calls_loop {
    uint32_t outer;      /* in whose steps it is; EDDY_CODE_NONE: in none */
    uint32_t number;     /* among the loops there */
    uint32_t call_count; /* of a step */
    uint32_t loop_count; /* within a step */
    uint32_t steps;      /* the place of the number of steps */
    uint32_t before_at;  /* among the edges, per input: what had made it when the loop began */
    uint32_t outputs_at; /* among the edges, per output: what had made it in a step */
    eddy_loop_counts counts;
} eddy_calls_loop;

typedef struct eddy_gradient_calls {
    eddy_code_array calls;           /* eddy_calls_call */
    eddy_code_array loops;           /* eddy_calls_loop */
    eddy_code_array edges;           /* eddy_calls_word */
    eddy_code_array places;          /* eddy_calls_place */
    eddy_code_array saved;           /* eddy_calls_saved */
    eddy_code_array numbers;         /* eddy_calls_number */
    eddy_code_array roots;           /* eddy_calls_word, per root */
    uint32_t call_count, loop_count; /* outside of loops */
    /* Why a run cannot be unfolded, then all else is empty; "" if it can. */
    char reason[EDDY_RECORDING_REASON_BYTES];
} eddy_gradient_calls;

/* A recording whose calls the tape still knows, though it may have been closed. */
typedef struct eddy_gradient_source {
    const eddy_recording *recording;
    const eddy_program *program;   /* with the recorded code, */
    const eddy_bindings *bindings; /* bound so */
    uint32_t instruction_count;
    const eddy_autograd *roots;
    uint32_t root_count;
    /* eddy_autograd: the edges of the run's node so far, to which those are added that calls have besides. No references. */
    eddy_code_array *edges;
} eddy_gradient_source;

/* Fills zeroed calls: which of the run's saved tensors a value is, the caller sets. False without memory: eddy_gradient_calls_fini. */
EDDY_MUST_USE bool eddy_gradient_calls_make(eddy_gradient_calls *calls,
                                            const eddy_gradient_source *source);
void eddy_gradient_calls_fini(eddy_gradient_calls *calls);
/* What they take. */
int64_t eddy_gradient_calls_bytes(const eddy_gradient_calls *calls);

/* Whether some calls are those of a way, or of steps, so that each run has others. */
bool eddy_gradient_calls_depend_on_run(const eddy_gradient_calls *calls);

/* Another node like that of a call; NULL without memory. */
eddy_autograd_node *eddy_gradient_calls_copy_node(const eddy_autograd_node *node);

/* The numbers of a run. */
typedef struct eddy_gradient_given {
    const int64_t *draws; /* two words each */
    const eddy_scalar *scalars;
} eddy_gradient_given;

/* Makes the nodes of a run's calls; an eddy_autograd_unfold_fn but for the numbers. */
EDDY_MUST_USE eddy_status eddy_gradient_calls_unfold(const eddy_gradient_calls *calls,
                                                     eddy_autograd_node *node,
                                                     const eddy_gradient_given *given,
                                                     eddy_autograd *words);

static inline eddy_calls_call *eddy_calls_call_at(const eddy_gradient_calls *calls, uint32_t i) {
    return (eddy_calls_call *)calls->calls.items + i;
}
static inline eddy_calls_loop *eddy_calls_loop_at(const eddy_gradient_calls *calls, uint32_t i) {
    return (eddy_calls_loop *)calls->loops.items + i;
}
static inline eddy_calls_word *eddy_gradient_calls_edge(const eddy_gradient_calls *calls,
                                                        uint32_t i) {
    return (eddy_calls_word *)calls->edges.items + i;
}
static inline eddy_calls_place *eddy_calls_place_at(const eddy_gradient_calls *calls, uint32_t i) {
    return (eddy_calls_place *)calls->places.items + i;
}
static inline eddy_calls_saved *eddy_calls_saved_at(const eddy_gradient_calls *calls, uint32_t i) {
    return (eddy_calls_saved *)calls->saved.items + i;
}
static inline eddy_calls_number *eddy_calls_number_at(const eddy_gradient_calls *calls,
                                                      uint32_t i) {
    return (eddy_calls_number *)calls->numbers.items + i;
}
static inline eddy_calls_word *eddy_gradient_calls_root(const eddy_gradient_calls *calls,
                                                        uint32_t i) {
    return (eddy_calls_word *)calls->roots.items + i;
}

#endif
