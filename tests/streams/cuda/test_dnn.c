/* streams/cuda/dnn.h says what NVIDIA's cudnn_graph.h and cudnn_cnn.h say. Comparing is the compiler's work; without these headers there is nothing to compare with. */
#if __has_include(<cudnn.h>)
#include <cuda.h>
#include <cudnn.h>

#define EDDY_CUDA_TYPES                                                                            \
    typedef CUresult eddy_cu_result;                                                               \
    typedef CUdevice eddy_cu_device;                                                               \
    typedef CUdeviceptr eddy_cu_address;                                                           \
    typedef CUcontext eddy_cu_context;                                                             \
    typedef CUstream eddy_cu_stream;                                                               \
    typedef CUevent eddy_cu_event;                                                                 \
    typedef CUmodule eddy_cu_module;                                                               \
    typedef CUfunction eddy_cu_function;                                                           \
    typedef CUdevice_attribute eddy_cu_attribute;                                                  \
    typedef CUpointer_attribute eddy_cu_pointer_attribute;
#define EDDY_DNN_TYPES                                                                             \
    typedef cudnnStatus_t eddy_dnn_status;                                                         \
    typedef cudnnBackendDescriptorType_t eddy_dnn_kind;                                            \
    typedef cudnnBackendAttributeName_t eddy_dnn_attribute;                                        \
    typedef cudnnBackendAttributeType_t eddy_dnn_type;                                             \
    typedef cudnnHandle_t eddy_dnn_context;                                                        \
    typedef cudnnBackendDescriptor_t eddy_dnn_descriptor;
#include <streams/cuda/dnn.h>

