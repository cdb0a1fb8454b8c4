/* Counts calls and pieces, and fails those that the options name. */
#ifndef EDDY_TESTS_FAKE_CUDA_FAULT_H
#define EDDY_TESTS_FAKE_CUDA_FAULT_H

#include <stdbool.h>
#include <tests/fake_cuda/entries.h>

/* The result of this call, or 0: it is not to fail. Any thread. */
eddy_cu_result fake_fault_call(fake_entry entry);
/* The same of a piece that is to run. */
eddy_cu_result fake_fault_run(void);
/* Whether a result takes the context with it. */
bool fake_fault_is_sticky(eddy_cu_result result);

/* For tests, by dlsym: the calls of the process so far, and the entry of the one that has failed on request, "a piece" where one failed as it ran, or NULL. */
__attribute__((visibility("default"))) long fake_cuda_calls(void);
__attribute__((visibility("default"))) const char *fake_cuda_failed(void);
/* Of one entry, by its symbol; -1: there is none. */
__attribute__((visibility("default"))) long fake_cuda_calls_of(const char *entry);

#endif
