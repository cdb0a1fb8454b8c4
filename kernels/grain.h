/* How a loop whose elements do not depend on each other is cut into slices. */
#ifndef EDDY_KERNELS_GRAIN_H
#define EDDY_KERNELS_GRAIN_H

#include <base/number.h>
#include <kernels/kernel.h>

/* Slices of elements begin at multiples of so many, which the widest loops take at a time. */
#define EDDY_GRAIN_ELEMENTS 256

/* Slices of at most `most`, as many for each thread of the team, so that all are done at the same time: 100,000 by 32,768 would be three
 * slices and a bit. They begin at multiples of `unit`, which divides `most`. For bodies whose results do not depend on the cut. */
static inline int64_t eddy_grain_even(const eddy_kernel_team *team, int64_t count, int64_t most,
                                      int64_t unit) {
    int64_t threads = team->thread_count, slices = (count + most - 1) / most;
    if (slices <= 1 || threads <= 1)
        return most;
    slices = (slices + threads - 1) / threads * threads;
    int64_t grain = ((count + slices - 1) / slices + unit - 1) / unit * unit;
    /* With many threads: below a quarter the way to them costs more. */
    return eddy_max_i64(grain, (most / 4 + unit - 1) / unit * unit);
}

#endif
