/* What every kernel of CUDA devices begins with: its declaration and the gate.
 *
 * Who compiles the same text for the host includes the definitions of kernels and of the grid before (tests/fake_cuda/kernels/grid.h). */
#ifndef EDDY_KERNELS_CUDA_DEVICE_CUH
#define EDDY_KERNELS_CUDA_DEVICE_CUH

#include <eddy/status.h>
#include <kernels/cuda/parameters.h>

/* EDDY_CUDA_KERNEL(name, type) { ... } is a kernel, which reads `parameters`, a struct of that type. */
#ifdef __CUDACC__
#define EDDY_CUDA_KERNEL(name, type)                                                               \
    extern "C" __global__ void name(const __grid_constant__ type parameters)
/* The same, if the threads of a block meet (__syncthreads, shuffles). */
#define EDDY_CUDA_BLOCK_KERNEL(name, type) EDDY_CUDA_KERNEL(name, type)
/* Memory of a block: an array, and what the launch asks for beyond all arrays. */
#define EDDY_CUDA_SHARED(type, name, count) __shared__ type name[count]
#define EDDY_CUDA_SHARED_OF_LAUNCH(type, name)                                                     \
    extern __shared__ uint4 eddy_cuda_shared[];                                                    \
    type *const name = (type *)eddy_cuda_shared
/* Functions of structs; others are EDDY_SCALAR. */
#define EDDY_CUDA_MEMBER __device__ __forceinline__
/* Before a loop that is not to be unrolled: for hundreds of kernels that would be half of the code. */
#define EDDY_CUDA_ROLLED _Pragma("unroll 1")
/* Before a loop whose loads are to be on their way together. */
#define EDDY_CUDA_UNROLLED _Pragma("unroll 8")
#endif

EDDY_SCALAR uint64_t eddy_cuda_ticket(const eddy_cuda_gate &gate) {
    return gate.base ? *gate.base + gate.ticket : gate.ticket;
}

EDDY_SCALAR eddy_cuda_word *eddy_cuda_word_of(const eddy_cuda_gate &gate) {
    return gate.base ? &gate.word[eddy_cuda_ticket(gate) % EDDY_CUDA_WORDS] : gate.word;
}

/* Whether the launch is to do nothing, since a source has failed or did nothing. One thread says so then, to the host and to later
 * launches. It is the first thing that a kernel asks, in each of its threads. */
EDDY_SCALAR bool eddy_cuda_is_skipped(const eddy_cuda_gate &gate) {
    /* What has no sources asks for nothing. */
    const uint64_t ticket = gate.behind[0] != 0 ? eddy_cuda_ticket(gate) : 0;
    bool is_skipped = false;
    EDDY_CUDA_ROLLED
    for (int k = 0; k < EDDY_CUDA_SOURCES && gate.behind[k] != 0; k++) {
        const uint64_t source = ticket - gate.behind[k];
        is_skipped |= gate.marks[source % EDDY_CUDA_WORDS] == source;
    }
    const bool is_first =
        (threadIdx.x | threadIdx.y | threadIdx.z | blockIdx.x | blockIdx.y | blockIdx.z) == 0;
    if (is_skipped && is_first) {
        eddy_cuda_word_of(gate)->status = EDDY_SKIPPED;
        gate.marks[ticket % EDDY_CUDA_WORDS] = ticket;
    }
    return is_skipped;
}

#endif
