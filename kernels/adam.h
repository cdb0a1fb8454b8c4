/* What a step of Adam has for all elements. For CUDA sources too.
 *
 * The powers are Eddy's own: those of a C library depend on the machine, and a device would have others. */
#ifndef EDDY_KERNELS_ADAM_H
#define EDDY_KERNELS_ADAM_H

#include <kernels/attributes.h>
#include <kernels/optimise.h>
#include <kernels/power.h>

/* Of step number `step`, from 1 on. `is_decoupled`: AdamW, in which the parameter shrinks by itself. */
EDDY_SCALAR eddy_adam_numbers eddy_adam_numbers_of(const eddy_attributes_adam_step *attributes,
                                                   bool is_decoupled, int64_t step) {
    double lr = attributes->lr, weight_decay = attributes->weight_decay;
    eddy_adam_numbers numbers;
    numbers.beta1 = attributes->beta1;
    numbers.beta2 = attributes->beta2;
    numbers.eps = attributes->eps;
    numbers.weight_decay = is_decoupled ? 0 : weight_decay;
    numbers.shrink = is_decoupled ? 1 - lr * weight_decay : 1;
    numbers.step_size = lr / (1 - eddy_pow_f64(numbers.beta1, (double)step));
    numbers.root_of_bias2 = eddy_sqrt_f64(1 - eddy_pow_f64(numbers.beta2, (double)step));
    return numbers;
}

#endif
