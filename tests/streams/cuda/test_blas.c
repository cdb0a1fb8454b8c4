/* streams/cuda/blas.h says what NVIDIA's cublasLt.h says. Comparing is the compiler's work; without that header there is nothing to compare with. */
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#include <stddef.h>
#include <tests/streams/cuda/cuda_types.h>

#define EDDY_BLAS_TYPES                                                                            \
    typedef cublasStatus_t eddy_blas_status;                                                       \
    typedef cudaDataType_t eddy_blas_type;                                                         \
    typedef cublasComputeType_t eddy_blas_compute;                                                 \
    typedef cublasLtMatrixLayoutAttribute_t eddy_blas_attribute_of_layout;                         \
    typedef cublasLtMatmulDescAttributes_t eddy_blas_attribute_of_product;                         \
    typedef cublasLtMatmulPreferenceAttributes_t eddy_blas_attribute_of_preference;                \
    typedef cublasLtHandle_t eddy_blas_context;                                                    \
    typedef cublasLtMatrixLayout_t eddy_blas_layout;                                               \
    typedef cublasLtMatmulDesc_t eddy_blas_product;                                                \
    typedef cublasLtMatmulPreference_t eddy_blas_preference;                                       \
    typedef cublasLtMatmulAlgo_t eddy_blas_algorithm;                                              \
    typedef cublasLtMatmulHeuristicResult_t eddy_blas_choice;
#include <streams/cuda/blas.h>

#define SAME(symbol, name, result, parameters)                                                     \
    _Static_assert(__builtin_types_compatible_p(__typeof__(symbol), result parameters), #symbol);
EDDY_BLAS_LIST(SAME)
#undef SAME

/* What blas.h has of its own is passed alike. */
_Static_assert(sizeof(cublasStatus_t) == sizeof(int), "statuses");
_Static_assert(sizeof(cudaDataType_t) == sizeof(int), "types");
_Static_assert(sizeof(cublasComputeType_t) == sizeof(int), "types of sums");
_Static_assert(sizeof(cublasLtMatrixLayoutAttribute_t) == sizeof(int) &&
                   sizeof(cublasLtMatmulDescAttributes_t) == sizeof(int) &&
                   sizeof(cublasLtMatmulPreferenceAttributes_t) == sizeof(int),
               "attributes");
_Static_assert(sizeof(eddy_blas_algorithm_object) == sizeof(cublasLtMatmulAlgo_t), "algorithms");
_Static_assert(sizeof(eddy_blas_choice_object) == sizeof(cublasLtMatmulHeuristicResult_t),
               "choices");
#define PLACE(ours, theirs)                                                                        \
    _Static_assert(offsetof(eddy_blas_choice_object, ours) ==                                      \
                       offsetof(cublasLtMatmulHeuristicResult_t, theirs),                          \
                   #theirs);
PLACE(algorithm, algo)
PLACE(workspace_bytes, workspaceSize)
PLACE(status, state)
PLACE(waves, wavesCount)

#define EQUAL(ours, theirs) _Static_assert((ours) == (theirs), #theirs)
EQUAL(0, CUBLAS_STATUS_SUCCESS);
EQUAL(EDDY_BLAS_NOT_INITIALIZED, CUBLAS_STATUS_NOT_INITIALIZED);
EQUAL(EDDY_BLAS_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED);
EQUAL(EDDY_BLAS_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE);
EQUAL(EDDY_BLAS_ARCH_MISMATCH, CUBLAS_STATUS_ARCH_MISMATCH);
EQUAL(EDDY_BLAS_EXECUTION_FAILED, CUBLAS_STATUS_EXECUTION_FAILED);
EQUAL(EDDY_BLAS_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
EQUAL(EDDY_BLAS_F32, CUDA_R_32F);
EQUAL(EDDY_BLAS_F64, CUDA_R_64F);
EQUAL(EDDY_BLAS_F16, CUDA_R_16F);
EQUAL(EDDY_BLAS_BF16, CUDA_R_16BF);
EQUAL(EDDY_BLAS_SUMS_F32, CUBLAS_COMPUTE_32F);
EQUAL(EDDY_BLAS_SUMS_F32_OF_TF32, CUBLAS_COMPUTE_32F_FAST_TF32);
EQUAL(EDDY_BLAS_SUMS_F64, CUBLAS_COMPUTE_64F);
EQUAL(EDDY_BLAS_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
EQUAL(EDDY_BLAS_LAYOUT_BATCH_OFFSET, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
EQUAL(EDDY_BLAS_PRODUCT_TRANSPOSE_A, CUBLASLT_MATMUL_DESC_TRANSA);
EQUAL(EDDY_BLAS_PRODUCT_TRANSPOSE_B, CUBLASLT_MATMUL_DESC_TRANSB);
EQUAL(EDDY_BLAS_PRODUCT_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE);
EQUAL(EDDY_BLAS_PRODUCT_BIAS, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
EQUAL(EDDY_BLAS_PREFERENCE_WORKSPACE_BYTES, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
EQUAL(EDDY_BLAS_PREFERENCE_REDUCTIONS, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
EQUAL(EDDY_BLAS_PREFERENCE_ALIGNMENT_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
EQUAL(EDDY_BLAS_PREFERENCE_ALIGNMENT_B, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
EQUAL(EDDY_BLAS_PREFERENCE_ALIGNMENT_C, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
EQUAL(EDDY_BLAS_PREFERENCE_ALIGNMENT_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
EQUAL(EDDY_BLAS_IS_TRANSPOSED, CUBLAS_OP_T);
EQUAL(EDDY_BLAS_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS);
EQUAL(EDDY_BLAS_REDUCTION_IN_SUMS, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);

int main(void) {
    return 0;
}
#else
#include <stdio.h>

int main(void) {
    fprintf(stderr, "skipped: cublasLt.h is not there\n");
    return 77;
}
#endif
