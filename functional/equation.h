/* The equation of an einsum: the label of each axis of each operand. */
#ifndef EDDY_FUNCTIONAL_EQUATION_H
#define EDDY_FUNCTIONAL_EQUATION_H

#include <base/assert.h>
#include <eddy/shape.h>
#include <eddy/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EDDY_EQUATION_OPERANDS 32
/* Labels are numbers in their order in an implicit output: the axes of an ellipsis, A .. Z, a .. z. */
#define EDDY_EQUATION_LETTERS EDDY_RANK_MAX
#define EDDY_EQUATION_LABELS (EDDY_RANK_MAX + 52)

typedef struct eddy_equation_term {
    int32_t rank;
    uint8_t labels[EDDY_RANK_MAX];
} eddy_equation_term;

typedef struct eddy_equation {
    eddy_equation_term operands[EDDY_EQUATION_OPERANDS];
    eddy_equation_term output;
} eddy_equation;

/* Reads `text` for operands of these ranks. On failure one sentence is in `reason`: INVALID_ARGUMENT (the text is no
 * equation, or one for another number of operands), SHAPE_MISMATCH (the ranks do not fit). Pure. */
EDDY_MUST_USE eddy_status eddy_equation_read(eddy_equation *equation, const char *text,
                                             const int32_t *ranks, int64_t count, char *reason,
                                             size_t size);

#endif
