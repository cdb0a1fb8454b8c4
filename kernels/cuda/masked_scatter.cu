/* masked_scatter: which element of the source a place gets follows from how many before it do. */
#include <kernels/cuda/fail.cuh>
#include <kernels/cuda/held.cuh>
#include <kernels/cuda/masked_scatter.h>

namespace {

typedef eddy_cuda_masked_scatter_call parameters_type;

EDDY_SCALAR int64_t offset_of(int32_t rank, const int64_t *dims, const int64_t *strides,
                              int64_t number) {
    int64_t offset = 0;
    EDDY_CUDA_ROLLED
    for (int d = rank - 1; d > 0; d--) {
        offset += number % dims[d] * strides[d];
        number /= dims[d];
    }
    return rank > 0 ? offset + number * strides[0] : 0;
}

EDDY_SCALAR int64_t operand_at(const parameters_type &p, int operand, int64_t number) {
    return offset_of(p.rank, p.dims, p.strides[operand], number);
}

struct masked : eddy_cuda_held_places {
    const parameters_type &p;

    explicit EDDY_CUDA_MEMBER masked(const parameters_type &of)
        : eddy_cuda_held_places{of.count, of.begins}, p(of) {
    }
    EDDY_CUDA_MEMBER bool holds(int64_t number) const {
        return ((const uint8_t *)p.mask)[operand_at(p, EDDY_CUDA_MASKED_SCATTER_MASK, number)] != 0;
    }
};

template <class element> struct put {
    const parameters_type &p;

    EDDY_CUDA_MEMBER void operator()(int64_t number, bool is_held, int64_t from) const {
        if (is_held && from >= p.source_count)
            return;
        const char *at =
            is_held ? (const char *)p.source +
                          offset_of(p.source_rank, p.source_dims, p.source_strides, from)
                    : (const char *)p.in + operand_at(p, EDDY_CUDA_MASKED_SCATTER_IN, number);
        *(element *)((char *)p.out + operand_at(p, EDDY_CUDA_MASKED_SCATTER_OUT, number)) =
            *(const element *)at;
    }
};

typedef uint8_t element_8;
typedef uint16_t element_16;
typedef uint32_t element_32;
typedef uint64_t element_64;

} // namespace

EDDY_CUDA_BLOCK_KERNEL(eddy_masked_scatter_count, eddy_cuda_masked_scatter_call) {
    if (eddy_cuda_is_skipped(parameters.gate))
        return;
    eddy_cuda_held_count(masked(parameters));
}

/* One block of threads. It says too if the source has too few elements. */
EDDY_CUDA_BLOCK_KERNEL(eddy_masked_scatter_begin, eddy_cuda_masked_scatter_call) {
    const parameters_type &p = parameters;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t all = eddy_cuda_held_begin(masked(p));
    if (threadIdx.x == 0 && all > p.source_count)
        eddy_cuda_fail(p.gate, EDDY_OUT_OF_RANGE, p.source_count, p.source_count, p.source_count);
}

#define SCATTER(bits)                                                                              \
    EDDY_CUDA_BLOCK_KERNEL(eddy_masked_scatter_##bits, eddy_cuda_masked_scatter_call) {            \
        if (eddy_cuda_is_skipped(parameters.gate))                                                 \
            return;                                                                                \
        eddy_cuda_held_each(masked(parameters), put<element_##bits>{parameters});                  \
    }
EDDY_CUDA_MASKED_SCATTERS(SCATTER)
