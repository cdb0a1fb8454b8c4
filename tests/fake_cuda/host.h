/* Memory of the host: what the driver has pinned, and what pieces touch of all the rest. Lock: the fake's. */
#ifndef EDDY_TESTS_FAKE_CUDA_HOST_H
#define EDDY_TESTS_FAKE_CUDA_HOST_H

#include <tests/fake_cuda/device.h>

fake_history *fake_host_history(void);
/* Whether the bytes lie in one pinned block that devices may touch; an empty range may lie at its end. */
bool fake_host_covers(uintptr_t begin, uintptr_t end, uintptr_t *block_end);
/* Whether the bytes lie in one pinned block. */
bool fake_host_is_pinned(uintptr_t begin, uintptr_t end);
/* Pinned blocks that are there. */
int fake_host_count(void);
/* Frees what was pinned in a context that ends. */
void fake_host_drop(const fake_device *device);

/* For tests, by dlsym: copies so far of memory that is not pinned, each of which holds the calling thread up. */
__attribute__((visibility("default"))) long fake_cuda_holding_copies(void);

#endif
