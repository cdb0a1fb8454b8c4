#define EDDY_ELEMENT f64
#define EDDY_REAL double
#include <kernels/cpu/reduce/reduce_real_typed.h>
#include <kernels/cpu/reduce/reduce_wide_typed.h>
#include <kernels/power.h>

SECOND_BLOCK(deviation, DEVIATION)
COLUMNS(deviation, DEVIATION, SUM)

static void power(double *to, const double *from, int64_t count, double parameter) {
    EDDY_LOOP_APART for (int64_t i = 0; i < count; i++) to[i] =
        eddy_pow_f64(eddy_abs_f64(from[i]), parameter);
}

const eddy_reduce_wide_blocks EDDY_ISA_NAME(eddy_cpu_reduce_wide_f64) = {
    WIDE_OPS,
    .deviation = PAIR_OPS(deviation, NULL),
    .power = power,
};
