#include <streams/spans.h>

#include <base/trace.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Blocks of this size ask for huge pages: one page fault less per 4 KB on the first access. */
#define HUGE_BYTES ((int64_t)7 << 19)
#define HUGE_PAGE_BYTES ((int64_t)2 << 20)

/* ---- the tree; the caller holds the lock ---- */

/* Heap order of the treap: children never precede their parent in it. It follows from the address alone. */
static uint64_t rank(const eddy_span *span) {
    return ((uint64_t)(uintptr_t)span >> 12) * UINT64_C(0x9e3779b97f4a7c15);
}

static char *end_of(eddy_span *span) {
    return (char *)span + span->bytes;
}

static int64_t most_in(const eddy_span *tree) {
    return tree ? tree->most_bytes : 0;
}

static void update(eddy_span *span) {
    int64_t most = span->bytes;
    if (most_in(span->left) > most)
        most = most_in(span->left);
    if (most_in(span->right) > most)
        most = most_in(span->right);
    span->most_bytes = most;
}

/* All of `low` lies below all of `high`. */
static eddy_span *merge(eddy_span *low, eddy_span *high) {
    if (!low || !high)
        return low ? low : high;
    if (rank(low) > rank(high)) {
        low->right = merge(low->right, high);
        update(low);
        return low;
    }
    high->left = merge(low, high->left);
    update(high);
    return high;
}

/* Splits `tree` into the spans below `at` and the rest. */
static void split(eddy_span *tree, const void *at, eddy_span **low, eddy_span **high) {
    if (!tree) {
        *low = *high = NULL;
        return;
    }
    if ((char *)tree < (const char *)at) {
        split(tree->right, at, &tree->right, high);
        *low = tree;
    } else {
        split(tree->left, at, low, &tree->left);
        *high = tree;
    }
    update(tree);
}

static void insert(eddy_span **tree, eddy_span *span) {
    eddy_span *here = *tree;
    if (!here || rank(here) < rank(span)) {
        split(here, span, &span->left, &span->right);
        *tree = here = span;
    } else {
        insert(span < here ? &here->left : &here->right, span);
    }
    update(here);
}

/* Removes the span that starts at `at`; NULL if there is none. */
static eddy_span *take_at(eddy_span **tree, const void *at) {
    eddy_span *here = *tree;
    if (!here)
        return NULL;
    if ((const void *)here == at) {
        *tree = merge(here->left, here->right);
        return here;
    }
    eddy_span *taken = take_at((const char *)at < (char *)here ? &here->left : &here->right, at);
    update(here);
    return taken;
}

/* The last span that starts below `at`; NULL if there is none. */
static eddy_span *last_below(eddy_span *tree, const void *at) {
    eddy_span *found = NULL;
    while (tree) {
        if ((const char *)tree < (const char *)at) {
            found = tree;
            tree = tree->right;
        } else {
            tree = tree->left;
        }
    }
    return found;
}

/* Removes the upper `bytes` of the highest span of at least that size, which exists. */
static void *take_highest(eddy_span **tree, int64_t bytes) {
    eddy_span *here = *tree;
    void *taken;
    if (most_in(here->right) >= bytes) {
        taken = take_highest(&here->right, bytes);
    } else if (here->bytes > bytes) {
        here->bytes -= bytes;
        taken = end_of(here);
    } else if (here->bytes == bytes) {
        *tree = merge(here->left, here->right);
        return here;
    } else {
        taken = take_highest(&here->left, bytes);
    }
    update(here);
    return taken;
}

#ifdef EDDY_CHECKS
/* The bytes in the tree; checks that all of its spans lie strictly between `from` and `to`. */
static int64_t check(eddy_span *tree, const char *from, const char *to) {
    if (!tree)
        return 0;
    EDDY_ASSERT(tree->bytes > 0 && (char *)tree > from && end_of(tree) < to);
    EDDY_ASSERT(!tree->left || rank(tree->left) < rank(tree));
    EDDY_ASSERT(!tree->right || rank(tree->right) < rank(tree));
    int64_t most = tree->most_bytes;
    update(tree);
    EDDY_ASSERT(most == tree->most_bytes);
    return tree->bytes + check(tree->left, from, (char *)tree) +
           check(tree->right, end_of(tree), to);
}
#endif

