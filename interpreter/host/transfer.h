/* Copies of tensors from one device to another. */
#ifndef EDDY_INTERPRETER_HOST_TRANSFER_H
#define EDDY_INTERPRETER_HOST_TRANSFER_H

#include <base/call_site.h>
#include <interpreter/handle/tensor.h>

/* The elements, row-major, on `device`, which is another one than the tensor's: the scope's or the caller's. Gradients come back. NULL, recorded. */
eddy_tensor *eddy_transfer(eddy_tensor *tensor, eddy_device device, eddy_origin origin);
/* The same without gradients: one reference, no scope's. */
eddy_tensor *eddy_transfer_elements(eddy_caller *caller, eddy_tensor *tensor, eddy_device device,
                                    eddy_origin origin);

#endif
