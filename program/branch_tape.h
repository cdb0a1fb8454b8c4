/* How gradients go back through a recorded branch.
 *
 * For the tape a branch is one node. It holds what each way gave while it was recorded, and what the way gave that was due, each with a tape of
 * its own calls (way_tape.h), which ends at tensors of outside: the node's edges.
 *
 *   backward pass, recorded     if(p)  the first way's pass, its gradients cloned  else()  the second one's, set  end_if()
 *   elsewhere                   the pass of the way that was due
 *
 * An edge to which one way does not lead gets zeros there. What a way's pass reads of its calls are values of the program that only
 * that way makes: the predicate is the same (a copy of one that was there before the recording), or the recording is spoiled. Within a loop whose gradients are recorded too, they come back from lists (saved.h).
 *
 * Thread: the recording one's while it is made; then as nodes of the tape. */
#ifndef EDDY_PROGRAM_BRANCH_TAPE_H
#define EDDY_PROGRAM_BRANCH_TAPE_H

#include <program/way_tape.h>

#define EDDY_BRANCH_WAYS 3
/* The way that was due, by its calls that have run. */
#define EDDY_BRANCH_DUE 2

typedef struct eddy_branch_tape {
    uint64_t recording;     /* number of the recording */
    eddy_tensor *predicate; /* a reference */
    uint32_t version;       /* the predicate's, */
    uint64_t events;        /* when so many calls were recorded */
    int64_t output_count;
    eddy_way_tape ways[EDDY_BRANCH_WAYS];
    eddy_tensor *outputs[]; /* of each way */
} eddy_branch_tape;

/* For a call that is recorded; NULL without memory. */
eddy_branch_tape *eddy_branch_tape_create(const eddy_block_call *call, eddy_tensor *predicate);
void eddy_branch_tape_destroy(eddy_branch_tape *tape);

/* Whether the predicate is as it was when the way was chosen. */
bool eddy_branch_tape_has_predicate(const eddy_branch_tape *tape);
/* Takes another predicate, a reference, with the same elements. */
void eddy_branch_tape_set_predicate(eddy_branch_tape *tape, eddy_tensor *predicate,
                                    uint64_t events);

/* Whether a gradient goes back through the branch, and from output i, on any way. */
bool eddy_branch_tape_is_wanted(const eddy_branch_tape *tape);
bool eddy_branch_tape_is_wanted_of(const eddy_branch_tape *tape, int64_t i);

/* The tape of a node; NULL if it is no branch. */
eddy_branch_tape *eddy_branch_tape_of(const struct eddy_autograd_node *node);

/* Makes a node that takes the tape over; `made` are what the branch gives. *node: a reference, or NULL where a pass through a way cannot be
 * recorded: the recording is spoiled then, the tape is as it was, and the calls go on with theirs. */
EDDY_MUST_USE eddy_status eddy_branch_tape_make_node(const eddy_block_call *call,
                                                     eddy_branch_tape *tape,
                                                     eddy_tensor *const *made,
                                                     struct eddy_autograd_node **node);

#endif
