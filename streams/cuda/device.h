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

/* What a thread was set to before. */
typedef struct eddy_cuda_visit {
    eddy_cu_context context;
    eddy_cu_capture_mode mode;
} eddy_cuda_visit;

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
/* Other code of the process may capture a stream in the mode that refuses calls of the driver to all threads, and drops the capture where one is made. Eddy's calls have nothing
 * to do with what it captures: of the calling thread the driver heeds none of it, until the mode in *before is exchanged for this one. */
eddy_cu_result eddy_cuda_thread_relax(eddy_cu_capture_mode *before);
/* The calling thread's calls of the driver are for the device. */
eddy_cu_result eddy_cuda_device_enter(const eddy_cuda_device *device);
/* Both on a thread that may be the program's, or another library's: until it leaves, which is needed after success alone. */
eddy_cu_result eddy_cuda_device_visit(const eddy_cuda_device *device, eddy_cuda_visit *visit);
void eddy_cuda_device_leave(eddy_cuda_visit visit);

#endif
