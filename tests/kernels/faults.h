/* What oneDNN prepares and runs while memory lacks: a call that it serves fails, and the next one gives the same bits as ever. */
#ifndef EDDY_TESTS_KERNELS_FAULTS_H
#define EDDY_TESTS_KERNELS_FAULTS_H

#include "tensor.h"
#include <kernels/kernel.h>

/* A call that oneDNN serves; its results are the last tensor. */
typedef struct faulted {
    const eddy_kernel *kernel;
    tensor *tensors[4];
    int32_t count;
    const void *attributes;
    int32_t kinds; /* of slices: primitives of its own each */
} faulted;

/* Planning, with every request for memory refused in turn, ours and the library's; code that the library has not; running without
 * memory. Needs a process in which nothing else runs. */
void faults_check(const faulted *call);

#endif
