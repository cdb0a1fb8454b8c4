/* Large blocks: runs of pages split from free spans; adjacent free memory is one span.
 *
 * A request takes the upper end of the highest free span that fits (first fit by address), so memory that was accessed is used
 * again before the host allocator is asked. The host allocator is asked for the addresses right below its last answer, and only
 * for the missing part: a free span that begins there becomes the rest of the block. So almost no memory is held that was never in
 * use: less than a huge page, below blocks of several huge pages.
 *
 * Free spans are nodes of a treap (R. Seidel and C. Aragon, "Randomized search trees", 1996), ordered by address, that lie
 * in the free memory itself: a release needs no memory, and every step is logarithmic in the number of free spans.
 *
 * Any thread (lock: spans->lock, never held while the host allocator is asked). */
#ifndef EDDY_STREAMS_SPANS_H
#define EDDY_STREAMS_SPANS_H

#include <base/memory.h>
#include <base/sleep.h>
#include <streams/memory_block.h>

/* At the start of a free span. */
typedef struct eddy_span {
    struct eddy_span *left, *right; /* lower and higher addresses */
    int64_t bytes;
    int64_t most_bytes; /* the largest span in this subtree */
} eddy_span;

typedef struct eddy_spans {
    eddy_lock lock;
    eddy_memory_purpose purpose; /* const after init */
    int64_t page_bytes;          /* const after init */
    eddy_span *root;             /* lock: lock */
    int64_t free_bytes;          /* lock: lock */
    int64_t found_count;         /* lock: lock; how often a free one had room */
    char
        *low; /* lock: lock; the lowest address of the memory that grows downwards, NULL at first */
} eddy_spans;

void eddy_spans_init(eddy_spans *spans, eddy_memory_purpose purpose);
/* Gives the free spans to the host allocator; all blocks must have been released. */
void eddy_spans_fini(eddy_spans *spans);

/* The size of a block of `bytes`: whole pages. */
static inline int64_t eddy_spans_rounded(const eddy_spans *spans, int64_t bytes) {
    return (bytes + spans->page_bytes - 1) & -spans->page_bytes;
}

/* `bytes` (1 or more) aligned to a page, contents undefined. NULL if the host allocator refuses. */
EDDY_MUST_USE void *eddy_spans_acquire(eddy_spans *spans, int64_t bytes);
/* `bytes` as in the acquisition. */
void eddy_spans_release(eddy_spans *spans, void *data, int64_t bytes);

/* Gives every free span to the host allocator, also those between blocks in use; returns bytes. */
int64_t eddy_spans_trim(eddy_spans *spans);
int64_t eddy_spans_free_bytes(eddy_spans *spans);
/* How often what was asked for lay in a span that was kept. */
int64_t eddy_spans_found(eddy_spans *spans);
/* Writes the first `capacity` of the free spans, by address; returns how many there are. */
int64_t eddy_spans_list(eddy_spans *spans, eddy_memory_block *blocks, int64_t capacity);

#endif
