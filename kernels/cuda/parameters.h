/* What kernels of CUDA devices get: one struct each, by value, which begins with the gate. Plain C, for the host, nvcc, NVRTC and the compiler of the tests.
 *
 * Addresses are the device's, but for the gate's `word`, which both see. */
#ifndef EDDY_KERNELS_CUDA_PARAMETERS_H
#define EDDY_KERNELS_CUDA_PARAMETERS_H

#include <base/builtin.h>
#include <kernels/cuda/divisor.h>

/* Rows of the tables of words and of marks; sources of a launch: those of streams/backend.h, which asserts it. */
#define EDDY_CUDA_WORDS 4096
#define EDDY_CUDA_SOURCES 8

/* eddy_kernel_error without the host's atomic types. */
typedef struct eddy_cuda_word {
    int32_t status;
    int64_t position, value, bound, counted;
    uint32_t guard;
} eddy_cuda_word;

/* Whether the launch runs: not if one of its sources has failed or did not run. vm/DEVICES.md 5 says why.
 *
 * `marks[t % EDDY_CUDA_WORDS]` is the last ticket of that row that failed or did not run. A source lies less than half the table behind the launch, so that its row
 * tells it from all others, and no mark is ever cleared. */
typedef struct eddy_cuda_gate {
    uint64_t ticket; /* the launch's own; in a graph how far it stands behind *base */
    /* NULL but in a graph: the ticket of its first launch, this time, which the stream has written to the device's memory. */
    const uint64_t *base;
    uint64_t *marks; /* the device's memory */
    /* The launch's own, in a graph the table of all; pinned memory of the host, written on failure, and by what counts (counted.cuh). */
    eddy_cuda_word *word;
    uint16_t behind[EDDY_CUDA_SOURCES]; /* ticket - the source's; 0 behind the last one */
} eddy_cuda_gate;

/* The gate and nothing behind it. */
typedef struct eddy_cuda_look {
    eddy_cuda_gate gate;
} eddy_cuda_look;

/* Operands of an elementwise op: inputs, then the output. */
#define EDDY_CUDA_ELEMENTWISE_OPERANDS 5
#define EDDY_CUDA_ELEMENTWISE_ATTRIBUTE_BYTES 32
#define EDDY_CUDA_RANK_MAX 16

/* Every operand is contiguous, or one element for all (its bit in `broadcast`). */
typedef struct eddy_cuda_dense {
    eddy_cuda_gate gate;
    void *data[EDDY_CUDA_ELEMENTWISE_OPERANDS];
    int64_t count;
    uint32_t broadcast;  /* bit per input */
    uint32_t is_aligned; /* every contiguous operand begins at a multiple of 16 */
    uint64_t attributes[EDDY_CUDA_ELEMENTWISE_ATTRIBUTE_BYTES / sizeof(uint64_t)];
} eddy_cuda_dense;

/* Operands of any strides, dims outermost first. Fewer than 2^31 elements at once, and fewer threads: the host cuts longer ones at the outermost dim. */
typedef struct eddy_cuda_strided {
    eddy_cuda_gate gate;
    void *data[EDDY_CUDA_ELEMENTWISE_OPERANDS];
    uint32_t count;
    int32_t rank;
    eddy_cuda_divisor dims[EDDY_CUDA_RANK_MAX];
    int64_t strides[EDDY_CUDA_ELEMENTWISE_OPERANDS][EDDY_CUDA_RANK_MAX]; /* in bytes */
    uint64_t attributes[EDDY_CUDA_ELEMENTWISE_ATTRIBUTE_BYTES / sizeof(uint64_t)];
} eddy_cuda_strided;

/* The same of a kernel that is made of several ops (fusion.cuh): inputs, then outputs. Its operands have one shape. */
#define EDDY_CUDA_FUSION_OPERANDS 16
#define EDDY_CUDA_FUSION_WORDS 96 /* of the attributes of all its ops */

typedef struct eddy_cuda_fusion_dense {
    eddy_cuda_gate gate;
    void *data[EDDY_CUDA_FUSION_OPERANDS];
    int64_t count;
    uint32_t broadcast;
    uint32_t is_aligned;
    uint64_t attributes[EDDY_CUDA_FUSION_WORDS];
} eddy_cuda_fusion_dense;

typedef struct eddy_cuda_fusion_strided {
    eddy_cuda_gate gate;
    void *data[EDDY_CUDA_FUSION_OPERANDS];
    uint32_t count;
    int32_t rank;
    eddy_cuda_divisor dims[EDDY_CUDA_RANK_MAX];
    int64_t strides[EDDY_CUDA_FUSION_OPERANDS][EDDY_CUDA_RANK_MAX];
    uint64_t attributes[EDDY_CUDA_FUSION_WORDS];
} eddy_cuda_fusion_strided;

#endif
