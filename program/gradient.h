/* A program as one node of the tape.
 *
 *   recording  | forward calls | backward pass | backward pass ... |     one pass for each set of outputs that gradients may come back to
 *                      |               |
 *   program     forward program   backward programs ("ways")
 *
 * While the recording is open, and the tape knows its calls, their backward pass is recorded behind them. Then the code is cut. What a way uses and
 * does not make itself are the seeds (gradients of outputs) and the saved values: of those the forward calls have made the forward
 * program hands out the storages, as hidden outputs. A run under autograd makes a node that holds the saved tensors; its gradient runs
 * the way for the outputs to which a gradient has come, with the numbers that the run has drawn and was given. A pass with creates_graph goes
 * through the calls instead (gradient_calls.h).
 *
 * Roots: the outputs as the tape knows them; two outputs may be one. Edges: the tensors that gradients go on to, which are inputs of a run, or
 * were there before the recording.
 *
 * Threads: a plan belongs to the recording thread; what a program holds is const once made. */
#ifndef EDDY_PROGRAM_GRADIENT_H
#define EDDY_PROGRAM_GRADIENT_H

#include <interpreter/tape/backward_within.h>
#include <program/gradient_calls.h>
#include <program/recording.h>
#include <program/run.h>

/* With so many roots each set of them has a way of its own. With more there are too many sets, and no way: all passes go through the calls (gradient_calls.h),
 * which also adds up what comes from many outputs in the order of calls. Where they cannot, there is one way for all roots, those to which no gradient comes back count as
 * ones with a gradient of 0, and no recorded function is replayed: 0 times an infinity is a NaN that calls do not give. */
#define EDDY_GRADIENT_ROOTS_FEW 3
#define EDDY_GRADIENT_ROOTS_MOST 64 /* as many outputs as a node has at most */
#define EDDY_GRADIENT_WAYS_MOST 7

/* ---- while recording ---- */

/* A backward pass that was recorded. */
typedef struct eddy_gradient_pass {
    uint64_t roots;      /* a bit for each that has a gradient */
    uint32_t first, end; /* instructions */
    eddy_backward_found found;
} eddy_gradient_pass;

typedef struct eddy_gradient_plan {
    uint32_t instruction_count, draw_count, scalar_count; /* of the forward calls */
    uint32_t root_count, pass_count;
    eddy_autograd roots[EDDY_GRADIENT_ROOTS_MOST]; /* the outputs hold the references */
    eddy_tensor *seeds[EDDY_GRADIENT_ROOTS_MOST];  /* a reference each */
    eddy_gradient_pass passes[EDDY_GRADIENT_WAYS_MOST];
} eddy_gradient_plan;

/* Records the backward passes of outputs, tensors whose shapes are known, into the calling thread's recording, which is open. The recording has no
 * plan where none of them goes back through recorded calls, or where it is spoiled. UNSUPPORTED, INVALID_ARGUMENT, OUT_OF_MEMORY, recorded. */
EDDY_MUST_USE eddy_status eddy_gradient_plan_make(eddy_caller *caller, eddy_recording *recording,
                                                  eddy_list outputs, eddy_origin origin);
void eddy_gradient_plan_destroy(eddy_gradient_plan *plan); /* NULL is allowed */

/* ---- of a program ---- */

typedef struct eddy_program_edge {
    uint32_t input;     /* number among the run's inputs; EDDY_CODE_NONE: */
    eddy_autograd word; /* a reference of the node of a tensor that was there before */
    eddy_spec spec;
} eddy_program_edge;

/* What ways read and neither make nor get as seeds, and what the calls have saved besides. */
typedef struct eddy_program_saved {
    uint32_t value;
    uint32_t output;     /* of the forward program: a hidden one; EDDY_CODE_NONE, or */
    uint32_t input;      /* of the run; EDDY_CODE_NONE, or */
    eddy_tensor *tensor; /* that the program holds (borrowed from its externals) */
    bool is_written;     /* by the forward program */
} eddy_program_saved;

/* An output of the program for the tape. */
typedef struct eddy_program_result {
    uint32_t root;  /* EDDY_CODE_NONE: it is none. Then it may be */
    uint32_t input; /* (a view of) an input, as the tape knows that; EDDY_CODE_NONE, or */
    eddy_autograd
        word;       /* a tensor that was there before: a reference of its node; 0: no gradient */
    bool stands_in; /* the recorded one is all of its storage */
} eddy_program_result;

typedef struct eddy_program_way {
    uint64_t roots; /* a bit for each whose gradient it takes */
    struct eddy_program *program;
    eddy_code_array from; /* uint32_t, per input: a root, or root_count + a saved value */
    eddy_code_array to;   /* uint32_t, per output: an edge */
} eddy_program_way;

/* All that a node needs of its program: they hold no tensors, which might refer to that node, and get all that they read. */
typedef struct eddy_program_ways {
    _Atomic uint32_t references; /* atomic: acq_rel when given up */
    uint32_t root_count, draw_count, scalar_count;
    uint64_t inner; /* a bit for each root that another one was computed from */
    uint32_t count; /* the first is that of all roots; 0: passes go through the calls */
    eddy_program_way items[EDDY_GRADIENT_WAYS_MOST];
    eddy_gradient_calls calls; /* for passes that are recorded */
} eddy_program_ways;

typedef struct eddy_program_gradient {
    struct eddy_program *forward; /* with hidden outputs behind the program's own */
    eddy_program_ways *ways;      /* a reference */
    eddy_code_array edges;        /* eddy_program_edge */
    eddy_code_array saved;        /* eddy_program_saved */
    eddy_code_array results;      /* eddy_program_result */
    eddy_code_array wants;        /* bool, per input: it wanted a gradient when it was recorded */
} eddy_program_gradient;

/* Makes the program of a whole recording that has a plan, bound so: `given` bindings of the user, a seed for each root, then the
 * gradients of all passes. `whole` stays the caller's. */
EDDY_MUST_USE eddy_status eddy_gradient_split(const eddy_program *whole,
                                              const eddy_recording *recording,
                                              const eddy_bindings *given, eddy_origin origin,
                                              eddy_program **program);
/* Without ways, forward program and contents; NULL without memory. NULL may be destroyed. */
eddy_program_gradient *eddy_program_gradient_create(void);
void eddy_program_gradient_destroy(eddy_program_gradient *gradient);

/* Builds its programs. */
EDDY_MUST_USE eddy_status eddy_program_gradient_build(eddy_program_gradient *gradient,
                                                      eddy_origin origin);
/* Whether two recordings have come to the same gradients; both may be NULL. */
bool eddy_program_gradient_is_equal(const eddy_program_gradient *a, const eddy_program_gradient *b);

void eddy_program_gradient_describe(const eddy_program_gradient *gradient, eddy_program_info *info);

static inline eddy_program_edge *eddy_program_edge_at(const eddy_program_gradient *gradient,
                                                      uint32_t i) {
    return (eddy_program_edge *)gradient->edges.items + i;
}
static inline eddy_program_saved *eddy_program_saved_at(const eddy_program_gradient *gradient,
                                                        uint32_t i) {
    return (eddy_program_saved *)gradient->saved.items + i;
}
static inline eddy_program_result *eddy_program_result_at(const eddy_program_gradient *gradient,
                                                          uint32_t i) {
    return (eddy_program_result *)gradient->results.items + i;
}

#endif
