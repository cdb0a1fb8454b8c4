/* What recorded calls have seen of tensors and leaves that were there before them: whether a tensor wants a gradient, since their code asked, and how
 * many hooks a leaf has that a backward pass of theirs came to. A replay is what the calls would be while they would see the same.
 *
 * Thread: the recording one's; const in a program, and then read by any. */
#ifndef EDDY_PROGRAM_TAPE_SEEN_H
#define EDDY_PROGRAM_TAPE_SEEN_H

#include <interpreter/handle/tensor.h>
#include <interpreter/tape/autograd.h>
#include <program/code.h>

/* Of one of the two. */
typedef struct eddy_tape_seen {
    eddy_tensor *root;               /* a reference: of the tensor that was asked about; NULL: */
    eddy_autograd autograd;          /* its word; no reference */
    uint32_t view_leaves;            /* as in the root */
    struct eddy_autograd_node *leaf; /* a reference */
    uint32_t hook_count;
} eddy_tape_seen;

/* Notes a tensor, or a leaf, unless that was done before. False without memory. */
EDDY_MUST_USE bool eddy_tape_seen_note_tensor(eddy_code_array *all, const eddy_tensor *tensor);
EDDY_MUST_USE bool eddy_tape_seen_note_leaf(eddy_code_array *all, struct eddy_autograd_node *leaf);
/* A copy in an empty array; false without memory, with an array that may be ended. */
EDDY_MUST_USE bool eddy_tape_seen_copy(eddy_code_array *to, const eddy_code_array *from);
void eddy_tape_seen_fini(eddy_code_array *all);

/* Whether the calls would see the same now. */
bool eddy_tape_seen_holds(const eddy_code_array *all);

#endif
