#include <streams/cuda/dnn.h>
#include <streams/cuda/provider.h>

eddy_cuda_dnn_entries eddy_cuda_dnn;

static const eddy_cuda_entry entries[] = {
#define ENTRY_ROW(symbol, name, result, parameters)                                                \
    {#symbol, offsetof(eddy_cuda_dnn_entries, name)},
    EDDY_DNN_LIST(ENTRY_ROW)
#undef ENTRY_ROW
};

static size_t version(void) {
    return eddy_cuda_dnn.version();
}

static void find(void) {
    eddy_cuda_provider_find(&eddy_cuda_dnn_provider);
}

eddy_cuda_provider eddy_cuda_dnn_provider =
    EDDY_CUDA_PROVIDER("cuDNN", EDDY_DNN_LIBRARY, "convolutions", entries, eddy_cuda_dnn, version,
                       EDDY_DNN_VERSION_LEAST, find);
