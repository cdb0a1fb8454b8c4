/* What one launch of a library's kernel works in. Launching thread. */
#ifndef EDDY_STREAMS_CUDA_WORKSPACE_H
#define EDDY_STREAMS_CUDA_WORKSPACE_H

#include <streams/backend.h>

/* Of the pool, or of the graph that is captured. NULL: there is none. */
void *eddy_cuda_workspace_take(const eddy_backend_queue *queue, int64_t bytes);
/* Once it is launched: later launches of the queue may have it. A graph keeps its own. NULL is allowed. */
void eddy_cuda_workspace_give(const eddy_backend_launch *launch, void *workspace);

#endif
