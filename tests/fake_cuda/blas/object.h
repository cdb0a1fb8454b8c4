/* What the library's handles stand for: one table. An object that is used after its end, or as another kind, is told from others (handle.h). */
#ifndef EDDY_TESTS_FAKE_CUDA_BLAS_OBJECT_H
#define EDDY_TESTS_FAKE_CUDA_BLAS_OBJECT_H

#include <pthread.h>
#include <tests/fake_cuda/blas/entries.h>
#include <tests/fake_cuda/handle.h>

typedef struct fake_blas_layout {
    int type;
    uint64_t rows, columns;
    int64_t leading, batch;
    int32_t batches;
} fake_blas_layout;

typedef struct fake_blas_description {
    int sums, scale;
    int32_t is_a_transposed, is_b_transposed, epilogue;
    const void *bias;
} fake_blas_description;

typedef struct fake_blas_wish {
    uint64_t workspace_bytes;
    uint32_t reductions;
    uint32_t alignment[4]; /* of a, b, c, d */
} fake_blas_wish;

typedef struct fake_blas_object {
    fake_kind kind; /* 0: the place is free */
    uint64_t generation;
    union {
        struct {
            eddy_cu_module module;
            eddy_cu_function multiply;
        } context;
        fake_blas_layout layout;
        fake_blas_description product;
        fake_blas_wish preference;
    } as;
} fake_blas_object;

/* Protects the table. */
extern pthread_mutex_t fake_blas_lock;

/* All with the lock. NULL: there is no place; else an object that is all zero. */
fake_blas_object *fake_blas_object_create(fake_kind kind, void **handle);
/* NULL, and a finding that names `entry`: it is none, of this kind, or none any more. */
fake_blas_object *fake_blas_object_of(const void *handle, fake_kind kind, const char *entry);
void fake_blas_object_destroy(fake_blas_object *object);

/* For tests, by dlsym: objects that are there. */
__attribute__((visibility("default"))) int fake_blas_objects(void);

#endif
