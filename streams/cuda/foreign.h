/* Streams and memory of others on a GPU (streams/backend.h). */
#ifndef EDDY_STREAMS_CUDA_FOREIGN_H
#define EDDY_STREAMS_CUDA_FOREIGN_H

#include <streams/backend.h>
#include <streams/cuda/driver.h>

/* Entries of the backend. Any thread, whose context is the same afterwards. */
eddy_status eddy_cuda_foreign_record(eddy_backend *backend, uintptr_t stream,
                                     eddy_backend_fence **fence);
eddy_status eddy_cuda_foreign_wait(eddy_backend *backend, uintptr_t stream,
                                   const eddy_backend_fence *fence);
bool eddy_cuda_foreign_memory(eddy_backend *backend, const void *data, int64_t bytes);
/* Whether the stream captures: no more, and what it has captured is dropped. The device's context is the thread's. */
bool eddy_cuda_foreign_capture_end(eddy_cu_stream stream);

#endif
