/* What the launches of held.h do. `places` is an eddy_cuda_held_places that has, too,
 *
 *     bool holds(int64_t number) const;   of a place
 *
 * All threads of a block come to each of these functions. */
#ifndef EDDY_KERNELS_CUDA_HELD_CUH
#define EDDY_KERNELS_CUDA_HELD_CUH

#include <cub/block/block_scan.cuh>
#include <kernels/cuda/device.cuh>
#include <kernels/cuda/held.h>

struct eddy_cuda_held_places {
    int64_t count;   /* places, in their order */
    int64_t *begins; /* room for a number of each chunk */
};

struct eddy_cuda_held_sums {
    int64_t before, all;
};

/* Of the block's threads: the numbers of those before this one, and of all. */
EDDY_CUDA_MEMBER eddy_cuda_held_sums eddy_cuda_held_sum(int64_t mine) {
    typedef cub::BlockScan<int64_t, EDDY_CUDA_HELD_THREADS, cub::BLOCK_SCAN_WARP_SCANS> scan;
    EDDY_CUDA_SHARED(scan::TempStorage, memory, 1);
    eddy_cuda_held_sums found;
    scan(memory[0]).ExclusiveSum(mine, found.before, found.all);
    __syncthreads();
    return found;
}

/* `begins` becomes how many places of each chunk hold. */
template <class places> EDDY_CUDA_MEMBER void eddy_cuda_held_count(const places &of) {
    EDDY_CUDA_ROLLED
    for (int64_t chunk = blockIdx.x; chunk < eddy_cuda_held_chunks(of.count); chunk += gridDim.x) {
        int64_t mine = 0;
        EDDY_CUDA_UNROLLED
        for (uint32_t i = threadIdx.x; i < EDDY_CUDA_HELD_CHUNK; i += EDDY_CUDA_HELD_THREADS) {
            const int64_t number = chunk * EDDY_CUDA_HELD_CHUNK + i;
            mine += number < of.count && of.holds(number);
        }
        const int64_t all = eddy_cuda_held_sum(mine).all;
        if (threadIdx.x == 0)
            of.begins[chunk] = all;
    }
}

/* One block of threads: `begins` becomes how many hold ahead of each chunk. Returns how many there are. */
template <class places> EDDY_CUDA_MEMBER int64_t eddy_cuda_held_begin(const places &of) {
    const int64_t chunks = eddy_cuda_held_chunks(of.count);
    int64_t before = 0;
    EDDY_CUDA_ROLLED
    for (int64_t first = 0; first < chunks; first += EDDY_CUDA_HELD_THREADS) {
        const int64_t chunk = first + threadIdx.x;
        const bool is_there = chunk < chunks;
        const eddy_cuda_held_sums here = eddy_cuda_held_sum(is_there ? of.begins[chunk] : 0);
        if (is_there)
            of.begins[chunk] = before + here.before;
        before += here.all;
    }
    return before;
}

/* Threads look at places that are EDDY_CUDA_HELD_THREADS apart, and count neighbours. */
template <class places, class work>
EDDY_CUDA_MEMBER void eddy_cuda_held_chunk(const places &of, const work &put, int64_t chunk) {
    const uint32_t each = EDDY_CUDA_HELD_CHUNK / EDDY_CUDA_HELD_THREADS;
    EDDY_CUDA_SHARED(uint8_t, held, EDDY_CUDA_HELD_CHUNK);
    EDDY_CUDA_SHARED(uint16_t, ranks, EDDY_CUDA_HELD_CHUNK);
    const int64_t first = chunk * EDDY_CUDA_HELD_CHUNK, begin = of.begins[chunk];
    EDDY_CUDA_UNROLLED
    for (uint32_t i = threadIdx.x; i < EDDY_CUDA_HELD_CHUNK; i += EDDY_CUDA_HELD_THREADS)
        held[i] = first + i < of.count && of.holds(first + i);
    __syncthreads();
    uint32_t mine = 0;
    for (uint32_t k = 0; k < each; k++)
        mine += held[threadIdx.x * each + k];
    uint32_t rank = (uint32_t)eddy_cuda_held_sum(mine).before;
    for (uint32_t k = 0; k < each; k++) {
        ranks[threadIdx.x * each + k] = (uint16_t)rank;
        rank += held[threadIdx.x * each + k];
    }
    __syncthreads();
    EDDY_CUDA_ROLLED
    for (uint32_t i = threadIdx.x; i < EDDY_CUDA_HELD_CHUNK && first + i < of.count;
         i += EDDY_CUDA_HELD_THREADS)
        put(first + i, held[i] != 0, begin + ranks[i]);
    __syncthreads();
}

/* Calls put(number, is_held, rank) for each place; `rank` is how many hold ahead of it. */
template <class places, class work>
EDDY_CUDA_MEMBER void eddy_cuda_held_each(const places &of, const work &put) {
    EDDY_CUDA_ROLLED
    for (int64_t chunk = blockIdx.x; chunk < eddy_cuda_held_chunks(of.count); chunk += gridDim.x)
        eddy_cuda_held_chunk(of, put, chunk);
}

#endif
