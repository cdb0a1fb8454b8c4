/* What oneDNN prepares and runs while memory lacks: a call that it serves fails, and the next one gives the same bits as ever. */
#ifndef EDDY_TESTS_KERNELS_FAULTS_H
#define EDDY_TESTS_KERNELS_FAULTS_H

#include "tensor.h"
#include <kernels/kernel.h>

#define FAULTED_TENSORS_MAX 9

/* A call that oneDNN serves; its results are the last tensor. */
typedef struct faulted {
    const eddy_kernel *kernel;
    tensor *tensors[FAULTED_TENSORS_MAX];
    int32_t count;
    const void *attributes;
    int32_t
        kinds; /* of slices: primitives of its own each; 0 where products alone are the library's */
} faulted;

/* Planning, with every request for memory refused in turn, ours and the library's; code that the library has not; running without
 * memory. Needs a process in which nothing else runs. */
void faults_check(const faulted *call);

/* Running, with every product that the library makes refused in turn for lack of memory. */
void faults_check_products(const faulted *call);

/* A system that lets nobody make code: that product, counted from now, fails. */
void faults_refuse_product(int64_t number);

#endif
