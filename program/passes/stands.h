/* Values that stand for others, as passes find them that leave copies out: one walk over the instructions, in which a value is named by the one that has its elements.
 *
 *   stands_begin --> for each instruction: stands_rename, then left out, or stands_keep --> stands_end
 *
 * What is known of a value holds from its maker to the instruction that is looked at. That nobody writes it later either, `written` tells. */
#ifndef EDDY_PROGRAM_PASSES_STANDS_H
#define EDDY_PROGRAM_PASSES_STANDS_H

#include <program/code.h>

/* The value that stands for another one, and what is added to offsets then. */
typedef struct eddy_stand {
    int64_t offset;
    uint32_t value;
} eddy_stand;

typedef struct eddy_stands {
    eddy_code *code;
    size_t bytes;      /* of its memory */
    eddy_stand *items; /* per value */
    uint32_t *written; /* per value: how often instructions write it, in all */
    uint32_t *version; /* per value: how often they have, so far */
    uint32_t *maker;   /* per value: 1 + the instruction that makes it; 0: none yet */
    uint32_t *seen;    /* per value: the version, when it was made, of its maker's first operand */
} eddy_stands;

/* Each value stands for itself. False without memory. */
EDDY_MUST_USE bool eddy_stands_begin(eddy_stands *stands, eddy_code *code);
/* Operands name what stands for their values. */
void eddy_stands_rename(const eddy_stands *stands, const eddy_code_instruction *instruction);
/* The instruction, renamed, is instruction i of the code from now on. */
void eddy_stands_keep(const eddy_stands *stands, uint32_t i);
void eddy_stands_end(eddy_stands *stands);

/* The instruction that has made the operand's value, which nobody else writes; NULL: there is none. */
const eddy_code_instruction *eddy_stands_maker(const eddy_stands *stands,
                                               const eddy_code_operand *operand);
/* The first operand of that instruction, if it is this op's and nobody has written the operand since or writes it again; else NULL. */
const eddy_code_operand *eddy_stands_source(const eddy_stands *stands,
                                            const eddy_code_operand *operand, const eddy_op *op);
/* From now on the elements of `source` from `first` on stand for the result. */
static inline void eddy_stands_set(const eddy_stands *stands, const eddy_code_operand *result,
                                   uint32_t source, int64_t first) {
    stands->items[result->value] = (eddy_stand){first - result->offset, source};
}

#endif
