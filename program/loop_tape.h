/* How gradients go back through a recorded loop.
 *
 * For the tape a loop is one node. It holds what the body gave while it was recorded, with the tape of those calls, and what the steps gave that
 * have run, with theirs. In the body's tape each tensor that it is given, and that a gradient comes to, begins at a node of its own, its start.
 *
 *   forwards    n = 0   loop() test loop_while(q)  body  lists[n] = what it has saved (saved.h)  n += 1  end_loop()
 *   backwards   i = n   loop() i > 0 loop_while(r)  i -= 1  saved = lists[i]  the body's pass: gradients of what is carried, rows of those of xs, sums of
 *                                                                             others  end_loop()
 *
 * The body's inputs are what is carried, then slices; its outputs what is carried on, then rows. The node's edges are its inputs, then what else the body
 * leads to. Sums begin at -0, to which adding changes nothing: they are those of the calls, from the last step to the first.
 *
 * Thread: the recording one's while it is made; then as nodes of the tape. */
#ifndef EDDY_PROGRAM_LOOP_TAPE_H
#define EDDY_PROGRAM_LOOP_TAPE_H

#include <program/saved.h>
#include <program/way_tape.h>

typedef struct eddy_loop_counts {
    int64_t carried, slices, outputs; /* the first outputs are carried */
    int64_t rows;                     /* of lists: so many steps there are at most */
    bool is_reversed;                 /* the first step has the last slice */
} eddy_loop_counts;

static inline int64_t eddy_loop_input_count(const eddy_loop_counts *counts) {
    return counts->carried + counts->slices;
}

typedef struct eddy_loop_tape {
    uint64_t recording; /* number of the recording */
    eddy_loop_counts counts;
    eddy_way_tape body, due;
    eddy_saved saved;
    eddy_spec *rows; /* per output behind the carried ones, once the body was called: of a row */
    eddy_view_attributes *slices; /* per slice: as calls take the first one of its x */
    bool *carries;                /* per input: a gradient comes to it */
    eddy_autograd_node **
        starts; /* per input, once the body was given it: a reference; NULL: no gradient comes to it */
    eddy_autograd
        *before; /* per input: what had made it when the loop began, with a reference of the node */
    bool *leads; /* per output and input: whether a step leads from one to the other */
    bool *leaves; /* per output: whether a step leads from it to something else */
    size_t bytes;
    eddy_tensor *outputs[]; /* of body and due */
} eddy_loop_tape;

/* Where gradients of input i go, in a pass through the body; 0: none comes to it. */
static inline eddy_autograd eddy_loop_tape_start(const eddy_loop_tape *tape, int64_t i) {
    return tape->starts[i] ? eddy_autograd_make(tape->starts[i], 0) : 0;
}

/* Per input, whether a step leads there from the output. */
static inline bool *eddy_loop_tape_leads(const eddy_loop_tape *tape, int64_t output) {
    return tape->leads + output * eddy_loop_input_count(&tape->counts);
}

/* For a loop whose inputs come from tensors like these (carried ones, then xs), those with `carries` with gradients. NULL, recorded, without memory. */
eddy_loop_tape *eddy_loop_tape_create(const eddy_block_call *call, const eddy_loop_counts *counts,
                                      eddy_tensor *const *carried, eddy_tensor *const *xs,
                                      const bool *carries);
void eddy_loop_tape_destroy(eddy_loop_tape *tape);

/* What the body is given for input i: the value, or a handle of it that begins at its start. *given: a reference. */
EDDY_MUST_USE eddy_status eddy_loop_tape_give(const eddy_block_call *call, eddy_loop_tape *tape,
                                              int64_t i, eddy_tensor *value, eddy_tensor **given);

/* Whether a carried tensor begins at the node. */
bool eddy_loop_tape_is_start(const eddy_autograd_node *node);

/* The row of slices and lists of outputs for the step with that number, i64; of the open scope's. *at: a reference. */
EDDY_MUST_USE eddy_status eddy_loop_tape_row_at(const eddy_loop_counts *counts, eddy_tensor *step,
                                                eddy_tensor **at);

/* Whether a step has asked for the gradient of what it was given (eddy_grad_hook_add, eddy_grad_keep): no pass through the loop would show it. */
bool eddy_loop_tape_is_watched(const eddy_loop_tape *tape);

/* Finds leads, leaves and rows, once the body has been called. False without memory. */
EDDY_MUST_USE bool eddy_loop_tape_find_leads(eddy_loop_tape *tape);
/* Adds to `carries`, per input, what gradients come to if they come from what it has. */
void eddy_loop_tape_close(const eddy_loop_tape *tape, bool *carries);
/* Whether a gradient goes back from output i, if one comes to inputs with `carries`. */
bool eddy_loop_tape_wants(const eddy_loop_tape *tape, int64_t i, const bool *carries);

/* Makes a node that takes the tape over. xs, made: what the loop was given and gives; steps_and_lists: how many steps there were, and what each row of
 * the tape's `saved` went to. *node: a reference, or NULL where a pass through the body cannot be recorded: the recording is spoiled then,
 * the tape is as it was, and calls go on with theirs. */
EDDY_MUST_USE eddy_status eddy_loop_tape_make_node(const eddy_block_call *call,
                                                   eddy_loop_tape *tape, eddy_tensor *const *xs,
                                                   eddy_tensor *const *made,
                                                   eddy_tensor *const *steps_and_lists,
                                                   eddy_autograd_node **node);

/* The tape of a node; NULL if it is no loop. */
eddy_loop_tape *eddy_loop_tape_of(const eddy_autograd_node *node);

/* ---- loop_back.c ---- */

/* The node's gradient. */
eddy_status eddy_loop_tape_run_gradient(const eddy_gradient_call *call);

#endif
