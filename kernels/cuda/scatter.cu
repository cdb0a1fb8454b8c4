/* scatter, scatter_add, index_add, index_put, and the gradient of embedding. */
#include <kernels/cuda/elementwise.cuh>
#include <kernels/cuda/fail.cuh>
#include <kernels/cuda/scatter.h>

namespace {

struct place {
    int64_t at[EDDY_CUDA_SCATTER_OPERANDS];
};

EDDY_SCALAR place place_of(const eddy_cuda_scatter_dims &of, int64_t number) {
    place found = {};
    EDDY_CUDA_ROLLED
    for (int d = of.rank - 1; d >= 0; d--) {
        /* The outermost dim has what is left, without a division: mostly there is no other one. */
        const int64_t index = d > 0 ? number % of.dims[d] : number;
        number = d > 0 ? number / of.dims[d] : 0;
        for (int k = 0; k < EDDY_CUDA_SCATTER_OPERANDS; k++)
            found.at[k] += index * of.strides[k][d];
    }
    return found;
}

/* Several elements for one place are added in turn; of integers the sum wraps around, of bool it is or. */
struct set {
    template <class type> static EDDY_CUDA_MEMBER type put(type, type x) {
        return x;
    }
};
struct add {
    static EDDY_CUDA_MEMBER float put(float sum, float x) {
        return sum + x;
    }
    static EDDY_CUDA_MEMBER double put(double sum, double x) {
        return sum + x;
    }
    static EDDY_CUDA_MEMBER bool put(bool sum, bool x) {
        return sum || x;
    }
    template <class type> static EDDY_CUDA_MEMBER type put(type sum, type x) {
        return (type)((uint64_t)sum + (uint64_t)x);
    }
};

template <class how, class target, class element>
EDDY_CUDA_MEMBER void put_unit(const eddy_cuda_scatter_call &p, int64_t unit) {
    const int64_t part = unit / p.places, begin = part * p.part, end = begin + p.part;
    const place rest = place_of(p.rest, unit % p.places);
    EDDY_CUDA_ROLLED
    for (int64_t i = 0; i < p.length; i++) {
        place at = place_of(p.along, i);
        for (int k = 0; k < EDDY_CUDA_SCATTER_OPERANDS; k++)
            at.at[k] += rest.at[k];
        const char *index = (const char *)p.index + at.at[EDDY_CUDA_SCATTER_INDEX];
        const int64_t given =
            p.flags & EDDY_CUDA_SCATTER_IS_WIDE ? *(const int64_t *)index : *(const int32_t *)index;
        const int64_t named =
            given < 0 && (p.flags & EDDY_CUDA_SCATTER_FROM_END) ? given + p.bound : given;
        if (named < 0 || named >= p.bound) {
            if (part == 0)
                eddy_cuda_fail(p.gate, EDDY_OUT_OF_RANGE, at.at[EDDY_CUDA_SCATTER_NUMBER], given,
                               p.bound);
            continue;
        }
        if (named < begin || named >= end || named == p.left_out)
            continue;
        typename target::stored *to =
            (typename target::stored *)((char *)p.out + at.at[EDDY_CUDA_SCATTER_OUT] +
                                        named * p.step);
        const typename element::stored *from =
            (const typename element::stored *)((const char *)p.source +
                                               at.at[EDDY_CUDA_SCATTER_SOURCE]);
        *to = target::store(how::put(target::load(*to), element::load(*from)));
    }
}

} // namespace

#define SCATTER(how, target, element)                                                              \
    EDDY_CUDA_KERNEL(eddy_scatter_##how##_##target##_##element, eddy_cuda_scatter_call) {          \
        const eddy_cuda_scatter_call &p = parameters;                                              \
        if (eddy_cuda_is_skipped(p.gate))                                                          \
            return;                                                                                \
        const int64_t step = (int64_t)gridDim.x * blockDim.x;                                      \
        EDDY_CUDA_ROLLED                                                                           \
        for (int64_t unit = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;                        \
             unit < p.places * p.parts; unit += step)                                              \
            put_unit<how, eddy_cuda_##target, eddy_cuda_##element>(p, unit);                       \
    }
EDDY_CUDA_SCATTERS(SCATTER)
