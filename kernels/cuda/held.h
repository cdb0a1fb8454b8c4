/* Places that hold, in their order: how many there are, and which number each has among them (held.cuh). Plain C.
 *
 * In three launches: blocks of threads count the places of each chunk, one block makes of the counts how many there are ahead of each chunk, and each chunk numbers its own. */
#ifndef EDDY_KERNELS_CUDA_HELD_H
#define EDDY_KERNELS_CUDA_HELD_H

#include <kernels/cuda/parameters.h>

#define EDDY_CUDA_HELD_THREADS 256
/* Places of a chunk, which a block of threads works on at once. */
#define EDDY_CUDA_HELD_CHUNK 2048

EDDY_SCALAR int64_t eddy_cuda_held_chunks(int64_t count) {
    return (count + EDDY_CUDA_HELD_CHUNK - 1) / EDDY_CUDA_HELD_CHUNK;
}

#endif
