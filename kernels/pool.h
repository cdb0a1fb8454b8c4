/* The windows of pools along an axis, and what an average is divided by. For CUDA sources too.
 *
 *   axis of 7, kernel 3, stride 2, padding 1        windows -1..1, 1..3, 3..5, 5..7: the first and the last are clipped
 *   axis of 7, adaptive to 3                        windows 0..2, 2..4, 4..6: floor(o in / out) .. ceil((o + 1) in / out) */
#ifndef EDDY_KERNELS_POOL_H
#define EDDY_KERNELS_POOL_H

#include <base/builtin.h>

typedef struct eddy_pool_axis {
    int64_t in, out;
    int64_t kernel, stride, padding, dilation;
    bool is_adaptive; /* windows follow from `in` and `out` */
} eddy_pool_axis;

/* Elements first, first + dilation, ..: those that are inside the image. */
typedef struct eddy_pool_window {
    int64_t first, count;
} eddy_pool_window;

EDDY_SCALAR int64_t eddy_pool_divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

EDDY_SCALAR eddy_pool_window eddy_pool_window_of(const eddy_pool_axis *axis, int64_t o) {
    eddy_pool_window window;
    if (axis->is_adaptive) {
        window.first = o * axis->in / axis->out;
        window.count = eddy_pool_divide_up((o + 1) * axis->in, axis->out) - window.first;
        return window;
    }
    int64_t start = o * axis->stride - axis->padding;
    int64_t skipped = start < 0 ? -start : 0;
    if (axis->dilation > 1)
        skipped = eddy_pool_divide_up(skipped, axis->dilation);
    window.first = start + skipped * axis->dilation;
    int64_t inside = axis->in - window.first, left = axis->kernel - skipped;
    if (axis->dilation > 1)
        inside = inside > 0 ? (inside - 1) / axis->dilation + 1 : 0;
    window.count = left < inside ? left : inside;
    return window;
}

/* Outputs *begin .. *end - 1 are those whose windows contain element i; with dilation, those whose windows reach over it. */
EDDY_SCALAR void eddy_pool_covering(const eddy_pool_axis *axis, int64_t i, int64_t *begin,
                                    int64_t *end) {
    if (axis->is_adaptive) {
        *begin = i * axis->out / axis->in;
        *end = eddy_pool_divide_up((i + 1) * axis->out, axis->in);
        return;
    }
    int64_t from = i + axis->padding, first = from - (axis->kernel - 1) * axis->dilation;
    int64_t last = from / axis->stride;
    *begin = first > 0 ? eddy_pool_divide_up(first, axis->stride) : 0;
    *end = last < axis->out ? last + 1 : axis->out;
}

/* Elements of a window, including those in the padding but not those beyond it. */
EDDY_SCALAR int64_t eddy_pool_padded_count(const eddy_pool_axis *axis, int64_t o) {
    int64_t start = o * axis->stride - axis->padding;
    int64_t inside = axis->in + axis->padding - start;
    return axis->kernel < inside ? axis->kernel : inside;
}

/* What averages count; those of adaptive windows count what is in the image. */
typedef struct eddy_pool_counting {
    int64_t divisor_override; /* 0: none */
    bool excludes_padding;
} eddy_pool_counting;

/* The divisor of the average over the window of row oh and column ow. */
EDDY_SCALAR double eddy_pool_divisor_of(eddy_pool_counting counting, const eddy_pool_axis *height,
                                        const eddy_pool_axis *width, int64_t oh, int64_t ow) {
    if (counting.divisor_override != 0)
        return (double)counting.divisor_override;
    if (!counting.excludes_padding)
        return (double)eddy_pool_padded_count(height, oh) *
               (double)eddy_pool_padded_count(width, ow);
    return (double)eddy_pool_window_of(height, oh).count *
           (double)eddy_pool_window_of(width, ow).count;
}

#endif
