#include "bare.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What cuLaunchKernel is told in pairs: the parameters of a kernel, and their bytes. */
#define PARAMETERS_AT ((void *)1)
#define PARAMETERS_BYTES ((void *)2)

/* A kernel that does nothing and one that traps, in PTX: the driver compiles them for its device. */
static const char kernels[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                              ".visible .entry bench_nothing(.param .u64 number)\n{\n ret;\n}\n"
                              ".visible .entry trap()\n{\n trap;\n}\n";

static eddy_cuda_driver cu;
static eddy_cu_context context;
static eddy_cu_device device_number;
static eddy_cu_stream stream;
static eddy_cu_event event;
static eddy_cu_module module;
static eddy_cu_function nothing; /* NULL until it is launched */

static bool find(void) {
    static const struct {
        const char *symbol;
        size_t offset;
    } rows[] = {
#define ROW(symbol, name, parameters) {#symbol, offsetof(eddy_cuda_driver, name)},
        EDDY_CUDA_DRIVER_LIST(ROW)};
    void *library = dlopen(EDDY_CUDA_DRIVER_LIBRARY, RTLD_NOW);
    if (!library)
        return false;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        void *entry = dlsym(library, rows[i].symbol);
        if (!entry)
            return false;
        memcpy((char *)&cu + rows[i].offset, &entry, sizeof(entry));
    }
    return true;
}

bool bare_begin(int device) {
    bool is_begun = find() && cu.init(0) == 0 && cu.device_get(&device_number, device) == 0 &&
                    cu.context_retain(&context, device_number) == 0 &&
                    cu.context_set(context) == 0 &&
                    cu.stream_create(&stream, EDDY_CU_STREAM_NON_BLOCKING, 0) == 0 &&
                    cu.event_create(&event, EDDY_CU_EVENT_DISABLE_TIMING) == 0;
    if (!is_begun)
        fprintf(stderr, "bare: the driver cannot be used\n");
    return is_begun;
}

void bare_end(void) {
    if (module)
        (void)cu.module_unload(module);
    (void)cu.event_destroy(event);
    (void)cu.stream_destroy(stream);
    (void)cu.context_release(device_number);
}

int bare_driver_version(void) {
    int version = 0;
    return cu.driver_version(&version) == 0 ? version : 0;
}

void bare_must(int result, const char *what) {
    if (result == 0)
        return;
    fprintf(stderr, "bare: %s: the result is %d\n", what, result);
    exit(1);
}

eddy_cu_address bare_memory_acquire(size_t bytes) {
    eddy_cu_address memory = 0;
    bare_must(cu.memory_acquire(&memory, bytes), "memory of the device");
    return memory;
}

eddy_cu_address bare_memory_of(const void *values, size_t bytes) {
    eddy_cu_address memory = bare_memory_acquire(bytes);
    bare_copy_to_device(memory, values, bytes);
    bare_settle();
    return memory;
}

void bare_memory_release(eddy_cu_address memory) {
    bare_must(cu.memory_release(memory), "the end of memory");
}

eddy_cu_stream bare_stream(void) {
    return stream;
}

void bare_settle(void) {
    bare_must(cu.event_record(event, stream), "an event");
    bare_must(cu.event_synchronize(event), "the end of the stream");
}

void bare_launch(void) {
    if (!nothing) {
        bare_must(cu.module_load(&module, kernels), "kernels in PTX");
        bare_must(cu.module_function(&nothing, module, "bench_nothing"), "a kernel in PTX");
    }
    uint64_t number = 0;
    size_t bytes = sizeof(number);
    void *extra[] = {PARAMETERS_AT, &number, PARAMETERS_BYTES, &bytes, NULL};
    bare_must(cu.launch(nothing, 1, 1, 1, 32, 1, 1, 0, stream, NULL, extra), "a launch");
}

void bare_copy_on_device(eddy_cu_address to, eddy_cu_address from, size_t bytes) {
    bare_must(cu.copy_on_device(to, from, bytes, stream), "a copy on the device");
}

void bare_copy_to_device(eddy_cu_address to, const void *from, size_t bytes) {
    bare_must(cu.copy_to_device(to, from, bytes, stream), "a copy to the device");
}

void bare_copy_to_host(void *to, eddy_cu_address from, size_t bytes) {
    bare_must(cu.copy_to_host(to, from, bytes, stream), "a copy to the host");
}

void *bare_host_acquire(size_t bytes) {
    void *memory = NULL;
    bare_must(cu.host_acquire(&memory, bytes, EDDY_CU_HOST_PORTABLE), "pinned memory");
    return memory;
}

void bare_host_release(void *memory) {
    bare_must(cu.host_release(memory), "the end of pinned memory");
}

bool bare_trap(void) {
    eddy_cu_function trap;
    return cu.module_load(&module, kernels) == 0 &&
           cu.module_function(&trap, module, "trap") == 0 &&
           cu.launch(trap, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL) == 0 &&
           (cu.event_record(event, stream) != 0 || cu.event_synchronize(event) != 0);
}
