/* The only allocator of host memory: counts by purpose, obeys a byte limit, fails on demand. Any thread. */
#ifndef EDDY_BASE_MEMORY_H
#define EDDY_BASE_MEMORY_H

#include <base/assert.h>
#include <stddef.h>
#include <stdint.h>

/* Purposes: enumerator, name. */
#define EDDY_MEMORY_PURPOSE_LIST(row)                                                              \
    row(RUNTIME, runtime)                           /* runtimes, threads, streams, events */       \
        row(HANDLE, handle)                         /* tensor handles and their caches */          \
        row(TABLE, table)                           /* storage numbers */                          \
        row(NODE, node)                             /* instructions that wait */                   \
        row(ARGUMENT, argument)                     /* argument blocks too long for the ring */    \
        row(TENSOR, tensor)                         /* elements */                                 \
        row(WORKSPACE, workspace) row(CACHE, cache) /* prepared state, interned shapes */          \
        row(REGISTRY, registry)                     /* registered ops */                           \
        row(TAPE, tape)                             /* tensors and nodes saved for gradients */    \
        row(PROGRAM, program)                       /* recordings and programs */                  \
        row(TEXT, text)                             /* formatted text */                           \
        row(TRACE, trace)                           /* records on their way to a file */

typedef enum eddy_memory_purpose {
#define EDDY_MEMORY_PURPOSE_ROW(enumerator, name) EDDY_MEMORY_##enumerator,
    EDDY_MEMORY_PURPOSE_LIST(EDDY_MEMORY_PURPOSE_ROW)
#undef EDDY_MEMORY_PURPOSE_ROW
        EDDY_MEMORY_PURPOSE_COUNT
} eddy_memory_purpose;

/* `bytes` of memory aligned to 64, contents undefined (acquire_zeroed: zero). NULL when there is none, the limit is
 * reached or a failure is injected; nothing is recorded in the error slot. bytes 0 gives a distinct pointer. */
EDDY_MUST_USE void *eddy_memory_acquire(size_t bytes, eddy_memory_purpose purpose);
EDDY_MUST_USE void *eddy_memory_acquire_zeroed(size_t bytes, eddy_memory_purpose purpose);

/* Frees memory; `bytes` and `purpose` as in the acquisition. NULL is allowed. */
void eddy_memory_release(void *memory, size_t bytes, eddy_memory_purpose purpose);

/* Grows a block: contents up to min(old, new) kept; on failure NULL and the old block stays. */
EDDY_MUST_USE void *eddy_memory_grow(void *memory, size_t old_bytes, size_t new_bytes,
                                     eddy_memory_purpose purpose);

/* Whole pages, for allocators: at `at` if the addresses are free, elsewhere otherwise; with `at` NULL at addresses with free room
 * below. Adjacent pages may be released together and in any parts. Counted (not as blocks), limited and refused
 * as by eddy_memory_acquire. `at` and `bytes` are multiples of the page. */
EDDY_MUST_USE void *eddy_memory_map(void *at, size_t bytes, eddy_memory_purpose purpose);
void eddy_memory_unmap(void *memory, size_t bytes, eddy_memory_purpose purpose);

/* Bytes and blocks held now for a purpose, and acquisitions ever. */
typedef struct eddy_memory_count {
    int64_t bytes;
    int64_t blocks;
    int64_t acquisitions;
    int64_t peak_bytes;
} eddy_memory_count;
eddy_memory_count eddy_memory_counted(eddy_memory_purpose purpose);

/* The limit on EDDY_MEMORY_TENSOR + EDDY_MEMORY_WORKSPACE bytes. Default: the least of the free memory of the cgroups (v1 and v2)
 * and MemAvailable, less a sixteenth, read at first use. 0 reads it again. */
void eddy_memory_limit_set(int64_t bytes);
int64_t eddy_memory_limit(void);

/* When a request is refused, by the limit or by the system, `reclaim` is called: it frees cached memory through
 * eddy_memory_release, on any thread, and returns the bytes; then the request is tried once more. One function for the process, set
 * before the first refusal. An injected failure is final. */
void eddy_memory_reclaim_with(int64_t (*reclaim)(void));
/* Gives pages that the C library keeps back to the system. */
void eddy_memory_return_pages(void);

/* Fault injection, process-wide, for tests: the acquisitions of `purpose` numbered first .. first + count - 1 from now
 * on (0 is the next one) fail. purpose EDDY_MEMORY_PURPOSE_COUNT means any purpose, numbered together. count 0 ends it. */
void eddy_memory_fail_at(eddy_memory_purpose purpose, int64_t first, int64_t count);
/* The number of failures injected since the last eddy_memory_fail_at. */
int64_t eddy_memory_failures_injected(void);

#endif
