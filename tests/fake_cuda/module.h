/* Modules and their functions. Any image is a module; functions come from a library of kernels that were compiled for the host, or from the image, if the fake NVRTC has made it. */
#ifndef EDDY_TESTS_FAKE_CUDA_MODULE_H
#define EDDY_TESTS_FAKE_CUDA_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <tests/fake_cuda/device.h>

typedef void fake_touch_report(void *context, const void *begin, size_t bytes, int is_write);

/* Kept for good once it is looked up. Const. */
typedef struct fake_function {
    struct fake_function *next;
    const char *name;
    void *library;
    void (*run)(const void *parameters);
    size_t bytes; /* of its parameters */
    /* Optional, NAME_element_bytes: of each operand of an elementwise kernel. */
    const unsigned char *element_bytes;
    /* Optional, NAME_touches: calls `touch` with each range that the kernel may touch. */
    void (*touches)(const void *parameters, fake_touch_report *touch, void *context);
} fake_function;

/* NULL: it is none, or not of this device. Lock. */
const fake_function *fake_module_function(eddy_cu_function handle, const fake_device *device);
/* The function was launched so. Lock. */
void fake_module_use(eddy_cu_function handle, uint32_t stream, uint64_t number);
/* Runs a kernel over its grid. Without the lock. */
void fake_module_run(const fake_function *function, const void *parameters, const unsigned grid[3],
                     const unsigned block[3], unsigned shared_bytes);
/* The modules of a context that ends. Lock. */
void fake_module_drop(const fake_device *device);

#endif
