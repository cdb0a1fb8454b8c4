#include <trace/arrows.h>

#include <stddef.h>
#include <string.h>

/* Two runtimes number their instructions alike, and are not to have one place. */
static eddy_arrow_end *place_of(eddy_arrows *arrows, uint64_t key) {
    uint64_t spread = key + (key >> 48) * (EDDY_ARROWS_KERNELS / 16);
    return &arrows->kernels[spread & (EDDY_ARROWS_KERNELS - 1)];
}

static const eddy_arrow_end *find(eddy_arrows *arrows, uint64_t key) {
    const eddy_arrow_end *kernel = place_of(arrows, key);
    return kernel->key == key ? kernel : NULL;
}

void eddy_arrows_note_kernel(eddy_arrows *arrows, const eddy_arrow_end *kernel) {
    *place_of(arrows, kernel->key) = *kernel;
}

static void add(eddy_arrows *arrows, const eddy_arrow *arrow) {
    /* The oldest ones go: some lead to what is no kernel, and would wait for ever. */
    if (arrows->count == EDDY_ARROWS_WAITING) {
        uint32_t half = EDDY_ARROWS_WAITING / 2;
        memmove(arrows->waiting, arrows->waiting + half, half * sizeof(*arrows->waiting));
        arrows->count = half;
        arrows->lost += half;
    }
    arrows->waiting[arrows->count++] = *arrow;
}

void eddy_arrows_note(eddy_arrows *arrows, uint64_t from, uint64_t to) {
    add(arrows, &(eddy_arrow){.from.key = from, .to = to, .kind = EDDY_ARROW_EDGE});
}

void eddy_arrows_note_call(eddy_arrows *arrows, const eddy_arrow_end *call) {
    const eddy_arrow_end *kernel = find(arrows, call->key);
    if (!kernel || kernel->row != call->row)
        add(arrows, &(eddy_arrow){.from = *call, .to = call->key, .kind = EDDY_ARROW_CALL});
}

void eddy_arrows_draw(eddy_arrows *arrows, eddy_arrows_drawer *draw, void *context) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < arrows->count; i++) {
        eddy_arrow *arrow = &arrows->waiting[i];
        bool is_edge = arrow->kind == EDDY_ARROW_EDGE;
        const eddy_arrow_end *to = find(arrows, arrow->to);
        const eddy_arrow_end *from = is_edge ? find(arrows, arrow->from.key) : &arrow->from;
        if (from && to) {
            if (from->row != to->row)
                draw(context, (eddy_arrow_kind)arrow->kind, from, to);
        } else if (arrow->was_looked_for) {
            arrows->lost++;
        } else {
            arrow->was_looked_for = to != NULL;
            arrows->waiting[kept++] = *arrow;
        }
    }
    arrows->count = kept;
}
