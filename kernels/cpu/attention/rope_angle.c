#include <kernels/cpu/attention/rope_angle.h>
#include <kernels/rope.h>

double eddy_rope_frequency(double base, int64_t pair, int64_t pairs) {
    return eddy_rope_frequency_of(base, pair, pairs);
}

bool eddy_rope_is_quick(double position, double fastest) {
    return eddy_rope_is_quick_at(position, fastest);
}

double eddy_rope_cosine(double angle) {
    return eddy_cos_f64(angle);
}

double eddy_rope_sine(double angle) {
    return eddy_sin_f64(angle);
}
