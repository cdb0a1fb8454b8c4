/* What formulas of gradients, and those in C, call besides ops. Results belong to the scope that is open; NULL with the error in the slot. */
#ifndef EDDY_FUNCTIONAL_GRADIENT_HELPER_H
#define EDDY_FUNCTIONAL_GRADIENT_HELPER_H

#include <eddy/eddy.h>
#include <functional/gradients.h>

/* A number as a tensor of rank 0, of the dtype and on the device of the call's gradient. */
eddy_tensor *eddy_gradient_constant(const eddy_gradient_call *call, double value);
/* Zeros like an operand. */
eddy_tensor *eddy_gradient_zeros(const eddy_gradient_call *call, const eddy_spec *spec);
/* In f32 where the tensor has 16 bits, which do not suffice for what stands between. */
eddy_tensor *eddy_gradient_widen(eddy_tensor *tensor);
/* The gradient of a reduction over `axes` (a mask, 0 for all) as a view of the shape of what was reduced. */
eddy_tensor *eddy_gradient_expand(eddy_tensor *gradient, const eddy_spec *spec, uint32_t axes,
                                  bool keeps_dims);
/* Elements along the axes of a mask, 0 for all. */
double eddy_gradient_count(const eddy_spec *spec, uint32_t axes);
/* The axes of a mask, none for 0. */
eddy_axes eddy_gradient_axes(uint32_t mask);

/* Whether a formula goes as one loop: this pass is not recorded, and what it reads (bit i for input i, output i) has the gradient's
 * dtype. Op by op each of several dtypes is promoted where it is used. */
bool eddy_gradient_is_fused(const eddy_gradient_call *call, uint32_t inputs, uint32_t outputs);
/* That loop, which has the call's attributes. */
eddy_tensor *eddy_gradient_fused(const eddy_gradient_call *call, const eddy_op *op,
                                 eddy_tensor *const *operands);

/* Fails the way back: UNSUPPORTED for `what`. */
eddy_status eddy_gradient_refuse(const eddy_gradient_call *call, const char *what);

#endif
