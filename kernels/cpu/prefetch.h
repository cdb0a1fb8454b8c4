/* Prefetching what the hardware prefetcher does not predict: short runs of elements that are far apart. */
#ifndef EDDY_KERNELS_CPU_PREFETCH_H
#define EDDY_KERNELS_CPU_PREFETCH_H

#include <base/atomic.h>
#include <stdint.h>

/* Prefetches the cache lines of `bytes` bytes at an address, which may be beyond the end of an array.
 * (gcc removes calls of a function that only prefetches, unless they are inlined early.) */
__attribute__((always_inline)) static inline void eddy_prefetch(uintptr_t at, int64_t bytes) {
    for (int64_t line = 0; line < bytes; line += EDDY_CACHE_LINE)
        __builtin_prefetch((const void *)(at + (uintptr_t)line));
}

#endif
