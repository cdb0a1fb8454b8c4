/* CUDA's driver API: every entry that Eddy and the tests of the fake driver call, once. The list makes the table that the loader fills (driver.c), and the declarations of the fake driver
 * of the tests; tests/streams/cuda/test_driver.c compares it with NVIDIA's header, where that is installed. Nothing else of CUDA's host side is included or linked.
 *
 * Names and values are those of cuda.h, CUDA 12 and later; the suffix _v2 is part of a symbol. */
#ifndef EDDY_STREAMS_CUDA_DRIVER_H
#define EDDY_STREAMS_CUDA_DRIVER_H

#include <eddy/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EDDY_CUDA_DRIVER_LIBRARY "libcuda.so.1"

#ifdef EDDY_CUDA_TYPES /* the header that compares them brings its own */
EDDY_CUDA_TYPES
#else
typedef int eddy_cu_result; /* a CUresult; 0 is success */
typedef int eddy_cu_device;
typedef unsigned long long eddy_cu_address;
typedef struct eddy_cu_context_object *eddy_cu_context;
typedef struct eddy_cu_stream_object *eddy_cu_stream;
typedef struct eddy_cu_event_object *eddy_cu_event;
typedef struct eddy_cu_module_object *eddy_cu_module;
typedef struct eddy_cu_function_object *eddy_cu_function;
typedef struct eddy_cu_graph_object *eddy_cu_graph;
typedef struct eddy_cu_graph_exec_object *eddy_cu_graph_exec; /* one that can be launched */
/* What an update says that is refused. */
typedef struct eddy_cu_graph_update {
    int result;
    void *node, *from_node;
} eddy_cu_graph_update;
typedef int eddy_cu_capture_mode;
typedef int eddy_cu_capture_status;
typedef int eddy_cu_attribute; /* an enum of the driver's */
typedef int eddy_cu_pointer_attribute;
#endif

/* Results that are told apart. */
#define EDDY_CU_INVALID_VALUE 1
#define EDDY_CU_OUT_OF_MEMORY 2
#define EDDY_CU_NOT_INITIALIZED 3
#define EDDY_CU_DEINITIALIZED 4
#define EDDY_CU_NO_DEVICE 100
#define EDDY_CU_INVALID_DEVICE 101
#define EDDY_CU_INVALID_CONTEXT 201
#define EDDY_CU_NO_BINARY 209
#define EDDY_CU_PEERS_UNSUPPORTED 217
#define EDDY_CU_INVALID_HANDLE 400
#define EDDY_CU_NOT_FOUND 500
#define EDDY_CU_NOT_READY 600
#define EDDY_CU_ILLEGAL_ADDRESS 700
#define EDDY_CU_PEERS_ALREADY 704
#define EDDY_CU_LAUNCH_FAILED 719
#define EDDY_CU_NOT_SUPPORTED 801
/* What a stream that captures refuses, or a thread meanwhile, and what comes of it. */
#define EDDY_CU_CAPTURES_FIRST 900
#define EDDY_CU_CAPTURE_INVALIDATED 901
#define EDDY_CU_CAPTURE_OF_OTHER_THREAD 908
#define EDDY_CU_CAPTURES_LAST 908
#define EDDY_CU_GRAPH_UPDATE_REFUSED 910

static inline bool eddy_cuda_driver_refused_capture(eddy_cu_result result) {
    return result >= EDDY_CU_CAPTURES_FIRST && result <= EDDY_CU_CAPTURES_LAST;
}

/* Attributes of a device. */
#define EDDY_CU_PROCESSOR_COUNT 16
#define EDDY_CU_CAPABILITY_MAJOR 75
#define EDDY_CU_CAPABILITY_MINOR 76
#define EDDY_CU_HAS_STREAM_WRITES 122 /* of 64 bits */

/* Attributes of an address, and the type of a device's memory. */
#define EDDY_CU_POINTER_MEMORY_TYPE 2
#define EDDY_CU_POINTER_DEVICE 9
#define EDDY_CU_MEMORY_HOST 1
#define EDDY_CU_MEMORY_DEVICE 2

