/* Saved tensors that a recorded call overwrote. They are useless, since the backward pass refuses them, but they would keep the tape
 * alive: the written tensor refers to the call's node, from which edges lead to the node that
 * saved the tensor. So that node releases its saved tensors when the call is recorded.
 *
 * Threads: any. One sweep at a time; a node that a backward pass goes through meanwhile has released, or lent, its saved tensors. */
#ifndef EDDY_INTERPRETER_TAPE_OVERWRITTEN_H
#define EDDY_INTERPRETER_TAPE_OVERWRITTEN_H

#include <interpreter/tape/autograd.h>

/* Notes that a node saves the tensor. */
static inline void eddy_overwritten_watch(eddy_tensor *tensor) {
    if (!eddy_load_relaxed(&tensor->root->is_saved))
        eddy_store_relaxed(&tensor->root->is_saved, true);
}

/* The call of `node` has written in place to `target`, which a node has saved at some time and which does not refer to `node` yet. */
void eddy_overwritten_sweep(eddy_autograd_node *node, const eddy_tensor *target);

/* In a forked child. */
void eddy_overwritten_fork_child(void);

#endif
