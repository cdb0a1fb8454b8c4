/* What nodes of the tape have saved and a recorded call then overwrote. It is of no use, for who goes back through it is refused;
 * but it would keep the tape alive: the tensor that was written to names the call's node, from which edges lead to the node that
 * saved the tensor. So the saver gives up what it saved when the call is recorded.
 *
 * Threads: any. One sweep at a time; a node that somebody goes through meanwhile has given up, or lent, what it saved. */
#ifndef EDDY_INTERPRETER_TAPE_OVERWRITTEN_H
#define EDDY_INTERPRETER_TAPE_OVERWRITTEN_H

#include <interpreter/tape/autograd.h>

/* A node saves the tensor. */
static inline void eddy_overwritten_watch(eddy_tensor *tensor) {
    if (!eddy_load_relaxed(&tensor->root->is_saved))
        eddy_store_relaxed(&tensor->root->is_saved, true);
}

/* `target`, which some node saved at some time, was written to in place by the call of `node`, and does not name it yet. */
void eddy_overwritten_sweep(eddy_autograd_node *node, const eddy_tensor *target);

/* In a forked child. */
void eddy_overwritten_fork_child(void);

#endif
