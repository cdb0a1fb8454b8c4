/* Draws as tensors: what the steps of a loop have drawn, for its gradient.
 *
 *   draw_get(draw)           gives the seed and the counter that were drawn last, two i64
 *   draw_set(drawn, draw)    what was drawn last is this: for those that need the numbers again
 *
 * They are ops of programs alone. */
#ifndef EDDY_PROGRAM_DRAW_OPS_H
#define EDDY_PROGRAM_DRAW_OPS_H

#include <interpreter/call/apply.h>
#include <program/code.h>

/* By name; NULL if it is none. */
const eddy_op *eddy_draw_op_find(const char *name);
bool eddy_draw_op_sets(const eddy_op *op);
/* Whether an instruction is one that sets. */
bool eddy_draw_ops_has_set(const eddy_code *code);

/* Whether the instruction changes the words of its draw: those who read them stay on their side of it. */
static inline bool eddy_draw_op_changes_words(const eddy_code *code,
                                              const eddy_code_instruction *instruction) {
    return eddy_code_late_draw(code, instruction) != 0 || eddy_draw_op_sets(instruction->op);
}

/* While calls are noted. `attributes`: those of the recorded call that drew. *drawn: a reference, on the device. */
EDDY_MUST_USE eddy_status eddy_draw_op_get(eddy_caller *caller, const eddy_device *device,
                                           const void *attributes, const void *address,
                                           eddy_tensor **drawn);
EDDY_MUST_USE eddy_status eddy_draw_op_set(eddy_caller *caller, eddy_tensor *drawn,
                                           const void *attributes, const void *address);

#endif
