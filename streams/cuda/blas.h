/* cuBLASLt, NVIDIA's library of matrix products: every entry that Eddy calls, once. The list makes the table that the loader fills (blas.c), and the declarations of the fake library of the
 * tests; tests/streams/cuda/test_blas.c compares it with NVIDIA's header, where that is installed. The library is opened at the first product; without it products are Eddy's own.
 *
 * Names and values are those of cublasLt.h, CUDA 13. */
#ifndef EDDY_STREAMS_CUDA_BLAS_H
#define EDDY_STREAMS_CUDA_BLAS_H

#include <streams/cuda/driver.h>

#define EDDY_BLAS_LIBRARY "libcublasLt.so.13"
/* Of the library: major * 10000 + minor * 100 + patch. */
#define EDDY_BLAS_VERSION_LEAST 130000

/* cublasLtMatmulAlgo_t, cublasLtMatmulHeuristicResult_t: what the heuristics find. */
typedef struct eddy_blas_algorithm_object {
    uint64_t data[8];
} eddy_blas_algorithm_object;
typedef struct eddy_blas_choice_object {
    eddy_blas_algorithm_object algorithm;
    size_t workspace_bytes;
    int status;
    float waves;
    int reserved[4];
} eddy_blas_choice_object;

#ifdef EDDY_BLAS_TYPES /* the header that compares them brings its own */
EDDY_BLAS_TYPES
#else
typedef int eddy_blas_status;  /* a cublasStatus_t; 0 is success */
typedef int eddy_blas_type;    /* a cudaDataType_t */
typedef int eddy_blas_compute; /* a cublasComputeType_t */
typedef int eddy_blas_attribute_of_layout, eddy_blas_attribute_of_product,
    eddy_blas_attribute_of_preference; /* enums of the library's */
typedef struct eddy_blas_context_object *eddy_blas_context;
typedef struct eddy_blas_layout_object *eddy_blas_layout;
typedef struct eddy_blas_product_object *eddy_blas_product;
typedef struct eddy_blas_preference_object *eddy_blas_preference;
typedef eddy_blas_algorithm_object eddy_blas_algorithm;
typedef eddy_blas_choice_object eddy_blas_choice;
#endif

/* Statuses that are told apart. */
#define EDDY_BLAS_NOT_INITIALIZED 1
#define EDDY_BLAS_ALLOC_FAILED 3
#define EDDY_BLAS_INVALID_VALUE 7
#define EDDY_BLAS_ARCH_MISMATCH 8
#define EDDY_BLAS_EXECUTION_FAILED 13
#define EDDY_BLAS_NOT_SUPPORTED 15

/* Types of elements, and of sums. Of f32 they are f32: no type that goes by way of TF32 stands here. */
#define EDDY_BLAS_F32 0
#define EDDY_BLAS_F64 1
#define EDDY_BLAS_F16 2
#define EDDY_BLAS_BF16 14
#define EDDY_BLAS_SUMS_F32 68
#define EDDY_BLAS_SUMS_F32_OF_TF32 77
#define EDDY_BLAS_SUMS_F64 70

/* Attributes of a layout, of a product, of a preference. Types of their values: int32_t; int64_t of the offset, uint64_t of the workspace, void * of the bias, uint32_t of the
 * preference's other ones. */
#define EDDY_BLAS_LAYOUT_BATCH_COUNT 5
#define EDDY_BLAS_LAYOUT_BATCH_OFFSET 6 /* in elements, from batch to batch */
#define EDDY_BLAS_PRODUCT_TRANSPOSE_A 3
#define EDDY_BLAS_PRODUCT_TRANSPOSE_B 4
#define EDDY_BLAS_PRODUCT_EPILOGUE 7
#define EDDY_BLAS_PRODUCT_BIAS 8
#define EDDY_BLAS_PREFERENCE_WORKSPACE_BYTES 1
#define EDDY_BLAS_PREFERENCE_REDUCTIONS 3
#define EDDY_BLAS_PREFERENCE_ALIGNMENT_A 5 /* in bytes; those of b, c, d follow */
#define EDDY_BLAS_PREFERENCE_ALIGNMENT_B 6
#define EDDY_BLAS_PREFERENCE_ALIGNMENT_C 7
#define EDDY_BLAS_PREFERENCE_ALIGNMENT_D 8

