/* A product as its objects describe it, and whether they fit each other. */
#ifndef EDDY_TESTS_FAKE_CUDA_BLAS_QUESTION_H
#define EDDY_TESTS_FAKE_CUDA_BLAS_QUESTION_H

#include <stdbool.h>
#include <tests/fake_cuda/blas/object.h>

enum { FAKE_A, FAKE_B, FAKE_C, FAKE_D, FAKE_MATRICES };

typedef struct fake_blas_question {
    fake_blas_description product;
    fake_blas_layout matrices[FAKE_MATRICES];
    uint64_t depth;
} fake_blas_question;

/* What the heuristics choose; it lies in an eddy_blas_algorithm. */
typedef struct fake_blas_choice {
    uint64_t hash; /* of the question */
    uint64_t workspace_bytes;
    uint32_t alignment[FAKE_MATRICES]; /* that it counts on */
    uint32_t bias_alignment;
    uint32_t how; /* kernels/blas_product.h */
} fake_blas_choice;

/* Copies what the handles stand for. False, and a finding: one stands for nothing, or they do not fit each other. */
bool fake_blas_question_read(fake_blas_question *question, eddy_blas_product product,
                             const eddy_blas_layout *layouts, const char *entry);
/* Of all but the bias's address. */
uint64_t fake_blas_question_hash(const fake_blas_question *question);
uint64_t fake_blas_element_bytes(const fake_blas_question *question);

#endif
