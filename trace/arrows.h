/* Where kernels have run, for arrows from their calls and along dependencies: in bounded memory, whatever the order in which their records come. One thread. */
#ifndef EDDY_TRACE_ARROWS_H
#define EDDY_TRACE_ARROWS_H

#include <base/assert.h>
#include <stdbool.h>
#include <stdint.h>

#define EDDY_ARROWS_KERNELS 65536 /* the latest; a power of two */
#define EDDY_ARROWS_WAITING 32768 /* arrows whose ends are not both known */

typedef struct eddy_arrow_end {
    uint64_t key; /* of the instruction (eddy_record_key); 0: none */
    int64_t at_ns, took_ns;
    uint32_t row;
} eddy_arrow_end;

typedef enum eddy_arrow_kind {
    EDDY_ARROW_EDGE, /* from a kernel to one that waited for it */
    EDDY_ARROW_CALL, /* from a call to its kernel */
} eddy_arrow_kind;

typedef struct eddy_arrow {
    eddy_arrow_end from; /* of an edge: the key alone */
    uint64_t to;
    uint8_t kind;
    bool was_looked_for; /* `to` was known then */
} eddy_arrow;

typedef struct eddy_arrows {
    eddy_arrow_end kernels[EDDY_ARROWS_KERNELS];
    eddy_arrow waiting[EDDY_ARROWS_WAITING];
    uint32_t count;
    int64_t lost; /* too many, or one end is not in the file */
} eddy_arrows;

void eddy_arrows_note_kernel(eddy_arrows *arrows, const eddy_arrow_end *kernel);
/* `to` waited for `from`. */
void eddy_arrows_note(eddy_arrows *arrows, uint64_t from, uint64_t to);
/* What belongs to the kernel of the same key. */
void eddy_arrows_note_call(eddy_arrows *arrows, const eddy_arrow_end *call);

typedef void eddy_arrows_drawer(void *context, eddy_arrow_kind kind, const eddy_arrow_end *from,
                                const eddy_arrow_end *to);
/* Calls `draw` for each whose ends are known and lie in different rows: a row shows them in order. To be called after all rings have been looked through: what `to` has waited for had been there before it. */
void eddy_arrows_draw(eddy_arrows *arrows, eddy_arrows_drawer *draw, void *context);

#endif
