#include <base/memory.h>
#include <base/sleep.h>
#include <base/status.h>
#include <interpreter/handle/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <streams/far.h>
#include <streams/made_kernel.h>
#include <streams/plugin.h>
#include <string.h>

static const char *const kind_names[] = {
#define EDDY_DEVICE_KIND_ROW(enumerator, name) #name,
    EDDY_DEVICE_KIND_LIST(EDDY_DEVICE_KIND_ROW)
#undef EDDY_DEVICE_KIND_ROW
};

const char *eddy_runtime_device_kind_name(eddy_device_kind kind) {
    return (size_t)kind < EDDY_DEVICE_KIND_COUNT ? kind_names[kind] : "?";
}

/* A decimal number of at most four digits that fills the text. */
static bool parse_index(const char *text, int32_t *index) {
    size_t length = strlen(text);
    if (length == 0 || length > 4 || strspn(text, "0123456789") != length)
        return false;
    *index = (int32_t)strtol(text, NULL, 10);
    return true;
}

bool eddy_runtime_device_named(const char *text, eddy_device *device) {
    for (size_t kind = EDDY_DEVICE_CPU; kind < EDDY_DEVICE_KIND_COUNT; kind++) {
        size_t length = strlen(kind_names[kind]);
        int32_t index = 0;
        if (strncmp(text, kind_names[kind], length) != 0)
            continue;
        if (text[length] != '\0' &&
            (text[length] != ':' || !parse_index(text + length + 1, &index)))
            continue;
        *device = eddy_device_make((eddy_device_kind)kind, index);
        return true;
    }
    return false;
}

eddy_status eddy_device_parse(const char *text, eddy_device *device) {
    eddy_origin origin = EDDY_ORIGIN("device_parse");
    if (!text || !device)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "an argument is NULL");
    if (!eddy_runtime_device_named(text, device))
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                         "\"%.40s\" is no device; \"cpu\", \"far\" and \"cuda:1\" are", text);
    return EDDY_OK;
}

int eddy_device_format(eddy_device device, char *buffer, size_t size) {
    if ((size_t)device.kind >= EDDY_DEVICE_KIND_COUNT)
        return snprintf(buffer, size, "?");
    if (device.kind != EDDY_DEVICE_CPU || device.index != 0)
        return snprintf(buffer, size, "%s:%d", kind_names[device.kind], (int)device.index);
    return snprintf(buffer, size, "%s", kind_names[device.kind]);
}

bool eddy_runtime_has_device(eddy_device device) {
    if (EDDY_LIKELY(device.kind == EDDY_DEVICE_CPU))
        return device.index == 0;
    return device.index >= 0 && device.index < eddy_device_count(device.kind);
}

eddy_status eddy_runtime_check_device(eddy_device device, eddy_origin origin) {
    if (eddy_runtime_has_device(device))
        return EDDY_OK;
    char text[32], why[160] = "";
    eddy_device_format(device, text, sizeof(text));
    if (device.kind == EDDY_DEVICE_CUDA)
        eddy_plugin_of(device.kind, why, sizeof(why));
    return eddy_fail(EDDY_UNSUPPORTED, origin, "there is no device %s here%s%s", text,
                     why[0] ? ": " : "", why);
}

static eddy_lock starting; /* held while threads are started, by no caller of the VM */

void eddy_runtime_devices_fork_child(void) {
    starting = (eddy_lock){0};
    eddy_plugin_fork_child();
    eddy_made_kernels_fork_child();
}

static eddy_status create_far(int32_t index, eddy_backend **backend, char *why, size_t size) {
    eddy_far_options options = {.seed = (uint64_t)index + 1, .bytes = EDDY_RUNTIME_FAR_BYTES};
    *backend = eddy_far_create(&options);
    if (*backend)
        return EDDY_OK;
    snprintf(why, size, "no memory, or no thread");
    return EDDY_OUT_OF_MEMORY;
}

/* There is such a device. */
static eddy_status create(eddy_device device, const eddy_backend_options *options,
                          eddy_backend **backend, char *why, size_t size) {
    if (device.kind == EDDY_DEVICE_FAR)
        return create_far(device.index, backend, why, size);
    return eddy_plugin_of(device.kind, NULL, 0)
        ->device_create(device.index, options, backend, why, size);
}

