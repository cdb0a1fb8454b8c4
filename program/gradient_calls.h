/* The tape of a program's forward calls, without tensors. A pass with creates_graph does not go back through a run by a backward program, whose
 * calls it could not record, but through the calls: it unfolds the run's node (interpreter/tape/unfold.h).
 *
 *   recording   nodes of the tape --copied--> calls: op, attributes, shapes; edges by number; what was saved, by its value and layout
 *   unfolding   nodes as the calls would have made them in that run: they hold views of what the run's node has saved
 *
 * A branch is one node of the recording's tape; of its two ways the one is unfolded that the run has taken, which its predicate tells.
 *
 * So all that eager calls would do follows: sums in the same order, hooks, passes through these gradients. Nothing is computed to unfold; predicates are waited for.
 *
 * Threads: const once made. */
#ifndef EDDY_PROGRAM_GRADIENT_CALLS_H
#define EDDY_PROGRAM_GRADIENT_CALLS_H

#include <interpreter/tape/autograd.h>
#include <program/recording.h>

/* What an edge or a saved tensor of a call refers to. */
typedef struct eddy_calls_word {
    uint32_t call; /* EDDY_CODE_NONE: what was there before, or nothing */
    uint32_t
        output; /* of the call; else the number of an edge of the run's node, or EDDY_CODE_NONE */
} eddy_calls_word;

typedef struct eddy_calls_saved {
    uint32_t slot;  /* of the call's node */
    uint32_t value; /* EDDY_CODE_NONE: the operand is absent */
    uint32_t saved; /* its number among what the run's node has saved */
    uint32_t result;
    uint8_t dtype;
    eddy_device device;
    eddy_calls_word word;
    eddy_layout layout; /* offset: from the first element of the tensor that the run's node has */
} eddy_calls_saved;

/* A number of a call that each run gives: an attribute, or seed and counter. */
typedef struct eddy_calls_number {
    uint32_t draw; /* 1 + index; 0: a number that is given to the run */
    eddy_code_scalar use;
} eddy_calls_number;

typedef struct eddy_calls_call {
    eddy_autograd_node *node; /* a reference: neither edges nor tensors */
    uint32_t edges_at;        /* as many as the node's inputs */
    /* What a branch gives, as a copy of what one of its ways does: two edges for the one input, of the way where the predicate is true and of
     * the other. The predicate is the one saved tensor, which no slot is for. */
    bool is_choice;
    uint32_t saved_at, saved_count;
    uint32_t numbers_at, number_count;
} eddy_calls_call;

typedef struct eddy_gradient_calls {
    eddy_code_array calls;   /* eddy_calls_call */
    eddy_code_array edges;   /* eddy_calls_word */
    eddy_code_array saved;   /* eddy_calls_saved */
    eddy_code_array numbers; /* eddy_calls_number */
    eddy_code_array roots;   /* eddy_calls_word, per root */
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
bool eddy_gradient_calls_is_equal(const eddy_gradient_calls *a, const eddy_gradient_calls *b);
/* What they take. */
int64_t eddy_gradient_calls_bytes(const eddy_gradient_calls *calls);

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
static inline eddy_calls_word *eddy_gradient_calls_edge(const eddy_gradient_calls *calls,
                                                        uint32_t i) {
    return (eddy_calls_word *)calls->edges.items + i;
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
