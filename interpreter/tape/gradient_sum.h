/* A gradient being summed: the sum of the gradients that reach one tensor, or, if slices of it were taken, the slices' gradients
 * side by side. Used by the thread of the backward pass only. */
#ifndef EDDY_INTERPRETER_TAPE_GRADIENT_SUM_H
#define EDDY_INTERPRETER_TAPE_GRADIENT_SUM_H

#include <interpreter/tape/gradient.h>

/* All zero: no gradient yet. */
typedef struct eddy_gradient_sum {
    eddy_tensor *tensor; /* a reference; NULL: no gradient yet */
    bool is_own;         /* made here: may be added to in place */
    bool is_partial;     /* along `axis` only begin .. end - 1 has been written */
    int32_t axis;
    int64_t begin, end;
} eddy_gradient_sum;

/* Adds a gradient of the whole. With `creates` the sum is on the tape: nothing is written in place. */
eddy_status eddy_gradient_sum_add(eddy_gradient_sum *sum, eddy_tensor *gradient, bool creates);
/* Adds a gradient of the slice that a PART shows of a tensor like `whole`. In place: not for recorded tensors. Adjacent slices
 * along an axis are written once; if they leave gaps, or overlap, zeros are written first. */
eddy_status eddy_gradient_sum_add_part(eddy_gradient_sum *sum, const eddy_spec *whole,
                                       const eddy_view_attributes *part, eddy_device device,
                                       eddy_tensor *gradient);
/* Writes zeros where no gradient came. Called before the tensor is read. */
eddy_status eddy_gradient_sum_complete(eddy_gradient_sum *sum);
/* Releases the tensor. */
void eddy_gradient_sum_drop(eddy_gradient_sum *sum);

#endif
