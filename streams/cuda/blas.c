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

#define NONE (-1)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char why[160]; /* const after `once`: why there is none */
/* atomic: who opens it (release), others (acquire); 0 before, NONE: there is none */
static _Atomic int version;
static _Atomic bool is_said; /* atomic: acq_rel; by the first who asks */

static void open_library(void) {
    int found = NONE;
    if (eddy_cuda_library_open(EDDY_BLAS_LIBRARY, entries, sizeof(entries) / sizeof(*entries),
                               &eddy_cuda_blas, why, sizeof(why)) == EDDY_OK)
        found = (int)eddy_cuda_blas.version();
    if (found != NONE && found < EDDY_BLAS_VERSION_LEAST) {
        snprintf(why, sizeof(why), "%s is of version %d.%d, and %d.%d is needed", EDDY_BLAS_LIBRARY,
                 found / 10000, found / 100 % 100, EDDY_BLAS_VERSION_LEAST / 10000,
                 EDDY_BLAS_VERSION_LEAST / 100 % 100);
        found = NONE;
    }
    eddy_store_release(&version, found);
}

bool eddy_cuda_blas_is_open(void) {
    return eddy_load_acquire(&version) > 0;
}

void eddy_cuda_blas_format(char *buffer, size_t size) {
    int found = eddy_load_acquire(&version);
    if (found > 0)
        snprintf(buffer, size, "cuBLASLt %d.%d.%d", found / 10000, found / 100 % 100, found % 100);
    else
        snprintf(buffer, size, "%s", found == NONE ? "Eddy" : "");
}

bool eddy_cuda_blas_open(void) {
    pthread_once(&once, open_library);
    if (EDDY_LIKELY(eddy_load_relaxed(&is_said)) || eddy_exchange_acq_rel(&is_said, true))
        return false;
    char what[32];
    eddy_cuda_blas_format(what, sizeof(what));
    bool is_there = eddy_cuda_blas_is_open();
    eddy_log_line("cuda: products of matrices by %s%s%s", what, is_there ? "" : ": ",
                  is_there ? "" : why);
    return is_there;
}
