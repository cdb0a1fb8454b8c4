/* A fast call: an elementwise op on contiguous tensors of one shape and dtype (see
 * fast_op.h). No lock, no allocation, no general inference. */
#ifndef EDDY_INTERPRETER_CALL_FAST_CALL_H
#define EDDY_INTERPRETER_CALL_FAST_CALL_H

#include <interpreter/call/apply.h>

#define EDDY_FAST_CALL_INPUTS 3

/* Issues an op with one output, to a new tensor or its target, if the call is a fast one, and sets *status. False if it
 * is not, as all calls of a thread that records: nothing has happened, no error is set. */
bool eddy_fast_call_apply(eddy_caller *caller, const eddy_apply *apply, eddy_status *status);

/* The same to a new tensor, op(inputs), for a thread that does not record. attributes: the op's struct, only read. *result: the new tensor, the scope's or the caller's;
 * NULL on failure, and NULL with OK if the call is not a fast one. */
EDDY_MUST_USE eddy_status eddy_fast_call_apply_one(eddy_caller *caller, const eddy_op *op,
                                                   eddy_tensor *const *inputs, int64_t input_count,
                                                   const void *attributes, const void *address,
                                                   eddy_tensor **result);

#endif
