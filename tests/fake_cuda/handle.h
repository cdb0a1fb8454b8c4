/* Handles: no pointers, so that who looks inside crashes, and one that is used after its end is told from its successor. */
#ifndef EDDY_TESTS_FAKE_CUDA_HANDLE_H
#define EDDY_TESTS_FAKE_CUDA_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum fake_kind {
    FAKE_CONTEXT = 1,
    FAKE_STREAM,
    FAKE_EVENT,
    FAKE_MODULE,
    FAKE_FUNCTION,
    FAKE_GRAPH,
    FAKE_GRAPH_EXEC,
    /* Of the library of products (blas/). */
    FAKE_BLAS_CONTEXT,
    FAKE_BLAS_LAYOUT,
    FAKE_BLAS_PRODUCT,
    FAKE_BLAS_PREFERENCE,
    /* Of the library of convolutions (dnn/). */
    FAKE_DNN_CONTEXT,
    FAKE_DNN_DESCRIPTOR,
} fake_kind;

#define FAKE_HANDLE_INDEX_BITS 20

/* `generation` counts the users of place `index` of the kind's table, from 1. */
static inline void *fake_handle(fake_kind kind, uint64_t generation, uint32_t index) {
    return (void *)(uintptr_t)((generation << FAKE_HANDLE_INDEX_BITS | index) << 4 | kind);
}

static inline bool fake_handle_read(const void *handle, fake_kind kind, uint64_t *generation,
                                    uint32_t *index) {
    uint64_t bits = (uintptr_t)handle;
    *generation = bits >> (FAKE_HANDLE_INDEX_BITS + 4);
    *index = bits >> 4 & ((1u << FAKE_HANDLE_INDEX_BITS) - 1);
    return (bits & 15) == kind;
}

#endif
