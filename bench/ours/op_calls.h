/* Eddy's calls of the ops in bench/ops.h, on operands of one size. One thread. */
#ifndef BENCH_OURS_OP_CALLS_H
#define BENCH_OURS_OP_CALLS_H

#include <bench/ops.h>
#include <eddy/tensor.h>

typedef struct op_call {
    const char *name;
    int bytes; /* that a call must read and write per element */
    eddy_tensor *(*call)(void);
} op_call;

/* Creates the operands, which live as long as the program. Called once, before any op. Ends the program on an error, as calls do. */
void op_calls_make_operands(long n);
/* NULL: there is no such op. */
const op_call *op_call_find(const char *name);
/* Creates the op's output and releases it. The op may not have run yet when this returns. */
void op_call_once(const op_call *op);

#endif