static void spans_check_locked(eddy_spans *spans) {
    EDDY_CHECK(check(spans->root, NULL, (const char *)UINTPTR_MAX) == spans->free_bytes);
    (void)spans;
}

static void put_locked(eddy_spans *spans, void *data, int64_t bytes) {
    spans->free_bytes += bytes;
    eddy_span *below = last_below(spans->root, data),
              *above = take_at(&spans->root, (char *)data + bytes);
    /* Otherwise it was released twice. */
    EDDY_ASSERT(!below || end_of(below) <= (char *)data);
    if (above)
        bytes += above->bytes;
    eddy_span *span = data;
    if (below && end_of(below) == (char *)data) {
        span = take_at(&spans->root, below);
        bytes += span->bytes;
    }
    span->bytes = bytes;
    insert(&spans->root, span);
    spans_check_locked(spans);
}

/* ---- spans ---- */

void eddy_spans_init(eddy_spans *spans, eddy_memory_purpose purpose) {
    memset(spans, 0, sizeof(*spans));
    eddy_lock_init(&spans->lock, EDDY_RANK_LEAF);
    spans->purpose = purpose;
    spans->page_bytes = sysconf(_SC_PAGESIZE);
}

void eddy_spans_fini(eddy_spans *spans) {
    eddy_spans_trim(spans);
}

static void ask_for_huge_pages(void *fresh, int64_t bytes) {
    int errno_before = errno;
    /* Only advice: if it is refused the memory is still usable. */
    (void)madvise(fresh, (size_t)bytes, MADV_HUGEPAGE);
    errno = errno_before;
}

/* The bytes to request below a block that would start at `at`, so that it begins in a whole huge page: at most half of the block, and
 * 0 if memory is scarce. The next block uses them. */
static int64_t spare_bytes(const char *at, int64_t bytes) {
    int64_t spare = (int64_t)((uintptr_t)at % (uintptr_t)HUGE_PAGE_BYTES);
    if (bytes < HUGE_BYTES || spare > bytes / 2)
        return 0;
    int64_t held = eddy_memory_counted(EDDY_MEMORY_TENSOR).bytes +
                   eddy_memory_counted(EDDY_MEMORY_WORKSPACE).bytes;
    return held + bytes < eddy_memory_limit() / 2 ? spare : 0;
}

/* At `at`, or where the system likes; NULL: it has none. */
static void *map(const eddy_spans *spans, char *at, int64_t bytes) {
    void *data = eddy_memory_map(at, (size_t)bytes, spans->purpose);
    EDDY_TRACE_AT(ALLOCATOR, .op = data ? "take" : "refuse", .bytes = bytes);
    return data;
}

/* Not below the held memory, but with free addresses below itself. */
static void *acquire_apart(eddy_spans *spans, int64_t bytes) {
    void *data = map(spans, NULL, bytes);
    if (!data)
        return NULL;
    if (bytes >= HUGE_BYTES)
        ask_for_huge_pages(data, bytes);
    eddy_lock_acquire(&spans->lock);
    spans->low = data;
    eddy_lock_release(&spans->lock);
    return data;
}

