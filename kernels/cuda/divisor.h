/* Division by the dims of a shape, without a division: W. Granlund and P. Montgomery, "Division by invariant integers using multiplication"
 * (PLDI 1994). */
#ifndef EDDY_KERNELS_CUDA_DIVISOR_H
#define EDDY_KERNELS_CUDA_DIVISOR_H

#include <base/builtin.h>

/* n / divisor = (mulhi(n, multiplier) + n) >> shift, for n and divisor below 2^31. */
typedef struct eddy_cuda_divisor {
    uint32_t divisor, multiplier, shift;
} eddy_cuda_divisor;

EDDY_SCALAR uint32_t eddy_cuda_quotient(uint32_t n, eddy_cuda_divisor by) {
    return ((uint32_t)((uint64_t)n * by.multiplier >> 32) + n) >> by.shift;
}

#ifndef __CUDACC__
/* `divisor` is 1 or more. 2^32 (2^shift - divisor) / divisor is below 2^32, since 2^shift is below twice the divisor. */
static inline eddy_cuda_divisor eddy_cuda_divisor_of(uint32_t divisor) {
    eddy_cuda_divisor by = {divisor, 0, 0};
    while (UINT64_C(1) << by.shift < divisor)
        by.shift++;
    uint64_t excess = (UINT64_C(1) << by.shift) - divisor;
    by.multiplier = (uint32_t)((excess << 32) / divisor + 1);
    return by;
}
#endif

#endif
