/* Devices are values: EDDY_CPU, or parsed from "cpu" and "cuda:1".
 *
 * "far" is a device that the CPU simulates, to test a program where there is no GPU: its memory is its own, which no pointer reaches, it
 * runs what is issued later than the calls, and fails as late. It computes with the CPU's kernels, slowly, and has 1 GB; "far:0" to
 * "far:3" are four of them. Of registered ops it runs the kernel for EDDY_DEVICE_FAR.
 *
 * CUDA devices run so far what docs/devices.md lists; other ops are UNSUPPORTED there.
 *
 * A creation op takes the device of its options, else the calling thread's innermost device scope, else the runtime's
 * option (EDDY_DEVICE in the environment), else the CPU. Nothing here blocks. */
#ifndef EDDY_DEVICE_H
#define EDDY_DEVICE_H

#include <eddy/export.h>
#include <eddy/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One row per kind of device: enumerator, name. The only list. */
#define EDDY_DEVICE_KIND_LIST(row)                                                                 \
    row(DEFAULT, default) /* not named: that of the scope, the environment or the library */       \
        row(CPU, cpu) row(CUDA, cuda) row(FAR, far) /* simulated on the CPU, for tests */

typedef enum eddy_device_kind {
#define EDDY_DEVICE_KIND_ROW(enumerator, name) EDDY_DEVICE_##enumerator,
    EDDY_DEVICE_KIND_LIST(EDDY_DEVICE_KIND_ROW)
#undef EDDY_DEVICE_KIND_ROW
        EDDY_DEVICE_KIND_COUNT
} eddy_device_kind;

/* All zero is EDDY_DEVICE_DEFAULT, so that an options struct may hold one. */
typedef struct eddy_device {
    eddy_device_kind kind;
    int32_t index; /* of the device among those of its kind; 0 for the CPU */
} eddy_device;

static inline eddy_device eddy_device_make(eddy_device_kind kind, int32_t index) {
    eddy_device device;
    device.kind = kind;
    device.index = index;
    return device;
}

#define EDDY_CPU (eddy_device_make(EDDY_DEVICE_CPU, 0))
#define EDDY_CUDA(index) (eddy_device_make(EDDY_DEVICE_CUDA, index))
#define EDDY_FAR(index) (eddy_device_make(EDDY_DEVICE_FAR, index))

/* How many devices of the kind this process can use: one CPU, four that are far, GPUs as many as NVIDIA's driver finds (16 at most; 0 without the plug-in libeddy-cuda.so
 * or the driver, and in a forked child of a process that has used it). 0 for EDDY_DEVICE_DEFAULT, and for numbers that are no kind. Any thread. The first question about CUDA starts
 * the driver, which may take a second. */
EDDY_API int32_t eddy_device_count(eddy_device_kind kind);

typedef struct eddy_device_info {
    size_t size; /* set it to sizeof(eddy_device_info): a newer library writes no more than that */
    char name[64];           /* of the product; "" where it is not known */
    int64_t memory_bytes;    /* that it has */
    int32_t processor_count; /* cores that this process may use, or multiprocessors */
    int32_t queue_count;     /* streams that it can work on at once; 0: as many as there are */
    bool is_simulated;
    /* Of CUDA: what computes products of matrices, "cuBLASLt 13.0.2", or "Eddy" where that library is not found. "" before the first product of the process, and for other kinds. */
    char products[32];
    /* The same of convolutions: "cuDNN 9.19.0"; with allows_rounded_weights from the first use of a device on, since attention is that library's, too. */
    char convolutions[32];
} eddy_device_info;

/* Writes what is known of the device. EDDY_DEVICE_DEFAULT is the device that creation ops of the thread take, which starts the default runtime if
 * none is in use. UNSUPPORTED (there is no such device), INVALID_ARGUMENT (info is NULL); for EDDY_DEVICE_DEFAULT also what starting a runtime or a device fails
 * with. Any thread. */
EDDY_API eddy_status eddy_device_describe(eddy_device device, eddy_device_info *info);

/* "cpu", "cpu:0", "cuda", "cuda:1" (a kind alone is index 0). INVALID_ARGUMENT for anything else; *device is then
 * unchanged. Does not test whether the device exists. Any thread. */
EDDY_API eddy_status eddy_device_parse(const char *text, eddy_device *device);

/* "cpu", "cuda:1" into buffer; returns the length as snprintf does. Any thread. */
EDDY_API int eddy_device_format(eddy_device device, char *buffer, size_t size);

/* Makes `device` the default of the calling thread's creation ops, until the matching end; scopes
 * nest. OUT_OF_MEMORY, UNSUPPORTED (no such device here). */
EDDY_API eddy_status eddy_device_scope_begin(eddy_device device);
/* Ends the innermost device scope of the calling thread; does nothing if none is open. */
EDDY_API void eddy_device_scope_end(void);

/* The device that a creation op of the calling thread would take now. Starts the default runtime if none is in
 * use. */
EDDY_API eddy_device eddy_device_current(void);

#ifdef __cplusplus
}
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_device_parse(...) EDDY_AT_CALL_SITE(eddy_device_parse(__VA_ARGS__))
#define eddy_device_describe(...) EDDY_AT_CALL_SITE(eddy_device_describe(__VA_ARGS__))
#define eddy_device_scope_begin(...) EDDY_AT_CALL_SITE(eddy_device_scope_begin(__VA_ARGS__))
#define eddy_device_scope_end(...) EDDY_AT_CALL_SITE_VOID(eddy_device_scope_end(__VA_ARGS__))
#define eddy_device_current(...) EDDY_AT_CALL_SITE(eddy_device_current(__VA_ARGS__))
#endif
#endif
