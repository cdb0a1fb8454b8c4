/* EDDY_CHECK_FINITE: infinities that are passed in, and results that are not finite. */

#include <kernels/cuda/elementwise.cuh>
#include <kernels/cuda/fail.cuh>
#include <kernels/cuda/finite.h>
#include <kernels/finite.h>

namespace {

EDDY_SCALAR bool is_infinite(double x) {
    return eddy_abs_f64(x) == EDDY_INF_f64;
}

/* The row in which an infinity is noted. The call's own ticket there: it was. */
EDDY_SCALAR volatile uint64_t *note_of(const eddy_cuda_gate &gate) {
    return &gate.marks[EDDY_CUDA_WORDS + eddy_cuda_ticket(gate) % EDDY_CUDA_WORDS];
}

template <class element> EDDY_CUDA_MEMBER double load(const eddy_cuda_strided &p, int64_t offset) {
    typedef typename element::stored stored;
    return (double)element::load(*(const stored *)((const char *)p.data[0] + offset));
}

/* Whoever writes writes the same. */
template <class element> EDDY_CUDA_MEMBER void check_infinity(const eddy_cuda_strided &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    bool has_infinity = false;
    eddy_cuda_each_place<1>(p, [&](const int64_t *offsets) {
        has_infinity |= is_infinite(load<element>(p, offsets[0]));
    });
    if (has_infinity)
        *note_of(p.gate) = eddy_cuda_ticket(p.gate);
}

/* The call itself, or the look at an operand before, has failed: that is the record. */
EDDY_SCALAR bool has_failed(const eddy_cuda_gate &gate) {
    const uint64_t ticket = eddy_cuda_ticket(gate);
    return *(volatile uint64_t *)&gate.marks[ticket % EDDY_CUDA_WORDS] == ticket;
}

template <class element> EDDY_CUDA_MEMBER void check_finite(const eddy_cuda_strided &p) {
    if (eddy_cuda_is_skipped(p.gate) || has_failed(p.gate))
        return;
    eddy_attributes_check_finite attributes;
    memcpy(&attributes, p.attributes, sizeof(attributes));
    const bool wants_infinity =
        attributes.wants_infinity && *note_of(p.gate) != eddy_cuda_ticket(p.gate);
    bool is_fine = true;
    eddy_cuda_each_place<1>(p, [&](const int64_t *offsets) {
        const double x = load<element>(p, offsets[0]);
        is_fine &= x == x && !(wants_infinity && is_infinite(x));
    });
    if (!is_fine)
        eddy_cuda_fail(p.gate, EDDY_NOT_FINITE, attributes.operand, 0, 0);
}

} // namespace

#define KERNELS(name, dtype)                                                                       \
    EDDY_CUDA_KERNEL(eddy_check_infinity_##name##_strided, eddy_cuda_strided) {                    \
        check_infinity<eddy_cuda_##name>(parameters);                                              \
    }                                                                                              \
    EDDY_CUDA_KERNEL(eddy_check_finite_##name##_strided, eddy_cuda_strided) {                      \
        check_finite<eddy_cuda_##name>(parameters);                                                \
    }
EDDY_CUDA_FINITE(KERNELS)
