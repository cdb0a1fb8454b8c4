/* The types of streams/cuda/driver.h as NVIDIA's cuda.h has them: ahead of that header. */
#ifndef EDDY_TESTS_STREAMS_CUDA_CUDA_TYPES_H
#define EDDY_TESTS_STREAMS_CUDA_CUDA_TYPES_H

#include <cuda.h>

#define EDDY_CUDA_TYPES                                                                            \
    typedef CUresult eddy_cu_result;                                                               \
    typedef CUdevice eddy_cu_device;                                                               \
    typedef CUdeviceptr eddy_cu_address;                                                           \
    typedef CUcontext eddy_cu_context;                                                             \
    typedef CUstream eddy_cu_stream;                                                               \
    typedef CUevent eddy_cu_event;                                                                 \
    typedef CUmodule eddy_cu_module;                                                               \
    typedef CUfunction eddy_cu_function;                                                           \
    typedef CUgraph eddy_cu_graph;                                                                 \
    typedef CUgraphExec eddy_cu_graph_exec;                                                        \
    typedef CUgraphExecUpdateResultInfo eddy_cu_graph_update;                                      \
    typedef CUstreamCaptureMode eddy_cu_capture_mode;                                              \
    typedef CUstreamCaptureStatus eddy_cu_capture_status;                                          \
    typedef CUdevice_attribute eddy_cu_attribute;                                                  \
    typedef CUpointer_attribute eddy_cu_pointer_attribute;

#endif