void *eddy_spans_acquire(eddy_spans *spans, int64_t bytes) {
    EDDY_ASSERT(bytes > 0);
    bytes = eddy_spans_rounded(spans, bytes);
    eddy_lock_acquire(&spans->lock);
    if (EDDY_LIKELY(most_in(spans->root) >= bytes)) {
        void *data = take_highest(&spans->root, bytes);
        spans->free_bytes -= bytes;
        spans->found_count++;
        spans_check_locked(spans);
        eddy_lock_release(&spans->lock);
        return data;
    }
    char *low = spans->low;
    if ((uintptr_t)low <= (uintptr_t)(bytes + HUGE_PAGE_BYTES)) {
        eddy_lock_release(&spans->lock);
        return acquire_apart(spans, bytes);
    }
    /* No other mapping may get it, or the addresses below, in the meantime. */
    eddy_span *rest = take_at(&spans->root, low);
    int64_t rest_bytes = rest ? rest->bytes : 0, missing = bytes - rest_bytes;
    spans->free_bytes -= rest_bytes;
    int64_t spare = spare_bytes(low - missing, bytes), asked = missing + spare;
    char *at = low - asked;
    spans->low = at;
    eddy_lock_release(&spans->lock);

    char *fresh = map(spans, at, asked);
    if (EDDY_LIKELY(fresh == at)) {
        if (bytes >= HUGE_BYTES)
            ask_for_huge_pages(fresh, asked);
        if (spare > 0)
            eddy_spans_release(spans, fresh, spare);
        return fresh + spare;
    }
    if (fresh)
        eddy_memory_unmap(fresh, (size_t)asked, spans->purpose);
    eddy_lock_acquire(&spans->lock);
    if (spans->low == at)
        spans->low = low;
    if (rest)
        put_locked(spans, rest, rest_bytes);
    eddy_lock_release(&spans->lock);
    return fresh ? acquire_apart(spans, bytes) : NULL;
}

void eddy_spans_release(eddy_spans *spans, void *data, int64_t bytes) {
    bytes = eddy_spans_rounded(spans, bytes);
    eddy_lock_acquire(&spans->lock);
    put_locked(spans, data, bytes);
    eddy_lock_release(&spans->lock);
}

static void unmap(eddy_spans *spans, eddy_span *tree) {
    if (!tree)
        return;
    unmap(spans, tree->left);
    unmap(spans, tree->right);
    eddy_memory_unmap(tree, (size_t)tree->bytes, spans->purpose);
}

int64_t eddy_spans_trim(eddy_spans *spans) {
    eddy_lock_acquire(&spans->lock);
    eddy_span *tree = spans->root;
    int64_t given = spans->free_bytes;
    spans->root = NULL;
    spans->free_bytes = 0;
    eddy_span *lowest = spans->low ? last_below(tree, spans->low + 1) : NULL;
    bool begins_low = lowest && (char *)lowest == spans->low;
    char *low = begins_low ? end_of(lowest) : NULL;
    eddy_lock_release(&spans->lock);
    unmap(spans, tree);
    if (begins_low) {
        /* The next request is right below the memory in use, unless another mapping has come meanwhile. */
        eddy_lock_acquire(&spans->lock);
        if (spans->low == (char *)lowest)
            spans->low = low;
        eddy_lock_release(&spans->lock);
    }
    return given;
}

int64_t eddy_spans_free_bytes(eddy_spans *spans) {
    eddy_lock_acquire(&spans->lock);
    int64_t bytes = spans->free_bytes;
    eddy_lock_release(&spans->lock);
    return bytes;
}

int64_t eddy_spans_found(eddy_spans *spans) {
    eddy_lock_acquire(&spans->lock);
    int64_t found_count = spans->found_count;
    eddy_lock_release(&spans->lock);
    return found_count;
}

static int64_t list_tree(const eddy_span *tree, eddy_memory_block *blocks, int64_t capacity,
                         int64_t count) {
    if (!tree)
        return count;
    count = list_tree(tree->left, blocks, capacity, count);
    if (count < capacity)
        blocks[count] = (eddy_memory_block){
            .address = tree, .bytes = tree->bytes, .count = 1, .state = EDDY_MEMORY_BLOCK_FREE};
    return list_tree(tree->right, blocks, capacity, count + 1);
}

int64_t eddy_spans_list(eddy_spans *spans, eddy_memory_block *blocks, int64_t capacity) {
    eddy_lock_acquire(&spans->lock);
    int64_t count = list_tree(spans->root, blocks, capacity, 0);
    eddy_lock_release(&spans->lock);
    return count;
}