#define SAME(symbol, name, result, parameters)                                                     \
    _Static_assert(__builtin_types_compatible_p(__typeof__(symbol), result parameters), #symbol);
EDDY_DNN_LIST(SAME)
#undef SAME

/* What dnn.h has of its own is passed alike. */
_Static_assert(sizeof(cudnnStatus_t) == sizeof(int), "statuses");
_Static_assert(sizeof(cudnnBackendDescriptorType_t) == sizeof(int) &&
                   sizeof(cudnnBackendAttributeName_t) == sizeof(int) &&
                   sizeof(cudnnBackendAttributeType_t) == sizeof(int),
               "descriptors and attributes");
_Static_assert(sizeof(cudnnDataType_t) == sizeof(int) &&
                   sizeof(cudnnConvolutionMode_t) == sizeof(int) &&
                   sizeof(cudnnBackendHeurMode_t) == sizeof(int) &&
                   sizeof(cudnnBackendNumericalNote_t) == sizeof(int),
               "elements of attributes");
_Static_assert(CUDNN_MAJOR * 10000 >= EDDY_DNN_VERSION_LEAST, "the version that is needed");

#define EQUAL(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
EQUAL(0, CUDNN_STATUS_SUCCESS);
EQUAL(EDDY_DNN_NOT_INITIALIZED, CUDNN_STATUS_NOT_INITIALIZED);
EQUAL(EDDY_DNN_BAD_PARAM, CUDNN_STATUS_BAD_PARAM);
EQUAL(EDDY_DNN_NOT_SUPPORTED, CUDNN_STATUS_NOT_SUPPORTED);
EQUAL(EDDY_DNN_HOST_ALLOC_FAILED, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
EQUAL(EDDY_DNN_DEVICE_ALLOC_FAILED, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
EQUAL(EDDY_DNN_EXECUTION_FAILED, CUDNN_STATUS_EXECUTION_FAILED);
EQUAL(EDDY_DNN_BAD_PARAM, CUDNN_STATUS_CATEGORY(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH));
EQUAL(EDDY_DNN_NOT_SUPPORTED, CUDNN_STATUS_CATEGORY(CUDNN_STATUS_NOT_SUPPORTED_SHAPE));
EQUAL(EDDY_DNN_CONVOLUTION, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
EQUAL(EDDY_DNN_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
EQUAL(EDDY_DNN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
EQUAL(EDDY_DNN_HEURISTICS, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
EQUAL(EDDY_DNN_PLAN, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
EQUAL(EDDY_DNN_FORWARD, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
EQUAL(EDDY_DNN_BACKWARD_WEIGHT, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
EQUAL(EDDY_DNN_BACKWARD_X, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
EQUAL(EDDY_DNN_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
EQUAL(EDDY_DNN_VARIANT_PACK, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
EQUAL(EDDY_DNN_TENSOR, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
EQUAL(EDDY_DNN_TYPE_HANDLE, CUDNN_TYPE_HANDLE);
EQUAL(EDDY_DNN_TYPE_DATA_TYPE, CUDNN_TYPE_DATA_TYPE);
EQUAL(EDDY_DNN_TYPE_INT64, CUDNN_TYPE_INT64);
EQUAL(EDDY_DNN_TYPE_FLOAT, CUDNN_TYPE_FLOAT);
EQUAL(EDDY_DNN_TYPE_DOUBLE, CUDNN_TYPE_DOUBLE);
EQUAL(EDDY_DNN_TYPE_ADDRESS, CUDNN_TYPE_VOID_PTR);
EQUAL(EDDY_DNN_TYPE_MODE, CUDNN_TYPE_CONVOLUTION_MODE);
EQUAL(EDDY_DNN_TYPE_HEURISTICS_MODE, CUDNN_TYPE_HEUR_MODE);
EQUAL(EDDY_DNN_TYPE_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
EQUAL(EDDY_DNN_TYPE_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR);
EQUAL(EDDY_DNN_CONVOLUTION_SUMS, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
EQUAL(EDDY_DNN_CONVOLUTION_MODE, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
EQUAL(EDDY_DNN_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_DILATIONS);
EQUAL(EDDY_DNN_CONVOLUTION_STRIDES, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
EQUAL(EDDY_DNN_CONVOLUTION_PADDINGS_BEHIND, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
EQUAL(EDDY_DNN_CONVOLUTION_PADDINGS_AHEAD, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
EQUAL(EDDY_DNN_CONVOLUTION_DIMS, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
EQUAL(EDDY_DNN_HEURISTICS_MODE, CUDNN_ATTR_ENGINEHEUR_MODE);
EQUAL(EDDY_DNN_HEURISTICS_GRAPH, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
EQUAL(EDDY_DNN_HEURISTICS_RESULTS, CUDNN_ATTR_ENGINEHEUR_RESULTS);
EQUAL(EDDY_DNN_ENGINE_CONFIG_ENGINE, CUDNN_ATTR_ENGINECFG_ENGINE);
EQUAL(EDDY_DNN_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
EQUAL(EDDY_DNN_PLAN_ENGINE_CONFIG, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
EQUAL(EDDY_DNN_PLAN_WORKSPACE_BYTES, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
#define OPERATION(ours, theirs, x, y, weight)                                                      \
    EQUAL(ours + EDDY_DNN_OPERATION_ALPHA, theirs##_ALPHA);                                        \
    EQUAL(ours + EDDY_DNN_OPERATION_BETA, theirs##_BETA);                                          \
    EQUAL(ours + EDDY_DNN_OPERATION_CONVOLUTION, theirs##_CONV_DESC);                              \
    EQUAL(ours + EDDY_DNN_OPERATION_WEIGHT, theirs##_##weight);                                    \
    EQUAL(ours + EDDY_DNN_OPERATION_X, theirs##_##x);                                              \
    EQUAL(ours + EDDY_DNN_OPERATION_Y, theirs##_##y)
OPERATION(EDDY_DNN_FORWARD_FIRST, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD, X, Y, W);
OPERATION(EDDY_DNN_BACKWARD_X_FIRST, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA, DX, DY, W);
OPERATION(EDDY_DNN_BACKWARD_WEIGHT_FIRST, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER, X, DY, DW);
EQUAL(EDDY_DNN_GRAPH_HANDLE, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
EQUAL(EDDY_DNN_GRAPH_OPERATIONS, CUDNN_ATTR_OPERATIONGRAPH_OPS);
EQUAL(EDDY_DNN_TENSOR_ALIGNMENT, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
EQUAL(EDDY_DNN_TENSOR_DATA_TYPE, CUDNN_ATTR_TENSOR_DATA_TYPE);
EQUAL(EDDY_DNN_TENSOR_SIZES, CUDNN_ATTR_TENSOR_DIMENSIONS);
EQUAL(EDDY_DNN_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_STRIDES);
EQUAL(EDDY_DNN_TENSOR_NUMBER, CUDNN_ATTR_TENSOR_UNIQUE_ID);
EQUAL(EDDY_DNN_PACK_NUMBERS, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
EQUAL(EDDY_DNN_PACK_ADDRESSES, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
EQUAL(EDDY_DNN_PACK_WORKSPACE, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
EQUAL(EDDY_DNN_ENGINE_NOTES, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
EQUAL(EDDY_DNN_F32, CUDNN_DATA_FLOAT);
EQUAL(EDDY_DNN_F64, CUDNN_DATA_DOUBLE);
EQUAL(EDDY_DNN_F16, CUDNN_DATA_HALF);
EQUAL(EDDY_DNN_BF16, CUDNN_DATA_BFLOAT16);
EQUAL(EDDY_DNN_CROSS_CORRELATION, CUDNN_CROSS_CORRELATION);
EQUAL(EDDY_DNN_HEURISTICS_A, CUDNN_HEUR_MODE_A);
EQUAL(EDDY_DNN_HEURISTICS_FALLBACK, CUDNN_HEUR_MODE_FALLBACK);
EQUAL(EDDY_DNN_NOTE_TENSOR_CORES, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
EQUAL(EDDY_DNN_NOTE_CONVERTS_DOWN, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
EQUAL(EDDY_DNN_NOTE_REDUCED_SUMS, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
EQUAL(EDDY_DNN_NOTE_FFT, CUDNN_NUMERICAL_NOTE_FFT);
EQUAL(EDDY_DNN_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
EQUAL(EDDY_DNN_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD);
EQUAL(EDDY_DNN_NOTE_STRICT_NAN, CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP);

int main(void) {
    return 0;
}
#else
#include <stdio.h>

int main(void) {
    fprintf(stderr, "skipped: cudnn.h is not there\n");
    return 77;
}
#endif
