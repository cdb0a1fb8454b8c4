/* The entries of the library, declared from the list of streams/cuda/dnn.h: one that is missing or mistyped does not build. */
#ifndef EDDY_TESTS_FAKE_CUDA_DNN_ENTRIES_H
#define EDDY_TESTS_FAKE_CUDA_DNN_ENTRIES_H

#include <streams/cuda/dnn.h>

#define FAKE_DNN_DECLARED(symbol, name, result, parameters)                                        \
    __attribute__((visibility("default"))) result symbol parameters;
EDDY_DNN_LIST(FAKE_DNN_DECLARED)
#undef FAKE_DNN_DECLARED

typedef enum fake_dnn_entry {
#define FAKE_DNN_NUMBERED(symbol, name, result, parameters) FAKE_##symbol,
    EDDY_DNN_LIST(FAKE_DNN_NUMBERED)
#undef FAKE_DNN_NUMBERED
        FAKE_DNN_ENTRIES
} fake_dnn_entry;

#endif
