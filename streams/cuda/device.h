/* A GPU, as all runtimes of the process share it: its primary context, which is kept, and what is known of it. */
#ifndef EDDY_STREAMS_CUDA_DEVICE_H
#define EDDY_STREAMS_CUDA_DEVICE_H

#include <base/assert.h>
#include <eddy/device.h>
#include <kernels/cuda/launch.h>
#include <streams/cuda/driver.h>

typedef struct eddy_cuda_device {
    int32_t index;           /* const */
    eddy_cu_device number;   /* const */
    eddy_cu_context context; /* const */
    int processor_count;     /* const */
    int capability;          /* const; 90 is 9.0 */
} eddy_cuda_device;

/* Counts them, once, after eddy_cuda_driver_open. */
void eddy_cuda_devices_find(void);
/* How many there are. Any thread. */
int32_t eddy_cuda_device_count(void);
void eddy_cuda_device_describe(int32_t index, eddy_device_info *info);
/* Starts the device, whose index is below the count; it lives as long as the process. UNSUPPORTED, OUT_OF_MEMORY, DEVICE_LOST, with a sentence in `why`. One thread at
 * a time. */
EDDY_MUST_USE eddy_status eddy_cuda_device_start(int32_t index, const eddy_cuda_device **started,
                                                 char *why, size_t size);
/* One that was started. */
const eddy_cuda_device *eddy_cuda_device_started(int32_t index);
/* The calling thread's calls of the driver are for the device. */
eddy_cu_result eddy_cuda_device_enter(const eddy_cuda_device *device);
/* The same on a thread that may be the program's, or another library's: until it leaves, which is needed after success alone. */
eddy_cu_result eddy_cuda_device_visit(const eddy_cuda_device *device, eddy_cu_context *before);
void eddy_cuda_device_leave(eddy_cu_context before);

#endif
