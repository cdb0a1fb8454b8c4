/* The driver called directly, without Eddy: what a GPU can do at most, in the same process. Blocking; one thread. */
#ifndef EDDY_BENCH_CUDA_BARE_H
#define EDDY_BENCH_CUDA_BARE_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the driver and the device; false with a sentence on stderr. */
bool bare_begin(int device);
void bare_end(void);

/* CUDA's version, 13000 for 13.0. */
int bare_driver_version(void);

/* Nanoseconds from the first call to the end of the last one on the device. 0: the driver has refused. */
double bare_launches_ns(int count);                  /* of a kernel that does nothing */
double bare_device_copy_ns(size_t bytes, int count); /* within the device */
double bare_upload_ns(size_t bytes, int count);      /* from pinned memory */
double bare_round_trip_ns(int count);                /* a launch, 4 bytes back, waited for */

/* Runs a kernel that traps, which loses the device for the process. False: it did not come to that. */
bool bare_trap(void);

#endif
