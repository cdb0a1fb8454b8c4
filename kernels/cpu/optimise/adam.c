#include <kernels/adam.h>
#include <kernels/cpu/optimise/adam.h>

eddy_adam_numbers eddy_adam_step_numbers(const eddy_attributes_adam_step *attributes,
                                         bool is_decoupled, int64_t step) {
    return eddy_adam_numbers_of(attributes, is_decoupled, step);
}
