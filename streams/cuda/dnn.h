/* cuDNN, NVIDIA's library of convolutions and attention: every entry that Eddy calls, once, as blas.h has those of the library of products. All of it is the library's graph API: descriptors, of which each has
 * attributes by number. tests/streams/cuda/test_dnn.c compares the list with NVIDIA's header, where that is installed. The library is opened at the first convolution, or at
 * the first use of a device by a runtime that allows rounded weights; without it all is Eddy's own.
 *
 * Names and values are those of cudnn_graph.h, cuDNN 9. */
#ifndef EDDY_STREAMS_CUDA_DNN_H
#define EDDY_STREAMS_CUDA_DNN_H

#include <streams/cuda/driver.h>

#define EDDY_DNN_LIBRARY "libcudnn.so.9"
/* Of the library: major * 10000 + minor * 100 + patch. */
#define EDDY_DNN_VERSION_LEAST 90000

#ifdef EDDY_DNN_TYPES /* the header that compares them brings its own */
EDDY_DNN_TYPES
#else
typedef int eddy_dnn_status; /* a cudnnStatus_t; 0 is success */
typedef int eddy_dnn_kind;   /* of a descriptor */
typedef int eddy_dnn_attribute;
typedef int eddy_dnn_type; /* of an attribute's elements */
typedef struct eddy_dnn_context_object *eddy_dnn_context;
typedef void *eddy_dnn_descriptor;
#endif

/* Statuses that are told apart: the thousands are a category, the rest says more of it. */
#define EDDY_DNN_NOT_INITIALIZED 1001
#define EDDY_DNN_BAD_PARAM 2000
#define EDDY_DNN_NOT_SUPPORTED 3000
#define EDDY_DNN_HOST_ALLOC_FAILED 4003
#define EDDY_DNN_DEVICE_ALLOC_FAILED 4004
#define EDDY_DNN_EXECUTION_FAILED 5000

/* Kinds of descriptors. */
#define EDDY_DNN_POINTWISE 0
#define EDDY_DNN_CONVOLUTION 1
#define EDDY_DNN_ENGINE 2
#define EDDY_DNN_ENGINE_CONFIG 3
#define EDDY_DNN_HEURISTICS 4
#define EDDY_DNN_PLAN 5
#define EDDY_DNN_FORWARD 10
#define EDDY_DNN_BACKWARD_WEIGHT 11
#define EDDY_DNN_BACKWARD_X 12
#define EDDY_DNN_OF_ELEMENTS 13
#define EDDY_DNN_GRAPH 15
#define EDDY_DNN_VARIANT_PACK 16
#define EDDY_DNN_TENSOR 17
#define EDDY_DNN_MATMUL 18
#define EDDY_DNN_PRODUCT 19
#define EDDY_DNN_REDUCTION 21
#define EDDY_DNN_OF_ROWS 22

/* Types of attributes' elements: those of the library, an int for each that is an enum. */
#define EDDY_DNN_TYPE_HANDLE 0
#define EDDY_DNN_TYPE_DATA_TYPE 1
#define EDDY_DNN_TYPE_BOOL 2
#define EDDY_DNN_TYPE_INT64 3
#define EDDY_DNN_TYPE_FLOAT 4
#define EDDY_DNN_TYPE_DOUBLE 5
#define EDDY_DNN_TYPE_ADDRESS 6
#define EDDY_DNN_TYPE_MODE 7
#define EDDY_DNN_TYPE_HEURISTICS_MODE 8
#define EDDY_DNN_TYPE_NOTE 11
#define EDDY_DNN_TYPE_POINTWISE 14
#define EDDY_DNN_TYPE_DESCRIPTOR 15
#define EDDY_DNN_TYPE_REDUCTION 18

