/* The check of an arena's plan: a sweep over the instructions that keeps the blocks alive in the order of their offsets. Deliberately
 * without the planner's code. */
#include <base/memory.h>
#include <program/arena.h>
#include <stdlib.h>

/* A block begins (or, after all that begin there, ends) at an instruction. */
typedef struct event {
    uint32_t at;
    bool ends;
    const eddy_arena_block *block;
} event;

static int compare(const void *x, const void *y) {
    const event *a = x, *b = y;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    if (a->ends != b->ends)
        return a->ends ? 1 : -1;
    return a->block < b->block ? -1 : a->block > b->block;
}

/* The blocks alive, by offset. */
typedef struct alive {
    const eddy_arena_block **blocks;
    uint32_t count;
} alive;

/* The place of the first block at or behind the offset. */
static uint32_t find(const alive *set, int64_t offset) {
    uint32_t low = 0, high = set->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (set->blocks[middle]->offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* False if the block overlaps one that is alive. */
static bool enter(alive *set, const eddy_arena_block *block) {
    uint32_t at = find(set, block->offset);
    if (at < set->count && set->blocks[at]->offset < block->offset + block->bytes)
        return false;
    if (at > 0 && set->blocks[at - 1]->offset + set->blocks[at - 1]->bytes > block->offset)
        return false;
    for (uint32_t i = set->count; i > at; i--)
        set->blocks[i] = set->blocks[i - 1];
    set->blocks[at] = block;
    set->count++;
    return true;
}

static void leave(alive *set, const eddy_arena_block *block) {
    uint32_t at = find(set, block->offset);
    set->count--;
    for (uint32_t i = at; i < set->count; i++)
        set->blocks[i] = set->blocks[i + 1];
}

static bool lies_within(const eddy_arena_block *block, int64_t bytes) {
    return block->offset >= 0 && block->bytes <= bytes && block->offset <= bytes - block->bytes &&
           block->offset % EDDY_ARENA_ALIGNMENT == 0 && block->first <= block->last;
}

bool eddy_arena_check(const eddy_arena_block *blocks, uint32_t count, int64_t bytes,
                      bool *is_known) {
    size_t room = (size_t)count * (2 * sizeof(event) + sizeof(void *));
    event *events = eddy_memory_acquire(room, EDDY_MEMORY_PROGRAM);
    *is_known = events != NULL;
    if (!events)
        return false;
    alive set = {.blocks = (const eddy_arena_block **)(void *)(events + 2 * (size_t)count)};
    uint32_t used = 0;
    bool is_sound = true;
    for (uint32_t i = 0; i < count && is_sound; i++) {
        is_sound = lies_within(&blocks[i], bytes);
        if (blocks[i].bytes == 0)
            continue;
        events[used++] = (event){blocks[i].first, false, &blocks[i]};
        events[used++] = (event){blocks[i].last, true, &blocks[i]};
    }
    qsort(events, used, sizeof(*events), compare);
    for (uint32_t i = 0; i < used && is_sound; i++) {
        if (events[i].ends)
            leave(&set, events[i].block);
        else
            is_sound = enter(&set, events[i].block);
    }
    eddy_memory_release(events, room, EDDY_MEMORY_PROGRAM);
    return is_sound;
}
