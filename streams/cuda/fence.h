/* Fences of a GPU (streams/backend.h): events of the driver, kept for the next. */
#ifndef EDDY_STREAMS_CUDA_FENCE_H
#define EDDY_STREAMS_CUDA_FENCE_H

#include <base/atomic.h>
#include <streams/cuda/driver.h>

struct eddy_backend_fence {
    struct eddy_backend_fence *next; /* among those that are kept */
    eddy_cu_event event;
};

/* Those that nobody has: a stack. */
typedef struct eddy_cuda_fences {
    /* atomic: who pushes (cas, release); who pops takes all of it (exchange, acquire) and pushes the rest again, so that no head comes back unnoticed */
    _Atomic(struct eddy_backend_fence *) kept;
} eddy_cuda_fences;

/* One that nobody has, of the device whose context is the thread's. Any thread. */
eddy_cu_result eddy_cuda_fence_acquire(eddy_cuda_fences *fences, struct eddy_backend_fence **fence);
/* Needs no context. Any thread. */
void eddy_cuda_fence_recycle(eddy_cuda_fences *fences, struct eddy_backend_fence *fence);
/* All are there; the context is the thread's. */
void eddy_cuda_fences_fini(eddy_cuda_fences *fences);

#endif
