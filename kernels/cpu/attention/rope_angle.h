/* kernels/rope.h for sources that cannot include it: its scalar functions have names of base/number.h. */
#ifndef EDDY_KERNELS_CPU_ROPE_ANGLE_H
#define EDDY_KERNELS_CPU_ROPE_ANGLE_H

#include <stdbool.h>
#include <stdint.h>

double eddy_rope_frequency(double base, int64_t pair, int64_t pairs);
bool eddy_rope_is_quick(double position, double fastest);
double eddy_rope_cosine(double angle);
double eddy_rope_sine(double angle);

#endif
