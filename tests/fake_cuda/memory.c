#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tests/fake_cuda/finding.h>
#include <tests/fake_cuda/memory.h>
#include <unistd.h>

#define ALIGNMENT 512
#define FREE 0xDB
#define BEYOND 0xEF

/* Where nothing else lies as a rule, sanitizers allow mappings, and no usual value of a parameter points. */
#define PLACE_FIRST 0x7ed000000000u
#define PLACE_BYTES 0x1000000000u

/* ---- mapping ---- */

static void *map(void *at, size_t bytes, int protection, int file) {
    void *mapped = mmap(at, bytes, protection,
                        MAP_SHARED | MAP_NORESERVE | (at ? MAP_FIXED_NOREPLACE : 0), file, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

static bool map_twice(fake_memory *memory, int place) {
    size_t bytes = (size_t)memory->bytes;
    int file = memfd_create("fake_cuda", MFD_CLOEXEC);
    if (file < 0)
        return false;
    if (ftruncate(file, memory->bytes) == 0) {
        memory->mapping = map(NULL, bytes, PROT_READ | PROT_WRITE, file);
        void *at = (void *)(PLACE_FIRST + (uintptr_t)place * PLACE_BYTES);
        memory->addresses = map(at, bytes, PROT_NONE, file);
        if (!memory->addresses)
            memory->addresses = map(NULL, bytes, PROT_NONE, file);
    }
    close(file);
    return memory->mapping && memory->addresses;
}

static void unmap(fake_memory *memory) {
    if (memory->mapping)
        munmap(memory->mapping, (size_t)memory->bytes);
    if (memory->addresses)
        munmap(memory->addresses, (size_t)memory->bytes);
    *memory = (fake_memory){0};
}

bool fake_memory_init(fake_memory *memory, int64_t bytes, int place) {
    *memory = (fake_memory){.bytes = bytes, .blocks = calloc(1, sizeof(*memory->blocks))};
    if (memory->blocks && map_twice(memory, place)) {
        memory->blocks->bytes = bytes;
        return true;
    }
    free(memory->blocks);
    unmap(memory);
    return false;
}

void fake_memory_fini(fake_memory *memory) {
    fake_memory_check_all(memory);
    while (memory->blocks) {
        fake_block *next = memory->blocks->next;
        free(memory->blocks);
        memory->blocks = next;
    }
    unmap(memory);
}

/* ---- blocks ---- */

uintptr_t fake_memory_take(fake_memory *memory, int64_t asked_bytes) {
    if (asked_bytes > memory->bytes)
        return 0;
    int64_t bytes = (asked_bytes + 2 * ALIGNMENT - 1) & -(int64_t)ALIGNMENT;
    fake_block *block = memory->blocks;
    while (block && (block->asked_bytes > 0 || block->bytes < bytes))
        block = block->next;
    if (!block)
        return 0;
    if (block->bytes > bytes) {
        fake_block *rest = malloc(sizeof(*rest));
        if (!rest)
            return 0;
        *rest = (fake_block){block->next, block->offset + bytes, block->bytes - bytes, 0};
        *block = (fake_block){rest, block->offset, bytes, 0};
    }
    block->asked_bytes = asked_bytes;
    memory->taken_bytes += asked_bytes;
    int64_t end = block->offset + bytes;
    if (end > memory->fresh) {
        memset(memory->mapping + memory->fresh, FREE, (size_t)(end - memory->fresh));
        memory->fresh = end;
    }
    memset(memory->mapping + block->offset + asked_bytes, BEYOND, (size_t)(bytes - asked_bytes));
    return (uintptr_t)memory->addresses + (uintptr_t)block->offset;
}

static void check(const fake_memory *memory, const fake_block *block, const char *who) {
    const unsigned char *start = (const unsigned char *)memory->mapping + block->offset;
    const unsigned char *beyond = start + block->asked_bytes;
    /* Each byte is as the one before it: one look, where a sanitizer looks at each access of a loop. */
    if (*beyond == BEYOND &&
        memcmp(beyond, beyond + 1, (size_t)(block->bytes - block->asked_bytes - 1)) == 0)
        return;
    for (int64_t i = block->asked_bytes; i < block->bytes; i++)
        if (start[i] != BEYOND)
            fake_abort("%s has written beyond a block of %lld bytes at 0x%llx: byte %lld behind it",
                       who, (long long)block->asked_bytes,
                       (unsigned long long)(uintptr_t)(memory->addresses + block->offset),
                       (long long)(i - block->asked_bytes));
}

/* The taken block round an address, which may be its end. */
static const fake_block *round_address(const fake_memory *memory, uintptr_t address) {
    int64_t offset = (int64_t)(address - (uintptr_t)memory->addresses);
    for (const fake_block *block = memory->blocks; block; block = block->next)
        if (block->asked_bytes > 0 && offset >= block->offset &&
            offset <= block->offset + block->asked_bytes)
            return block;
    return NULL;
}

const fake_block *fake_memory_block(const fake_memory *memory, uintptr_t address) {
    const fake_block *block =
        fake_memory_has(memory, address) ? round_address(memory, address) : NULL;
    bool begins = block && (uintptr_t)memory->addresses + (uintptr_t)block->offset == address;
    return begins ? block : NULL;
}

static void join_gaps(fake_memory *memory) {
    for (fake_block *block = memory->blocks; block && block->next;) {
        fake_block *next = block->next;
        if (block->asked_bytes > 0 || next->asked_bytes > 0) {
            block = next;
            continue;
        }
        block->bytes += next->bytes;
        block->next = next->next;
        free(next);
    }
}

void fake_memory_give(fake_memory *memory, uintptr_t address) {
    fake_block *block = (fake_block *)(uintptr_t)fake_memory_block(memory, address);
    check(memory, block, "somebody");
    memset(memory->mapping + block->offset, FREE, (size_t)block->bytes);
    memory->taken_bytes -= block->asked_bytes;
    block->asked_bytes = 0;
    join_gaps(memory);
}

/* ---- addresses ---- */

bool fake_memory_has(const fake_memory *memory, uintptr_t address) {
    return memory->addresses && address - (uintptr_t)memory->addresses <= (uintptr_t)memory->bytes;
}

uintptr_t fake_memory_translate(const fake_memory *memory, uintptr_t address) {
    return fake_memory_has(memory, address)
               ? (uintptr_t)memory->mapping + (address - (uintptr_t)memory->addresses)
               : address;
}

bool fake_memory_covers(const fake_memory *memory, uintptr_t begin, uintptr_t end,
                        uintptr_t *block_end) {
    const fake_block *block = fake_memory_has(memory, begin) ? round_address(memory, begin) : NULL;
    if (!block)
        return false;
    uintptr_t last = (uintptr_t)memory->addresses + (uintptr_t)(block->offset + block->asked_bytes);
    if (block_end)
        *block_end = last;
    return begin <= end && end <= last;
}

void fake_memory_check(const fake_memory *memory, uintptr_t address, const char *who) {
    const fake_block *block =
        fake_memory_has(memory, address) ? round_address(memory, address) : NULL;
    if (block)
        check(memory, block, who);
}

void fake_memory_check_all(const fake_memory *memory) {
    for (const fake_block *block = memory->blocks; block; block = block->next)
        if (block->asked_bytes > 0)
            check(memory, block, "somebody");
}
