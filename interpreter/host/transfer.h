/* Copies of tensors from one device to another. */
#ifndef EDDY_INTERPRETER_HOST_TRANSFER_H
#define EDDY_INTERPRETER_HOST_TRANSFER_H

#include <base/call_site.h>
#include <interpreter/call/op.h>
#include <interpreter/handle/tensor.h>
#include <vm/vm.h>

/* What it is in a program: a run copies the storage of its operand, whose elements lie in a row, to the device of its result. */
extern const eddy_op eddy_transfer_op;

/* The elements, row-major, on `device`, which is another one than the tensor's: the scope's or the caller's. Gradients come back. Errors are recorded. */
EDDY_MUST_USE eddy_status eddy_transfer(eddy_tensor *tensor, eddy_device device, eddy_origin origin,
                                        eddy_tensor **copy);
/* The same without gradients: one reference, no scope's. */
EDDY_MUST_USE eddy_status eddy_transfer_elements(eddy_caller *caller, eddy_tensor *tensor,
                                                 eddy_device device, eddy_origin origin,
                                                 eddy_tensor **copy);

#endif
