#include <base/memory.h>
#include <streams/cuda/fence.h>

/* From `first` to `last`. */
static void push_all(eddy_cuda_fences *fences, struct eddy_backend_fence *first,
                     struct eddy_backend_fence *last) {
    last->next = eddy_load_relaxed(&fences->kept);
    while (!eddy_cas_acq_rel(&fences->kept, &last->next, first))
        ;
}

static struct eddy_backend_fence *pop(eddy_cuda_fences *fences) {
    struct eddy_backend_fence *first = eddy_exchange_acq_rel(&fences->kept, NULL);
    if (!first || !first->next)
        return first;
    struct eddy_backend_fence *last = first->next;
    while (last->next)
        last = last->next;
    push_all(fences, first->next, last);
    return first;
}

eddy_cu_result eddy_cuda_fence_acquire(eddy_cuda_fences *fences,
                                       struct eddy_backend_fence **fence) {
    *fence = pop(fences);
    if (*fence)
        return 0;
    struct eddy_backend_fence *made =
        eddy_memory_acquire_zeroed(sizeof(*made), EDDY_MEMORY_RUNTIME);
    if (!made)
        return EDDY_CU_OUT_OF_MEMORY;
    eddy_cu_result result = eddy_cuda.event_create(&made->event, EDDY_CU_EVENT_DISABLE_TIMING);
    if (result == 0)
        *fence = made;
    else
        eddy_memory_release(made, sizeof(*made), EDDY_MEMORY_RUNTIME);
    return result;
}

void eddy_cuda_fence_recycle(eddy_cuda_fences *fences, struct eddy_backend_fence *fence) {
    push_all(fences, fence, fence);
}

void eddy_cuda_fences_fini(eddy_cuda_fences *fences) {
    struct eddy_backend_fence *fence = eddy_exchange_acq_rel(&fences->kept, NULL);
    while (fence) {
        struct eddy_backend_fence *next = fence->next;
        (void)eddy_cuda.event_destroy(fence->event);
        eddy_memory_release(fence, sizeof(*fence), EDDY_MEMORY_RUNTIME);
        fence = next;
    }
}