/* Attributes of what is done with elements, of a convolution, of heuristics, of a configuration, of a plan. */
#define EDDY_DNN_POINTWISE_MODE 0
#define EDDY_DNN_POINTWISE_TYPE 1     /* it computes in */
#define EDDY_DNN_POINTWISE_AXIS 9     /* of an index */
#define EDDY_DNN_CONVOLUTION_SUMS 100 /* the data type of sums */
#define EDDY_DNN_CONVOLUTION_MODE 101
#define EDDY_DNN_CONVOLUTION_DILATIONS 102
#define EDDY_DNN_CONVOLUTION_STRIDES 103
#define EDDY_DNN_CONVOLUTION_PADDINGS_BEHIND 104
#define EDDY_DNN_CONVOLUTION_PADDINGS_AHEAD 105
#define EDDY_DNN_CONVOLUTION_DIMS 106
#define EDDY_DNN_HEURISTICS_MODE 200
#define EDDY_DNN_HEURISTICS_GRAPH 201
#define EDDY_DNN_HEURISTICS_RESULTS 202
#define EDDY_DNN_ENGINE_CONFIG_ENGINE 300
#define EDDY_DNN_PLAN_HANDLE 400
#define EDDY_DNN_PLAN_ENGINE_CONFIG 401
#define EDDY_DNN_PLAN_WORKSPACE_BYTES 402

/* Of an operation, from its first on: each of the three has them in this order. y: the result of the convolution, or the gradient with respect to it. */
#define EDDY_DNN_FORWARD_FIRST 700
#define EDDY_DNN_BACKWARD_X_FIRST 706
#define EDDY_DNN_BACKWARD_WEIGHT_FIRST 712
#define EDDY_DNN_OPERATION_ALPHA 0
#define EDDY_DNN_OPERATION_BETA 1
#define EDDY_DNN_OPERATION_CONVOLUTION 2
#define EDDY_DNN_OPERATION_WEIGHT 3
#define EDDY_DNN_OPERATION_X 4
#define EDDY_DNN_OPERATION_Y 5

/* Of operations on elements: y of x, b, and t, which chooses. Of products: c of a and b. Of reductions: y of x. */
#define EDDY_DNN_OF_ELEMENTS_POINTWISE 750
#define EDDY_DNN_OF_ELEMENTS_X 751
#define EDDY_DNN_OF_ELEMENTS_B 752
#define EDDY_DNN_OF_ELEMENTS_Y 753
#define EDDY_DNN_OF_ELEMENTS_T 758
#define EDDY_DNN_MATMUL_SUMS 1500 /* the data type of sums */
#define EDDY_DNN_PRODUCT_A 1520
#define EDDY_DNN_PRODUCT_B 1521
#define EDDY_DNN_PRODUCT_C 1522
#define EDDY_DNN_PRODUCT_MATMUL 1523
#define EDDY_DNN_REDUCTION_MODE 1600
#define EDDY_DNN_REDUCTION_TYPE 1601
#define EDDY_DNN_OF_ROWS_X 1610
#define EDDY_DNN_OF_ROWS_Y 1611
#define EDDY_DNN_OF_ROWS_REDUCTION 1612

/* Of a graph, of a tensor, of a variant pack, of an engine. */
#define EDDY_DNN_GRAPH_HANDLE 800
#define EDDY_DNN_GRAPH_OPERATIONS 801
#define EDDY_DNN_TENSOR_ALIGNMENT 900 /* in bytes */
#define EDDY_DNN_TENSOR_DATA_TYPE 901
#define EDDY_DNN_TENSOR_SIZES 902
#define EDDY_DNN_TENSOR_STRIDES 903
#define EDDY_DNN_TENSOR_NUMBER 906     /* by which a variant pack knows it */
#define EDDY_DNN_TENSOR_IS_VIRTUAL 907 /* it lies nowhere */
#define EDDY_DNN_TENSOR_IS_VALUE 908 /* its address is the host's, read when the plan is executed */
#define EDDY_DNN_PACK_NUMBERS 1000
#define EDDY_DNN_PACK_ADDRESSES 1001
#define EDDY_DNN_PACK_WORKSPACE 1003
#define EDDY_DNN_ENGINE_NOTES 1303

