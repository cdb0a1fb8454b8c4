/* Launching a kernel of a CUDA device, from the `run` of an eddy_kernel. The host's side; streams/cuda/ does it. */
#ifndef EDDY_KERNELS_CUDA_LAUNCH_H
#define EDDY_KERNELS_CUDA_LAUNCH_H

#include <base/dtype.h>
#include <kernels/cuda/parameters.h>
#include <kernels/kernel.h>

/* Devices of a process. */
#define EDDY_CUDA_DEVICES 16

/* The kernels of one file, as a fat binary. It is loaded on a device at the first launch of one of them there, and stays. Static storage. */
typedef struct eddy_cuda_image {
    const unsigned char *data; /* const */
    /* atomic: who has loaded it (release), any launching thread (acquire); NULL before */
    _Atomic(void *) modules[EDDY_CUDA_DEVICES];
} eddy_cuda_image;

typedef struct eddy_cuda_function {
    const char *symbol;
    eddy_cuda_image *image;
    _Atomic(void *) *loaded; /* EDDY_CUDA_DEVICES of them; atomic: as of an image */
} eddy_cuda_function;

/* Of kernels that move elements as they are there is one for each width, in this order: 1, 2, 4 and 8 bytes. */
static inline unsigned eddy_cuda_width(eddy_dtype dtype) {
    return (unsigned)__builtin_ctz((unsigned)eddy_dtype_bytes(dtype));
}

/* Threads of a block, of kernels that have no reason for another number. */
#define EDDY_CUDA_BLOCK 256

/* The least power of two from `least` on, `most` at most, which is one. By such numbers threads of a block are spread. */
static inline uint32_t eddy_cuda_power_of_two(int64_t least, uint32_t most) {
    uint32_t power = 1;
    while (power < least && power < most)
        power *= 2;
    return power;
}

/* Launches for the call on its queue. The `bytes` at `parameters` begin with the gate, which is filled in. What fails is the call's failure: OUT_OF_MEMORY, or the
 * device is lost. */
void eddy_cuda_launch(const eddy_kernel_call *call, const eddy_cuda_function *function,
                      void *parameters, size_t bytes, uint32_t blocks);
/* Multiprocessors of the device. */
int64_t eddy_cuda_processors(const eddy_kernel_call *call);
/* Blocks of a grid that goes on until `work` units are done, each block so many at a time: no more than the device works on at once. */
uint32_t eddy_cuda_blocks(const eddy_kernel_call *call, int64_t work, int64_t of_block);

#endif
