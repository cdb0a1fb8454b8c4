/* How gradients go back through a recorded loop.
 *
 * For the tape a loop is one node. It holds what the body gave while it was recorded, with the tape of those calls, and what the steps gave that
 * have run, with theirs. In the body's tape each carried tensor that a gradient comes to begins at a node of its own, its start.
 *
 *   forwards    n = 0   loop() test loop_while(q)  body  lists[n] = what it has saved (saved.h)  n += 1  end_loop()
 *   backwards   i = n   loop() i > 0 loop_while(r)  i -= 1  saved = lists[i]  the body's pass: gradients of what is carried, sums of others  end_loop()
 *
 * Sums begin at -0, to which adding changes nothing: they are those of the calls, from the last step to the first.
 *
 * Thread: the recording one's while it is made; then as nodes of the tape. */
#ifndef EDDY_PROGRAM_LOOP_TAPE_H
#define EDDY_PROGRAM_LOOP_TAPE_H

#include <program/saved.h>
#include <program/way_tape.h>

typedef struct eddy_loop_tape {
    uint64_t recording; /* number of the recording */
    int64_t most_steps;
    int64_t count; /* of carried tensors */
    eddy_way_tape body, due;
    eddy_saved saved;
    eddy_autograd_node *
        *starts; /* per carried tensor: a reference; NULL: no gradient comes to it */
    eddy_autograd *
        before; /* per carried tensor: what had made it when the loop began, with a reference of the node */
    bool *leads;  /* per output and start: whether a step leads from one to the other */
    bool *leaves; /* per output: whether a step leads from it to something else */
    size_t bytes;
    eddy_tensor *outputs[]; /* of body and due */
} eddy_loop_tape;

/* For a loop that carries tensors like these, those with `carries` with gradients. NULL, recorded, without memory. */
eddy_loop_tape *eddy_loop_tape_create(const eddy_block_call *call, eddy_tensor *const *carried,
                                      const bool *carries, int64_t most_steps);
void eddy_loop_tape_destroy(eddy_loop_tape *tape);

/* What the body is given for value i: the value, or a handle of it that begins at its start. *given: a reference. */
EDDY_MUST_USE eddy_status eddy_loop_tape_give(const eddy_block_call *call,
                                              const eddy_loop_tape *tape, int64_t i,
                                              eddy_tensor *value, eddy_tensor **given);

/* Whether a carried tensor begins at the node. */
bool eddy_loop_tape_is_start(const eddy_autograd_node *node);

/* Finds leads and leaves, once the body has been called. False without memory. */
EDDY_MUST_USE bool eddy_loop_tape_find_leads(eddy_loop_tape *tape);
/* Adds to `carries` what gradients come to if they come from what it has. */
void eddy_loop_tape_close(const eddy_loop_tape *tape, bool *carries);

/* Makes a node that takes the tape over. made: what the loop gives; steps, lists: what each row of the tape's `saved`
 * went to, and how many steps there were. *node: a reference, or NULL where a pass through the body cannot be recorded: the recording is spoiled then,
 * the tape is as it was, and calls go on with theirs. */
EDDY_MUST_USE eddy_status eddy_loop_tape_make_node(const eddy_block_call *call,
                                                   eddy_loop_tape *tape, eddy_tensor *const *made,
                                                   eddy_tensor *const *steps_and_lists,
                                                   eddy_autograd_node **node);

#endif
