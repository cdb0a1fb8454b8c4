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

/* The context of device 0 is the calling thread's, as the runtime API would have it, which starts the driver, too. */
static inline void foreign_enter(void) {
    eddy_cu_result (*retain)(eddy_cu_context *, eddy_cu_device), (*set)(eddy_cu_context),
        (*get)(eddy_cu_device *, int), (*init)(unsigned);
    *(void **)&init = foreign_entry("cuInit");
    *(void **)&retain = foreign_entry("cuDevicePrimaryCtxRetain");
    *(void **)&set = foreign_entry("cuCtxSetCurrent");
    *(void **)&get = foreign_entry("cuDeviceGet");
    eddy_cu_device device;
    eddy_cu_context context;
    cr_assert(init(0) == 0 && get(&device, 0) == 0 && retain(&context, device) == 0 &&
              set(context) == 0);
}

/* A stream of its own, in the context of the thread. */
static inline void *foreign_stream(void) {
    eddy_cu_result (*create)(eddy_cu_stream *, unsigned, int);
    *(void **)&create = foreign_entry("cuStreamCreateWithPriority");
    eddy_cu_stream made = NULL;
    cr_assert_eq(create(&made, EDDY_CU_STREAM_NON_BLOCKING, 0), 0);
    return made;
}

/* Which captures the calling thread heeds. */
static inline eddy_cu_capture_mode foreign_mode(void) {
    eddy_cu_result (*exchange)(eddy_cu_capture_mode *);
    *(void **)&exchange = foreign_entry("cuThreadExchangeStreamCaptureMode");
    eddy_cu_capture_mode mode = EDDY_CU_CAPTURE_GLOBAL, found;
    cr_assert_eq(exchange(&mode), 0);
    found = mode;
    cr_assert_eq(exchange(&mode), 0);
    return found;
}

static inline eddy_cu_result foreign_capture_begin(void *stream, eddy_cu_capture_mode mode) {
    eddy_cu_result (*begin)(eddy_cu_stream, eddy_cu_capture_mode);
    *(void **)&begin = foreign_entry("cuStreamBeginCapture_v2");
    return begin(stream, mode);
}

/* What the driver says of the capture, whose graph is given up. */
static inline eddy_cu_result foreign_capture_end(void *stream) {
    eddy_cu_result (*end)(eddy_cu_stream, eddy_cu_graph *), (*destroy)(eddy_cu_graph);
    *(void **)&end = foreign_entry("cuStreamEndCapture");
    *(void **)&destroy = foreign_entry("cuGraphDestroy");
    eddy_cu_graph graph = NULL;
    eddy_cu_result result = end(stream, &graph);
    return result == 0 ? destroy(graph) : result;
}

#endif
