/* Functions that gradients call besides ops. Results belong to the open scope; NULL with the error in the slot. */
#ifndef EDDY_FUNCTIONAL_GRADIENT_HELPER_H
#define EDDY_FUNCTIONAL_GRADIENT_HELPER_H

#include <eddy/eddy.h>
#include <functional/gradients.h>

/* A number as a tensor of rank 0, of the dtype and on the device of the call's gradient. */
eddy_tensor *eddy_gradient_constant(const eddy_gradient_call *call, double value);
/* Zeros like an operand. */
eddy_tensor *eddy_gradient_zeros(const eddy_gradient_call *call, const eddy_spec *spec);
/* In f32 if the tensor has 16 bits, which do not suffice for intermediate results. */
eddy_tensor *eddy_gradient_widen(eddy_tensor *tensor);
/* The gradient of a reduction over `axes` (a mask, 0 for all) as a view of the operand's shape. */
eddy_tensor *eddy_gradient_expand(eddy_tensor *gradient, const eddy_spec *spec, uint32_t axes,
                                  bool keeps_dims);
/* Elements along the axes of a mask, 0 for all. */
double eddy_gradient_count(const eddy_spec *spec, uint32_t axes);
/* The axes of a mask, none for 0. */
eddy_axes eddy_gradient_axes(uint32_t mask);

/* Whether a formula runs as one loop: the pass is not recorded, and its operands (bit i for input i, output i) have the gradient's
 * dtype. Otherwise it runs op by op, and each op promotes its operands. */
bool eddy_gradient_is_fused(const eddy_gradient_call *call, uint32_t inputs, uint32_t outputs);
/* That loop, which has the call's attributes. */
eddy_tensor *eddy_gradient_fused(const eddy_gradient_call *call, const eddy_op *op,
                                 eddy_tensor *const *operands);

/* Fails the backward pass: UNSUPPORTED for `what`. */
eddy_status eddy_gradient_refuse(const eddy_gradient_call *call, const char *what);

#endif
