#include <streams/cuda/backend.h>
#include <streams/cuda/workspace.h>
#include <streams/device_pool.h>

void *eddy_cuda_workspace_take(const eddy_backend_queue *queue, int64_t bytes) {
    uint64_t first;
    if (eddy_cuda_backend_captures(queue->backend, &first))
        return eddy_cuda_graphs_workspace(eddy_cuda_backend_graphs(queue->backend), bytes);
    return queue->backend->pool ? eddy_device_pool_take(queue->backend->pool, bytes, queue->number)
                                : NULL;
}

void eddy_cuda_workspace_give(const eddy_backend_launch *launch, void *workspace) {
    const eddy_backend_queue *queue = launch->queue;
    uint64_t first;
    if (workspace && !eddy_cuda_backend_captures(queue->backend, &first))
        eddy_device_pool_give(queue->backend->pool, workspace, queue->number, launch->ticket);
}
