/* Small transposed convolutions: what a place of the input gives to all channels at all taps is one product with the weights as
 * they lie, and is then added where its window lies. Nothing is gathered or packed, which is most of the work of small ones. */
#ifndef EDDY_KERNELS_CPU_CONV_SCATTER_H
#define EDDY_KERNELS_CPU_CONV_SCATTER_H

#include <kernels/cpu/conv/conv_plan.h>

/* Whether this is the way for a transposed one: it follows from shapes, strides and dtypes. */
bool eddy_conv_scatter_serves(const eddy_conv_plan *plan);
size_t eddy_conv_scatter_workspace(const eddy_conv_plan *plan);
/* bias NULL: none. On the calling thread. */
void eddy_conv_scatter(const eddy_kernel_call *call, const eddy_conv_plan *plan, const eddy_op_view *bias);

#endif
