/* Memory of a GPU, and of the host that it reads and writes (streams/backend.h). */
#ifndef EDDY_STREAMS_CUDA_MEMORY_H
#define EDDY_STREAMS_CUDA_MEMORY_H

#include <streams/backend.h>

/* Entries of the backend. Any thread, whose context is the same afterwards. */
void *eddy_cuda_memory_acquire(eddy_backend *backend, int64_t bytes);
void eddy_cuda_memory_release(eddy_backend *backend, void *data, int64_t bytes);
void *eddy_cuda_memory_pinned_acquire(eddy_backend *backend, int64_t bytes);
void eddy_cuda_memory_pinned_release(eddy_backend *backend, void *data, int64_t bytes);

#endif
