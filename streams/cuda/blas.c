#include <streams/cuda/blas.h>
#include <streams/cuda/provider.h>

eddy_cuda_blas_entries eddy_cuda_blas;

static const eddy_cuda_entry entries[] = {
#define ENTRY_ROW(symbol, name, result, parameters)                                                \
    {#symbol, offsetof(eddy_cuda_blas_entries, name)},
    EDDY_BLAS_LIST(ENTRY_ROW)
#undef ENTRY_ROW
};

static size_t version(void) {
    return eddy_cuda_blas.version();
}

static void find(void) {
    eddy_cuda_provider_find(&eddy_cuda_blas_provider);
}

eddy_cuda_provider eddy_cuda_blas_provider =
    EDDY_CUDA_PROVIDER("cuBLASLt", EDDY_BLAS_LIBRARY, "products of matrices", entries,
                       eddy_cuda_blas, version, EDDY_BLAS_VERSION_LEAST, find);
