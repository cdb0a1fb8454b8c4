/* CUDA's language on the host, as far as the kernels use it: the compiler of the tests includes it before each .cu file. A kernel is then a
 * function, which eddy_grid_run runs for each thread of a grid. */
#ifndef EDDY_TESTS_FAKE_CUDA_KERNELS_GRID_H
#define EDDY_TESTS_FAKE_CUDA_KERNELS_GRID_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void eddy_grid_kernel(const void *parameters);

/* Runs a kernel for all threads of a grid, block by block, on the calling thread; several threads may do so at once. Ends the process if
 * threads of a block wait for each other at different places. */
void eddy_grid_run(eddy_grid_kernel *kernel, const void *parameters, const unsigned grid[3],
                   const unsigned block[3], unsigned shared_bytes);

#ifdef __cplusplus
}
#include <string.h>
#include <vector_types.h>

struct eddy_grid_index {
    unsigned x, y, z;
};
/* Of the kernel's thread that this thread runs. */
extern __thread eddy_grid_index threadIdx __attribute__((tls_model("initial-exec"))),
    blockIdx __attribute__((tls_model("initial-exec"))),
    blockDim __attribute__((tls_model("initial-exec"))),
    gridDim __attribute__((tls_model("initial-exec")));

/* ---- kernels: each is exported, and so are the bytes of its parameters ---- */

/* Its threads do not meet: they run one after another. */
#define EDDY_CUDA_KERNEL(name, type)                                                               \
    static void name##_body(const type &parameters);                                               \
    extern "C" {                                                                                   \
    extern const unsigned name##_bytes;                                                            \
    const unsigned name##_bytes = sizeof(type);                                                    \
    void name(const void *parameters) {                                                            \
        name##_body(*(const type *)parameters);                                                    \
    }                                                                                              \
    }                                                                                              \
    static void name##_body(const type &parameters)

/* A kernel whose threads meet is in a list. */
struct eddy_grid_meets {
    eddy_grid_kernel *kernel;
    const eddy_grid_meets *next;
    explicit eddy_grid_meets(eddy_grid_kernel *of);
};
#define EDDY_CUDA_BLOCK_KERNEL(name, type)                                                         \
    extern "C" void name(const void *parameters);                                                  \
    static const eddy_grid_meets name##_meets(name);                                               \
    EDDY_CUDA_KERNEL(name, type)

/* Exported: bytes of an element of each operand, inputs first, by which the fake driver knows what a kernel touches. */
template <class op, class output, class... inputs> struct eddy_grid_elements {
    unsigned char bytes[sizeof...(inputs) + 1] = {sizeof(typename inputs::stored)...,
                                                  sizeof(typename output::stored)};
};
#define EDDY_CUDA_NOTE_ELEMENTS(name, ...)                                                         \
    extern "C" {                                                                                   \
    extern const eddy_grid_elements<__VA_ARGS__> name##_element_bytes;                             \
    const eddy_grid_elements<__VA_ARGS__> name##_element_bytes;                                    \
    }

/* ---- memory that several threads change. Those of a device run on one thread here; the host looks on. ---- */

inline unsigned atomicCAS_system(unsigned *at, unsigned expected, unsigned value) {
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}
inline unsigned long long atomicAdd(unsigned long long *at, unsigned long long value) {
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
inline unsigned long long atomicExch(unsigned long long *at, unsigned long long value) {
    return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);
}
inline unsigned atomicExch_system(unsigned *at, unsigned value) {
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);
}
inline void __threadfence_system() {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#define EDDY_CUDA_MEMBER inline
#define EDDY_CUDA_ROLLED
#define EDDY_CUDA_UNROLLED

/* ---- threads of a block that meet ---- */

/* A host thread runs one block at a time. */
#define EDDY_CUDA_SHARED(type, name, count) static thread_local type name[count]
#define EDDY_CUDA_SHARED_OF_LAUNCH(type, name) type *const name = (type *)eddy_grid_shared()

void __syncthreads();
void __syncwarp();
/* What the launch asked for, rounded up, and how many bytes. */
void *eddy_grid_shared();
size_t eddy_grid_shared_bytes();
/* When something happens: between which meetings of all threads of a block, and between which of its warp's. What a block does is later than what those before it did, and so are launches. */
struct eddy_grid_moment {
    uint64_t epoch, block_epoch, launch_epoch; /* now, and when the block and the launch began */
    unsigned thread, warp_epoch;
};
eddy_grid_moment eddy_grid_now();
unsigned eddy_grid_lane();
/* Gives a value to the threads of the warp, and returns that of a lane, or its own if there is no such lane. */
uint64_t eddy_grid_exchange(uint64_t mine, unsigned lane);

/* All lanes take part that have not ended, whatever the mask. */
template <class value> value __shfl_sync(unsigned, value mine, unsigned lane) {
    uint64_t bits = 0;
    memcpy(&bits, &mine, sizeof(mine));
    bits = eddy_grid_exchange(bits, lane);
    memcpy(&mine, &bits, sizeof(mine));
    return mine;
}
template <class value> value __shfl_down_sync(unsigned mask, value mine, unsigned delta) {
    return __shfl_sync(mask, mine, eddy_grid_lane() + delta);
}
template <class value> value __shfl_xor_sync(unsigned mask, value mine, unsigned bits) {
    return __shfl_sync(mask, mine, eddy_grid_lane() ^ bits);
}
/* The lanes that have the same value. */
template <class value> unsigned __match_any_sync(unsigned mask, value mine) {
    unsigned same = 0;
    for (unsigned lane = 0; lane < 32; lane++)
        same |= (unsigned)(__shfl_sync(mask, mine, lane) == mine) << lane;
    return same;
}

#include <tests/fake_cuda/kernels/reduce_touches.h>

#endif
#endif
