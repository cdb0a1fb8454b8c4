/* equal and allclose. */
#include <kernels/cuda/compare.h>
#include <kernels/cuda/elementwise.cuh>

namespace {

/* ---- two elements ---- */

struct equality {
    static constexpr int lanes = 16;
    EDDY_CUDA_MEMBER explicit equality(const uint64_t *) {
    }
    template <class type> EDDY_CUDA_MEMBER bool operator()(type a, type b) const {
        return a == b;
    }
};

/* |a - b| <= atol + rtol |b|; infinities are close only if they are equal. */
struct closeness {
    static constexpr int lanes = 4;
    double atol, rtol;
    bool nan_is_equal;

    EDDY_CUDA_MEMBER explicit closeness(const uint64_t *attributes)
        : atol(eddy_f64_of_bits(attributes[EDDY_CUDA_COMPARE_ATOL])),
          rtol(eddy_f64_of_bits(attributes[EDDY_CUDA_COMPARE_RTOL])),
          nan_is_equal(attributes[EDDY_CUDA_COMPARE_NAN_IS_EQUAL]) {
    }
    EDDY_CUDA_MEMBER bool are_near(double a, double b) const {
        return eddy_abs_f64(a - b) <= atol + rtol * eddy_abs_f64(b);
    }
    EDDY_CUDA_MEMBER bool operator()(double a, double b) const {
        const double inf = EDDY_INF_f64;
        return a == b || (are_near(a, b) && eddy_abs_f64(a) < inf && eddy_abs_f64(b) < inf) ||
               (nan_is_equal && a != a && b != b);
    }
    EDDY_CUDA_MEMBER bool operator()(float a, float b) const {
        return (*this)((double)a, (double)b);
    }
    /* Equal integers first: beyond 2^53, doubles are too coarse to tell. */
    EDDY_CUDA_MEMBER bool operator()(int64_t a, int64_t b) const {
        return a == b || are_near((double)a, (double)b);
    }
    template <class integer> EDDY_CUDA_MEMBER bool operator()(integer a, integer b) const {
        return (*this)((int64_t)a, (int64_t)b);
    }
};

/* ---- all of them ---- */

/* Several threads may, at once. */
EDDY_SCALAR void answer_no(void *answer) {
    *(volatile uint8_t *)answer = 0;
}

template <class op, class element> EDDY_CUDA_MEMBER void compare_dense(const eddy_cuda_dense &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    constexpr int lanes = eddy_cuda_lanes<op, element, element>::count;
    const op agree(p.attributes);
    eddy_cuda_inputs<lanes, element, element> values;
    values.broadcast(p, 0);
    bool differs = false;
    const int64_t step = (int64_t)gridDim.x * blockDim.x * lanes;
    EDDY_CUDA_ROLLED
    for (int64_t at = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * lanes; at < p.count;
         at += step) {
        const int count = p.count - at < lanes ? (int)(p.count - at) : lanes;
        if (p.is_aligned && count == lanes)
            values.load_whole(p, 0, at);
        else
            values.load_some(p, 0, at, count);
        for (int i = 0; i < lanes; i++)
            differs |= !values.apply(agree, i);
    }
    if (differs)
        answer_no(p.data[EDDY_CUDA_COMPARE_ANSWER]);
}

template <class op, class element>
EDDY_CUDA_MEMBER void compare_strided(const eddy_cuda_strided &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const op agree(p.attributes);
    bool differs = false;
    eddy_cuda_each_place<EDDY_CUDA_COMPARE_OPERANDS>(p, [&](const int64_t *offsets) {
        eddy_cuda_inputs<1, element, element> values;
        values.load_at(p, 0, offsets);
        differs |= !values.apply(agree, 0);
    });
    if (differs)
        answer_no(p.data[EDDY_CUDA_COMPARE_ANSWER]);
}

} // namespace

#define KERNELS(name, dtype)                                                                       \
    EDDY_CUDA_KERNEL(eddy_equal_##name##_dense, eddy_cuda_dense) {                                 \
        compare_dense<equality, eddy_cuda_##name>(parameters);                                     \
    }                                                                                              \
    EDDY_CUDA_KERNEL(eddy_equal_##name##_strided, eddy_cuda_strided) {                             \
        compare_strided<equality, eddy_cuda_##name>(parameters);                                   \
    }                                                                                              \
    EDDY_CUDA_KERNEL(eddy_allclose_##name##_dense, eddy_cuda_dense) {                              \
        compare_dense<closeness, eddy_cuda_##name>(parameters);                                    \
    }                                                                                              \
    EDDY_CUDA_KERNEL(eddy_allclose_##name##_strided, eddy_cuda_strided) {                          \
        compare_strided<closeness, eddy_cuda_##name>(parameters);                                  \
    }
EDDY_CUDA_COMPARED(KERNELS)
