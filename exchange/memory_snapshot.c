/* The blocks of a device's memory as JSON: numbers, and names that need no escapes. */
#include <base/assert.h>
#include <base/memory.h>
#include <base/status.h>
#include <eddy/device_memory.h>
#include <interpreter/handle/runtime.h>
#include <interpreter/host/file.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <streams/memory_block.h>

static const char *const states[] = {"live", "free", "pending"};

typedef struct snapshot {
    eddy_device device;
    eddy_device_memory memory;
    eddy_memory_block *blocks;
    int64_t count, capacity;
} snapshot;

/* Rows may be added meanwhile: then there is room for more. */
static eddy_status list(snapshot *s, eddy_vm *vm, uint8_t number, eddy_origin origin) {
    for (;;) {
        s->count = eddy_vm_memory_list(vm, number, s->blocks, s->capacity);
        if (s->count <= s->capacity)
            return EDDY_OK;
        int64_t capacity = s->count + s->count / 4;
        eddy_memory_block *blocks =
            eddy_memory_grow(s->blocks, (size_t)s->capacity * sizeof(*blocks),
                             (size_t)capacity * sizeof(*blocks), EDDY_MEMORY_RUNTIME);
        if (!blocks)
            return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for the list of blocks");
        s->blocks = blocks;
        s->capacity = capacity;
    }
}

static eddy_status print(eddy_file *file, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static eddy_status print(eddy_file *file, const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    EDDY_ASSERT(length >= 0 && (size_t)length < sizeof(text));
    return eddy_file_write(file, text, (size_t)length);
}

static eddy_status write_block(eddy_file *file, const snapshot *s, int64_t i) {
    const eddy_memory_block *block = &s->blocks[i];
    eddy_status status = print(file, "%s\n    {", i > 0 ? "," : "");
    if (status == EDDY_OK && block->address)
        status = print(file, "\"address\": \"0x%" PRIxPTR "\", ", (uintptr_t)block->address);
    if (status == EDDY_OK && s->device.kind != EDDY_DEVICE_CPU)
        status = print(file, "\"chunk\": %" PRIu32 ", ", block->chunk);
    return status == EDDY_OK
               ? print(file, "\"bytes\": %" PRId64 ", \"count\": %" PRId64 ", \"state\": \"%s\"}",
                       block->bytes, block->count, states[block->state])
               : status;
}

static eddy_status write_all(eddy_file *file, const snapshot *s) {
    char name[32];
    eddy_device_format(s->device, name, sizeof(name));
    eddy_status status =
        print(file,
              "{\n  \"version\": 1,\n  \"device\": \"%s\",\n  \"live_bytes\": %" PRId64
              ",\n  \"peak_bytes\": %" PRId64,
              name, s->memory.live_bytes, s->memory.peak_bytes);
    if (status == EDDY_OK)
        status = print(file,
                       ",\n  \"cached_bytes\": %" PRId64 ",\n  \"limit_bytes\": %" PRId64
                       ",\n  \"blocks\": [",
                       s->memory.cached_bytes, s->memory.limit_bytes);
    for (int64_t i = 0; i < s->count && status == EDDY_OK; i++)
        status = write_block(file, s, i);
    return status == EDDY_OK ? print(file, "%s]\n}\n", s->count > 0 ? "\n  " : "") : status;
}

static eddy_status take(snapshot *s, eddy_device asked, eddy_origin origin) {
    eddy_runtime *runtime;
    eddy_status status = eddy_runtime_running(origin, &runtime);
    if (status == EDDY_OK)
        status = eddy_runtime_device(eddy_caller_get(), runtime, &asked, origin, &s->device);
    if (status == EDDY_OK)
        status = eddy_device_memory_read(s->device, &s->memory);
    return status == EDDY_OK
               ? list(s, runtime->vm, eddy_runtime_vm_device(runtime, s->device), origin)
               : status;
}

eddy_status eddy_device_memory_snapshot(eddy_device device, const char *path) {
    eddy_origin origin = EDDY_ORIGIN("device_memory_snapshot");
    snapshot s = {.memory.size = sizeof(s.memory)};
    eddy_file file;
    if (!path)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "path is NULL");
    eddy_status status = take(&s, device, origin);
    if (status == EDDY_OK)
        status = eddy_file_write_begin(&file, path, INT64_MAX, origin);
    if (status == EDDY_OK)
        status = eddy_file_end(&file, write_all(&file, &s));
    eddy_memory_release(s.blocks, (size_t)s.capacity * sizeof(*s.blocks), EDDY_MEMORY_RUNTIME);
    return status;
}
