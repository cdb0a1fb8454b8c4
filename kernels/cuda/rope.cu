/* rope. */
#include <kernels/cuda/dims.cuh>
#include <kernels/cuda/elementwise.cuh>
#include <kernels/cuda/rope.h>
#include <kernels/rope.h>

namespace {

template <class number> struct turning { number cosine, sine; };

EDDY_SCALAR void find_angle(double angle, bool is_quick, turning<float> *found) {
    found->cosine = is_quick ? eddy_angle_cos_wide(angle) : (float)eddy_cos_f64(angle);
    found->sine = is_quick ? eddy_angle_sin_wide(angle) : (float)eddy_sin_f64(angle);
}

EDDY_SCALAR void find_angle(double angle, bool, turning<double> *found) {
    found->cosine = eddy_cos_f64(angle);
    found->sine = eddy_sin_f64(angle);
}

EDDY_SCALAR int64_t first_of_thread() {
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
EDDY_SCALAR int64_t step_of_grid() {
    return (int64_t)gridDim.x * blockDim.x;
}

template <class number> EDDY_CUDA_MEMBER void find_angles(const eddy_cuda_rope_angles &p) {
    turning<number> *to = (turning<number> *)p.angles;
    EDDY_CUDA_ROLLED
    for (int64_t at = first_of_thread(); at < p.count * p.pairs; at += step_of_grid()) {
        const int64_t number_of = at / p.pairs, pair = at - number_of * p.pairs;
        const double position =
            (double)*(const int64_t *)((const char *)p.positions + number_of * p.stride);
        find_angle(position * eddy_rope_frequency_of(p.base, pair, p.pairs),
                   eddy_rope_is_quick_at(position, p.fastest), &to[at]);
    }
}

/* Neighbouring threads have neighbouring pairs of a row. */
template <class element, class number> EDDY_CUDA_MEMBER void turn(const eddy_cuda_rope_turn &p) {
    typedef typename element::stored stored;
    EDDY_CUDA_ROLLED
    for (int64_t at = first_of_thread(); at < p.rows * p.pairs; at += step_of_grid()) {
        const int64_t row = at / p.pairs, pair = at - row * p.pairs;
        char *out = (char *)p.out + eddy_cuda_offset(p.dims, EDDY_CUDA_ROPE_OUT, row) +
                    pair * p.pair_strides[EDDY_CUDA_ROPE_OUT];
        const char *x = (const char *)p.x + eddy_cuda_offset(p.dims, EDDY_CUDA_ROPE_X, row) +
                        pair * p.pair_strides[EDDY_CUDA_ROPE_X];
        const turning<number> by =
            ((const turning<number> *)((const char *)p.angles +
                                       eddy_cuda_offset(p.dims, EDDY_CUDA_ROPE_ANGLES, row)))[pair];
        const number first = element::load(*(const stored *)x),
                     second = element::load(*(const stored *)(x + p.partners[EDDY_CUDA_ROPE_X]));
        *(stored *)out = element::store(first * by.cosine - second * by.sine);
        *(stored *)(out + p.partners[EDDY_CUDA_ROPE_OUT]) =
            element::store(second * by.cosine + first * by.sine);
    }
}

} // namespace

#define ANGLES(name, number)                                                                       \
    EDDY_CUDA_KERNEL(eddy_rope_angles_##name, eddy_cuda_rope_angles) {                             \
        if (eddy_cuda_is_skipped(parameters.gate))                                                 \
            return;                                                                                \
        find_angles<number>(parameters);                                                           \
    }
EDDY_CUDA_ROPE_TYPES(ANGLES)
#define TURN(name, dtype, number)                                                                  \
    EDDY_CUDA_KERNEL(eddy_rope_turn_##name, eddy_cuda_rope_turn) {                                 \
        if (eddy_cuda_is_skipped(parameters.gate))                                                 \
            return;                                                                                \
        turn<eddy_cuda_##name, number>(parameters);                                                \
    }
EDDY_CUDA_ROPES(TURN)
