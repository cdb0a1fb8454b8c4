/* Steps in a row, of an executable that runs in rounds (rounds.h), whose launches have the same parameters whenever the addresses are the same, so that a device may launch them as one (eddy_backend_row).
 *
 * A step is in none that is a mark, or takes words of the run (numbers that are given, draws), or is a registered op, which launches what it likes. */
#ifndef EDDY_PROGRAM_STEP_ROWS_H
#define EDDY_PROGRAM_STEP_ROWS_H

#include <program/code.h>

typedef struct eddy_executable eddy_executable;

typedef struct eddy_step_row {
    uint32_t first_step, end_step;
    uint32_t bases_at, base_count; /* that its steps use: a part of eddy_step_rows.bases */
} eddy_step_row;

typedef struct eddy_step_rows {
    struct eddy_row_owner *owner; /* by which devices know the executable (streams/row_owner.h) */
    eddy_code_array items;        /* eddy_step_row, in the order of their steps */
    eddy_code_array bases;        /* uint32_t */
    uint32_t most_bases;          /* of one */
} eddy_step_rows;

/* Finds them in an executable that has its steps and places. False without memory. */
EDDY_MUST_USE bool eddy_step_rows_find(eddy_executable *executable, const eddy_code *code);
void eddy_step_rows_fini(eddy_step_rows *rows);
int64_t eddy_step_rows_bytes(const eddy_step_rows *rows);

/* The one that begins with the step; NULL: none does. */
const eddy_step_row *eddy_step_rows_at(const eddy_step_rows *rows, uint32_t step);
/* The one that the step is in; NULL: it is in none. */
const eddy_step_row *eddy_step_rows_around(const eddy_step_rows *rows, uint32_t step);
static inline const uint32_t *eddy_step_row_bases(const eddy_step_rows *rows,
                                                  const eddy_step_row *steps) {
    return (const uint32_t *)rows->bases.items + steps->bases_at;
}

#endif
