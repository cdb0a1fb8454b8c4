/* Chains: elementwise ops, each of which takes the result of the one before, as one loop that keeps what lies between them in registers
 * (functional/ops/fused.toml). Each op is rounded as in its own loop, so that the bits are the same. */
#ifndef EDDY_INTERPRETER_CALL_CHAIN_H
#define EDDY_INTERPRETER_CALL_CHAIN_H

#include <eddy/scalar.h>
#include <interpreter/call/op.h>
#include <kernels/kernel.h>

#define EDDY_CHAIN_MEMBERS 3

typedef struct eddy_chain_member {
    const eddy_op *op;
    int8_t taken; /* the operand that is the result of the member before; -1: of the first member */
} eddy_chain_member;

typedef struct eddy_chain {
    const char *name;
    /* Its loops, of f32, and of f64 where all its ops are cheap. Operands are those of the first member, then those of
     * the others but for the results before, then the last result. */
    eddy_kernel kernel, kernel_f64;
    eddy_chain_member members[EDDY_CHAIN_MEMBERS];
    uint32_t count, input_count;
    /* The least elements of a row, if it is called for one row after the other: for shorter ones its calls take longer than what they save. */
    int64_t least_row;
} eddy_chain;

/* The loop's attributes: the numbers of the members that have one, in their order. */
typedef struct eddy_chain_numbers {
    eddy_scalar first_number, second_number;
} eddy_chain_numbers;

#define EDDY_CHAIN_NUMBERS 2

/* Longer ones come first. */
extern const eddy_chain eddy_chains[];
extern const uint32_t eddy_chain_count;

/* The kernel of a dtype; NULL if there is none. */
static inline const eddy_kernel *eddy_chain_kernel(const eddy_chain *chain, eddy_dtype dtype) {
    return dtype == EDDY_F32                              ? &chain->kernel
           : dtype == EDDY_F64 && chain->kernel_f64.loops ? &chain->kernel_f64
                                                          : NULL;
}

#endif
