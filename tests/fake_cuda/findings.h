/* What the fake driver has found wrong in this process so far, for tests that run on it, or on a GPU: there nothing is found. */
#ifndef EDDY_TESTS_FAKE_CUDA_FINDINGS_H
#define EDDY_TESTS_FAKE_CUDA_FINDINGS_H

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>

static inline int fake_cuda_findings_so_far(void) {
    int (*findings)(void);
    *(void **)&findings = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "fake_cuda_findings");
    /* Who asks the fake for something expects to find it. */
    cr_assert(findings || !getenv("FAKE_CUDA_SEED"), "the driver is not the fake one");
    return findings ? findings() : 0;
}

#endif
