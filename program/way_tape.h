/* The tape of a function's calls: of a way of a branch, of the body of a loop.
 *
 * A serial of its own tells its nodes from others, so that a backward pass through it ends at what was there before. It holds what the function has
 * given.
 *
 * Thread: the recording one's. */
#ifndef EDDY_PROGRAM_WAY_TAPE_H
#define EDDY_PROGRAM_WAY_TAPE_H

#include <interpreter/tape/autograd.h>
#include <interpreter/tape/backward_within.h>
#include <program/block.h>

typedef struct eddy_way_tape {
    uint64_t serial;
    int64_t count;
    eddy_tensor **outputs; /* references, or NULL; the owner's array */
    bool *
        owns; /* per output: calls that run give it on without a copy; the owner's array, or NULL */
} eddy_way_tape;

void eddy_way_tape_init(eddy_way_tape *way, eddy_tensor **outputs, bool *owns, int64_t count);
/* Gives up what it holds. */
void eddy_way_tape_fini(eddy_way_tape *way);

/* What calls belonged to before. */
typedef struct eddy_way_before {
    uint64_t serial;
    uint32_t first_value;
} eddy_way_before;

/* Calls between begin and end belong to it: nodes that they make have its serial. */
void eddy_way_tape_begin(const eddy_block_call *call, const eddy_way_tape *way,
                         eddy_way_before *before);
void eddy_way_tape_end(const eddy_block_call *call, const eddy_way_before *before);

/* Holds what the function has given: each output was made by its calls, or is a clone of one. */
EDDY_MUST_USE eddy_status eddy_way_tape_hold(const eddy_block_call *call, eddy_way_tape *way,
                                             eddy_tensor *const *given);

/* Whether the tensor was made by its calls, and a gradient goes back through them. */
bool eddy_way_tape_has(const eddy_way_tape *way, const eddy_tensor *tensor);
/* Whether a gradient goes back from an output. */
bool eddy_way_tape_is_wanted(const eddy_way_tape *way);

/* Gradients come to some outputs (grads: NULL for others); NULL for `grads`: to all, and what they are does not matter. */
EDDY_MUST_USE eddy_status eddy_way_tape_go_back(const eddy_way_tape *way, eddy_tensor *const *grads,
                                                eddy_origin origin, eddy_backward_found *found);
/* The gradient that such a pass has found; NULL if it did not lead there. */
eddy_tensor *eddy_way_tape_gradient(const eddy_backward_found *found, eddy_autograd edge);

#endif
