/* What every entry begins and ends with: faults, the lock, the driver's life and the thread's context. */
#ifndef EDDY_TESTS_FAKE_CUDA_CALL_H
#define EDDY_TESTS_FAKE_CUDA_CALL_H

#include <pthread.h>
#include <stdbool.h>
#include <tests/fake_cuda/device.h>
#include <tests/fake_cuda/entries.h>

typedef enum fake_needs {
    FAKE_NEEDS_NOTHING, /* but that the process does not end */
    FAKE_NEEDS_INIT,
    FAKE_NEEDS_CONTEXT, /* current on this thread, and not lost */
} fake_needs;

typedef struct fake_call {
    eddy_cu_result result; /* why it does not begin */
    fake_device *device;   /* of the thread's context; NULL: it has none */
} fake_call;

/* Protects all of the fake's state. Never held while kernels run or bytes are copied. */
extern pthread_mutex_t fake_lock;
/* With the lock: broadcast when a piece is over, or a device lost, or the process ends. */
extern pthread_cond_t fake_progress;

/* Takes the lock, or returns false. */
bool fake_call_begin(fake_call *call, fake_entry entry, fake_needs needs);
/* Releases it; `result` also takes the context with it, if it is of that sort. */
eddy_cu_result fake_call_end(fake_call *call, eddy_cu_result result);

#define FAKE_BEGIN(symbol, needs)                                                                  \
    fake_call call;                                                                                \
    if (!fake_call_begin(&call, FAKE_##symbol, needs))                                             \
    return call.result

/* Whether exit has begun: every entry says DEINITIALIZED. Lock. */
bool fake_call_is_over(void);

#endif
