/* What the fake driver has found wrong in this process so far, for tests that run on it, or on a GPU: there nothing is found. */
#ifndef EDDY_TESTS_FAKE_CUDA_FINDINGS_H
#define EDDY_TESTS_FAKE_CUDA_FINDINGS_H

#include <tests/fake_cuda/needed.h>

static inline int fake_cuda_findings_so_far(void) {
    int (*findings)(void);
    *(void **)&findings = fake_cuda_find("fake_cuda_findings");
    return findings ? findings() : 0;
}

#endif
