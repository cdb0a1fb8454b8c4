/* Where the elements of a resized image come from, along an axis. For CUDA sources too. */
#ifndef EDDY_KERNELS_INTERPOLATE_H
#define EDDY_KERNELS_INTERPOLATE_H

#include <base/builtin.h>

/* The source of an output along an axis: two neighbours, and the weight of the second. */
typedef struct eddy_tap {
    int64_t low, high;
    double share;
} eddy_tap;

typedef struct eddy_tap_axis {
    int64_t in, out;
    double scale; /* 0: the ratio of the sizes */
    bool is_bilinear, aligns_corners;
} eddy_tap_axis;

/* Where output o would lie among the inputs, of the mode bilinear. */
EDDY_SCALAR double eddy_tap_place(const eddy_tap_axis *axis, int64_t o) {
    if (axis->aligns_corners)
        return axis->out > 1 ? (double)o * ((double)(axis->in - 1) / (double)(axis->out - 1)) : 0;
    double ratio = axis->scale > 0 ? 1 / axis->scale : (double)axis->in / (double)axis->out;
    double place = ratio * ((double)o + 0.5) - 0.5;
    return place > 0 ? place : 0;
}

/* Taps of ascending outputs ascend. */
EDDY_SCALAR eddy_tap eddy_tap_of(const eddy_tap_axis *axis, int64_t o) {
    eddy_tap tap;
    int64_t last = axis->in - 1;
    if (!axis->is_bilinear) {
        int64_t at = axis->scale > 0 ? (int64_t)eddy_floor_f64((double)o / axis->scale)
                                     : o * axis->in / axis->out;
        tap.low = tap.high = at < last ? at : last;
        tap.share = 0;
        return tap;
    }
    double place = eddy_tap_place(axis, o);
    tap.low = (int64_t)place < last ? (int64_t)place : last;
    tap.high = tap.low < last ? tap.low + 1 : last;
    tap.share = place - (double)tap.low;
    return tap;
}

/* Outputs *begin .. *end - 1 have element i of an axis among their two neighbours. */
EDDY_SCALAR void eddy_tap_touching(const eddy_tap *taps, int64_t out, int64_t i, int64_t *begin,
                                   int64_t *end) {
    int64_t low = 0, high = out;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (taps[middle].high < i)
            low = middle + 1;
        else
            high = middle;
    }
    *begin = low;
    high = out;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (taps[middle].low <= i)
            low = middle + 1;
        else
            high = middle;
    }
    *end = low;
}

/* Of element i in an output with this tap. */
EDDY_SCALAR double eddy_tap_weight(const eddy_tap *tap, int64_t i) {
    return (tap->low == i ? 1 - tap->share : 0) + (tap->high == i ? tap->share : 0);
}

#endif
