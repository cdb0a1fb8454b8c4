/* The check of an arena's plan: a sweep over the instructions that keeps the blocks alive in the order of their offsets, in O(n log n).
 * Deliberately without the planner's code, and with another structure. */
#include <base/memory.h>
#include <program/arena.h>
#include <stdlib.h>
#include <string.h>

/* A block begins (or, after all that begin there, ends) at an instruction. Its rank is its place in the order of offsets. */
typedef struct event {
    uint32_t at, rank;
    bool ends;
} event;

static int compare_events(const void *x, const void *y) {
    const event *a = x, *b = y;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    if (a->ends != b->ends)
        return a->ends ? 1 : -1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* The blocks alive are a set of ranks in the order of offsets: a bit for each, and a bit for each word of those that has any. */
typedef struct alive {
    const eddy_arena_block **by_offset; /* all blocks: by rank */
    uint64_t *words, *marks;
    uint32_t word_count, mark_count;
} alive;

static int compare_offsets(const void *x, const void *y) {
    const eddy_arena_block *a = *(const eddy_arena_block *const *)x,
                           *b = *(const eddy_arena_block *const *)y;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* The words that hold a bit are found by their marks, 4,096 ranks at a time. */
static const eddy_arena_block *next_alive(const alive *set, uint32_t rank) {
    uint32_t word = rank / 64, mark = word / 64;
    uint64_t bits = rank % 64 == 63 ? 0 : set->words[word] >> (rank % 64 + 1) << (rank % 64 + 1);
    if (bits == 0) {
        bits = word % 64 == 63 ? 0 : set->marks[mark] >> (word % 64 + 1) << (word % 64 + 1);
        while (bits == 0 && ++mark < set->mark_count)
            bits = set->marks[mark];
        if (bits == 0)
            return NULL;
        word = 64 * mark + (uint32_t)__builtin_ctzll(bits);
        bits = set->words[word];
    }
    return set->by_offset[64 * word + (uint32_t)__builtin_ctzll(bits)];
}

static const eddy_arena_block *previous_alive(const alive *set, uint32_t rank) {
    uint32_t word = rank / 64, mark = word / 64;
    uint64_t bits = set->words[word] & ((UINT64_C(1) << rank % 64) - 1);
    if (bits == 0) {
        bits = set->marks[mark] & ((UINT64_C(1) << word % 64) - 1);
        while (bits == 0 && mark > 0)
            bits = set->marks[--mark];
        if (bits == 0)
            return NULL;
        word = 64 * mark + 63 - (uint32_t)__builtin_clzll(bits);
        bits = set->words[word];
    }
    return set->by_offset[64 * word + 63 - (uint32_t)__builtin_clzll(bits)];
}

/* False if the block overlaps one that is alive. */
static bool enter(alive *set, uint32_t rank) {
    const eddy_arena_block *block = set->by_offset[rank], *next = next_alive(set, rank),
                           *previous = previous_alive(set, rank);
    if (next && next->offset < block->offset + block->bytes)
        return false;
    if (previous && previous->offset + previous->bytes > block->offset)
        return false;
    set->words[rank / 64] |= UINT64_C(1) << rank % 64;
    set->marks[rank / 4096] |= UINT64_C(1) << rank / 64 % 64;
    return true;
}

static void leave(alive *set, uint32_t rank) {
    set->words[rank / 64] &= ~(UINT64_C(1) << rank % 64);
    if (set->words[rank / 64] == 0)
        set->marks[rank / 4096] &= ~(UINT64_C(1) << rank / 64 % 64);
}

static bool lies_within(const eddy_arena_block *block, int64_t bytes) {
    return block->offset >= 0 && block->bytes <= bytes && block->offset <= bytes - block->bytes &&
           block->offset % EDDY_ARENA_ALIGNMENT == 0 && block->first <= block->last;
}

/* Whether the blocks that begin find room between those alive. */
static bool sweep(alive *set, event *events, uint32_t used) {
    bool is_sound = true;
    memset(set->words, 0, ((size_t)set->word_count + set->mark_count) * sizeof(*set->words));
    qsort(set->by_offset, used, sizeof(*set->by_offset), compare_offsets);
    for (uint32_t rank = 0; rank < used; rank++) {
        events[2 * (size_t)rank] = (event){set->by_offset[rank]->first, rank, false};
        events[2 * (size_t)rank + 1] = (event){set->by_offset[rank]->last, rank, true};
    }
    qsort(events, 2 * (size_t)used, sizeof(*events), compare_events);
    for (size_t i = 0; i < 2 * (size_t)used && is_sound; i++) {
        if (events[i].ends)
            leave(set, events[i].rank);
        else
            is_sound = enter(set, events[i].rank);
    }
    return is_sound;
}

bool eddy_arena_check(const eddy_arena_block *blocks, uint32_t count, int64_t bytes,
                      bool *is_known) {
    alive set = {.word_count = count / 64 + 1, .mark_count = count / 4096 + 1};
    size_t room = (size_t)count * (2 * sizeof(event) + sizeof(void *)) +
                  ((size_t)set.word_count + set.mark_count) * sizeof(uint64_t);
    uint64_t *memory = eddy_memory_acquire(room, EDDY_MEMORY_PROGRAM);
    *is_known = memory != NULL;
    if (!memory)
        return false;
    set.words = memory;
    set.marks = set.words + set.word_count;
    set.by_offset = (const eddy_arena_block **)(void *)(set.marks + set.mark_count);
    event *events = (event *)(void *)(set.by_offset + count);
    uint32_t used = 0;
    bool is_sound = true;
    for (uint32_t i = 0; i < count && is_sound; i++) {
        is_sound = lies_within(&blocks[i], bytes);
        if (blocks[i].bytes > 0)
            set.by_offset[used++] = &blocks[i];
    }
    is_sound = is_sound && sweep(&set, events, used);
    eddy_memory_release(memory, room, EDDY_MEMORY_PROGRAM);
    return is_sound;
}
