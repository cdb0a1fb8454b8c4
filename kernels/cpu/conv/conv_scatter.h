/* Small transposed convolutions: what a place of the input gives to all channels at all taps is one product with the weights as
 * they lie, and is then added where its window lies. Nothing is gathered or packed, which is most of the work of small ones. */
#ifndef EDDY_KERNELS_CPU_CONV_SCATTER_H
#define EDDY_KERNELS_CPU_CONV_SCATTER_H

#include <kernels/cpu/conv/conv_plan.h>

/* Whether this is the way for a transposed one: it follows from shapes, strides and dtypes. */
bool eddy_conv_scatter_serves(const eddy_conv_plan *plan);
size_t eddy_conv_scatter_workspace(const eddy_conv_plan *plan);
/* bias NULL: none. On the calling thread. */
void eddy_conv_scatter(const eddy_kernel_call *call, const eddy_conv_plan *plan,
                       const eddy_op_view *bias);

/* Numbers that a place gives. */
static inline int64_t eddy_conv_scatter_given(const eddy_conv_plan *plan) {
    return plan->to_channels * plan->weight.height * plan->weight.width;
}

/* The same for a compute type: `biases` have it, one for each channel, and `gift` has room for what a place gives. */
void eddy_conv_scatter_f32(const eddy_kernel_call *call, const eddy_conv_plan *plan,
                           const void *biases, void *gift);
void eddy_conv_scatter_f64(const eddy_kernel_call *call, const eddy_conv_plan *plan,
                           const void *biases, void *gift);

#endif
