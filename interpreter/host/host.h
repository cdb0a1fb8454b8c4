/* Host access for other files of this folder. */
#ifndef EDDY_INTERPRETER_HOST_HOST_H
#define EDDY_INTERPRETER_HOST_HOST_H

#include <base/assert.h>
#include <base/call_site.h>
#include <eddy/host.h>
#include <stdint.h>

/* eddy_wait until a deadline (eddy_clock_deadline), for a function that reads. */
EDDY_MUST_USE eddy_status eddy_host_wait(eddy_tensor *tensor, int64_t deadline, eddy_origin origin);

/* Memory of the program, for a tensor over it. */
typedef struct eddy_borrow {
    void *data;
    const eddy_shape *shape;
    const int64_t *strides; /* elements, not negative; NULL: row-major */
    eddy_dtype dtype;
    void (*deleter)(void *context); /* or NULL */
    void *context;
    const eddy_device *device; /* or NULL */
    /* The memory is the device's, which is not the CPU; its elements are there once `producer`, a stream of the driver's by its handle, is through what it was
     * given so far (0: they are). */
    bool is_there;
    uintptr_t producer;
    eddy_origin origin;
} eddy_borrow;

/* eddy_from_buffer for any strides. */
eddy_tensor *eddy_host_borrow(const eddy_borrow *borrow);

/* Whether the thread of that number has mapped a tensor of the runtime. Any thread. */
bool eddy_host_has_lend(const struct eddy_runtime *runtime, uint64_t thread);

/* In a forked child. */
void eddy_host_fork_child(void);

#endif