/* Data types. */
#define EDDY_DNN_F32 0
#define EDDY_DNN_F64 1
#define EDDY_DNN_F16 2
#define EDDY_DNN_I32 4
#define EDDY_DNN_BF16 9
#define EDDY_DNN_BOOL 11

/* What is done with elements, and with rows. */
#define EDDY_DNN_ADD 0
#define EDDY_DNN_MUL 1
#define EDDY_DNN_DIV 6
#define EDDY_DNN_SUB 9
#define EDDY_DNN_EXP 13
#define EDDY_DNN_LOG 15
#define EDDY_DNN_GE 303
#define EDDY_DNN_INDEX 501
#define EDDY_DNN_SELECT 601 /* x where t is true, else b */
#define EDDY_DNN_SUM 0
#define EDDY_DNN_MAX 3

/* A window is not turned round. */
#define EDDY_DNN_CROSS_CORRELATION 1

/* Heuristics: the best that is known, and what nearly always works. */
#define EDDY_DNN_HEURISTICS_A 3
#define EDDY_DNN_HEURISTICS_FALLBACK 2

/* What an engine says of its numbers. Of f32 and tensor cores: it is TF32. */
#define EDDY_DNN_NOTE_TENSOR_CORES 0
#define EDDY_DNN_NOTE_CONVERTS_DOWN 1
#define EDDY_DNN_NOTE_REDUCED_SUMS 2
#define EDDY_DNN_NOTE_FFT 3
#define EDDY_DNN_NOTE_NONDETERMINISTIC 4
#define EDDY_DNN_NOTE_WINOGRAD 5
#define EDDY_DNN_NOTE_STRICT_NAN 9

/* symbol, name in the table, result, parameters */
/* clang-format off */
#define EDDY_DNN_LIST(row) \
    row(cudnnGetVersion, version, size_t, (void)) \
    row(cudnnCreate, create, eddy_dnn_status, (eddy_dnn_context *context)) \
    row(cudnnDestroy, destroy, eddy_dnn_status, (eddy_dnn_context context)) \
    row(cudnnSetStream, stream_set, eddy_dnn_status, (eddy_dnn_context context, eddy_cu_stream stream)) \
    row(cudnnBackendCreateDescriptor, descriptor_create, eddy_dnn_status, (eddy_dnn_kind kind, eddy_dnn_descriptor *descriptor)) \
    row(cudnnBackendDestroyDescriptor, descriptor_destroy, eddy_dnn_status, (eddy_dnn_descriptor descriptor)) \
    row(cudnnBackendSetAttribute, descriptor_set, eddy_dnn_status, (eddy_dnn_descriptor descriptor, eddy_dnn_attribute attribute, eddy_dnn_type type, int64_t count, const void *elements)) \
    row(cudnnBackendGetAttribute, descriptor_get, eddy_dnn_status, (eddy_dnn_descriptor descriptor, eddy_dnn_attribute attribute, eddy_dnn_type type, int64_t wanted, int64_t *count, void *elements)) \
    row(cudnnBackendFinalize, descriptor_finalize, eddy_dnn_status, (eddy_dnn_descriptor descriptor)) \
    row(cudnnBackendExecute, execute, eddy_dnn_status, (eddy_dnn_context context, eddy_dnn_descriptor plan, eddy_dnn_descriptor pack))
/* clang-format on */

typedef struct eddy_cuda_dnn_entries {
#define EDDY_DNN_ROW(symbol, name, result, parameters) result(*name) parameters;
    EDDY_DNN_LIST(EDDY_DNN_ROW)
#undef EDDY_DNN_ROW
} eddy_cuda_dnn_entries;

/* Const once eddy_cuda_provider_open (provider.h) has returned for the provider, and of use if that is open. */
extern eddy_cuda_dnn_entries eddy_cuda_dnn;
extern struct eddy_cuda_provider eddy_cuda_dnn_provider;

#endif
