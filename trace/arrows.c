#include <trace/arrows.h>

#include <stddef.h>
#include <string.h>

static eddy_arrow_end *place_of(eddy_arrows *arrows, uint64_t sequence) {
    return &arrows->kernels[sequence & (EDDY_ARROWS_KERNELS - 1)];
}

static const eddy_arrow_end *find(eddy_arrows *arrows, uint64_t sequence) {
    const eddy_arrow_end *kernel = place_of(arrows, sequence);
    return kernel->sequence == sequence ? kernel : NULL;
}

void eddy_arrows_note_kernel(eddy_arrows *arrows, const eddy_arrow_end *kernel) {
    *place_of(arrows, kernel->sequence) = *kernel;
}

void eddy_arrows_note(eddy_arrows *arrows, uint64_t from, uint64_t to) {
    /* The oldest ones go: some lead to what is no kernel, and would wait for ever. */
    if (arrows->count == EDDY_ARROWS_WAITING) {
        uint32_t half = EDDY_ARROWS_WAITING / 2;
        memmove(arrows->waiting, arrows->waiting + half, half * sizeof(*arrows->waiting));
        arrows->count = half;
        arrows->lost += half;
    }
    arrows->waiting[arrows->count++] = (eddy_arrow){.from = from, .to = to};
}

void eddy_arrows_draw(eddy_arrows *arrows,
                      void (*draw)(void *context, const eddy_arrow_end *from,
                                   const eddy_arrow_end *to),
                      void *context) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < arrows->count; i++) {
        eddy_arrow arrow = arrows->waiting[i];
        const eddy_arrow_end *from = find(arrows, arrow.from), *to = find(arrows, arrow.to);
        if (from && to)
            draw(context, from, to);
        else if (arrow.was_looked_for)
            arrows->lost++;
        else {
            arrow.was_looked_for = to != NULL;
            arrows->waiting[kept++] = arrow;
        }
    }
    arrows->count = kept;
}
