#include <base/memory.h>

#include <base/atomic.h>
#include <base/cgroup.h>
#include <base/sleep.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* The counters of a purpose, a cache line each: threads with different purposes do not share lines. */
typedef struct purpose_count {
    _Alignas(EDDY_CACHE_LINE) _Atomic int64_t
        bytes; /* atomic: relaxed counters, written by any thread */
    _Atomic int64_t blocks;
    _Atomic int64_t acquisitions;
    _Atomic int64_t peak_bytes; /* updated afterwards: may lag behind concurrent acquisitions */
} purpose_count;

static purpose_count counts[EDDY_MEMORY_PURPOSE_COUNT];

/* The byte limit. Bytes are reserved before the request, and returned when it fails or after the release is counted: counted
 * bytes are at most the reserved ones, which are at most the limit (as it was then). */
static _Atomic int64_t
    limited_bytes; /* atomic: bytes of tensors and workspaces; reserved with acquire, returned with
                                         release, which orders the counters of the two threads */
static _Atomic int64_t limit; /* atomic: relaxed; 0 until set or first used */

static int64_t (*_Atomic reclaimer)(
    void); /* atomic: set once (release), read before it is called (acquire) */

/* Fault injection. */
static struct {
    _Atomic bool is_on; /* atomic: relaxed; without fault injection no thread takes the lock */
    eddy_lock lock;
    eddy_memory_purpose purpose;    /* lock: lock */
    int64_t number, first, count;   /* lock: lock */
    _Atomic int64_t injected_count; /* atomic: relaxed */
} fault;

static bool is_limited(eddy_memory_purpose purpose) {
    return purpose == EDDY_MEMORY_TENSOR || purpose == EDDY_MEMORY_WORKSPACE;
}

static int64_t default_limit(void) {
    int errno_before = errno;
    int64_t least = INT64_MAX / 2;
    int64_t bounds[] = {eddy_cgroup_memory_available(""), eddy_cgroup_machine_memory("")};
    for (int i = 0; i < 2; i++)
        if (bounds[i] >= 0 && bounds[i] < least)
            least = bounds[i];
    errno = errno_before;
    /* Plus the memory that tensors hold already, which the system no longer counts as free. 0 would mean "not read yet". */
    return eddy_load_relaxed(&limited_bytes) + least - least / 16 + 1;
}

int64_t eddy_memory_limit(void) {
    int64_t now = eddy_load_relaxed(&limit);
    if (EDDY_LIKELY(now != 0))
        return now;
    int64_t first = default_limit();
    return eddy_cas_relaxed(&limit, &now, first) ? first : now;
}

void eddy_memory_limit_set(int64_t bytes) {
    eddy_store_relaxed(&limit, bytes > 0 ? bytes : default_limit());
}

void eddy_memory_fail_at(eddy_memory_purpose purpose, int64_t first, int64_t count) {
    eddy_lock_acquire(&fault.lock);
    fault.purpose = purpose;
    fault.number = 0;
    fault.first = first;
    fault.count = count;
    eddy_store_relaxed(&fault.injected_count, 0);
    eddy_store_relaxed(&fault.is_on, count > 0);
    eddy_lock_release(&fault.lock);
}

int64_t eddy_memory_failures_injected(void) {
    return eddy_load_relaxed(&fault.injected_count);
}

static bool fault_is_due(eddy_memory_purpose purpose) {
    if (EDDY_LIKELY(!eddy_load_relaxed(&fault.is_on)))
        return false;
    bool is_due = false;
    eddy_lock_acquire(&fault.lock);
    if (fault.purpose == purpose || fault.purpose == EDDY_MEMORY_PURPOSE_COUNT) {
        int64_t number = fault.number++;
        is_due = number >= fault.first && number - fault.first < fault.count;
        if (is_due)
            eddy_add_relaxed(&fault.injected_count, 1);
    }
    eddy_lock_release(&fault.lock);
    return is_due;
}

