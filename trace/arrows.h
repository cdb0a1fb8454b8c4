/* Where kernels have run, as far as arrows from their calls and along dependencies need it: in bounded memory, whatever the order in which their records come. One thread. */
#ifndef EDDY_TRACE_ARROWS_H
#define EDDY_TRACE_ARROWS_H

#include <base/assert.h>
#include <stdbool.h>
#include <stdint.h>

#define EDDY_ARROWS_KERNELS 65536 /* the latest; a power of two */
#define EDDY_ARROWS_WAITING 32768 /* arrows whose ends are not both known */

typedef struct eddy_arrow_end {
    uint64_t sequence; /* 0: none */
    int64_t at_ns, took_ns;
    uint32_t row;
} eddy_arrow_end;

typedef struct eddy_arrow {
    eddy_arrow_end from; /* of a call: all of it; else the number alone */
    uint64_t to;
    bool is_call;
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
/* The call of the kernel of the same number. */
void eddy_arrows_note_call(eddy_arrows *arrows, const eddy_arrow_end *call);

typedef void eddy_arrows_drawer(void *context, bool is_call, const eddy_arrow_end *from,
                                const eddy_arrow_end *to);
/* Calls `draw` for each whose ends are known and lie in different rows; where they are in one row, that shows them in order. To be called after all rings have been looked through: what `to` has waited for had been there before it. */
void eddy_arrows_draw(eddy_arrows *arrows, eddy_arrows_drawer *draw, void *context);

#endif
