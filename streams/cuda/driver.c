#include <stdio.h>
#include <streams/cuda/driver.h>
#include <streams/cuda/library.h>

eddy_cuda_driver eddy_cuda;

/* What Eddy's images are made with: a driver runs those of its own release and of older ones. */
#define NEEDED_VERSION 13000

static const eddy_cuda_entry entries[] = {
#define ENTRY_ROW(symbol, name, parameters) {#symbol, offsetof(eddy_cuda_driver, name)},
    EDDY_CUDA_DRIVER_LIST(ENTRY_ROW)
#undef ENTRY_ROW
};

eddy_status eddy_cuda_explain(eddy_cu_result result, char *why, size_t size) {
    const char *name = NULL;
    if (eddy_cuda.error_name(result, &name) != 0 || !name)
        name = "an unknown error";
    snprintf(why, size, "CUDA's driver says %s", name);
    return result == EDDY_CU_OUT_OF_MEMORY ? EDDY_OUT_OF_MEMORY : EDDY_DEVICE_LOST;
}

eddy_status eddy_cuda_driver_open(char *why, size_t size) {
    eddy_status status =
        eddy_cuda_library_open(EDDY_CUDA_DRIVER_LIBRARY, entries,
                               sizeof(entries) / sizeof(*entries), &eddy_cuda, why, size);
    if (status != EDDY_OK)
        return status;
    int version = 0;
    eddy_cu_result result = eddy_cuda.init(0);
    if (result == 0)
        result = eddy_cuda.driver_version(&version);
    if (result == EDDY_CU_NO_DEVICE)
        snprintf(why, size, "CUDA's driver finds no device");
    else if (result != 0)
        eddy_cuda_explain(result, why, size);
    else if (version < NEEDED_VERSION)
        snprintf(why, size, "the driver is one of CUDA %d.%d, and %d.%d is needed", version / 1000,
                 version % 1000 / 10, NEEDED_VERSION / 1000, NEEDED_VERSION % 1000 / 10);
    else
        return EDDY_OK;
    return EDDY_UNSUPPORTED;
}
