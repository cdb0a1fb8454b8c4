/* The short way through the interpreter: elementwise calls on contiguous tensors of one shape and dtype (see
 * route.h). No lock, no allocation, no general inference. */
#ifndef EDDY_INTERPRETER_SHORT_H
#define EDDY_INTERPRETER_SHORT_H

#include <eddy/tensor.h>
#include <interpreter/caller.h>
#include <interpreter/op.h>

typedef enum eddy_short_result {
    EDDY_SHORT_DONE,
    EDDY_SHORT_FAILED, /* the error is recorded; *status says which */
    EDDY_SHORT_NOT,    /* not such a call (nothing happened, nothing is recorded): it goes the long way */
} eddy_short_result;

/* Tries to issue op(inputs). attributes: the op's struct, only read. *result: the new tensor, the scope's or the caller's; NULL
 * on failure, and with OK where it is not such a call. */
EDDY_MUST_USE eddy_status eddy_short_apply(eddy_caller *caller, const eddy_op *op, eddy_tensor *const *inputs,
                                           int64_t input_count, const void *attributes, const void *address,
                                           eddy_tensor **result);

/* The same to a target that exists. */
eddy_short_result eddy_short_apply_to(eddy_caller *caller, const eddy_op *op, eddy_tensor *const *inputs,
                                      int64_t input_count, const void *attributes, const void *address,
                                      eddy_tensor *target, eddy_status *status);

#endif
