/* The counter of the preloaded heap_count library; NULL in a process that runs without it. */
#ifndef BENCH_HEAP_COUNT_H
#define BENCH_HEAP_COUNT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Blocks taken from the heap (malloc, calloc, realloc, aligned, mmap) since the process began. Any thread. */
__attribute__((weak)) uint64_t bench_heap_count(void);

#ifdef __cplusplus
}
#endif
#endif
