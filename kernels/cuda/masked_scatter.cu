/* masked_scatter: which element of the source a place gets follows from how many before it do. */
#include <kernels/cuda/fail.cuh>
#include <kernels/cuda/masked_scatter.h>

#define CHUNK EDDY_CUDA_MASKED_SCATTER_CHUNK
#define THREADS EDDY_CUDA_MASKED_SCATTER_THREADS
/* Neighbours that a thread counts. */
#define EACH (CHUNK / THREADS)

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

/* Behind the last place it does not. */
EDDY_SCALAR bool holds(const parameters_type &p, int64_t number) {
    return number < p.count &&
           ((const uint8_t *)p.mask)[operand_at(p, EDDY_CUDA_MASKED_SCATTER_MASK, number)] != 0;
}

EDDY_SCALAR int64_t chunks_of(const parameters_type &p) {
    return (p.count + CHUNK - 1) / CHUNK;
}

struct sums {
    int64_t before, all;
};

/* Of the block's threads: the numbers of those before this one, and of all. W. Hillis and G. Steele, "Data parallel algorithms" (1986). */
EDDY_CUDA_MEMBER sums sum_block(int64_t mine) {
    EDDY_CUDA_SHARED(int64_t, up_to, THREADS);
    up_to[threadIdx.x] = mine;
    __syncthreads();
    EDDY_CUDA_ROLLED
    for (uint32_t apart = 1; apart < THREADS; apart *= 2) {
        const int64_t other = threadIdx.x >= apart ? up_to[threadIdx.x - apart] : 0;
        __syncthreads();
        up_to[threadIdx.x] += other;
        __syncthreads();
    }
    const sums found = {up_to[threadIdx.x] - mine, up_to[THREADS - 1]};
    __syncthreads();
    return found;
}

template <class element>
EDDY_CUDA_MEMBER void put(const parameters_type &p, int64_t number, bool is_held, int64_t from) {
    if (is_held && from >= p.source_count)
        return;
    const char *at = is_held
                         ? (const char *)p.source +
                               offset_of(p.source_rank, p.source_dims, p.source_strides, from)
                         : (const char *)p.in + operand_at(p, EDDY_CUDA_MASKED_SCATTER_IN, number);
    *(element *)((char *)p.out + operand_at(p, EDDY_CUDA_MASKED_SCATTER_OUT, number)) =
        *(const element *)at;
}

/* Threads read and write places that are THREADS apart, and count neighbours. */
template <class element>
EDDY_CUDA_MEMBER void scatter_chunk(const parameters_type &p, int64_t chunk) {
    EDDY_CUDA_SHARED(uint8_t, held, CHUNK);
    EDDY_CUDA_SHARED(uint16_t, ranks, CHUNK);
    const int64_t first = chunk * CHUNK, begin = p.begins[chunk];
    EDDY_CUDA_UNROLLED
    for (uint32_t i = threadIdx.x; i < CHUNK; i += THREADS)
        held[i] = holds(p, first + i);
    __syncthreads();
    uint32_t mine = 0;
    for (uint32_t k = 0; k < EACH; k++)
        mine += held[threadIdx.x * EACH + k];
    uint32_t rank = (uint32_t)sum_block(mine).before;
    for (uint32_t k = 0; k < EACH; k++) {
        ranks[threadIdx.x * EACH + k] = (uint16_t)rank;
        rank += held[threadIdx.x * EACH + k];
    }
    __syncthreads();
    EDDY_CUDA_ROLLED
    for (uint32_t i = threadIdx.x; i < CHUNK && first + i < p.count; i += THREADS)
        put<element>(p, first + i, held[i], begin + ranks[i]);
    __syncthreads();
}

typedef uint8_t element_8;
typedef uint16_t element_16;
typedef uint32_t element_32;
typedef uint64_t element_64;

} // namespace

EDDY_CUDA_BLOCK_KERNEL(eddy_held_count, eddy_cuda_masked_scatter_call) {
    const parameters_type &p = parameters;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    EDDY_CUDA_ROLLED
    for (int64_t chunk = blockIdx.x; chunk < chunks_of(p); chunk += gridDim.x) {
        int64_t mine = 0;
        EDDY_CUDA_UNROLLED
        for (uint32_t i = threadIdx.x; i < CHUNK; i += THREADS)
            mine += holds(p, chunk * CHUNK + i);
        const int64_t all = sum_block(mine).all;
        if (threadIdx.x == 0)
            p.begins[chunk] = all;
    }
}

/* One block of threads. It says too if the source has too few elements. */
EDDY_CUDA_BLOCK_KERNEL(eddy_held_begin, eddy_cuda_masked_scatter_call) {
    const parameters_type &p = parameters;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    int64_t before = 0;
    EDDY_CUDA_ROLLED
    for (int64_t first = 0; first < chunks_of(p); first += THREADS) {
        const int64_t chunk = first + threadIdx.x;
        const bool is_there = chunk < chunks_of(p);
        const sums here = sum_block(is_there ? p.begins[chunk] : 0);
        if (is_there)
            p.begins[chunk] = before + here.before;
        before += here.all;
    }
    if (threadIdx.x == 0 && before > p.source_count)
        eddy_cuda_fail(p.gate, EDDY_OUT_OF_RANGE, p.source_count, p.source_count, p.source_count);
}

#define SCATTER(bits)                                                                              \
    EDDY_CUDA_BLOCK_KERNEL(eddy_masked_scatter_##bits, eddy_cuda_masked_scatter_call) {            \
        const parameters_type &p = parameters;                                                     \
        if (eddy_cuda_is_skipped(p.gate))                                                          \
            return;                                                                                \
        EDDY_CUDA_ROLLED                                                                           \
        for (int64_t chunk = blockIdx.x; chunk < chunks_of(p); chunk += gridDim.x)                 \
            scatter_chunk<element_##bits>(p, chunk);                                               \
    }
EDDY_CUDA_MASKED_SCATTERS(SCATTER)
