/* The shapes of late outputs, from the number that was counted: `shape` of kernels (kernel.h), and the end of `count` on the CPU. */
#ifndef EDDY_KERNELS_COUNTED_H
#define EDDY_KERNELS_COUNTED_H

#include <base/number.h>
#include <kernels/attributes.h>
#include <kernels/kernel.h>

/* views: in, out [counted, rank] */
static inline void eddy_counted_nonzero(const eddy_kernel_call *call, int64_t counted,
                                        eddy_shape *shapes) {
    shapes[0] = (eddy_shape){.rank = 2, .dims = {counted, call->views[0].rank}};
}

/* views: in, mask, out [counted] */
static inline void eddy_counted_masked_select(const eddy_kernel_call *call, int64_t counted,
                                              eddy_shape *shapes) {
    (void)call;
    shapes[0] = (eddy_shape){.rank = 1, .dims = {counted}};
}

/* views: in, values [counted], and optionally inverse, of the shape of `in`, and counts [counted] */
static inline void eddy_counted_unique(const eddy_kernel_call *call, int64_t counted,
                                       eddy_shape *shapes) {
    const eddy_op_view *in = &call->views[0];
    shapes[0] = (eddy_shape){.rank = 1, .dims = {counted}};
    if (call->view_count != 4)
        return;
    shapes[1] = (eddy_shape){.rank = in->rank};
    for (int32_t d = 0; d < in->rank; d++)
        shapes[1].dims[d] = in->shape[d];
    shapes[2] = shapes[0];
}

/* views: in, weights (or absent), out. `counted` is one more than the largest number. */
static inline void eddy_counted_bincount(const eddy_kernel_call *call, int64_t counted,
                                         eddy_shape *shapes) {
    const eddy_attributes_bincount *attributes = call->attributes;
    shapes[0] = (eddy_shape){.rank = 1, .dims = {eddy_max_i64(attributes->minlength, counted)}};
}

#endif
