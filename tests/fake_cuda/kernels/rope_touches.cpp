/* What rotary position embedding touches. */
#include <kernels/cuda/rope.h>
#include <tests/fake_cuda/kernels/touches.h>

static void touch_angles(const eddy_cuda_rope_angles &p, int64_t bytes, touch_fn *say,
                         void *context) {
    range positions = {0, 8}, angles = {0, 2 * bytes * p.count * p.pairs};
    positions.reach(p.count - 1, p.stride);
    positions.touch(say, context, p.positions, false);
    angles.touch(say, context, p.angles, true);
}

static void touch_turn(const eddy_cuda_rope_turn &p, int64_t bytes, int64_t number_bytes,
                       touch_fn *say, void *context) {
    range all[] = {{0, bytes}, {0, bytes}, {0, 2 * number_bytes * p.pairs}};
    for (int k = 0; k < 3; k++)
        for (int d = 0; d < p.dims.rank; d++)
            all[k].reach(p.dims.sizes[d] - 1, p.dims.strides[k][d]);
    for (int k = 0; k < 2; k++) {
        all[k].reach(p.pairs - 1, p.pair_strides[k]);
        all[k].reach(1, p.partners[k]);
    }
    all[EDDY_CUDA_ROPE_OUT].touch(say, context, p.out, true);
    all[EDDY_CUDA_ROPE_X].touch(say, context, p.x, false);
    all[EDDY_CUDA_ROPE_ANGLES].touch(say, context, p.angles, false);
}

static const int64_t bytes_of_f32 = 4, bytes_of_f64 = 8, bytes_of_f16 = 2, bytes_of_bf16 = 2;
#define ANGLES(name, number)                                                                       \
    TOUCHES(eddy_rope_angles_##name, eddy_cuda_rope_angles, touch_angles, sizeof(number))
EDDY_CUDA_ROPE_TYPES(ANGLES)
#define TURN(name, dtype, number)                                                                  \
    TOUCHES(eddy_rope_turn_##name, eddy_cuda_rope_turn, touch_turn, bytes_of_##name, sizeof(number))
EDDY_CUDA_ROPES(TURN)
