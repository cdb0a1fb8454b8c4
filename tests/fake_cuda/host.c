#include <stdlib.h>
#include <string.h>
#include <tests/fake_cuda/call.h>
#include <tests/fake_cuda/finding.h>
#include <tests/fake_cuda/host.h>
#include <tests/fake_cuda/stream.h>

#define ALIGNMENT 4096
#define FREE 0xDB

typedef struct pinned {
    struct pinned *next;
    const fake_device *device;
    char *memory;
    size_t bytes;
    bool is_mapped;
} pinned;

static pinned *blocks;       /* lock: the fake's */
static size_t pinned_bytes;  /* lock: the fake's; of these */
static fake_history history; /* lock: the fake's */

fake_history *fake_host_history(void) {
    static bool is_ready;
    if (!is_ready)
        fake_history_init(&history);
    is_ready = true;
    return &history;
}

static const pinned *block_of(uintptr_t begin, uintptr_t end) {
    const pinned *block = blocks;
    while (block && (begin < (uintptr_t)block->memory || end < begin ||
                     end > (uintptr_t)block->memory + block->bytes))
        block = block->next;
    return block;
}

bool fake_host_covers(uintptr_t begin, uintptr_t end, uintptr_t *block_end) {
    const pinned *block = block_of(begin, end);
    if (!block || !block->is_mapped)
        return false;
    if (block_end)
        *block_end = (uintptr_t)block->memory + block->bytes;
    return true;
}

bool fake_host_is_pinned(uintptr_t begin, uintptr_t end) {
    return block_of(begin, end) != NULL;
}

static pinned *unlink_block(pinned **at) {
    pinned *block = *at;
    *at = block->next;
    pinned_bytes -= block->bytes;
    return block;
}

static void unlink_and_free(pinned **at) {
    pinned *block = unlink_block(at);
    memset(block->memory, FREE, block->bytes);
    free(block->memory);
    free(block);
}

void fake_host_drop(const fake_device *device) {
    for (pinned **at = &blocks; *at;)
        if ((*at)->device == device)
            unlink_and_free(at);
        else
            at = &(*at)->next;
}

int fake_host_count(void) {
    int count = 0;
    for (const pinned *block = blocks; block; block = block->next)
        count++;
    return count;
}

eddy_cu_result cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    FAKE_BEGIN(cuMemHostAlloc, FAKE_NEEDS_CONTEXT);
    if (!memory || bytes == 0 || flags > 7)
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    bool is_room = bytes <= (size_t)fake_options_read()->pinned_bytes - pinned_bytes;
    pinned *made = is_room ? malloc(sizeof(*made)) : NULL;
    size_t rounded = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    char *data = is_room && rounded >= bytes ? aligned_alloc(ALIGNMENT, rounded) : NULL;
    if (!made || !data) {
        free(made);
        free(data);
        return fake_call_end(&call, EDDY_CU_OUT_OF_MEMORY);
    }
    memset(data, FREE, rounded);
    *made = (pinned){blocks, call.device, data, bytes, (flags & EDDY_CU_HOST_MAPPED) != 0};
    blocks = made;
    pinned_bytes += bytes;
    *memory = data;
    return fake_call_end(&call, 0);
}

eddy_cu_result cuMemFreeHost(void *memory) {
    FAKE_BEGIN(cuMemFreeHost, FAKE_NEEDS_CONTEXT);
    pinned **at = &blocks;
    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    if (!*at) {
        fake_finding("free: no pinned block begins at %p", memory);
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    }
    fake_history_entry user;
    uintptr_t begin = (uintptr_t)memory;
    if (fake_history_forget(fake_host_history(), begin, begin + (*at)->bytes, &fake_host_clock,
                            &user)) {
        unlink_and_free(at);
    } else {
        fake_finding("free in use: of pinned memory at %p, while %s on stream %u (piece %llu) is "
                     "not known to be over",
                     memory, user.what, (unsigned)user.stream, (unsigned long long)user.number);
        /* Not to crash the piece: it is no block any more, but stays. */
        pinned *block = unlink_block(at);
        block->next = NULL;
        static pinned *left; /* for who looks for leaks */
        block->next = left;
        left = block;
    }
    return fake_call_end(&call, 0);
}
