/* A fast call: an elementwise op on contiguous tensors of one shape and dtype (see
 * fast_op.h). No lock, no allocation, no general inference. */
#ifndef EDDY_INTERPRETER_CALL_FAST_CALL_H
#define EDDY_INTERPRETER_CALL_FAST_CALL_H

#include <eddy/tensor.h>
#include <interpreter/call/op.h>
#include <interpreter/handle/caller.h>

typedef enum eddy_fast_call_result {
    EDDY_FAST_CALL_DONE,
    EDDY_FAST_CALL_FAILED, /* the error is recorded; *status says which */
    EDDY_FAST_CALL_NOT,    /* not such a call (nothing happened, nothing is recorded): it goes a general call */
} eddy_fast_call_result;

/* Tries to issue op(inputs). attributes: the op's struct, only read. *result: the new tensor, the scope's or the caller's; NULL
 * on failure, and with OK where it is not such a call. */
EDDY_MUST_USE eddy_status eddy_fast_call_apply(eddy_caller *caller, const eddy_op *op, eddy_tensor *const *inputs,
                                               int64_t input_count, const void *attributes, const void *address,
                                               eddy_tensor **result);

/* The same to a target that exists. */
eddy_fast_call_result eddy_fast_call_apply_to(eddy_caller *caller, const eddy_op *op, eddy_tensor *const *inputs,
                                              int64_t input_count, const void *attributes, const void *address,
                                              eddy_tensor *target, eddy_status *status);

#endif
