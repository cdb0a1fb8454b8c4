/* Copies of a tensor for internal use. */
#ifndef EDDY_INTERPRETER_CALL_COPY_H
#define EDDY_INTERPRETER_CALL_COPY_H

#include <eddy/tensor.h>
#include <interpreter/handle/caller.h>

/* The elements, row-major, in a storage of their own, by one instruction; one reference, no scope's. */
EDDY_MUST_USE eddy_status eddy_copy_contiguous(eddy_caller *caller, eddy_tensor *tensor,
                                               const void *address, eddy_tensor **copy);

/* The same in another dtype, but the axes keep their order in memory. */
EDDY_MUST_USE eddy_status eddy_copy_cast(eddy_caller *caller, eddy_tensor *tensor, eddy_dtype dtype,
                                         const void *address, eddy_tensor **copy);

/* Writes `source` to `target`, of one shape and dtype. */
EDDY_MUST_USE eddy_status eddy_copy_to(eddy_caller *caller, eddy_tensor *source,
                                       eddy_tensor *target, const void *address);

#endif
