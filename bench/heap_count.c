/* A library to preload: counts the blocks that a process takes from the heap (glibc's malloc family and mmap), so that
 * heap_per_op is measured in the same way in Eddy's program and in a peer's. Any thread. */
#define _GNU_SOURCE
#include <bench/heap_count.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
void *memalign(size_t alignment, size_t bytes);

static _Atomic uint64_t taken; /* atomic: any thread, relaxed; read while no other thread runs */

static void count_one(void) {
    atomic_fetch_add_explicit(&taken, 1, memory_order_relaxed);
}

__attribute__((visibility("default"))) uint64_t bench_heap_count(void) {
    return atomic_load_explicit(&taken, memory_order_relaxed);
}

void *malloc(size_t bytes) {
    count_one();
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    count_one();
    return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes) {
    count_one();
    return __libc_realloc(memory, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
    count_one();
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
    void *block = memalign(alignment, bytes);
    if (!block)
        return ENOMEM;
    *memory = block;
    return 0;
}

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    count_one();
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}
