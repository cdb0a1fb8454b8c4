/* kernels/adam.h for sources that cannot include it: its scalar functions have names of base/number.h. */
#ifndef EDDY_KERNELS_CPU_ADAM_H
#define EDDY_KERNELS_CPU_ADAM_H

#include <kernels/attributes.h>
#include <kernels/optimise.h>

eddy_adam_numbers eddy_adam_step_numbers(const eddy_attributes_adam_step *attributes,
                                         bool is_decoupled, int64_t step);

#endif
