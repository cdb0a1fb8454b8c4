/* How gradients go back through a recorded branch.
 *
 * For the tape a branch is one node. It holds what each way gave while it was recorded, and what the way gave that was due, each with a tape of
 * its own calls (a serial tells them apart), which ends at tensors of outside: the node's edges.
 *
 *   backward pass, recorded     if(p)  the first way's pass, its gradients cloned  else()  the second one's, set  end_if()
 *   elsewhere                   the pass of the way that was due
 *
 * An edge to which one way does not lead gets zeros there. What a way's pass reads of its calls are values of the program that only
 * that way makes: the predicate is the same, or the pass fails.
 *
 * Thread: the recording one's while it is made; then as nodes of the tape. */
#ifndef EDDY_PROGRAM_BRANCH_TAPE_H
#define EDDY_PROGRAM_BRANCH_TAPE_H

#include <program/block.h>

#define EDDY_BRANCH_WAYS 3
/* The way that was due, by its calls that have run. */
#define EDDY_BRANCH_DUE 2

typedef struct eddy_branch_tape {
    uint64_t recording;     /* number of the recording */
    eddy_tensor *predicate; /* a reference */
    uint32_t version;       /* the predicate's, */
    uint64_t events;        /* when so many calls were recorded */
    int64_t output_count;
    uint64_t serials[EDDY_BRANCH_WAYS];
    eddy_tensor *outputs[]; /* of each way: references, or NULL */
} eddy_branch_tape;

/* For a call that is recorded; NULL without memory. */
eddy_branch_tape *eddy_branch_tape_create(const eddy_block_call *call, eddy_tensor *predicate);
void eddy_branch_tape_destroy(eddy_branch_tape *tape);

static inline eddy_tensor **eddy_branch_tape_outputs(eddy_branch_tape *tape, int way) {
    return tape->outputs + way * tape->output_count;
}

/* Calls between begin and end belong to the way: nodes that they make have its serial. */
uint64_t eddy_branch_tape_begin(const eddy_block_call *call, const eddy_branch_tape *tape, int way);
void eddy_branch_tape_end(const eddy_block_call *call, uint64_t before);

/* Holds what the way has given: each output was made by its calls, or is a clone of one. */
EDDY_MUST_USE eddy_status eddy_branch_tape_hold(const eddy_block_call *call, eddy_branch_tape *tape,
                                                int way, eddy_tensor *const *given);

/* Whether a gradient goes back through the branch. */
bool eddy_branch_tape_is_wanted(const eddy_branch_tape *tape);

/* Makes a node that takes the tape over; `made` are what the branch gives. *node: a reference, or NULL where a pass through a way cannot be
 * recorded: the recording is spoiled then, the tape is as it was, and the calls go on with theirs. */
EDDY_MUST_USE eddy_status eddy_branch_tape_make_node(const eddy_block_call *call,
                                                     eddy_branch_tape *tape,
                                                     eddy_tensor *const *made,
                                                     struct eddy_autograd_node **node);

/* Makes `output`, a handle that refers to no node yet, output i of the tape's node, if a gradient goes back from it on any way. */
void eddy_branch_tape_name(const eddy_branch_tape *tape, struct eddy_autograd_node *node, int64_t i,
                           eddy_tensor *output);

#endif
