/* The entries of the driver, declared from the list of streams/cuda/driver.h: one that is missing or mistyped does not build. */
#ifndef EDDY_TESTS_FAKE_CUDA_ENTRIES_H
#define EDDY_TESTS_FAKE_CUDA_ENTRIES_H

#include <streams/cuda/driver.h>

#define FAKE_ENTRY_DECLARED(symbol, name, parameters)                                              \
    __attribute__((visibility("default"))) eddy_cu_result symbol parameters;
EDDY_CUDA_DRIVER_LIST(FAKE_ENTRY_DECLARED)
#undef FAKE_ENTRY_DECLARED

typedef enum fake_entry {
#define FAKE_ENTRY_NUMBERED(symbol, name, parameters) FAKE_##symbol,
    EDDY_CUDA_DRIVER_LIST(FAKE_ENTRY_NUMBERED)
#undef FAKE_ENTRY_NUMBERED
        FAKE_ENTRIES
} fake_entry;

#endif
