/* The places of convolutions along an axis, and what they read. For CUDA sources too.
 *
 * A transposed convolution is split into phases. Places of the result that are equal modulo the stride use the same elements of the window, and a step of one stride between them is
 * a step of one element in the input. So each phase is a convolution of its own, without gaps. */
#ifndef EDDY_KERNELS_CONV_H
#define EDDY_KERNELS_CONV_H

#include <base/builtin.h>

/* One phase along one axis. Place i of the phase has index start + i * step in the result. At tap t it reads index i *
 * reach + offset + t * offset_step of the input. Tap t is element tap + t * tap_step of the window. */
typedef struct eddy_conv_axis {
    int64_t start, step, count;
    int64_t reach, offset, offset_step;
    int64_t tap, tap_step, tap_count;
} eddy_conv_axis;

typedef struct eddy_conv_window {
    int64_t size, stride, padding, dilation;
} eddy_conv_window;

/* The only phase of a convolution with `count` places. */
EDDY_SCALAR eddy_conv_axis eddy_conv_axis_forward(const eddy_conv_window *window, int64_t count) {
    eddy_conv_axis axis;
    axis.start = 0;
    axis.step = 1;
    axis.count = count;
    axis.reach = window->stride;
    axis.offset = -window->padding;
    axis.offset_step = window->dilation;
    axis.tap = 0;
    axis.tap_step = 1;
    axis.tap_count = window->size;
    return axis;
}

/* The taps of a phase lie so many apart. */
EDDY_SCALAR int64_t eddy_conv_tap_step(const eddy_conv_window *window) {
    int64_t divisor = window->dilation, rest = window->stride;
    while (rest != 0) {
        int64_t next = divisor % rest;
        divisor = rest;
        rest = next;
    }
    return window->stride / divisor;
}

/* Phase number `phase`, below the stride, of a transposed convolution whose result has `size` places. Element k of the window at place o of the result reads element (o + padding - k *
 * dilation) / stride of the input, if that is an integer. It is one for every (stride / gcd)-th k, or for none. */
EDDY_SCALAR eddy_conv_axis eddy_conv_axis_transposed(const eddy_conv_window *window, int64_t size,
                                                     int64_t phase) {
    int64_t stride = window->stride, each = eddy_conv_tap_step(window);
    int64_t place = phase + window->padding;
    eddy_conv_axis axis;
    axis.start = phase;
    axis.step = stride;
    axis.count = (size - phase + stride - 1) / stride;
    axis.reach = 1;
    axis.offset = 0;
    axis.offset_step = -(window->dilation * each / stride);
    axis.tap = 0;
    axis.tap_step = each;
    axis.tap_count = 0;
    while (axis.tap < each && axis.tap < window->size &&
           (place - axis.tap * window->dilation) % stride != 0)
        axis.tap++;
    if (axis.tap < each && axis.tap < window->size) {
        axis.tap_count = (window->size - axis.tap + each - 1) / each;
        axis.offset = (place - axis.tap * window->dilation) / stride;
    }
    return axis;
}

#endif
