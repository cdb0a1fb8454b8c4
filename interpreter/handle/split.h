/* eddy_split and eddy_chunk (<eddy/view.h>) for callers that pass the address of the public call. */
#ifndef EDDY_INTERPRETER_HANDLE_SPLIT_H
#define EDDY_INTERPRETER_HANDLE_SPLIT_H

#include <base/assert.h>
#include <eddy/status.h>
#include <eddy/tensor.h>

EDDY_MUST_USE eddy_status eddy_split_sized(eddy_tensor *tensor, int64_t size, int32_t axis,
                                           eddy_tensor **outputs, int64_t capacity, int64_t *count,
                                           const void *address);
EDDY_MUST_USE eddy_status eddy_split_chunked(eddy_tensor *tensor, int64_t chunks, int32_t axis,
                                             eddy_tensor **outputs, int64_t capacity,
                                             int64_t *count, const void *address);

#endif
