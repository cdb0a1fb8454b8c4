/* Slices of loops whose elements do not depend on each other. */
#ifndef EDDY_KERNELS_GRAIN_H
#define EDDY_KERNELS_GRAIN_H

#include <base/number.h>
#include <kernels/kernel.h>

/* Slices of elements begin at multiples of this number, the step of the loops with the widest vectors. */
#define EDDY_GRAIN_ELEMENTS 256

/* A grain of at most `most` that gives all threads of the team the same number of slices, so that they finish together:
 * 100,000 elements in slices of 32,768 would be three slices and a small rest. Slices begin at multiples of `unit`, which
 * divides `most`. For bodies whose results do not depend on the slices. */
static inline int64_t eddy_grain_even(const eddy_kernel_team *team, int64_t count, int64_t most,
                                      int64_t unit) {
    int64_t threads = team->thread_count, slices = (count + most - 1) / most;
    if (slices <= 1 || threads <= 1)
        return most;
    slices = (slices + threads - 1) / threads * threads;
    int64_t grain = ((count + slices - 1) / slices + unit - 1) / unit * unit;
    /* With many threads, slices of less than a quarter of `most` cost more in hand-overs than they gain. */
    return eddy_max_i64(grain, (most / 4 + unit - 1) / unit * unit);
}

#endif
