/* What the looks of EDDY_CHECK_FINITE touch: their operand, and the row of the call's infinity. */
#include <kernels/cuda/finite.h>
#include <kernels/cuda/parameters.h>
#include <tests/fake_cuda/kernels/touches.h>

static void touch_look(const eddy_cuda_strided &p, int64_t bytes, bool is_infinity, touch_fn *say,
                       void *context) {
    range all = {0, bytes};
    for (int d = 0; d < p.rank; d++)
        all.reach((int64_t)p.dims[d].divisor - 1, p.strides[0][d]);
    all.touch(say, context, p.data[0], false);
    const uint64_t *note = &p.gate.marks[EDDY_CUDA_WORDS + p.gate.ticket % EDDY_CUDA_WORDS];
    say(context, note, sizeof(*note), is_infinity);
}

static const int64_t bytes_of_f32 = 4, bytes_of_f64 = 8, bytes_of_f16 = 2, bytes_of_bf16 = 2;
#define LOOKS(name, dtype)                                                                         \
    TOUCHES(eddy_check_infinity_##name##_strided, eddy_cuda_strided, touch_look, bytes_of_##name,  \
            true)                                                                                  \
    TOUCHES(eddy_check_finite_##name##_strided, eddy_cuda_strided, touch_look, bytes_of_##name,    \
            false)
EDDY_CUDA_FINITE(LOOKS)
