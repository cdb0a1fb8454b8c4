/* Which dim of each operand of an instruction counts the items of a batch: images, or rows.
 *
 * An instruction has a batch where item n of what it writes is computed from items n of its batched operands and from all of its others, or where it
 * adds up over the items. Then it may be done for some items at a time. */
#ifndef EDDY_PROGRAM_PASSES_BATCH_DIMS_H
#define EDDY_PROGRAM_PASSES_BATCH_DIMS_H

#include <program/code.h>

typedef enum eddy_batch_role {
    EDDY_BATCH_NONE,  /* it cannot be done for some items at a time */
    EDDY_BATCH_ITEMS, /* items of what it writes, each with the bits that it has in the whole batch but for the order of sums */
    EDDY_BATCH_SUMS,  /* it writes a sum over all items */
    EDDY_BATCH_WEIGHTS, /* the same, a gradient of weights: of a product or a convolution */
} eddy_batch_role;

#define EDDY_BATCH_NO_DIM (-1) /* all of the operand is needed for each item */

/* dims: per operand of instruction i. */
eddy_batch_role eddy_batch_dims_find(const eddy_code *code, uint32_t i, int8_t *dims);

#endif
