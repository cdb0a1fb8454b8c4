/* Memory of one device, for the current runtime: what it takes and keeps, how much it may take, what lies where.
 *
 * A runtime keeps what tensors have released, for others. What it keeps goes back to the system or the device where that refuses more, where the limit is
 * reached, and where the caller asks for it. Unless a function says otherwise: any thread, nothing blocks, and a failure fills the
 * calling thread's error slot: UNSUPPORTED (there is no such device), SHUT_DOWN, FORKED, OUT_OF_MEMORY (a device that starts). EDDY_DEVICE_DEFAULT is the device that
 * creation ops of the thread take. */
#ifndef EDDY_DEVICE_MEMORY_H
#define EDDY_DEVICE_MEMORY_H

#include <eddy/device.h>
#include <eddy/export.h>
#include <eddy/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct eddy_device_memory {
    size_t
        size; /* set it to sizeof(eddy_device_memory): a newer library writes no more than that */
    int64_t live_bytes;   /* of tensors and workspaces, as blocks */
    int64_t peak_bytes;   /* the most of these since the runtime used the device */
    int64_t cached_bytes; /* kept for others */
    int64_t
        limit_bytes; /* live and cached bytes together, at most; of the CPU those of tensors and workspaces of the whole process */
} eddy_device_memory;

/* Each number is exact, but they are not read at one moment. INVALID_ARGUMENT (memory is NULL). */
EDDY_API eddy_status eddy_device_memory_read(eddy_device device, eddy_device_memory *memory);

/* The runtime takes no more than `bytes` of the device from now on; 0: as at first, which is all of it (of the CPU what the option memory_limit says of itself). What is in use stays; what is
 * kept beyond the limit goes back. Ops that get no memory fail late, with OUT_OF_MEMORY. Of the CPU the limit is the
 * process's, for all runtimes. INVALID_ARGUMENT (negative). */
EDDY_API eddy_status eddy_device_memory_limit_set(eddy_device device, int64_t bytes);

/* Gives back what is kept on the device; returns the bytes, 0 also on failure. eddy_trim does so for all devices of the runtime. */
EDDY_API int64_t eddy_device_memory_trim(eddy_device device);

/* Writes what eddy_device_memory_read says, and the blocks, as JSON (docs/devices.md) to a file, which is replaced as a whole or stays: of a device all blocks, of the CPU those
 * that are kept. Blocks until the file is written. INVALID_ARGUMENT (path is NULL), IO, OUT_OF_MEMORY. */
EDDY_API eddy_status eddy_device_memory_snapshot(eddy_device device, const char *path);

#ifdef __cplusplus
}
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_device_memory_read(...) EDDY_AT_CALL_SITE(eddy_device_memory_read(__VA_ARGS__))
#define eddy_device_memory_limit_set(...)                                                          \
    EDDY_AT_CALL_SITE(eddy_device_memory_limit_set(__VA_ARGS__))
#define eddy_device_memory_trim(...) EDDY_AT_CALL_SITE(eddy_device_memory_trim(__VA_ARGS__))
#define eddy_device_memory_snapshot(...) EDDY_AT_CALL_SITE(eddy_device_memory_snapshot(__VA_ARGS__))
#endif
#endif
