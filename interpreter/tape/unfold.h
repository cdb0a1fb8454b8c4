/* A run of a recorded program is one node. A pass with creates_graph needs the nodes of the calls that the run stands for, and so does any pass where the run has no
 * gradient of its own (unfolds_always): it unfolds the run's node, which makes them and then leads to them, for good.
 *
 *   RUN'S NODE --such a pass comes--> UNFOLDED: each word of it means the word of one of the calls
 *
 * What refers to the run's node stays as it is: handles, and edges of nodes, which are const. So whoever follows a word asks what it
 * leads to now (eddy_autograd_lock, eddy_unfold_end). Hooks and kept gradients move to the calls. The run's node keeps what it has saved
 * until it is spent, for passes that came before.
 *
 * Threads: any. */
#ifndef EDDY_INTERPRETER_TAPE_UNFOLD_H
#define EDDY_INTERPRETER_TAPE_UNFOLD_H

#include <interpreter/tape/autograd.h>

/* What the words of a node mean to a pass: *words, borrowed from the node; NULL: themselves. creates: they are made if they can be.
 * OUT_OF_MEMORY. */
EDDY_MUST_USE eddy_status eddy_unfold_find(eddy_autograd_node *node, bool creates,
                                           const eddy_autograd **words);
/* What a word leads to now. Its node is held. */
eddy_autograd eddy_unfold_end(eddy_autograd word);
/* Releases what an unfolded node has saved. */
void eddy_unfold_spend(eddy_autograd_node *node);
/* Frees the words of a node; NULL is allowed. */
void eddy_unfold_drop(eddy_autograd *words, uint32_t count);

#endif
