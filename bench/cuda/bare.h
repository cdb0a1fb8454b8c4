/* The driver called directly, without Eddy: what a GPU can do at most. Blocking; one thread. What the driver refuses ends the program with a sentence, but where a function
 * says otherwise. */
#ifndef EDDY_BENCH_CUDA_BARE_H
#define EDDY_BENCH_CUDA_BARE_H

#include <stdbool.h>
#include <stddef.h>
#include <streams/cuda/driver.h>

/* Finds the driver and the device; false with a sentence on stderr. */
bool bare_begin(int device);
void bare_end(void);

/* CUDA's version, 13000 for 13.0. */
int bare_driver_version(void);

/* Ends the program unless the result is 0. */
void bare_must(int result, const char *what);

/* Memory of the device. */
eddy_cu_address bare_memory_acquire(size_t bytes);
eddy_cu_address bare_memory_of(const void *values, size_t bytes); /* a copy of the host's */
void bare_memory_release(eddy_cu_address memory);

/* Of all that is below; and waits until it has run. */
eddy_cu_stream bare_stream(void);
void bare_settle(void);

/* Each ends before what it has issued has run. */
void bare_launch(void); /* of a kernel that does nothing */
void bare_copy_on_device(eddy_cu_address to, eddy_cu_address from, size_t bytes);
void bare_copy_to_device(eddy_cu_address to, const void *from, size_t bytes);
void bare_copy_to_host(void *to, eddy_cu_address from, size_t bytes);

/* Pinned memory of the host. */
void *bare_host_acquire(size_t bytes);
void bare_host_release(void *memory);

/* Runs a kernel that traps, which loses the device for the process. False: it did not come to that. */
bool bare_trap(void);

#endif
