/* What the fake driver alone offers. On another driver, that of a GPU, a test that asks for it is skipped. */
#ifndef EDDY_TESTS_FAKE_CUDA_NEEDED_H
#define EDDY_TESTS_FAKE_CUDA_NEEDED_H

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>

/* One of its functions; NULL: it is another driver. */
static inline void *fake_cuda_find(const char *name) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = library ? dlsym(library, name) : NULL;
    /* Who asks the fake for something expects to find it. */
    cr_assert(found || !getenv("FAKE_CUDA_SEED"), "the driver is not the fake one");
    return found;
}

static inline void *fake_cuda_ask(const char *name) {
    void *found = fake_cuda_find(name);
    if (!found)
        cr_skip_test("the driver is not the fake one");
    return found;
}

/* Lets a call of the driver fail: how the fake is told to. */
static inline void fake_cuda_fails(const char *entry) {
    (void)fake_cuda_ask("fake_cuda_calls");
    setenv("FAKE_CUDA_FAIL_ENTRY", entry, 1);
}

#endif
