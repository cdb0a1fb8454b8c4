/* The gradients that the tape kept when a recording began, as far as its calls depend on them: they add to one that is there, and store one that
 * is not. A replay is what the calls would be while the tape keeps the same.
 *
 * Thread: the recording one's; const in a program, and then read by any. */
#ifndef EDDY_PROGRAM_KEPT_BEFORE_H
#define EDDY_PROGRAM_KEPT_BEFORE_H

#include <interpreter/handle/tensor.h>
#include <interpreter/tape/autograd.h>
#include <program/code.h>

typedef enum eddy_kept_state {
    EDDY_KEPT_ANY, /* the first thing that calls do is to release it */
    EDDY_KEPT_NONE,
    EDDY_KEPT_ONE,
} eddy_kept_state;

typedef struct eddy_kept_before {
    struct eddy_autograd_node *node; /* a reference */
    uint32_t output;
    uint8_t state;     /* eddy_kept_state */
    eddy_tensor *root; /* a reference: of the gradient's root, where calls use that; else NULL */
} eddy_kept_before;

/* Notes the gradient that is kept for an output of a node, or NULL, and depends: that the calls depend on it; unless an earlier call has met it. False
 * without memory. */
EDDY_MUST_USE bool eddy_kept_before_note(eddy_code_array *befores, struct eddy_autograd_node *node,
                                         uint32_t output, const eddy_tensor *gradient,
                                         bool depends);
/* A copy in an empty array; false without memory, with an array that may be ended. */
EDDY_MUST_USE bool eddy_kept_before_copy(eddy_code_array *to, const eddy_code_array *from);
void eddy_kept_before_fini(eddy_code_array *befores);

/* Whether a gradient was met that the tape keeps for one of the tensors. */
bool eddy_kept_before_has_one_of(const eddy_code_array *befores, eddy_list tensors);

/* Gives up a gradient itself: that there was one is all that counts. */
void eddy_kept_before_forget(eddy_kept_before *before);
bool eddy_kept_before_is_equal(const eddy_code_array *a, const eddy_code_array *b);
/* Whether the tape keeps now what it kept then. */
bool eddy_kept_before_holds(const eddy_code_array *befores);

#endif