/* Reserves `bytes` of the limit before the request. */
static bool reserve(int64_t bytes, eddy_memory_purpose purpose) {
    if (!is_limited(purpose))
        return true;
    int64_t most = eddy_memory_limit(), now = eddy_load_relaxed(&limited_bytes);
    do {
        if (EDDY_UNLIKELY(bytes > most - now))
            return false;
    } while (!eddy_cas_acquire(&limited_bytes, &now, now + bytes));
    return true;
}

static void unreserve(int64_t bytes, eddy_memory_purpose purpose) {
    if (is_limited(purpose)) {
        int64_t before = eddy_sub_release(&limited_bytes, bytes);
        EDDY_ASSERT(before >= bytes);
    }
}

static void count_acquisition(int64_t bytes, eddy_memory_purpose purpose) {
    purpose_count *count = &counts[purpose];
    int64_t now = eddy_add_relaxed(&count->bytes, bytes) + bytes;
    eddy_add_relaxed(&count->acquisitions, 1);
    int64_t peak = eddy_load_relaxed(&count->peak_bytes);
    while (now > peak && !eddy_cas_relaxed(&count->peak_bytes, &peak, now)) {
    }
}

/* Rounded up to a cache line, which no other block shares. */
static size_t rounded_bytes(size_t bytes) {
    return bytes == 0 ? EDDY_CACHE_LINE
                      : (bytes + EDDY_CACHE_LINE - 1) & ~(size_t)(EDDY_CACHE_LINE - 1);
}

/* Blocks from this size on are mapped one by one, so that each goes back to the system when it is released. The C library
 * begins so too, but raises its threshold when the program frees blocks, and may then keep 64 MB for each thread, which count against
 * limits and memory cgroups. */
#if defined(__SANITIZE_ADDRESS__)
#define MAPPED_BYTES SIZE_MAX /* the sanitizer's allocator detects writes beside a block */
#else
#define MAPPED_BYTES ((size_t)128 << 10)
#endif

