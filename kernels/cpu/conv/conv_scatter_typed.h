/* Scattering (conv_scatter.h) for one compute type. */
#ifndef EDDY_KERNELS_CPU_CONV_SCATTER_TYPED_H
#define EDDY_KERNELS_CPU_CONV_SCATTER_TYPED_H

#include <kernels/cpu/conv/conv_scatter.h>
#include <kernels/cpu/typed.h>

/* Along one axis, taps first .. end - 1 of the window at place i of the input are inside the result's `size`. */
typedef struct reach {
    int64_t at, first, end; /* at: index of tap 0 in the result */
} reach;

static reach reach_of(const eddy_conv_window *window, int64_t size, int64_t i) {
    reach r = {.at = i * window->stride - window->padding, .end = window->size};
    if (r.at < 0)
        r.first = (-r.at + window->dilation - 1) / window->dilation;
    while (r.end > r.first && r.at + (r.end - 1) * window->dilation >= size)
        r.end--;
    return r;
}

static void begin_image(const eddy_conv_plan *plan, int64_t number, const real *biases) {
    const eddy_conv_image *to = &plan->to;
    real *image = (real *)to->data + number * to->batch_stride;
    for (int64_t c = 0; c < to->channels; c++)
        for (int64_t i = 0; i < to->height; i++)
            for (int64_t j = 0; j < to->width; j++)
                image[c * to->channel_stride + i * to->row_stride + j * to->column_stride] =
                    biases[c];
}

static void add_gift(const eddy_conv_plan *plan, real *restrict to, const reach *rows,
                     const reach *columns, const real *restrict gift) {
    int64_t taps = plan->weight.height * plan->weight.width;
    for (int64_t i = rows->first; i < rows->end; i++)
        for (int64_t j = columns->first; j < columns->end; j++) {
            real *there = to + (rows->at + i * plan->rows.dilation) * plan->to.row_stride +
                          (columns->at + j * plan->columns.dilation) * plan->to.column_stride;
            const real *here = gift + i * plan->weight.width + j;
            for (int64_t c = 0; c < plan->to_channels; c++)
                there[c * plan->to.channel_stride] += here[c * taps];
        }
}

static void scatter_image(const eddy_kernel_call *call, const eddy_conv_plan *plan, int64_t number,
                          int64_t group, real *gift) {
    const eddy_conv_image *from = &plan->from, *to = &plan->to;
    const real *weights = (const real *)plan->weight.data + group * plan->weight.group_stride;
    const real *image = (const real *)from->data + number * from->batch_stride +
                        group * plan->from_channels * from->channel_stride;
    real *result = (real *)to->data + number * to->batch_stride +
                   group * plan->to_channels * to->channel_stride;
    for (int64_t i = 0; i < from->height; i++) {
        reach rows = reach_of(&plan->rows, to->height, i);
        for (int64_t j = 0; j < from->width; j++) {
            reach columns = reach_of(&plan->columns, to->width, j);
            eddy_conv_multiply(
                call, plan, true, false, 1, eddy_conv_scatter_given(plan), plan->from_channels,
                image + i * from->row_stride + j * from->column_stride, from->channel_stride,
                weights, plan->weight.from_stride, false, gift, eddy_conv_scatter_given(plan));
            add_gift(plan, result, &rows, &columns, gift);
        }
    }
}

void EDDY_TYPED(eddy_conv_scatter)(const eddy_kernel_call *call, const eddy_conv_plan *plan,
                                   const void *biases, void *gift) {
    for (int64_t n = 0; n < plan->to.batch; n++) {
        begin_image(plan, n, biases);
        for (int64_t group = 0; group < plan->groups; group++)
            scatter_image(call, plan, n, group, gift);
    }
}

#endif
