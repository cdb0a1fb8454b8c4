/* Memory of one device, for the current runtime: how much is in use and kept, the limit, the blocks.
 *
 * A runtime keeps the memory that tensors have released for new ones. It gives that back when the system or the device refuses more, when the limit is
 * reached, and when the caller asks for it. Unless a function says otherwise: any thread, nothing blocks, and a failure fills the calling thread's error
 * slot: UNSUPPORTED (there is no such device), SHUT_DOWN, FORKED, OUT_OF_MEMORY (no memory to start the device). A device that was not used
 * before is started. EDDY_DEVICE_DEFAULT is the device that creation ops of the thread take. */
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
    int64_t
        staging_bytes; /* of the host's memory, pinned for copies from and to the device; in none of the others */
} eddy_device_memory;

/* Each number is exact, but they are not read at one moment. INVALID_ARGUMENT (memory is NULL). */
EDDY_API eddy_status eddy_device_memory_read(eddy_device device, eddy_device_memory *memory);

/* The runtime takes no more than `bytes` of the device from now on. 0 is the default: all memory of the device; for the CPU the default of the option
 * memory_limit (<eddy/options.h>). What is in use stays, and what this runtime keeps beyond the limit goes back. An op that gets no memory fails late, with
 * OUT_OF_MEMORY. The CPU's limit holds for all runtimes of the process. INVALID_ARGUMENT (bytes is negative). */
EDDY_API eddy_status eddy_device_memory_limit_set(eddy_device device, int64_t bytes);

/* Gives back what is kept on the device and pinned for it; returns the bytes, 0 also on failure. eddy_trim does so for all devices of the runtime. */
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
