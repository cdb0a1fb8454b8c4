/* unique. */
#include <kernels/cuda/counted.cuh>
#include <kernels/cuda/dims.cuh>
#include <kernels/cuda/held.cuh>
#include <kernels/cuda/sort.cuh>
#include <kernels/cuda/unique.h>

namespace {

/* The first records of values. */
template <class records> struct values_of : eddy_cuda_held_places {
    const eddy_cuda_unique_call &p;
    const typename records::record *sorted;
    uint64_t nan_key;

    explicit EDDY_CUDA_MEMBER values_of(const eddy_cuda_unique_call &of)
        : eddy_cuda_held_places{of.count, of.begins}, p(of),
          sorted((const typename records::record *)of.records),
          nan_key(UINT64_MAX >> (64 - 8 * of.element_bytes)) {
    }
    EDDY_CUDA_MEMBER bool holds(int64_t number) const {
        const uint64_t key = records::key(sorted[number]);
        return number == 0 || key != records::key(sorted[number - 1]) ||
               (p.has_nan && key == nan_key);
    }
};

/* A value has the bits of its first element. */
template <class records> struct put_value {
    const eddy_cuda_unique_call &p;

    EDDY_CUDA_MEMBER void operator()(int64_t number, bool is_first, int64_t ahead) const {
        const int64_t value = is_first ? ahead : ahead - 1,
                      index = records::index(((const typename records::record *)p.records)[number]);
        if (p.inverse)
            *(int64_t *)((char *)p.inverse + eddy_cuda_offset(p.places, 0, index)) = value;
        if (!is_first)
            return;
        eddy_cuda_bits_put((char *)p.values + value * p.value_step, p.element_bytes,
                           eddy_cuda_bits((const char *)p.in + index * p.step, p.element_bytes));
        if (p.counts)
            p.firsts[value] = number;
    }
};

} // namespace

#define COUNT(width)                                                                               \
    EDDY_CUDA_BLOCK_KERNEL(eddy_unique_count_##width, eddy_cuda_unique_call) {                     \
        if (eddy_cuda_is_skipped(parameters.gate))                                                 \
            return;                                                                                \
        eddy_cuda_held_count(values_of<eddy_cuda_records_##width>(parameters));                    \
    }
EDDY_CUDA_SORT_WIDTHS(COUNT)

/* One block of threads. */
#define BEGIN(width)                                                                               \
    EDDY_CUDA_BLOCK_KERNEL(eddy_unique_begin_##width, eddy_cuda_unique_call) {                     \
        if (eddy_cuda_is_skipped(parameters.gate))                                                 \
            return;                                                                                \
        const int64_t all =                                                                        \
            eddy_cuda_held_begin(values_of<eddy_cuda_records_##width>(parameters));                \
        if (threadIdx.x == 0)                                                                      \
            eddy_cuda_say_counted(parameters.gate, all);                                           \
    }
EDDY_CUDA_SORT_WIDTHS(BEGIN)

#define PUT(width)                                                                                 \
    EDDY_CUDA_BLOCK_KERNEL(eddy_unique_put_##width, eddy_cuda_unique_call) {                       \
        if (eddy_cuda_is_skipped(parameters.gate))                                                 \
            return;                                                                                \
        eddy_cuda_held_each(values_of<eddy_cuda_records_##width>(parameters),                      \
                            put_value<eddy_cuda_records_##width>{parameters});                     \
    }
EDDY_CUDA_SORT_WIDTHS(PUT)

EDDY_CUDA_KERNEL(eddy_unique_lengths, eddy_cuda_unique_call) {
    const eddy_cuda_unique_call &p = parameters;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    EDDY_CUDA_ROLLED
    for (int64_t value = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; value < p.found;
         value += step) {
        const int64_t end = value + 1 < p.found ? p.firsts[value + 1] : p.count;
        *(int64_t *)((char *)p.counts + value * p.count_step) = end - p.firsts[value];
    }
}
