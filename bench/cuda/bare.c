#include "bare.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <streams/cuda/driver.h>
#include <string.h>
#include <time.h>

#define SEVERAL 16

/* A kernel that does nothing and one that traps, in PTX: the driver compiles them for its device. */
static const char kernels[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                              ".visible .entry nothing()\n{\n ret;\n}\n"
                              ".visible .entry trap()\n{\n trap;\n}\n";

static eddy_cuda_driver cu;
static eddy_cu_context context;
static eddy_cu_device device_number;
static eddy_cu_stream stream;
static eddy_cu_event event;
static eddy_cu_module module;
static eddy_cu_function function;

static double now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

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
    if (!is_begun) {
        fprintf(stderr, "bare: the driver cannot be used\n");
        return false;
    }
    if (cu.module_load(&module, kernels) == 0)
        (void)cu.module_function(&function, module, "nothing");
    return true;
}

void bare_end(void) {
    (void)cu.event_destroy(event);
    (void)cu.stream_destroy(stream);
    (void)cu.context_release(device_number);
}

int bare_driver_version(void) {
    int version = 0;
    return cu.driver_version(&version) == 0 ? version : 0;
}

static bool settle(void) {
    return cu.event_record(event, stream) == 0 && cu.event_synchronize(event) == 0;
}

static bool launch(void) {
    return cu.launch(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL) == 0;
}

double bare_launches_ns(int count) {
    bool works = function && launch() && settle();
    double begin = now_ns();
    for (int i = 0; i < count && works; i++)
        works = launch();
    works = works && settle();
    return works ? now_ns() - begin : 0;
}

double bare_device_copy_ns(size_t bytes, int count) {
    eddy_cu_address from = 0, to = 0;
    bool works = cu.memory_acquire(&from, bytes) == 0 && cu.memory_acquire(&to, bytes) == 0 &&
                 cu.copy_on_device(to, from, bytes, stream) == 0 && settle();
    double begin = now_ns();
    for (int i = 0; i < count && works; i++)
        works = cu.copy_on_device(to, from, bytes, stream) == 0;
    works = works && settle();
    double taken = now_ns() - begin;
    if (from)
        (void)cu.memory_release(from);
    if (to)
        (void)cu.memory_release(to);
    return works ? taken : 0;
}

double bare_upload_ns(size_t bytes, int count) {
    eddy_cu_address to = 0;
    void *from = NULL;
    bool works = cu.memory_acquire(&to, bytes) == 0 &&
                 cu.host_acquire(&from, bytes, EDDY_CU_HOST_PORTABLE) == 0;
    if (works)
        memset(from, 1, bytes);
    works = works && cu.copy_to_device(to, from, bytes, stream) == 0 && settle();
    double begin = now_ns();
    for (int i = 0; i < count && works; i++)
        works = cu.copy_to_device(to, from, bytes, stream) == 0;
    works = works && settle();
    double taken = now_ns() - begin;
    if (from)
        (void)cu.host_release(from);
    if (to)
        (void)cu.memory_release(to);
    return works ? taken : 0;
}

double bare_round_trip_ns(int count) {
    eddy_cu_address from = 0;
    void *to = NULL;
    bool works = function && cu.memory_acquire(&from, SEVERAL) == 0 &&
                 cu.host_acquire(&to, SEVERAL, EDDY_CU_HOST_PORTABLE) == 0 &&
                 cu.fill_bytes(from, 0, SEVERAL, stream) == 0 && settle();
    double begin = now_ns();
    for (int i = 0; i < count && works; i++)
        works = launch() && cu.copy_to_host(to, from, sizeof(float), stream) == 0 && settle();
    double taken = now_ns() - begin;
    if (to)
        (void)cu.host_release(to);
    if (from)
        (void)cu.memory_release(from);
    return works ? taken : 0;
}

bool bare_trap(void) {
    eddy_cu_function trap;
    return module && cu.module_function(&trap, module, "trap") == 0 &&
           cu.launch(trap, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL) == 0 && !settle();
}
