/* Memory of one device of the current runtime. */
#include <base/status.h>
#include <eddy/device_memory.h>
#include <interpreter/handle/runtime.h>
#include <string.h>

/* The running runtime of the caller, the device where none is named, and the VM's number of it, which is started if it was not used before. */
static eddy_status find(eddy_device *device, eddy_origin origin, eddy_runtime **runtime,
                        uint8_t *number) {
    eddy_status status = eddy_runtime_running(origin, runtime);
    if (status == EDDY_OK)
        status = eddy_runtime_device(eddy_caller_get(), *runtime, device, origin, device);
    if (status == EDDY_OK)
        *number = eddy_runtime_vm_device(*runtime, *device);
    return status;
}

eddy_status eddy_device_memory_read(eddy_device device, eddy_device_memory *memory) {
    eddy_origin origin = EDDY_ORIGIN("device_memory_read");
    eddy_runtime *runtime;
    uint8_t number;
    if (!memory)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "memory is NULL");
    eddy_status status = find(&device, origin, &runtime, &number);
    if (status != EDDY_OK)
        return status;
    eddy_vm_memory read = eddy_vm_memory_read(runtime->vm, number);
    eddy_device_memory full = {.size = memory->size,
                               .live_bytes = read.live_bytes,
                               .peak_bytes = read.peak_bytes,
                               .cached_bytes = read.cached_bytes,
                               .limit_bytes = read.limit_bytes,
                               .staging_bytes = read.staging_bytes};
    size_t bytes = memory->size > 0 && memory->size < sizeof(full) ? memory->size : sizeof(full);
    memcpy(memory, &full, bytes);
    return EDDY_OK;
}

eddy_status eddy_device_memory_limit_set(eddy_device device, int64_t bytes) {
    eddy_origin origin = EDDY_ORIGIN("device_memory_limit_set");
    eddy_runtime *runtime;
    uint8_t number;
    if (bytes < 0)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "%lld bytes are no limit",
                         (long long)bytes);
    eddy_status status = find(&device, origin, &runtime, &number);
    if (status == EDDY_OK)
        eddy_vm_memory_limit_set(runtime->vm, number,
                                 bytes == 0 && number != 0 ? eddy_runtime_device_bytes(device)
                                                           : bytes);
    return status;
}

int64_t eddy_device_memory_trim(eddy_device device) {
    eddy_runtime *runtime;
    uint8_t number;
    eddy_status status = find(&device, EDDY_ORIGIN("device_memory_trim"), &runtime, &number);
    return status == EDDY_OK ? eddy_vm_memory_trim(runtime->vm, number) : 0;
}
