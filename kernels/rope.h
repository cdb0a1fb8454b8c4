/* Frequencies and angles of rotary position embedding. For CUDA sources too.
 *
 * The functions are Eddy's own: those of a C library depend on the machine, and a device would have others. */
#ifndef EDDY_KERNELS_ROPE_H
#define EDDY_KERNELS_ROPE_H

#include <kernels/angle.h>
#include <kernels/power.h>

/* Of pair number `pair` of so many: base^(-pair / pairs). */
EDDY_SCALAR double eddy_rope_frequency_of(double base, int64_t pair, int64_t pairs) {
    return eddy_pow_f64(base, -(double)pair / (double)pairs);
}

/* Whether all angles of a position are such that eddy_angle_sin_wide and its kin serve them, in f32. `fastest`: the highest frequency. */
EDDY_SCALAR bool eddy_rope_is_quick_at(double position, double fastest) {
    return eddy_abs_f64(position) * fastest < 0x1p30;
}

#endif
