/* A branch or a loop as one node of the tape.
 *
 * Its attributes are the op below, its hook owns the tape of its functions. Gradients that it gives are computed from what these have saved. */
#ifndef EDDY_PROGRAM_BLOCK_NODE_H
#define EDDY_PROGRAM_BLOCK_NODE_H

#include <program/way_tape.h>

/* The node's attributes. */
typedef struct eddy_block_op {
    eddy_op op;
    eddy_gradient gradient;
    void *tape;           /* the hook's */
    eddy_autograd *edges; /* the node's */
    const eddy_way_tape *due;
    const eddy_caller *caller; /* that made the call */
} eddy_block_op;

typedef struct eddy_block_node_parts {
    const char *name;
    eddy_gradient_fn *run;
    const eddy_way_tape *due; /* the calls that have run: the tape's */
    const eddy_backward_edge
        *edges; /* where gradients go; a word of 0: nowhere. `gradient` is like them */
    uint32_t edge_count;
    eddy_tensor *const *made; /* is like the outputs */
    int64_t made_count;
    eddy_tensor *const *saved; /* for the gradient, as the call's extras */
    uint32_t saved_count;
} eddy_block_node_parts;

/* A node with one reference, recorded under the call's origin without memory: then nothing owns `tape`, else the node does, and calls `destroy`
 * in the end. */
EDDY_MUST_USE eddy_status eddy_block_node_make(const eddy_block_call *call,
                                               const eddy_block_node_parts *parts, void *tape,
                                               void (*destroy)(void *tape),
                                               eddy_autograd_node **node);

/* The node of a call with one input and one output of these shapes, as calls outside of recordings make it around the block: it has no edge. Of a copy of what
 * the block gives. NULL, nothing recorded, without memory. */
eddy_autograd_node *eddy_block_node_call(const eddy_op *op, const eddy_autograd_node *block,
                                         const eddy_spec *from, const eddy_spec *to);
eddy_autograd_node *eddy_block_node_copy(const eddy_autograd_node *block, uint32_t output);

/* Passes through the ways, which are recorded for nobody and do not run: where they end is all that matters. found: one for each way, zeroed. */
EDDY_MUST_USE eddy_status eddy_block_find_edges(const eddy_block_call *call,
                                                const eddy_way_tape *ways, int count,
                                                eddy_backward_found *found);

/* A second handle of what was made, for the user, in place of *made: output i of the node, if a gradient goes back from it, and on from the node. The
 * tape holds the first. */
EDDY_MUST_USE eddy_status eddy_block_node_name(const eddy_block_call *call,
                                               eddy_autograd_node *node, int64_t i, bool is_wanted,
                                               eddy_tensor **made);

/* The tape of a node whose gradient `run` computes; NULL for other nodes. */
void *eddy_block_node_tape(const eddy_autograd_node *node, eddy_gradient_fn *run);

/* A backward pass through such a node. */
typedef struct eddy_block_pass {
    eddy_block_call call;
    const eddy_gradient_call *gradient;
    const eddy_block_op *op;
    eddy_tensor **joined; /* per edge: references, what the marks give */
    eddy_tensor **made;   /* per edge: references, what has run gives */
} eddy_block_pass;

/* Computes the gradients of the call by `run(pass)`, which fills in `made`. The pass belongs to the recording with that number, if its calls are recorded
 * now. UNSUPPORTED for gradients of gradients. */
EDDY_MUST_USE eddy_status eddy_block_pass_run(const eddy_gradient_call *gradient,
                                              uint64_t recording,
                                              eddy_status (*run)(eddy_block_pass *pass));

/* Records by `note`, between two calls, what gives `joined`, and then runs `run`, which gives `made`; `run` alone where calls are not recorded, `note` alone
 * where they do not run. */
EDDY_MUST_USE eddy_status eddy_block_pass_record(eddy_block_pass *pass,
                                                 eddy_status (*note)(void *pass),
                                                 eddy_status (*run)(void *pass));

#endif
