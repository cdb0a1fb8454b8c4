#include <stdio.h>
#include <string.h>
#include <tests/fake_cuda/call.h>
#include <tests/fake_cuda/finding.h>
#include <tests/fake_cuda/graph.h>
#include <tests/fake_cuda/handle.h>
#include <tests/fake_cuda/host.h>
#include <tests/fake_cuda/runner.h>
#include <tests/fake_cuda/stream.h>

fake_device fake_devices[FAKE_DEVICES];
/* Aligned for LeakSanitizer (kernels/grid.cpp says why). */
static _Alignas(64) _Thread_local eddy_cu_context current;

static eddy_cu_context context_of(const fake_device *device) {
    return fake_handle(FAKE_CONTEXT, device->generation, (uint32_t)device->ordinal);
}

fake_device *fake_device_of(eddy_cu_context context) {
    uint64_t generation;
    uint32_t index;
    if (!fake_handle_read(context, FAKE_CONTEXT, &generation, &index) || index >= FAKE_DEVICES)
        return NULL;
    fake_device *device = &fake_devices[index];
    return device->references > 0 && device->generation == generation ? device : NULL;
}

fake_device *fake_device_with(uintptr_t address) {
    for (int d = 0; d < FAKE_DEVICES; d++)
        if (fake_memory_has(&fake_devices[d].memory, address))
            return &fake_devices[d];
    return NULL;
}

eddy_cu_context fake_device_current(void) {
    return current;
}

uint64_t fake_device_draw(fake_device *device) {
    uint64_t x = device->random += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

void fake_device_wake_all(void) {
    for (int d = 0; d < FAKE_DEVICES; d++)
        if (fake_devices[d].is_running)
            pthread_cond_signal(&fake_devices[d].work);
}

void fake_device_lose(fake_device *device, eddy_cu_result result) {
    if (device->lost)
        return;
    device->lost = result;
    fake_stream_drop(device, false);
    pthread_cond_broadcast(&fake_progress);
    fake_device_wake_all();
}

long fake_cuda_bytes(void) {
    int64_t bytes = 0;
    pthread_mutex_lock(&fake_lock);
    for (int d = 0; d < FAKE_DEVICES; d++)
        bytes += fake_devices[d].memory.taken_bytes;
    pthread_mutex_unlock(&fake_lock);
    return (long)bytes;
}

/* ---- life of a context ---- */

static bool begin(fake_device *device, int ordinal) {
    device->ordinal = ordinal;
    device->generation++;
    device->lost = 0;
    device->is_ending = false;
    memset(device->reaches, 0, sizeof(device->reaches));
    device->random = fake_options_read()->seed * FAKE_DEVICES + (uint64_t)ordinal;
    if (!fake_memory_init(&device->memory, fake_options_read()->bytes, ordinal))
        return false;
    fake_history_init(&device->history);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&device->work, &monotonic);
    pthread_condattr_destroy(&monotonic);
    device->is_running = pthread_create(&device->thread, NULL, fake_runner_main, device) == 0;
    if (!device->is_running)
        fake_memory_fini(&device->memory);
    return device->is_running;
}

/* Releases the lock for a while. */
static void end_thread(fake_device *device) {
    device->is_changing = true;
    device->is_ending = true;
    pthread_cond_signal(&device->work);
    pthread_mutex_unlock(&fake_lock);
    pthread_join(device->thread, NULL);
    pthread_mutex_lock(&fake_lock);
    device->is_running = false;
    device->is_changing = false;
    pthread_cond_broadcast(&fake_progress);
}

static bool is_in_use(const fake_device *device) {
    for (uint32_t s = 0; s < FAKE_STREAMS; s++)
        if (fake_streams[s].device == device &&
            !fake_clock_covers(&fake_host_clock, s, fake_streams[s].worked))
            return true;
    return false;
}

static void end(fake_device *device) {
    if (is_in_use(device))
        fake_finding("release in use: of the context of device %d, while work there is not known "
                     "to be over",
                     device->ordinal);
    end_thread(device);
    fake_stream_drop(device, true);
    fake_module_drop(device);
    fake_graph_drop(device);
    fake_host_drop(device);
    fake_history_fini(&device->history);
    fake_memory_fini(&device->memory);
    pthread_cond_destroy(&device->work);
}

void fake_device_end_all(void) {
    pthread_mutex_lock(&fake_lock);
    for (int d = 0; d < FAKE_DEVICES; d++) {
        fake_device *device = &fake_devices[d];
        if (!device->is_running || device->is_changing)
            continue;
        end_thread(device);
        fake_memory_check_all(&device->memory);
    }
    pthread_mutex_unlock(&fake_lock);
}

/* ---- entries: contexts ---- */

static fake_device *device_number(eddy_cu_device ordinal) {
    return ordinal >= 0 && ordinal < fake_options_read()->devices ? &fake_devices[ordinal] : NULL;
}

static void wait_for_change(const fake_device *device) {
    while (device->is_changing)
        pthread_cond_wait(&fake_progress, &fake_lock);
}

eddy_cu_result cuDevicePrimaryCtxRetain(eddy_cu_context *context, eddy_cu_device ordinal) {
    FAKE_BEGIN(cuDevicePrimaryCtxRetain, FAKE_NEEDS_INIT);
    fake_device *device = device_number(ordinal);
    if (!context || !device)
        return fake_call_end(&call, context ? EDDY_CU_INVALID_DEVICE : EDDY_CU_INVALID_VALUE);
    wait_for_change(device);
    if (device->references == 0 && (fake_call_is_over() || !begin(device, ordinal)))
        return fake_call_end(&call, EDDY_CU_OUT_OF_MEMORY);
    device->references++;
    *context = context_of(device);
    return fake_call_end(&call, 0);
}

