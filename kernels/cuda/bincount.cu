/* bincount. */
#include <kernels/cuda/bincount.h>
#include <kernels/cuda/counted.cuh>
#include <kernels/cuda/fail.cuh>
#include <kernels/cuda/sort.cuh>

#define CHUNK EDDY_CUDA_BINCOUNT_CHUNK
#define THREADS EDDY_CUDA_BINCOUNT_THREADS

namespace {

typedef eddy_cuda_bincount_call parameters_type;
typedef unsigned long long word; /* what atomicAdd takes */

EDDY_SCALAR int64_t number_at(const parameters_type &p, int64_t i) {
    const uint64_t bits = eddy_cuda_bits((const char *)p.in + i * p.step, p.element_bytes);
    const int unused = 64 - 8 * p.element_bytes;
    return p.is_signed ? (int64_t)(bits << unused) >> unused : (int64_t)bits;
}

EDDY_SCALAR word *count_of(const parameters_type &p, int64_t number) {
    return (word *)((char *)p.out + number * p.out_step);
}

EDDY_SCALAR int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* The largest that a thread of the block has. */
EDDY_CUDA_MEMBER int64_t largest_of_block(int64_t mine) {
    EDDY_CUDA_SHARED(int64_t, largest, THREADS);
    largest[threadIdx.x] = mine;
    __syncthreads();
    EDDY_CUDA_ROLLED
    for (uint32_t apart = THREADS / 2; apart > 0; apart /= 2) {
        if (threadIdx.x < apart)
            largest[threadIdx.x] = larger(largest[threadIdx.x], largest[threadIdx.x + apart]);
        __syncthreads();
    }
    const int64_t found = largest[0];
    __syncthreads();
    return found;
}

/* One more than the number, which is tested; 0 if it is out of range. As on the CPU the last number has no place: one more is none. */
EDDY_SCALAR int64_t length_for(const parameters_type &p, int64_t i) {
    const int64_t number = number_at(p, i);
    if (number >= 0 && number < INT64_MAX)
        return number + 1;
    eddy_cuda_fail(p.gate, EDDY_OUT_OF_RANGE, i, number, INT64_MAX);
    return 0;
}

EDDY_SCALAR int64_t chunks_of(const parameters_type &p) {
    return (p.count + CHUNK - 1) / CHUNK;
}

/* The number of a record: of a signed one the key is offset, so that the least one has 0. */
template <class records>
EDDY_CUDA_MEMBER int64_t number_of(const parameters_type &p, typename records::record of) {
    const uint64_t least = p.is_signed ? UINT64_C(1) << (8 * p.element_bytes - 1) : 0;
    return (int64_t)(records::key(of) - least);
}

/* How many records have a smaller number. */
template <class records>
EDDY_CUDA_MEMBER int64_t below(const parameters_type &p, const typename records::record *sorted,
                               int64_t number) {
    int64_t least = 0, most = p.count;
    EDDY_CUDA_ROLLED
    while (least < most) {
        const int64_t middle = least + (most - least) / 2;
        if (number_of<records>(p, sorted[middle]) < number)
            least = middle + 1;
        else
            most = middle;
    }
    return least;
}

template <class records, class real>
EDDY_CUDA_MEMBER void sum_number(const parameters_type &p, int64_t number) {
    const typename records::record *sorted = (const typename records::record *)p.records;
    real total = 0;
    EDDY_CUDA_ROLLED
    for (int64_t i = below<records>(p, sorted, number);
         i < p.count && number_of<records>(p, sorted[i]) == number; i++)
        total +=
            *(const real *)((const char *)p.weights + records::index(sorted[i]) * p.weight_step);
    *(real *)((char *)p.out + number * p.out_step) = total;
}

} // namespace

EDDY_CUDA_BLOCK_KERNEL(eddy_bincount_most, eddy_cuda_bincount_call) {
    const parameters_type &p = parameters;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    EDDY_CUDA_ROLLED
    for (int64_t chunk = blockIdx.x; chunk < chunks_of(p); chunk += gridDim.x) {
        int64_t mine = 0;
        EDDY_CUDA_ROLLED
        for (int64_t i = chunk * CHUNK + threadIdx.x; i < (chunk + 1) * CHUNK && i < p.count;
             i += THREADS)
            mine = larger(mine, length_for(p, i));
        const int64_t most = largest_of_block(mine);
        if (threadIdx.x == 0)
            p.most[chunk] = most;
    }
}

/* One block of threads. */
EDDY_CUDA_BLOCK_KERNEL(eddy_bincount_length, eddy_cuda_bincount_call) {
    const parameters_type &p = parameters;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    int64_t mine = 0;
    EDDY_CUDA_ROLLED
    for (int64_t chunk = threadIdx.x; chunk < chunks_of(p); chunk += THREADS)
        mine = larger(mine, p.most[chunk]);
    const int64_t most = largest_of_block(mine);
    if (threadIdx.x == 0)
        eddy_cuda_say_counted(p.gate, most);
}

EDDY_CUDA_BLOCK_KERNEL(eddy_bincount_few, eddy_cuda_bincount_call) {
    const parameters_type &p = parameters;
    EDDY_CUDA_SHARED(word, counts, EDDY_CUDA_BINCOUNT_FEW);
    if (eddy_cuda_is_skipped(p.gate))
        return;
    EDDY_CUDA_ROLLED
    for (int64_t number = threadIdx.x; number < p.length; number += THREADS)
        counts[number] = 0;
    __syncthreads();
    const int64_t step = (int64_t)gridDim.x * THREADS;
    EDDY_CUDA_ROLLED
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < p.count; i += step)
        atomicAdd(&counts[number_at(p, i)], (word)1);
    __syncthreads();
    EDDY_CUDA_ROLLED
    for (int64_t number = threadIdx.x; number < p.length; number += THREADS)
        if (counts[number] != 0)
            atomicAdd(count_of(p, number), counts[number]);
}

EDDY_CUDA_KERNEL(eddy_bincount_many, eddy_cuda_bincount_call) {
    const parameters_type &p = parameters;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    EDDY_CUDA_ROLLED
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.count; i += step)
        atomicAdd(count_of(p, number_at(p, i)), (word)1);
}

#define SUM(width, name, type)                                                                     \
    EDDY_CUDA_KERNEL(eddy_bincount_sum_##width##_##name, eddy_cuda_bincount_call) {                \
        if (eddy_cuda_is_skipped(parameters.gate))                                                 \
            return;                                                                                \
        const int64_t step = (int64_t)gridDim.x * blockDim.x;                                      \
        EDDY_CUDA_ROLLED                                                                           \
        for (int64_t number = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;                      \
             number < parameters.length; number += step)                                           \
            sum_number<eddy_cuda_records_##width, type>(parameters, number);                       \
    }
EDDY_CUDA_BINCOUNT_SUMS(SUM)
