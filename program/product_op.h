/* A product that is added to a value: what `accumulate` (passes/accumulate.c) leaves of a product and a sum.
 *
 *   add_product(a, b, mut sum)    sum += a b, matrices of f32 or f64
 *
 * The product is rounded before it is added, as the calls do; the op's fast kernel goes on from the sum. It is an op of programs alone. */
#ifndef EDDY_PROGRAM_PRODUCT_OP_H
#define EDDY_PROGRAM_PRODUCT_OP_H

#include <interpreter/call/op.h>

extern const eddy_op eddy_product_op;
/* The operand that is written: all of it is, so that it may be `put`. */
extern const eddy_op_operand *const eddy_product_op_sum;

/* By name; NULL if it is none. */
const eddy_op *eddy_product_op_find(const char *name);

#endif
