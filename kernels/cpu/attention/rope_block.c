#include <kernels/angle.h>
#include <kernels/cpu/attention/rope_block.h>
#include <kernels/cpu/lanes.h>

static void angles(float *restrict cosines, float *restrict sines, double position,
                   const double *restrict frequencies, int64_t pairs) {
    for (int64_t i = 0; i < pairs; i++) {
        double angle = position * frequencies[i];
        cosines[i] = eddy_angle_cos_wide(angle);
        sines[i] = eddy_angle_sin_wide(angle);
    }
}

#define TURN(name, real)                                                                           \
    static void turn_##name(eddy_rope_rows out, eddy_rope_rows in, eddy_rope_angles by,            \
                            int64_t rows, int64_t pairs) {                                         \
        const real *a = in.first, *b = in.second, *c = by.cosines, *s = by.sines;                  \
        real *to_a = out.first, *to_b = out.second;                                                \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            EDDY_EACH_APART (i, pairs) {                                                           \
                real first = a[i], second = b[i];                                                  \
                to_a[i] = first * c[i] - second * s[i];                                            \
                to_b[i] = second * c[i] + first * s[i];                                            \
            }                                                                                      \
            a += in.row, b += in.row, c += by.row, s += by.row, to_a += out.row, to_b += out.row;  \
        }                                                                                          \
    }

TURN(f32, float)
TURN(f64, double)

const eddy_rope_blocks EDDY_ISA_NAME(eddy_cpu_rope_blocks) = {angles, turn_f32, turn_f64};
