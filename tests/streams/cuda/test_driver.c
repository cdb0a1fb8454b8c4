/* streams/cuda/driver.h says what NVIDIA's cuda.h says, and nvrtc.h there what its nvrtc.h does. Comparing is the compiler's work; without that header there is nothing to compare with. */
#if __has_include(<cuda.h>)
#include <tests/streams/cuda/cuda_types.h>

#include <streams/cuda/driver.h>

#define SAME(symbol, name, parameters)                                                             \
    _Static_assert(__builtin_types_compatible_p(__typeof__(symbol), eddy_cu_result parameters),    \
                   #symbol);
EDDY_CUDA_DRIVER_LIST(SAME)
#undef SAME

/* What driver.h has of its own is passed alike. */
_Static_assert(sizeof(CUresult) == sizeof(int), "results");
_Static_assert(sizeof(CUdevice_attribute) == sizeof(int), "attributes");
_Static_assert(sizeof(CUpointer_attribute) == sizeof(int), "attributes of addresses");
_Static_assert(sizeof(CUmemorytype) == sizeof(int), "types of memory");
_Static_assert(__builtin_types_compatible_p(CUdevice, int), "devices");
_Static_assert(__builtin_types_compatible_p(CUdeviceptr, unsigned long long), "addresses");

#define EQUAL(ours, theirs) _Static_assert((ours) == (theirs), #theirs)
EQUAL(0, CUDA_SUCCESS);
EQUAL(EDDY_CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
EQUAL(EDDY_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
EQUAL(EDDY_CU_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
EQUAL(EDDY_CU_DEINITIALIZED, CUDA_ERROR_DEINITIALIZED);
EQUAL(EDDY_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
EQUAL(EDDY_CU_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
EQUAL(EDDY_CU_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
EQUAL(EDDY_CU_NO_BINARY, CUDA_ERROR_NO_BINARY_FOR_GPU);
EQUAL(EDDY_CU_PEERS_UNSUPPORTED, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
EQUAL(EDDY_CU_PEERS_ALREADY, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
EQUAL(EDDY_CU_INVALID_HANDLE, CUDA_ERROR_INVALID_HANDLE);
EQUAL(EDDY_CU_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
EQUAL(EDDY_CU_NOT_READY, CUDA_ERROR_NOT_READY);
EQUAL(EDDY_CU_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS);
EQUAL(EDDY_CU_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED);
EQUAL(EDDY_CU_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
EQUAL(EDDY_CU_CAPTURES_FIRST, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
EQUAL(EDDY_CU_CAPTURES_LAST, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
EQUAL(EDDY_CU_CAPTURE_INVALIDATED, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
EQUAL(EDDY_CU_GRAPH_UPDATE_REFUSED, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
EQUAL(EDDY_CU_CAPTURE_OF_OTHER_THREAD, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
EQUAL(EDDY_CU_CAPTURE_GLOBAL, CU_STREAM_CAPTURE_MODE_GLOBAL);
EQUAL(EDDY_CU_CAPTURE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
EQUAL(EDDY_CU_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
EQUAL(EDDY_CU_CAPTURES_NOT, CU_STREAM_CAPTURE_STATUS_NONE);
EQUAL(EDDY_CU_CAPTURES, CU_STREAM_CAPTURE_STATUS_ACTIVE);
EQUAL(EDDY_CU_CAPTURES_NO_MORE, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
EQUAL(EDDY_CU_PROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
EQUAL(EDDY_CU_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
EQUAL(EDDY_CU_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
EQUAL(EDDY_CU_HAS_STREAM_WRITES, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
EQUAL(EDDY_CU_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
EQUAL(EDDY_CU_POINTER_DEVICE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
EQUAL(EDDY_CU_MEMORY_HOST, CU_MEMORYTYPE_HOST);
EQUAL(EDDY_CU_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);
EQUAL(EDDY_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
EQUAL(EDDY_CU_AWAIT_AT_LEAST, CU_STREAM_WAIT_VALUE_GEQ);
EQUAL(EDDY_CU_EVENT_BLOCKING_SYNC, CU_EVENT_BLOCKING_SYNC);
EQUAL(EDDY_CU_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
EQUAL(EDDY_CU_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
EQUAL(EDDY_CU_HOST_MAPPED, CU_MEMHOSTALLOC_DEVICEMAP);
/* What a launch gets its parameters by, and a write of a value with its barrier. */
_Static_assert(sizeof(CU_LAUNCH_PARAM_BUFFER_POINTER) == sizeof(void *), "launch parameters");
EQUAL(0, CU_STREAM_WRITE_VALUE_DEFAULT);

#if __has_include(<nvrtc.h>)
#include <nvrtc.h>

#define EDDY_CUDA_NVRTC_TYPES                                                                      \
    typedef nvrtcResult eddy_nvrtc_result;                                                         \
    typedef nvrtcProgram eddy_nvrtc_program;
#include <streams/cuda/nvrtc.h>

#define SAME(symbol, name, parameters)                                                             \
    _Static_assert(__builtin_types_compatible_p(__typeof__(symbol), eddy_nvrtc_result parameters), \
                   #symbol);
EDDY_CUDA_NVRTC_LIST(SAME)
#undef SAME

_Static_assert(sizeof(nvrtcResult) == sizeof(int), "results");
EQUAL(0, NVRTC_SUCCESS);
EQUAL(EDDY_NVRTC_OUT_OF_MEMORY, NVRTC_ERROR_OUT_OF_MEMORY);
EQUAL(EDDY_NVRTC_INVALID_INPUT, NVRTC_ERROR_INVALID_INPUT);
EQUAL(EDDY_NVRTC_INVALID_PROGRAM, NVRTC_ERROR_INVALID_PROGRAM);
EQUAL(EDDY_NVRTC_INVALID_OPTION, NVRTC_ERROR_INVALID_OPTION);
EQUAL(EDDY_NVRTC_COMPILATION, NVRTC_ERROR_COMPILATION);
#endif

int main(void) {
    /* These are pointers. */
    return CU_LAUNCH_PARAM_BUFFER_POINTER == (void *)1 &&
                   CU_LAUNCH_PARAM_BUFFER_SIZE == (void *)2 && CU_LAUNCH_PARAM_END == (void *)0
               ? 0
               : 1;
}
#else
#include <stdio.h>

int main(void) {
    fprintf(stderr, "skipped: cuda.h is not there\n");
    return 77;
}
#endif
