/* Prefetching what the processor does not foresee: short runs of elements that lie apart. */
#ifndef EDDY_KERNELS_CPU_PREFETCH_H
#define EDDY_KERNELS_CPU_PREFETCH_H

#include <base/atomic.h>
#include <stdint.h>

/* The lines of `bytes` bytes at an address, which may lie beyond the end of an array.
 * (gcc leaves out calls of a function that does nothing but this, unless they are inlined early.) */
__attribute__((always_inline)) static inline void eddy_prefetch(uintptr_t at, int64_t bytes) {
    for (int64_t line = 0; line < bytes; line += EDDY_CACHE_LINE)
        __builtin_prefetch((const void *)(at + (uintptr_t)line));
}

#endif