static eddy_status add(eddy_runtime *runtime, eddy_device device, eddy_origin origin,
                       uint8_t *number) {
    char name[32], why[160] = "";
    eddy_backend *backend;
    eddy_device_format(device, name, sizeof(name));
    eddy_status status = create(device, &runtime->device_options, &backend, why, sizeof(why));
    /* Of a driver that ends with the process. */
    if (status != EDDY_OK && eddy_runtime_is_exiting())
        return eddy_fail(EDDY_SHUT_DOWN, origin, "the process is exiting");
    if (status != EDDY_OK)
        return eddy_fail(status, origin, "%s does not start: %s", name, why);
    /* A driver has an exit handler of its own, behind which nothing works. */
    if (device.kind != EDDY_DEVICE_FAR)
        eddy_runtime_exit_first();
    status = eddy_vm_device_add(runtime->vm, backend, name, eddy_runtime_device_bytes(device),
                                origin, number);
    if (status != EDDY_OK)
        backend->class->destroy(backend);
    return status;
}

/* Makes the device at its first use. */
static eddy_status start(eddy_runtime *runtime, eddy_device device, eddy_origin origin) {
    _Atomic uint8_t *known = &runtime->vm_devices[device.kind][device.index];
    if (EDDY_LIKELY(eddy_load_acquire(known) != 0))
        return EDDY_OK;
    eddy_status status = EDDY_OK;
    eddy_lock_acquire(&starting);
    if (eddy_load_relaxed(known) == 0) {
        uint8_t number;
        status = add(runtime, device, origin, &number);
        if (status == EDDY_OK)
            eddy_store_release(known, number);
    }
    eddy_lock_release(&starting);
    return status;
}

eddy_status eddy_runtime_device(const eddy_caller *caller, eddy_runtime *runtime,
                                const eddy_device *asked, eddy_origin origin, eddy_device *device) {
    eddy_device chosen = runtime->device;
    if (asked && asked->kind != EDDY_DEVICE_DEFAULT)
        chosen = *asked;
    else if (caller->device_count > 0)
        chosen = caller->devices[caller->device_count - 1];
    eddy_status status = eddy_runtime_check_device(chosen, origin);
    if (status == EDDY_OK && EDDY_UNLIKELY(chosen.kind != EDDY_DEVICE_CPU))
        status = start(runtime, chosen, origin);
    if (status == EDDY_OK)
        *device = chosen;
    return status;
}

eddy_status eddy_device_scope_begin(eddy_device device) {
    eddy_origin origin = EDDY_ORIGIN("device_scope_begin");
    eddy_caller *caller = eddy_caller_get();
    if (!eddy_caller_may_call(caller))
        return eddy_caller_refuse(caller, origin);
    eddy_status status = eddy_runtime_check_device(device, origin);
    if (status != EDDY_OK)
        return status;
    if (caller->device_count == caller->device_capacity) {
        int32_t capacity = caller->device_capacity ? caller->device_capacity * 2 : 8;
        size_t item = sizeof(*caller->devices);
        eddy_device *grown =
            eddy_memory_grow(caller->devices, (size_t)caller->device_capacity * item,
                             (size_t)capacity * item, EDDY_MEMORY_RUNTIME);
        if (!grown)
            return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory");
        caller->devices = grown;
        caller->device_capacity = capacity;
    }
    caller->devices[caller->device_count++] = device;
    return EDDY_OK;
}

void eddy_device_scope_end(void) {
    eddy_caller *caller = eddy_caller_self;
    if (caller && caller->device_count > 0)
        caller->device_count--;
}

eddy_device eddy_device_current(void) {
    eddy_origin origin = EDDY_ORIGIN("device_current");
    eddy_caller *caller = eddy_caller_get();
    eddy_runtime *runtime;
    eddy_device device = {EDDY_DEVICE_DEFAULT, 0};
    if (eddy_runtime_of_caller(caller, origin, &runtime) == EDDY_OK)
        (void)!eddy_runtime_device(caller, runtime, NULL, origin, &device);
    return device;
}
