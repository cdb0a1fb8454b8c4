#include <program/late_draws.h>

#include <base/memory.h>
#include <interpreter/handle/generator.h>
#include <string.h>

eddy_late_draws *eddy_late_draws_create(uint32_t count, const int64_t *words, uint32_t word_count) {
    size_t generators = sizeof(eddy_late_draws) + count * sizeof(eddy_generator *),
           bytes = generators + word_count * sizeof(*words);
    eddy_late_draws *draws = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_PROGRAM);
    if (!draws)
        return NULL;
    eddy_store_relaxed(&draws->references, 1u);
    draws->count = count;
    draws->bytes = bytes;
    draws->words = (int64_t *)(void *)((char *)draws + generators);
    memcpy(draws->words, words, word_count * sizeof(*words));
    return draws;
}

eddy_late_draws *eddy_late_draws_retain(eddy_late_draws *draws) {
    eddy_add_relaxed(&draws->references, 1u);
    return draws;
}

void eddy_late_draws_release(eddy_late_draws *draws) {
    if (!draws || eddy_sub_acq_rel(&draws->references, 1u) != 1)
        return;
    for (uint32_t i = 0; i < draws->count; i++)
        eddy_generator_release(&draws->generators[i]);
    eddy_memory_release(draws, draws->bytes, EDDY_MEMORY_PROGRAM);
}

void eddy_late_draws_take(eddy_late_draws *draws, uint32_t draw) {
    uint64_t drawn[2];
    eddy_generator_draw_held(draws->generators[draw], &drawn[0], &drawn[1]);
    memcpy(draws->words + 2 * (size_t)draw, drawn, sizeof(drawn));
}
