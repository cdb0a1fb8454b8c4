#include <streams/cuda/backend.h>
#include <streams/cuda/fence.h>
#include <streams/cuda/foreign.h>

/* Errors that stay are the device's, and found by who launches there; others are the stream's: no handle, one of another device, one that captures. */
static eddy_status status_of(eddy_cu_result result) {
    if (result == 0)
        return EDDY_OK;
    if (result == EDDY_CU_OUT_OF_MEMORY)
        return EDDY_OUT_OF_MEMORY;
    return result == EDDY_CU_INVALID_VALUE || result == EDDY_CU_INVALID_CONTEXT ||
                   result == EDDY_CU_INVALID_HANDLE || eddy_cuda_driver_refused_capture(result)
               ? EDDY_INVALID_ARGUMENT
               : EDDY_DEVICE_LOST;
}

/* What it captured would be Eddy's, and the other way round; only to ask leaves the capture as it is. */
static eddy_cu_result refuse_capture(uintptr_t stream) {
    eddy_cu_capture_status status;
    eddy_cu_result result = eddy_cuda.capture_status((eddy_cu_stream)stream, &status);
    if (result != 0)
        return result;
    return status == EDDY_CU_CAPTURES_NOT ? 0 : EDDY_CU_CAPTURES_FIRST;
}

eddy_status eddy_cuda_foreign_record(eddy_backend *backend, uintptr_t stream,
                                     eddy_backend_fence **fence) {
    eddy_cuda_fences *fences = eddy_cuda_backend_fences(backend);
    eddy_cuda_visit visit;
    eddy_backend_fence *made;
    eddy_cu_result result = eddy_cuda_device_visit(eddy_cuda_backend_device(backend), &visit);
    if (result != 0)
        return status_of(result);
    result = refuse_capture(stream);
    if (result == 0)
        result = eddy_cuda_fence_acquire(fences, &made);
    if (result == 0) {
        result = eddy_cuda.event_record(made->event, (eddy_cu_stream)stream);
        if (result == 0)
            *fence = made;
        else
            eddy_cuda_fence_recycle(fences, made);
    }
    eddy_cuda_device_leave(visit);
    return status_of(result);
}

eddy_status eddy_cuda_foreign_wait(eddy_backend *backend, uintptr_t stream,
                                   const eddy_backend_fence *fence) {
    eddy_cuda_visit visit;
    eddy_cu_result result = eddy_cuda_device_visit(eddy_cuda_backend_device(backend), &visit);
    if (result != 0)
        return status_of(result);
    result = refuse_capture(stream);
    if (result == 0)
        result = eddy_cuda.stream_wait_event((eddy_cu_stream)stream, fence->event, 0);
    eddy_cuda_device_leave(visit);
    return status_of(result);
}

static bool is_devices(const eddy_cuda_device *device, uintptr_t address) {
    unsigned type = 0;
    int number = -1;
    return eddy_cuda.pointer_attribute(&type, EDDY_CU_POINTER_MEMORY_TYPE, address) == 0 &&
           type == EDDY_CU_MEMORY_DEVICE &&
           eddy_cuda.pointer_attribute(&number, EDDY_CU_POINTER_DEVICE, address) == 0 &&
           number == device->number;
}

/* The first byte and the last: what lies between may be several allocations that are mapped side by side, of which the driver knows no range. */
bool eddy_cuda_foreign_memory(eddy_backend *backend, const void *data, int64_t bytes) {
    const eddy_cuda_device *device = eddy_cuda_backend_device(backend);
    uintptr_t first = (uintptr_t)data, last;
    eddy_cuda_visit visit;
    if (__builtin_add_overflow(first, (uintptr_t)bytes - 1, &last) ||
        eddy_cuda_device_visit(device, &visit) != 0)
        return false;
    bool is_there = is_devices(device, first) && is_devices(device, last);
    eddy_cuda_device_leave(visit);
    return is_there;
}

bool eddy_cuda_foreign_capture_end(eddy_cu_stream stream) {
    eddy_cu_capture_status status;
    eddy_cu_graph graph = NULL;
    if (eddy_cuda.capture_status(stream, &status) != 0 || status == EDDY_CU_CAPTURES_NOT)
        return false;
    if (eddy_cuda.capture_end(stream, &graph) == 0 && graph)
        (void)eddy_cuda.graph_destroy(graph);
    return true;
}
