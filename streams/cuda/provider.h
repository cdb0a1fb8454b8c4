/* A library of NVIDIA's that does what Eddy's own kernels would do, where it is found: cuBLASLt (blas.h), cuDNN (dnn.h). */
#ifndef EDDY_STREAMS_CUDA_PROVIDER_H
#define EDDY_STREAMS_CUDA_PROVIDER_H

#include <base/atomic.h>
#include <pthread.h>
#include <stdbool.h>
#include <streams/cuda/library.h>

/* Static storage; EDDY_CUDA_PROVIDER fills in what is const. */
typedef struct eddy_cuda_provider {
    const char *name, *file;
    const char *what; /* it does; for the log */
    const eddy_cuda_entry *entries;
    size_t entry_count;
    void *table;
    size_t (*version_of)(void); /* major * 10000 + minor * 100 + patch; by way of the table */
    int version_least;
    void (*find)(void); /* calls eddy_cuda_provider_find for it */
    pthread_once_t once;
    /* atomic: who opens it (release), others (acquire); 0 before, EDDY_CUDA_PROVIDER_NONE: there is none */
    _Atomic int version;
    _Atomic bool is_said; /* atomic: acq_rel; by the first who asks */
    char why[160];        /* const after `once`: why there is none */
} eddy_cuda_provider;

#define EDDY_CUDA_PROVIDER_NONE (-1)

#define EDDY_CUDA_PROVIDER(library, file_name, does, rows, functions, says, least, finds)          \
    {                                                                                              \
        .name = (library), .file = (file_name), .what = (does), .entries = (rows),                 \
        .entry_count = sizeof(rows) / sizeof(*(rows)), .table = &(functions),                      \
        .version_of = (says), .version_least = (least), .find = (finds), .once = PTHREAD_ONCE_INIT \
    }

/* Looks for the library. For the provider's `find`. */
void eddy_cuda_provider_find(eddy_cuda_provider *provider);
/* Has it looked for, once in a process, and says in the log what it has found. True for the call that has loaded it. Any thread that may wait: it takes a second. */
bool eddy_cuda_provider_open(eddy_cuda_provider *provider);
/* Whether it is there. Any thread, after an eddy_cuda_provider_open. */
bool eddy_cuda_provider_is_open(const eddy_cuda_provider *provider);
/* Its name and version, or "Eddy" where there is none; "" before an eddy_cuda_provider_open has returned. Any thread. */
void eddy_cuda_provider_format(const eddy_cuda_provider *provider, char *buffer, size_t size);

#endif
