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

/* That are there. */
static inline int objects(void) {
    int (*count)(void);
    *(void **)&count = fake_dnn_symbol("fake_dnn_objects");
    return count ? count() : 0;
}

#endif
