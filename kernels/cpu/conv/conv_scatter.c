#include <kernels/cpu/conv/conv_scatter.h>

#include <kernels/cpu/chunk.h>
#include <kernels/cpu/walk.h>

/* Limits of scattering: multiply-adds of a call, and places for each channel of the input. Beyond them, gathering columns
 * or calling the library is faster. With only a few places, each weight is hardly reused and packing the weights does not
 * pay, so the limit is higher. */
#define WORK_MOST 2e5
#define PLACES_EACH 2
#define WORK_MOST_FEW 1e6
#define PLACES_FEW 4

/* Whether the weights of one input channel, for all channels and taps of the result, are contiguous. */
static bool lies_as_row(const eddy_conv_plan *plan) {
    const eddy_conv_weight *w = &plan->weight;
    return (w->width == 1 || w->column_stride == 1) &&
           (w->height == 1 || w->row_stride == w->width) &&
           (plan->to_channels == 1 || w->to_stride == w->height * w->width);
}

static bool is_small(const eddy_conv_plan *plan) {
    int64_t places = plan->from.batch * plan->from.height * plan->from.width;
    double work = eddy_conv_plan_work(plan);
    return (places <= PLACES_EACH * plan->from_channels && work < WORK_MOST) ||
           (places <= PLACES_FEW && work < WORK_MOST_FEW);
}

bool eddy_conv_scatter_serves(const eddy_conv_plan *plan) {
    return plan->is_transposed && plan->from.dtype == plan->compute &&
           plan->to.dtype == plan->compute && plan->weight.dtype == plan->compute &&
           plan->to_channels > 0 && is_small(plan) && lies_as_row(plan);
}

static size_t bias_bytes(const eddy_conv_plan *plan) {
    return (size_t)(plan->to.channels * plan->bytes + 63) / 64 * 64;
}

size_t eddy_conv_scatter_workspace(const eddy_conv_plan *plan) {
    return bias_bytes(plan) + (size_t)(eddy_conv_scatter_given(plan) * plan->bytes);
}

void eddy_conv_scatter(const eddy_kernel_call *call, const eddy_conv_plan *plan,
                       const eddy_op_view *bias) {
    char *biases = call->workspace;
    void *gift = biases + bias_bytes(plan);
    if (bias)
        eddy_chunk_load(plan->compute, biases, bias->dtype, bias->data, bias->strides[0],
                        plan->to.channels);
    else
        memset(biases, 0, bias_bytes(plan));
    (plan->compute == EDDY_F64 ? eddy_conv_scatter_f64 : eddy_conv_scatter_f32)(call, plan, biases,
                                                                                gift);
}
