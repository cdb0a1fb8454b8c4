#include <streams/cuda/backend.h>
#include <streams/cuda/memory.h>

/* What streams/device_pool.h wants. */
#define ALIGNMENT 512

/* Every driver aligns blocks so, though none promises it. */
static eddy_cu_result take(eddy_cu_address *address, size_t bytes) {
    eddy_cu_result result = eddy_cuda.memory_acquire(address, bytes);
    if (result != 0 || *address % ALIGNMENT == 0)
        return result;
    (void)eddy_cuda.memory_release(*address);
    return EDDY_CU_OUT_OF_MEMORY;
}

void *eddy_cuda_memory_acquire(eddy_backend *backend, int64_t bytes) {
    eddy_cu_address address = 0;
    if (eddy_load_acquire(&backend->is_lost))
        return NULL;
    eddy_cuda_visit visit;
    eddy_cu_result result = eddy_cuda_device_visit(eddy_cuda_backend_device(backend), &visit);
    if (result == 0) {
        result = take(&address, (size_t)bytes);
        eddy_cuda_device_leave(visit);
    }
    if (result == EDDY_CU_OUT_OF_MEMORY || eddy_cuda_backend_check(backend, result) != EDDY_OK)
        return NULL;
    return (void *)(uintptr_t)address;
}

void eddy_cuda_memory_release(eddy_backend *backend, void *data, int64_t bytes) {
    (void)bytes;
    eddy_cuda_visit visit;
    /* A lost device says so again, and has nothing to give back. */
    if (eddy_cuda_device_visit(eddy_cuda_backend_device(backend), &visit) != 0)
        return;
    (void)eddy_cuda.memory_release((eddy_cu_address)(uintptr_t)data);
    eddy_cuda_device_leave(visit);
}

/* The driver aligns it to pages. */
void *eddy_cuda_memory_pinned_acquire(eddy_backend *backend, int64_t bytes) {
    void *memory = NULL;
    if (eddy_load_acquire(&backend->is_lost))
        return NULL;
    eddy_cuda_visit visit;
    eddy_cu_result result = eddy_cuda_device_visit(eddy_cuda_backend_device(backend), &visit);
    if (result == 0) {
        result = eddy_cuda.host_acquire(&memory, (size_t)bytes,
                                        EDDY_CU_HOST_PORTABLE | EDDY_CU_HOST_MAPPED);
        eddy_cuda_device_leave(visit);
    }
    if (result == EDDY_CU_OUT_OF_MEMORY)
        return NULL;
    return eddy_cuda_backend_check(backend, result) == EDDY_OK ? memory : NULL;
}

void eddy_cuda_memory_pinned_release(eddy_backend *backend, void *data, int64_t bytes) {
    (void)bytes;
    eddy_cuda_visit visit;
    if (eddy_cuda_device_visit(eddy_cuda_backend_device(backend), &visit) != 0)
        return;
    (void)eddy_cuda.host_release(data);
    eddy_cuda_device_leave(visit);
}
