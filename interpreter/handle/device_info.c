/* What devices there are, and what is known of one. */
#include <base/cpu.h>
#include <base/status.h>
#include <interpreter/handle/runtime.h>
#include <streams/plugin.h>
#include <string.h>
#include <unistd.h>

/* The first call starts the driver. */
static int32_t count_cuda(void) {
    const eddy_plugin *plugin = eddy_plugin_of(EDDY_DEVICE_CUDA, NULL, 0);
    int32_t count = plugin ? plugin->device_count() : 0;
    return count < EDDY_RUNTIME_DEVICES ? count : EDDY_RUNTIME_DEVICES;
}

int32_t eddy_device_count(eddy_device_kind kind) {
    switch (kind) {
    case EDDY_DEVICE_CPU:
        return 1;
    case EDDY_DEVICE_FAR:
        return EDDY_RUNTIME_FAR;
    case EDDY_DEVICE_CUDA:
        return count_cuda();
    case EDDY_DEVICE_DEFAULT:
    case EDDY_DEVICE_KIND_COUNT:
        break;
    }
    return 0;
}

static eddy_device_info describe_cpu(void) {
    eddy_device_info info = {.memory_bytes =
                                 (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE),
                             .processor_count = eddy_cpu_count()};
    eddy_cpu_name(info.name, sizeof(info.name));
    return info;
}

static eddy_device_info describe_far(void) {
    return (eddy_device_info){.name = "simulated by Eddy",
                              .memory_bytes = EDDY_RUNTIME_FAR_BYTES,
                              .processor_count = 1,
                              .queue_count = EDDY_BACKEND_QUEUES,
                              .is_simulated = true};
}

static eddy_device_info describe_cuda(int32_t index) {
    eddy_device_info info = {0};
    const eddy_plugin *plugin = eddy_plugin_of(EDDY_DEVICE_CUDA, NULL, 0);
    if (plugin)
        plugin->describe(index, &info);
    return info;
}

static eddy_device_info describe(eddy_device device) {
    return device.kind == EDDY_DEVICE_CPU   ? describe_cpu()
           : device.kind == EDDY_DEVICE_FAR ? describe_far()
                                            : describe_cuda(device.index);
}

int64_t eddy_runtime_device_bytes(eddy_device device) {
    return describe(device).memory_bytes;
}

/* The device that creation ops of the thread take. */
static eddy_status find_current(eddy_origin origin, eddy_device *device) {
    eddy_caller *caller = eddy_caller_get();
    eddy_runtime *runtime;
    eddy_status status = eddy_runtime_of_caller(caller, origin, &runtime);
    return status == EDDY_OK ? eddy_runtime_device(caller, runtime, NULL, origin, device) : status;
}

eddy_status eddy_device_describe(eddy_device device, eddy_device_info *info) {
    eddy_origin origin = EDDY_ORIGIN("device_describe");
    if (!info)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "info is NULL");
    eddy_status status = device.kind == EDDY_DEVICE_DEFAULT
                             ? find_current(origin, &device)
                             : eddy_runtime_check_device(device, origin);
    if (status != EDDY_OK)
        return status;
    eddy_device_info full = describe(device);
    full.size = info->size;
    size_t bytes = info->size > 0 && info->size < sizeof(full) ? info->size : sizeof(full);
    memcpy(info, &full, bytes);
    return EDDY_OK;
}
