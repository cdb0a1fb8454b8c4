/* repeat and roll: elements that begin again at the end of an axis. */
#include <kernels/cuda/device.cuh>
#include <kernels/cuda/repeat.h>

namespace {

/* `number`: for numbers of elements and places. */
template <class element, class number>
EDDY_CUDA_MEMBER void repeat_all(const eddy_cuda_repetition &p) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    EDDY_CUDA_ROLLED
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < p.count; at += step) {
        number left = (number)at;
        number source = (number)(at < p.count - p.turn ? at + p.turn : at + p.turn - p.count);
        int64_t to = 0, from = 0;
        EDDY_CUDA_ROLLED
        for (int d = p.rank - 1; d >= 0; d--) {
            const number dim = (number)p.dims[d];
            const number index = left % dim, in_index = source % dim;
            left /= dim;
            source /= dim;
            to += (int64_t)index * p.strides[d];
            from += (int64_t)((in_index + (number)p.shifts[d]) % (number)p.in_dims[d]) *
                    p.in_strides[d];
        }
        *(element *)((char *)p.out + to) = *(const element *)((const char *)p.in + from);
    }
}

/* 32 bits do for an index and a shift together, and are divided several times as fast. */
template <class element> EDDY_CUDA_MEMBER void repeat(const eddy_cuda_repetition &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    if (p.count <= INT32_MAX)
        repeat_all<element, uint32_t>(p);
    else
        repeat_all<element, uint64_t>(p);
}

} // namespace

#define REPEAT(bits)                                                                               \
    EDDY_CUDA_KERNEL(eddy_repeat_##bits, eddy_cuda_repetition) {                                   \
        repeat<uint##bits##_t>(parameters);                                                        \
    }
EDDY_CUDA_REPEATS(REPEAT)
