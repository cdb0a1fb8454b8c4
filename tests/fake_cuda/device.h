/* Devices and their primary contexts. */
#ifndef EDDY_TESTS_FAKE_CUDA_DEVICE_H
#define EDDY_TESTS_FAKE_CUDA_DEVICE_H

#include <pthread.h>
#include <tests/fake_cuda/entries.h>
#include <tests/fake_cuda/history.h>
#include <tests/fake_cuda/memory.h>
#include <tests/fake_cuda/option.h>

/* Lock: the fake's, but for what is const. */
typedef struct fake_device {
    int ordinal;         /* const */
    int references;      /* to the primary context, which is there while it is above 0 */
    uint64_t generation; /* of the context */
    eddy_cu_result lost; /* the context's, for good; 0: it is well */
    fake_memory memory;
    fake_history history;
    uint64_t random;
    uint64_t turns;              /* pieces that have begun */
    bool reaches[FAKE_DEVICES];  /* its context may use the memory of these */
    pthread_t thread;            /* runs what is launched, while there is a context */
    bool is_running;             /* there is a thread */
    bool is_ending, is_changing; /* it is to end; somebody waits for that */
    pthread_cond_t work;         /* something was launched or may go on, or the thread is to end */
} fake_device;

extern fake_device fake_devices[FAKE_DEVICES];

/* Of a context that is there; NULL: it is none. Lock. */
fake_device *fake_device_of(eddy_cu_context context);
/* The device that has the address; NULL: it is the host's. */
fake_device *fake_device_with(uintptr_t address);
/* The context of this thread. */
eddy_cu_context fake_device_current(void);
/* Everything that was launched is dropped, and waits for it end. Lock. */
void fake_device_lose(fake_device *device, eddy_cu_result result);
/* At exit: ends the threads of all devices, and checks their memory. */
void fake_device_end_all(void);
/* A number of the device's sequence. Lock. */
uint64_t fake_device_draw(fake_device *device);
/* Wakes the threads of all devices. Lock. */
void fake_device_wake_all(void);

/* For tests, by dlsym, of all devices: bytes of blocks that are taken; streams, events, graphs and pinned blocks that are there. */
__attribute__((visibility("default"))) long fake_cuda_bytes(void);
__attribute__((visibility("default"))) long fake_cuda_handles(void);

#endif
