/* Small transposed convolutions. The contribution of an input place to all channels at all taps is one product with the
 * unpacked weights; it is then added to the place's window in the output. Gathering and packing, which are most of the
 * work of small calls, are avoided. */
#ifndef EDDY_KERNELS_CPU_CONV_SCATTER_H
#define EDDY_KERNELS_CPU_CONV_SCATTER_H

#include <kernels/cpu/conv/conv_plan.h>

/* Whether scattering serves a transposed convolution; it depends on shapes, strides and dtypes alone. */
bool eddy_conv_scatter_serves(const eddy_conv_plan *plan);
size_t eddy_conv_scatter_workspace(const eddy_conv_plan *plan);
/* bias NULL: none. Runs on the calling thread. */
void eddy_conv_scatter(const eddy_kernel_call *call, const eddy_conv_plan *plan,
                       const eddy_op_view *bias);

/* Number of elements that a place contributes to. */
static inline int64_t eddy_conv_scatter_given(const eddy_conv_plan *plan) {
    return plan->to_channels * plan->weight.height * plan->weight.width;
}

/* The same for one compute type. `biases`: one of that type for each channel. `gift`: space for the contribution of one
 * place. */
void eddy_conv_scatter_f32(const eddy_kernel_call *call, const eddy_conv_plan *plan,
                           const void *biases, void *gift);
void eddy_conv_scatter_f64(const eddy_kernel_call *call, const eddy_conv_plan *plan,
                           const void *biases, void *gift);

#endif