static void *map_pages(void *at, size_t bytes) {
    void *memory = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void unmap_pages(void *memory, size_t bytes) {
    if (munmap(memory, bytes) != 0)
        /* The kernel's limit of mappings is reached: the pages are freed, their addresses stay mapped. */
        madvise(memory, bytes, MADV_DONTNEED);
}

/* The system assigns addresses from the top downwards, so its next mapping is right below its last. This address is 256 GB from
 * there or from the last such address. It is a hint: the system assigns free addresses. */
static void *map_pages_apart(size_t bytes) {
    static _Atomic uint32_t places; /* atomic: relaxed, a number for each */
    enum { PLACES = 32, PLACE_SHIFT = 38, HUGE_PAGE_SHIFT = 21 };
    void *usual = map_pages(NULL, 1);
    if (!usual)
        return NULL;
    unmap_pages(usual, 1);
    uint64_t distance = (uint64_t)(eddy_add_relaxed(&places, 1) % PLACES + 1) << PLACE_SHIFT;
    uint64_t at = (uintptr_t)usual > distance ? (uintptr_t)usual - distance : 0;
    return map_pages((void *)(uintptr_t)(at >> HUGE_PAGE_SHIFT << HUGE_PAGE_SHIFT), bytes);
}

/* A request to the system. */
typedef struct memory_demand {
    size_t bytes;
    bool is_pages;
    void *at; /* pages only */
} memory_demand;

static void *request(memory_demand wanted) {
    void *memory = NULL;
    size_t bytes = rounded_bytes(wanted.bytes);
    int errno_before = errno;
    if (wanted.is_pages)
        memory = wanted.at ? map_pages(wanted.at, bytes) : map_pages_apart(bytes);
    else if (bytes >= MAPPED_BYTES)
        memory = map_pages(NULL, bytes);
    else if (posix_memalign(&memory, EDDY_CACHE_LINE, bytes) != 0)
        memory = NULL;
    errno = errno_before;
    return memory;
}

static void give_back(void *memory, size_t bytes, bool is_pages) {
    int errno_before = errno;
    if (is_pages || bytes >= MAPPED_BYTES)
        unmap_pages(memory, bytes);
    else
        free(memory);
    errno = errno_before;
}

static void *try_acquire(memory_demand wanted, eddy_memory_purpose purpose) {
    if (!reserve((int64_t)wanted.bytes, purpose))
        return NULL;
    void *memory = request(wanted);
    if (!memory)
        unreserve((int64_t)wanted.bytes, purpose);
    return memory;
}

void eddy_memory_reclaim_with(int64_t (*reclaim)(void)) {
    eddy_store_release(&reclaimer, reclaim);
}

void eddy_memory_return_pages(void) {
#ifdef __GLIBC__
    int errno_before = errno;
    malloc_trim(0);
    errno = errno_before;
#endif
}

/* Frees cached memory. Its pages go back too: the blocks that replace it in the count may lie elsewhere, and
 * a memory cgroup counts pages. */
static void reclaim(void) {
    int64_t (*ask)(void) = eddy_load_acquire(&reclaimer);
    if (ask && ask() > 0)
        eddy_memory_return_pages();
}

static void *acquire(memory_demand wanted, eddy_memory_purpose purpose) {
    EDDY_ASSERT((unsigned)purpose < EDDY_MEMORY_PURPOSE_COUNT);
    if (wanted.bytes > (size_t)(INT64_MAX / 2) || fault_is_due(purpose))
        return NULL;
    void *memory = try_acquire(wanted, purpose);
    /* Who asks for a trace's memory may hold the locks that reclaiming takes. */
    if (EDDY_UNLIKELY(!memory && purpose != EDDY_MEMORY_TRACE)) {
        reclaim();
        /* Tries again also if nothing was freed: another thread may have just freed it. */
        memory = try_acquire(wanted, purpose);
    }
    if (memory)
        count_acquisition((int64_t)wanted.bytes, purpose);
    return memory;
}

void *eddy_memory_acquire(size_t bytes, eddy_memory_purpose purpose) {
    void *memory = acquire((memory_demand){.bytes = bytes}, purpose);
    if (memory)
        eddy_add_relaxed(&counts[purpose].blocks, 1);
    return memory;
}

void *eddy_memory_acquire_zeroed(size_t bytes, eddy_memory_purpose purpose) {
    void *memory = eddy_memory_acquire(bytes, purpose);
    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

void *eddy_memory_map(void *at, size_t bytes, eddy_memory_purpose purpose) {
    return acquire((memory_demand){.bytes = bytes, .is_pages = true, .at = at}, purpose);
}

static void release(void *memory, size_t bytes, bool is_pages, eddy_memory_purpose purpose) {
    EDDY_ASSERT((unsigned)purpose < EDDY_MEMORY_PURPOSE_COUNT);
    give_back(memory, rounded_bytes(bytes), is_pages);
    int64_t before = eddy_sub_relaxed(&counts[purpose].bytes, (int64_t)bytes);
    EDDY_ASSERT(before >= (int64_t)bytes);
    unreserve((int64_t)bytes, purpose);
}

void eddy_memory_release(void *memory, size_t bytes, eddy_memory_purpose purpose) {
    if (!memory)
        return;
    release(memory, bytes, false, purpose);
    eddy_sub_relaxed(&counts[purpose].blocks, 1);
}

void eddy_memory_unmap(void *memory, size_t bytes, eddy_memory_purpose purpose) {
    release(memory, bytes, true, purpose);
}

void *eddy_memory_grow(void *memory, size_t old_bytes, size_t new_bytes,
                       eddy_memory_purpose purpose) {
    void *grown = eddy_memory_acquire(new_bytes, purpose);
    if (!grown)
        return NULL;
    if (memory)
        memcpy(grown, memory, old_bytes < new_bytes ? old_bytes : new_bytes);
    eddy_memory_release(memory, old_bytes, purpose);
    return grown;
}

eddy_memory_count eddy_memory_counted(eddy_memory_purpose purpose) {
    EDDY_ASSERT((unsigned)purpose < EDDY_MEMORY_PURPOSE_COUNT);
    const purpose_count *count = &counts[purpose];
    return (eddy_memory_count){
        .bytes = eddy_load_relaxed(&count->bytes),
        .blocks = eddy_load_relaxed(&count->blocks),
        .acquisitions = eddy_load_relaxed(&count->acquisitions),
        .peak_bytes = eddy_load_relaxed(&count->peak_bytes),
    };
}