#define EDDY_BLAS_IS_TRANSPOSED 1
#define EDDY_BLAS_EPILOGUE_BIAS 4 /* added to each row of d, an element for each of them */
/* Sums of parts of the depth are added in the type of sums, and never in that of elements. */
#define EDDY_BLAS_REDUCTION_IN_SUMS 2

/* symbol, name in the table, result, parameters */
/* clang-format off */
#define EDDY_BLAS_LIST(row) \
    row(cublasLtGetVersion, version, size_t, (void)) \
    row(cublasLtCreate, create, eddy_blas_status, (eddy_blas_context *context)) \
    row(cublasLtDestroy, destroy, eddy_blas_status, (eddy_blas_context context)) \
    row(cublasLtMatrixLayoutCreate, layout_create, eddy_blas_status, (eddy_blas_layout *layout, eddy_blas_type type, uint64_t rows, uint64_t columns, int64_t leading)) \
    row(cublasLtMatrixLayoutDestroy, layout_destroy, eddy_blas_status, (eddy_blas_layout layout)) \
    row(cublasLtMatrixLayoutSetAttribute, layout_set, eddy_blas_status, (eddy_blas_layout layout, eddy_blas_attribute_of_layout attribute, const void *value, size_t bytes)) \
    row(cublasLtMatmulDescCreate, product_create, eddy_blas_status, (eddy_blas_product *product, eddy_blas_compute sums, eddy_blas_type scale)) \
    row(cublasLtMatmulDescDestroy, product_destroy, eddy_blas_status, (eddy_blas_product product)) \
    row(cublasLtMatmulDescSetAttribute, product_set, eddy_blas_status, (eddy_blas_product product, eddy_blas_attribute_of_product attribute, const void *value, size_t bytes)) \
    row(cublasLtMatmulPreferenceCreate, preference_create, eddy_blas_status, (eddy_blas_preference *preference)) \
    row(cublasLtMatmulPreferenceDestroy, preference_destroy, eddy_blas_status, (eddy_blas_preference preference)) \
    row(cublasLtMatmulPreferenceSetAttribute, preference_set, eddy_blas_status, (eddy_blas_preference preference, eddy_blas_attribute_of_preference attribute, const void *value, size_t bytes)) \
    row(cublasLtMatmulAlgoGetHeuristic, choose, eddy_blas_status, (eddy_blas_context context, eddy_blas_product product, eddy_blas_layout a, eddy_blas_layout b, eddy_blas_layout c, eddy_blas_layout d, eddy_blas_preference preference, int wanted, eddy_blas_choice *choices, int *found)) \
    row(cublasLtMatmul, multiply, eddy_blas_status, (eddy_blas_context context, eddy_blas_product product, const void *alpha, const void *a, eddy_blas_layout a_layout, const void *b, eddy_blas_layout b_layout, const void *beta, const void *c, eddy_blas_layout c_layout, void *d, eddy_blas_layout d_layout, const eddy_blas_algorithm *algorithm, void *workspace, size_t workspace_bytes, eddy_cu_stream stream))
/* clang-format on */

typedef struct eddy_cuda_blas_entries {
#define EDDY_BLAS_ROW(symbol, name, result, parameters) result(*name) parameters;
    EDDY_BLAS_LIST(EDDY_BLAS_ROW)
#undef EDDY_BLAS_ROW
} eddy_cuda_blas_entries;

/* Const once eddy_cuda_provider_open (provider.h) has returned for the provider, and of use if that is open. */
extern eddy_cuda_blas_entries eddy_cuda_blas;
extern struct eddy_cuda_provider eddy_cuda_blas_provider;

#endif