/* Flags. */
#define EDDY_CU_STREAM_NON_BLOCKING 1u
#define EDDY_CU_AWAIT_AT_LEAST 0u
/* What a capture lets be called meanwhile, and by whom; and which captures of others a thread heeds. */
#define EDDY_CU_CAPTURE_GLOBAL 0
#define EDDY_CU_CAPTURE_THREAD_LOCAL 1
#define EDDY_CU_CAPTURE_RELAXED 2 /* other streams are as ever, and so are all other calls */
/* Of a stream. */
#define EDDY_CU_CAPTURES_NOT 0
#define EDDY_CU_CAPTURES 1
#define EDDY_CU_CAPTURES_NO_MORE 2 /* what it has captured is invalid */
#define EDDY_CU_EVENT_BLOCKING_SYNC 1u
#define EDDY_CU_EVENT_DISABLE_TIMING 2u
#define EDDY_CU_HOST_PORTABLE 1u
#define EDDY_CU_HOST_MAPPED 2u

/* symbol, name in the table, parameters */
/* clang-format off */
#define EDDY_CUDA_DRIVER_LIST(row) \
    row(cuInit, init, (unsigned flags)) \
    row(cuDriverGetVersion, driver_version, (int *version)) \
    row(cuGetErrorName, error_name, (eddy_cu_result result, const char **name)) \
    row(cuDeviceGetCount, device_count, (int *count)) \
    row(cuDeviceGet, device_get, (eddy_cu_device *device, int ordinal)) \
    row(cuDeviceGetName, device_name, (char *name, int size, eddy_cu_device device)) \
    row(cuDeviceTotalMem_v2, device_memory, (size_t *bytes, eddy_cu_device device)) \
    row(cuDeviceGetAttribute, device_attribute, (int *value, eddy_cu_attribute attribute, eddy_cu_device device)) \
    row(cuDevicePrimaryCtxRetain, context_retain, (eddy_cu_context *context, eddy_cu_device device)) \
    row(cuDevicePrimaryCtxRelease_v2, context_release, (eddy_cu_device device)) \
    row(cuCtxSetCurrent, context_set, (eddy_cu_context context)) \
    row(cuCtxGetCurrent, context_get, (eddy_cu_context *context)) \
    row(cuCtxGetStreamPriorityRange, priority_range, (int *least, int *greatest)) \
    row(cuStreamCreateWithPriority, stream_create, (eddy_cu_stream *stream, unsigned flags, int priority)) \
    row(cuStreamGetPriority, stream_priority, (eddy_cu_stream stream, int *priority)) \
    row(cuStreamDestroy_v2, stream_destroy, (eddy_cu_stream stream)) \
    row(cuStreamQuery, stream_query, (eddy_cu_stream stream)) \
    row(cuStreamWaitEvent, stream_wait_event, (eddy_cu_stream stream, eddy_cu_event event, unsigned flags)) \
    row(cuStreamWriteValue64_v2, stream_write, (eddy_cu_stream stream, eddy_cu_address address, uint64_t value, unsigned flags)) \
    row(cuStreamWaitValue64_v2, stream_await, (eddy_cu_stream stream, eddy_cu_address address, uint64_t value, unsigned flags)) \
    row(cuThreadExchangeStreamCaptureMode, capture_mode_exchange, (eddy_cu_capture_mode *mode)) \
    row(cuStreamBeginCapture_v2, capture_begin, (eddy_cu_stream stream, eddy_cu_capture_mode mode)) \
    row(cuStreamIsCapturing, capture_status, (eddy_cu_stream stream, eddy_cu_capture_status *status)) \
    row(cuStreamEndCapture, capture_end, (eddy_cu_stream stream, eddy_cu_graph *graph)) \
    row(cuGraphInstantiateWithFlags, graph_instantiate, (eddy_cu_graph_exec *exec, eddy_cu_graph graph, unsigned long long flags)) \
    row(cuGraphExecUpdate_v2, graph_update, (eddy_cu_graph_exec exec, eddy_cu_graph graph, eddy_cu_graph_update *why)) \
    row(cuGraphLaunch, graph_launch, (eddy_cu_graph_exec exec, eddy_cu_stream stream)) \
    row(cuGraphExecDestroy, graph_exec_destroy, (eddy_cu_graph_exec exec)) \
    row(cuGraphDestroy, graph_destroy, (eddy_cu_graph graph)) \
    row(cuEventCreate, event_create, (eddy_cu_event *event, unsigned flags)) \
    row(cuEventDestroy_v2, event_destroy, (eddy_cu_event event)) \
    row(cuEventRecord, event_record, (eddy_cu_event event, eddy_cu_stream stream)) \
    row(cuEventSynchronize, event_synchronize, (eddy_cu_event event)) \
    row(cuMemAlloc_v2, memory_acquire, (eddy_cu_address *address, size_t bytes)) \
    row(cuMemFree_v2, memory_release, (eddy_cu_address address)) \
    row(cuPointerGetAttribute, pointer_attribute, (void *value, eddy_cu_pointer_attribute attribute, eddy_cu_address address)) \
    row(cuMemHostAlloc, host_acquire, (void **memory, size_t bytes, unsigned flags)) \
    row(cuMemFreeHost, host_release, (void *memory)) \
    row(cuMemcpyHtoDAsync_v2, copy_to_device, (eddy_cu_address to, const void *from, size_t bytes, eddy_cu_stream stream)) \
    row(cuMemcpyDtoHAsync_v2, copy_to_host, (void *to, eddy_cu_address from, size_t bytes, eddy_cu_stream stream)) \
    row(cuMemcpyDtoDAsync_v2, copy_on_device, (eddy_cu_address to, eddy_cu_address from, size_t bytes, eddy_cu_stream stream)) \
    row(cuMemcpyPeerAsync, copy_across, (eddy_cu_address to, eddy_cu_context to_context, eddy_cu_address from, eddy_cu_context from_context, size_t bytes, eddy_cu_stream stream)) \
    row(cuDeviceCanAccessPeer, can_reach, (int *can, eddy_cu_device device, eddy_cu_device other)) \
    row(cuCtxEnablePeerAccess, reach, (eddy_cu_context other, unsigned flags)) \
    row(cuMemsetD8Async, fill_bytes, (eddy_cu_address to, unsigned char value, size_t bytes, eddy_cu_stream stream)) \
    row(cuModuleLoadData, module_load, (eddy_cu_module *module, const void *image)) \
    row(cuModuleUnload, module_unload, (eddy_cu_module module)) \
    row(cuModuleGetFunction, module_function, (eddy_cu_function *function, eddy_cu_module module, const char *name)) \
    row(cuLaunchKernel, launch, (eddy_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, eddy_cu_stream stream, void **parameters, void **extra))
/* clang-format on */

typedef struct eddy_cuda_driver {
#define EDDY_CUDA_DRIVER_ROW(symbol, name, parameters) eddy_cu_result(*name) parameters;
    EDDY_CUDA_DRIVER_LIST(EDDY_CUDA_DRIVER_ROW)
#undef EDDY_CUDA_DRIVER_ROW
} eddy_cuda_driver;

/* Const once eddy_cuda_driver_open has returned OK. */
extern eddy_cuda_driver eddy_cuda;

/* Finds the driver and starts it, once in a process: UNSUPPORTED, with a sentence in `why`, where there is none, or none that is new enough. */
eddy_status eddy_cuda_driver_open(char *why, size_t size);
/* What a failed result is to Eddy, OUT_OF_MEMORY or DEVICE_LOST, with a sentence in `why` that has the driver's name for it. */
eddy_status eddy_cuda_explain(eddy_cu_result result, char *why, size_t size);

#endif
