#include <program/arena_layout.h>

#include <base/memory.h>

static size_t bytes_of(uint32_t value_count, uint32_t instruction_count) {
    return sizeof(eddy_arena_layout) +
           ((size_t)value_count + instruction_count) * sizeof(eddy_arena_block);
}

eddy_arena_layout *eddy_arena_layout_create(uint32_t value_count, uint32_t instruction_count) {
    eddy_arena_layout *layout =
        eddy_memory_acquire_zeroed(bytes_of(value_count, instruction_count), EDDY_MEMORY_PROGRAM);
    if (!layout)
        return NULL;
    eddy_store_relaxed(&layout->references, 1u);
    layout->value_count = value_count;
    layout->instruction_count = instruction_count;
    return layout;
}

eddy_arena_layout *eddy_arena_layout_retain(eddy_arena_layout *layout) {
    if (layout)
        eddy_add_relaxed(&layout->references, 1u);
    return layout;
}

void eddy_arena_layout_release(eddy_arena_layout *layout) {
    if (layout && eddy_sub_acq_rel(&layout->references, 1u) == 1)
        eddy_memory_release(layout, bytes_of(layout->value_count, layout->instruction_count),
                            EDDY_MEMORY_PROGRAM);
}

int64_t eddy_arena_layout_bytes(const eddy_arena_layout *layout) {
    return (int64_t)bytes_of(layout->value_count, layout->instruction_count);
}

void eddy_arena_layout_widen(eddy_arena_layout *layout, uint32_t i, const eddy_arena_block *block) {
    if (block->bytes > layout->rooms[i].bytes)
        layout->rooms[i] = *block;
}

bool eddy_arena_layout_plan(eddy_arena_layout *layout) {
    return eddy_arena_make(layout->rooms, layout->value_count + layout->instruction_count,
                           &layout->plan);
}

bool eddy_arena_layout_place(const eddy_arena_layout *layout, uint32_t i, eddy_arena_block *block) {
    block->offset = layout->rooms[i].offset;
    return block->bytes <= layout->rooms[i].bytes;
}
