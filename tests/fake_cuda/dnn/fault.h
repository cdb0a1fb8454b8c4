/* Counts the calls of each entry, and fails the one that FAKE_CUDA_FAIL_ENTRY names. */
#ifndef EDDY_TESTS_FAKE_CUDA_DNN_FAULT_H
#define EDDY_TESTS_FAKE_CUDA_DNN_FAULT_H

#include <tests/fake_cuda/dnn/entries.h>

/* The status of this call, or 0: it is not to fail. Any thread. */
eddy_dnn_status fake_dnn_fault(fake_dnn_entry entry);

/* For tests, by dlsym: calls of an entry so far; -1: there is none of this symbol. */
__attribute__((visibility("default"))) long fake_dnn_calls(const char *symbol);

#endif
