/* What the fake of cuDNN (tests/fake_cuda/dnn) was asked. */
#ifndef EDDY_TESTS_FUNCTIONAL_FAKE_DNN_H
#define EDDY_TESTS_FUNCTIONAL_FAKE_DNN_H

#include <dlfcn.h>
#include <streams/cuda/dnn.h>

/* NULL: the library is not there, or is not the fake one. */
static inline void *fake_dnn_symbol(const char *name) {
    void *library = dlopen(EDDY_DNN_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    return library ? dlsym(library, name) : NULL;
}

/* Calls of an entry so far; 0 while the library is not loaded. */
static inline long calls_of(const char *entry) {
    long (*calls)(const char *);
    *(void **)&calls = fake_dnn_symbol("fake_dnn_calls");
    return calls ? calls(entry) : 0;
}

/* What was launched by it. */
static inline long executions(void) {
    return calls_of("cudnnBackendExecute");
}

/* Descriptors so far: a question needs many, a launch one. */
static inline long descriptors(void) {
    return calls_of("cudnnBackendCreateDescriptor");
}

static inline int fake_dnn_count(const char *name) {
    int (*count)(void);
    *(void **)&count = fake_dnn_symbol(name);
    return count ? count() : 0;
}

/* That are there. */
static inline int objects(void) {
    return fake_dnn_count("fake_dnn_objects");
}

/* Which take time (FAKE_CUDA_DNN_PLAN_MS). */
static inline int plans_under_way(void) {
    return fake_dnn_count("fake_dnn_plans_under_way");
}

#endif
