/* Eddy's calls of the ops in bench/ops.h, on operands of one size. One thread. */
#ifndef BENCH_OURS_OP_CALLS_H
#define BENCH_OURS_OP_CALLS_H

#include <bench/ops.h>
#include <eddy/tensor.h>

typedef struct op_call {
    const char *name;
    int bytes; /* that it must move per element */
    eddy_tensor *(*call)(void);
} op_call;

/* Makes the operands, for a program's life; once, before any call. Ends the program on an error, as calls do. */
void op_calls_make_operands(long n);
/* NULL: there is no such op. */
const op_call *op_call_find(const char *name);
/* Makes its output and releases it. It may still be under way. */
void op_call_once(const op_call *op);

#endif
