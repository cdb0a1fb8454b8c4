/* The entries of the library, declared from the list of streams/cuda/blas.h: one that is missing or mistyped does not build. */
#ifndef EDDY_TESTS_FAKE_CUDA_BLAS_ENTRIES_H
#define EDDY_TESTS_FAKE_CUDA_BLAS_ENTRIES_H

#include <streams/cuda/blas.h>

#define FAKE_BLAS_DECLARED(symbol, name, result, parameters)                                       \
    __attribute__((visibility("default"))) result symbol parameters;
EDDY_BLAS_LIST(FAKE_BLAS_DECLARED)
#undef FAKE_BLAS_DECLARED

typedef enum fake_blas_entry {
#define FAKE_BLAS_NUMBERED(symbol, name, result, parameters) FAKE_##symbol,
    EDDY_BLAS_LIST(FAKE_BLAS_NUMBERED)
#undef FAKE_BLAS_NUMBERED
        FAKE_BLAS_ENTRIES
} fake_blas_entry;

#endif
