#include <stdio.h>
#include <streams/cuda/blas.h>
#include <streams/cuda/device.h>
#include <streams/cuda/dnn.h>
#include <streams/cuda/provider.h>

static eddy_cuda_device devices[EDDY_CUDA_DEVICES];

static int32_t found; /* const after eddy_cuda_devices_find */

void eddy_cuda_devices_find(void) {
    int count = 0;
    if (eddy_cuda.device_count(&count) != 0)
        count = 0;
    found = count < EDDY_CUDA_DEVICES ? count : EDDY_CUDA_DEVICES;
}

int32_t eddy_cuda_device_count(void) {
    return found;
}

void eddy_cuda_device_describe(int32_t index, eddy_device_info *info) {
    *info = (eddy_device_info){0};
    eddy_cu_device number;
    size_t bytes = 0;
    if (eddy_cuda.device_get(&number, index) != 0)
        return;
    if (eddy_cuda.device_name(info->name, (int)sizeof(info->name), number) != 0)
        info->name[0] = '\0';
    if (eddy_cuda.device_memory(&bytes, number) == 0)
        info->memory_bytes = (int64_t)bytes;
    int count = 0;
    if (eddy_cuda.device_attribute(&count, EDDY_CU_PROCESSOR_COUNT, number) == 0)
        info->processor_count = count;
    eddy_cuda_provider_format(&eddy_cuda_blas_provider, info->products, sizeof(info->products));
    eddy_cuda_provider_format(&eddy_cuda_dnn_provider, info->convolutions,
                              sizeof(info->convolutions));
}

static eddy_status start(eddy_cuda_device *device, int32_t index, char *why, size_t size) {
    int has_writes = 0, count = 0, major = 0, minor = 0;
    eddy_cu_result result = eddy_cuda.device_get(&device->number, index);
    if (result == 0)
        result = eddy_cuda.device_attribute(&has_writes, EDDY_CU_HAS_STREAM_WRITES, device->number);
    if (result == 0 && !has_writes) {
        snprintf(why, size, "its streams cannot write to memory");
        return EDDY_UNSUPPORTED;
    }
    if (result == 0)
        result = eddy_cuda.device_attribute(&count, EDDY_CU_PROCESSOR_COUNT, device->number);
    if (result == 0)
        result = eddy_cuda.device_attribute(&major, EDDY_CU_CAPABILITY_MAJOR, device->number);
    if (result == 0)
        result = eddy_cuda.device_attribute(&minor, EDDY_CU_CAPABILITY_MINOR, device->number);
    eddy_cu_context context = NULL;
    if (result == 0)
        result = eddy_cuda.context_retain(&context, device->number);
    if (result != 0)
        return eddy_cuda_explain(result, why, size);
    device->index = index;
    device->processor_count = count;
    device->capability = 10 * major + minor;
    device->context = context;
    return EDDY_OK;
}

eddy_status eddy_cuda_device_start(int32_t index, const eddy_cuda_device **started, char *why,
                                   size_t size) {
    *started = &devices[index];
    if (devices[index].context)
        return EDDY_OK;
    eddy_cu_capture_mode mode;
    eddy_cu_result result = eddy_cuda_thread_relax(&mode);
    if (result != 0)
        return eddy_cuda_explain(result, why, size);
    eddy_status status = start(&devices[index], index, why, size);
    (void)eddy_cuda.capture_mode_exchange(&mode);
    return status;
}

const eddy_cuda_device *eddy_cuda_device_started(int32_t index) {
    EDDY_ASSERT(index >= 0 && index < found && devices[index].context);
    return &devices[index];
}

eddy_cu_result eddy_cuda_thread_relax(eddy_cu_capture_mode *before) {
    *before = EDDY_CU_CAPTURE_RELAXED;
    return eddy_cuda.capture_mode_exchange(before);
}

eddy_cu_result eddy_cuda_device_enter(const eddy_cuda_device *device) {
    /* The program and other libraries may set the thread's context too: nothing is remembered. */
    return eddy_cuda.context_set(device->context);
}

eddy_cu_result eddy_cuda_device_visit(const eddy_cuda_device *device, eddy_cuda_visit *visit) {
    eddy_cu_result result = eddy_cuda.context_get(&visit->context);
    if (result == 0)
        result = eddy_cuda_thread_relax(&visit->mode);
    if (result != 0)
        return result;
    result = eddy_cuda_device_enter(device);
    if (result != 0)
        (void)eddy_cuda.capture_mode_exchange(&visit->mode);
    return result;
}

void eddy_cuda_device_leave(eddy_cuda_visit visit) {
    (void)eddy_cuda.context_set(visit.context);
    (void)eddy_cuda.capture_mode_exchange(&visit.mode);
}
