#include <base/assert.h>
#include <base/atomic.h>
#include <base/log.h>
#include <pthread.h>
#include <stdio.h>
#include <streams/cuda/blas.h>
#include <streams/cuda/library.h>

eddy_cuda_blas_entries eddy_cuda_blas;

static const eddy_cuda_entry entries[] = {
#define ENTRY_ROW(symbol, name, result, parameters)                                                \
    {#symbol, offsetof(eddy_cuda_blas_entries, name)},
    EDDY_BLAS_LIST(ENTRY_ROW)
#undef ENTRY_ROW
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
/* Const after `once`: the version of the library, or 0, and why there is none. */
static int version;
static char why[160];
static _Atomic bool is_said; /* atomic: acq_rel; by the first who asks */

static void open_library(void) {
    if (eddy_cuda_library_open(EDDY_BLAS_LIBRARY, entries, sizeof(entries) / sizeof(*entries),
                               &eddy_cuda_blas, why, sizeof(why)) != EDDY_OK)
        return;
    int found = (int)eddy_cuda_blas.version();
    if (found >= EDDY_BLAS_VERSION_LEAST)
        version = found;
    else
        snprintf(why, sizeof(why), "%s is of version %d.%d, and %d.%d is needed", EDDY_BLAS_LIBRARY,
                 found / 10000, found / 100 % 100, EDDY_BLAS_VERSION_LEAST / 10000,
                 EDDY_BLAS_VERSION_LEAST / 100 % 100);
}

bool eddy_cuda_blas_open(void) {
    pthread_once(&once, open_library);
    if (EDDY_LIKELY(eddy_load_relaxed(&is_said)) || eddy_exchange_acq_rel(&is_said, true))
        return false;
    if (version > 0)
        eddy_log_line("cuda: products by cuBLASLt %d.%d.%d", version / 10000, version / 100 % 100,
                      version % 100);
    else
        eddy_log_line("cuda: products by Eddy's own kernels: %s", why);
    return version > 0;
}

bool eddy_cuda_blas_is_open(void) {
    return version > 0;
}
