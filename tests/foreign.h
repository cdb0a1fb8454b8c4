/* Code that is none of Eddy's and launches on a CUDA device: the driver's entries, as a program finds them, for tests on the fake driver or on a GPU. */
#ifndef EDDY_TESTS_FOREIGN_H
#define EDDY_TESTS_FOREIGN_H

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdint.h>
#include <streams/cuda/driver.h>
#include <string.h>

typedef eddy_cu_result foreign_fill_fn(eddy_cu_address to, unsigned char value, size_t bytes,
                                       eddy_cu_stream stream);
typedef eddy_cu_result foreign_copy_fn(eddy_cu_address to, eddy_cu_address from, size_t bytes,
                                       eddy_cu_stream stream);

static inline void *foreign_entry(const char *symbol) {
    void *found = dlsym(dlopen(EDDY_CUDA_DRIVER_LIBRARY, RTLD_NOW), symbol);
    cr_assert_not_null(found, "%s", symbol);
    return found;
}

static inline eddy_cu_address foreign_address(const void *data) {
    return (eddy_cu_address)(uintptr_t)data;
}

/* Launches a fill, or a copy within the device, on its stream; the device's context is the thread's. What the driver says. */
static inline eddy_cu_result foreign_fill(void *to, unsigned char value, size_t bytes,
                                          void *stream) {
    foreign_fill_fn *fill;
    *(void **)&fill = foreign_entry("cuMemsetD8Async");
    return fill(foreign_address(to), value, bytes, stream);
}

static inline eddy_cu_result foreign_copy(void *to, const void *from, size_t bytes, void *stream) {
    foreign_copy_fn *copy;
    *(void **)&copy = foreign_entry("cuMemcpyDtoDAsync_v2");
    return copy(foreign_address(to), foreign_address(from), bytes, stream);
}

/* The context of device 0 is the calling thread's, as the runtime API would have it. */
static inline void foreign_enter(void) {
    eddy_cu_result (*retain)(eddy_cu_context *, eddy_cu_device), (*set)(eddy_cu_context),
        (*get)(eddy_cu_device *, int);
    *(void **)&retain = foreign_entry("cuDevicePrimaryCtxRetain");
    *(void **)&set = foreign_entry("cuCtxSetCurrent");
    *(void **)&get = foreign_entry("cuDeviceGet");
    eddy_cu_device device;
    eddy_cu_context context;
    cr_assert(get(&device, 0) == 0 && retain(&context, device) == 0 && set(context) == 0);
}

#endif
