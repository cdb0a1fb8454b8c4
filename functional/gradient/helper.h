/* What formulas of gradients call besides ops. Results belong to the scope that is open; NULL with the error in the slot. */
#ifndef EDDY_FUNCTIONAL_GRADIENT_HELPER_H
#define EDDY_FUNCTIONAL_GRADIENT_HELPER_H

#include <eddy/eddy.h>
#include <interpreter/tape/gradient.h>

/* A number as a tensor of rank 0, of the dtype and on the device of the call's gradient. */
eddy_tensor *eddy_gradient_constant(const eddy_gradient_call *call, double value);
/* Zeros like an operand. */
eddy_tensor *eddy_gradient_zeros(const eddy_gradient_call *call, const eddy_spec *spec);
/* In f32 where the tensor has 16 bits, which do not suffice for what stands between. */
eddy_tensor *eddy_gradient_widen(eddy_tensor *tensor);
/* The gradient of a reduction over `axes` (a mask, 0 for all) as a view of the shape of what was reduced. */
eddy_tensor *eddy_gradient_expand(eddy_tensor *gradient, const eddy_spec *spec, uint32_t axes, bool keeps_dims);
/* Elements along the axes of a mask, 0 for all. */
double eddy_gradient_count(const eddy_spec *spec, uint32_t axes);
/* The axes of a mask, none for 0, for a call: lives as long as the block it is written in. */
#define eddy_gradient_axes(mask) (eddy_gradient_axes((mask), &(eddy_axes){0}))
const eddy_axes *eddy_gradient_axes(uint32_t mask, eddy_axes *axes);

/* Fails the way back: UNSUPPORTED for `what`. */
eddy_status eddy_gradient_refuse(const eddy_gradient_call *call, const char *what);

/* ---- gradients in C, by the name that entries give ---- */

eddy_gradient_fn eddy_gradient_adaptive_avg_pool2d_backward;
eddy_gradient_fn eddy_gradient_batch_norm_backward;
eddy_gradient_fn eddy_gradient_bce_with_logits_backward;
eddy_gradient_fn eddy_gradient_bce_with_logits_backward_target;
eddy_gradient_fn eddy_gradient_cat;
eddy_gradient_fn eddy_gradient_conv2d;
eddy_gradient_fn eddy_gradient_conv2d_backward_weight;
eddy_gradient_fn eddy_gradient_conv_transpose2d;
eddy_gradient_fn eddy_gradient_cross_entropy_backward;
eddy_gradient_fn eddy_gradient_cumprod_backward;
eddy_gradient_fn eddy_gradient_embedding_backward;
eddy_gradient_fn eddy_gradient_extreme;
eddy_gradient_fn eddy_gradient_gelu_backward;
eddy_gradient_fn eddy_gradient_group_norm_backward;
eddy_gradient_fn eddy_gradient_index;
eddy_gradient_fn eddy_gradient_index_add;
eddy_gradient_fn eddy_gradient_index_put;
eddy_gradient_fn eddy_gradient_interpolate_backward;
eddy_gradient_fn eddy_gradient_kl_div_backward;
eddy_gradient_fn eddy_gradient_kl_div_backward_target;
eddy_gradient_fn eddy_gradient_layer_norm_backward;
eddy_gradient_fn eddy_gradient_linear;
eddy_gradient_fn eddy_gradient_masked_scatter;
eddy_gradient_fn eddy_gradient_matmul;
eddy_gradient_fn eddy_gradient_max_pool2d_backward;
eddy_gradient_fn eddy_gradient_max_pool2d_backward_from_x;
eddy_gradient_fn eddy_gradient_norm;
eddy_gradient_fn eddy_gradient_pad;
eddy_gradient_fn eddy_gradient_pick_along_axis;
eddy_gradient_fn eddy_gradient_repeat;
eddy_gradient_fn eddy_gradient_repeat_interleave;
eddy_gradient_fn eddy_gradient_rms_norm_backward;
eddy_gradient_fn eddy_gradient_roll;
eddy_gradient_fn eddy_gradient_scatter;
eddy_gradient_fn eddy_gradient_sdpa;
eddy_gradient_fn eddy_gradient_sdpa_backward;
eddy_gradient_fn eddy_gradient_stack;

#endif
