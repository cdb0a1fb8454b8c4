/* randperm: drawing and linking, then following. */
#include <kernels/cuda/device.cuh>
#include <kernels/cuda/randperm.h>
#include <kernels/random.h>

/* The order within a list depends on the order of the threads; nobody asks for it. */
EDDY_CUDA_KERNEL(eddy_randperm_link, eddy_cuda_shuffle) {
    const eddy_cuda_shuffle &p = parameters;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    EDDY_CUDA_ROLLED
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.count; i += step) {
        uint32_t words[4];
        eddy_philox(p.seed, p.counter, (uint64_t)i, words);
        const int64_t place =
            (int64_t)eddy_random_below(p.seed, p.counter, (uint64_t)i + 1, (uint64_t)i, words);
        p.drawn[i] = place;
        p.links[i] =
            (int64_t)atomicExch((unsigned long long *)&p.heads[place], (unsigned long long)i);
    }
}

/* The last exchange ahead of that of `time` that put something into the place; -1: none. They run down. */
EDDY_SCALAR int64_t last_into(const eddy_cuda_shuffle &p, int64_t place, int64_t time) {
    int64_t least = -1;
    EDDY_CUDA_ROLLED
    for (int64_t k = p.heads[place]; k >= 0; k = p.links[k])
        if (k > time && (least < 0 || k < least))
            least = k;
    return least;
}

/* Element 0 is what its place holds after all exchanges: as if it was exchanged with itself. */
#define FOLLOW(bits)                                                                               \
    EDDY_CUDA_KERNEL(eddy_randperm_follow_##bits, eddy_cuda_shuffle) {                             \
        const eddy_cuda_shuffle &p = parameters;                                                   \
        if (eddy_cuda_is_skipped(p.gate))                                                          \
            return;                                                                                \
        const int64_t step = (int64_t)gridDim.x * blockDim.x;                                      \
        EDDY_CUDA_ROLLED                                                                           \
        for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.count; i += step) { \
            int64_t place = p.drawn[i], time = i;                                                  \
            EDDY_CUDA_ROLLED                                                                       \
            for (int64_t k; (k = last_into(p, place, time)) >= 0;)                                 \
                place = time = k;                                                                  \
            *(int##bits##_t *)((char *)p.out + i * p.stride) = (int##bits##_t)place;               \
        }                                                                                          \
    }
EDDY_CUDA_RANDPERM_FOLLOWS(FOLLOW)
