/* A gradient being summed: the sum of the gradients that reach one tensor, or, if slices of it were taken, the slices' gradients
 * side by side. Used by the thread of the backward pass only. */
#ifndef EDDY_INTERPRETER_TAPE_GRADIENT_SUM_H
#define EDDY_INTERPRETER_TAPE_GRADIENT_SUM_H

#include <interpreter/tape/gradient.h>

/* Positions along an axis: begin .. end - 1. */
typedef struct eddy_gradient_range {
    int64_t begin, end;
} eddy_gradient_range;

/* Gates, heads and the like: few. */
#define EDDY_GRADIENT_RANGES 4

/* All zero: no gradient yet. */
typedef struct eddy_gradient_sum {
    eddy_tensor *tensor; /* a reference; NULL: no gradient yet */
    bool is_own;         /* made here: may be added to in place */
    bool
        is_partial; /* along `axis` only the ranges have been written, which neither meet nor touch, in rising order */
    int32_t axis;
    int32_t range_count;
    eddy_gradient_range ranges[EDDY_GRADIENT_RANGES];
} eddy_gradient_sum;

/* Adds a gradient of the whole. With `creates` the sum is on the tape: nothing is written in place. */
eddy_status eddy_gradient_sum_add(eddy_gradient_sum *sum, eddy_tensor *gradient, bool creates);
/* Adds a gradient of the slice that a PART shows of a tensor like `whole`. In place: not for recorded tensors. Slices along an
 * axis that do not overlap are written once, in any order; zeros are written where none is, or before others are added. */
eddy_status eddy_gradient_sum_add_part(eddy_gradient_sum *sum, const eddy_spec *whole,
                                       const eddy_view_attributes *part, eddy_device device,
                                       eddy_tensor *gradient);
/* Writes zeros where no gradient came. Called before the tensor is read. */
eddy_status eddy_gradient_sum_complete(eddy_gradient_sum *sum);
/* Releases the tensor. */
void eddy_gradient_sum_drop(eddy_gradient_sum *sum);

#endif