eddy_cu_result cuDevicePrimaryCtxRelease_v2(eddy_cu_device ordinal) {
    FAKE_BEGIN(cuDevicePrimaryCtxRelease_v2, FAKE_NEEDS_INIT);
    fake_device *device = device_number(ordinal);
    if (!device)
        return fake_call_end(&call, EDDY_CU_INVALID_DEVICE);
    wait_for_change(device);
    if (device->references == 0 || fake_call_is_over())
        return fake_call_end(&call, EDDY_CU_INVALID_CONTEXT);
    if (--device->references == 0)
        end(device);
    return fake_call_end(&call, 0);
}

eddy_cu_result cuCtxSetCurrent(eddy_cu_context context) {
    FAKE_BEGIN(cuCtxSetCurrent, FAKE_NEEDS_INIT);
    if (context && !fake_device_of(context))
        return fake_call_end(&call, EDDY_CU_INVALID_CONTEXT);
    current = context;
    return fake_call_end(&call, 0);
}

eddy_cu_result cuCtxGetCurrent(eddy_cu_context *context) {
    FAKE_BEGIN(cuCtxGetCurrent, FAKE_NEEDS_INIT);
    if (context)
        *context = current;
    return fake_call_end(&call, context ? 0 : EDDY_CU_INVALID_VALUE);
}

/* ---- entries: devices ---- */

eddy_cu_result cuDeviceGetCount(int *count) {
    FAKE_BEGIN(cuDeviceGetCount, FAKE_NEEDS_INIT);
    if (count)
        *count = fake_options_read()->devices;
    return fake_call_end(&call, count ? 0 : EDDY_CU_INVALID_VALUE);
}

eddy_cu_result cuDeviceGet(eddy_cu_device *device, int ordinal) {
    FAKE_BEGIN(cuDeviceGet, FAKE_NEEDS_INIT);
    if (!device || !device_number(ordinal))
        return fake_call_end(&call, device ? EDDY_CU_INVALID_DEVICE : EDDY_CU_INVALID_VALUE);
    *device = ordinal;
    return fake_call_end(&call, 0);
}

eddy_cu_result cuDeviceGetName(char *name, int size, eddy_cu_device device) {
    FAKE_BEGIN(cuDeviceGetName, FAKE_NEEDS_INIT);
    if (!name || size < 1 || !device_number(device))
        return fake_call_end(&call,
                             name && size > 0 ? EDDY_CU_INVALID_DEVICE : EDDY_CU_INVALID_VALUE);
    snprintf(name, (size_t)size, "Fake CUDA device %d", device);
    return fake_call_end(&call, 0);
}

eddy_cu_result cuDeviceTotalMem_v2(size_t *bytes, eddy_cu_device device) {
    FAKE_BEGIN(cuDeviceTotalMem_v2, FAKE_NEEDS_INIT);
    if (!bytes || !device_number(device))
        return fake_call_end(&call, bytes ? EDDY_CU_INVALID_DEVICE : EDDY_CU_INVALID_VALUE);
    *bytes = (size_t)fake_options_read()->bytes;
    return fake_call_end(&call, 0);
}

eddy_cu_result cuDeviceGetAttribute(int *value, eddy_cu_attribute attribute,
                                    eddy_cu_device device) {
    FAKE_BEGIN(cuDeviceGetAttribute, FAKE_NEEDS_INIT);
    const fake_options *options = fake_options_read();
    if (!value || !device_number(device))
        return fake_call_end(&call, value ? EDDY_CU_INVALID_DEVICE : EDDY_CU_INVALID_VALUE);
    switch (attribute) {
    case EDDY_CU_PROCESSOR_COUNT:
        *value = 4;
        break;
    case EDDY_CU_CAPABILITY_MAJOR:
        *value = options->capability / 10;
        break;
    case EDDY_CU_CAPABILITY_MINOR:
        *value = options->capability % 10;
        break;
    case EDDY_CU_HAS_STREAM_WRITES:
        *value = options->has_stream_writes;
        break;
    default:
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    }
    return fake_call_end(&call, 0);
}

/* ---- entries: peers ---- */

eddy_cu_result cuDeviceCanAccessPeer(int *can, eddy_cu_device device, eddy_cu_device other) {
    FAKE_BEGIN(cuDeviceCanAccessPeer, FAKE_NEEDS_INIT);
    if (!can || !device_number(device) || !device_number(other))
        return fake_call_end(&call, can ? EDDY_CU_INVALID_DEVICE : EDDY_CU_INVALID_VALUE);
    *can = fake_options_read()->has_peers && device != other;
    return fake_call_end(&call, 0);
}

eddy_cu_result cuCtxEnablePeerAccess(eddy_cu_context other, unsigned flags) {
    FAKE_BEGIN(cuCtxEnablePeerAccess, FAKE_NEEDS_CONTEXT);
    const fake_device *peer = fake_device_of(other);
    if (!peer || peer == call.device || flags != 0)
        return fake_call_end(&call, flags ? EDDY_CU_INVALID_VALUE : EDDY_CU_INVALID_CONTEXT);
    if (!fake_options_read()->has_peers)
        return fake_call_end(&call, EDDY_CU_PEERS_UNSUPPORTED);
    if (call.device->reaches[peer->ordinal])
        return fake_call_end(&call, EDDY_CU_PEERS_ALREADY);
    call.device->reaches[peer->ordinal] = true;
    return fake_call_end(&call, 0);
}
