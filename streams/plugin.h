/* What the library and a plug-in for a kind of device know of each other: a table in each direction, both with the version of the build they belong to.
 *
 * A plug-in is a shared library of its own, so that the library needs nothing of the device's makers. It is opened at the first use of such a device, once in a process,
 * and stays. Its code calls the library's functions by their names; plugin_host.c, which is part of each plug-in, passes these calls on through the table. */
#ifndef EDDY_STREAMS_PLUGIN_H
#define EDDY_STREAMS_PLUGIN_H

#include <base/assert.h>
#include <base/fork_gate.h>
#include <base/memory.h>
#include <base/process.h>
#include <eddy/device.h>
#include <eddy/version.h>
#include <kernels/fusion.h>
#include <streams/backend.h>
#include <streams/device_pool.h>
#include <streams/team.h>

/* Any change to what stands here, in streams/backend.h, kernels/kernel.h or kernels/fusion.h is one of the library's version, or of this number. */
#define EDDY_PLUGIN_VERSION (EDDY_VERSION * 100 + 9)

/* The library's functions that plug-ins call: result, name, parameters, arguments. */
/* clang-format off */
#define EDDY_PLUGIN_HOST_LIST(row) \
    row(void *, eddy_memory_acquire_zeroed, (size_t bytes, eddy_memory_purpose purpose), (bytes, purpose)) \
    row(void, eddy_memory_release, (void *memory, size_t bytes, eddy_memory_purpose purpose), (memory, bytes, purpose)) \
    row(void, eddy_sleep_wake_one, (eddy_sleep_word *word), (word)) \
    row(void, eddy_doorbell_sleep, (eddy_doorbell *bell, uint32_t seen, int64_t deadline_ns), (bell, seen, deadline_ns)) \
    row(int64_t, eddy_clock_ns, (void), ()) \
    row(bool, eddy_team_spin_begin, (void), ()) \
    row(void, eddy_team_spin_end, (void), ()) \
    row(void *, eddy_device_pool_take, (eddy_device_pool *pool, int64_t bytes, uint32_t queue), (pool, bytes, queue)) \
    row(void, eddy_device_pool_give, (eddy_device_pool *pool, void *data, uint32_t queue, uint64_t ticket), (pool, data, queue, ticket)) \
    row(int64_t, eddy_device_pool_spare, (eddy_device_pool *pool), (pool)) \
    row(void, eddy_fork_gate_enter, (void), ()) \
    row(void, eddy_fork_gate_leave, (void), ()) \
    row(void, eddy_process_exit_first, (void), ())
/* clang-format on */

typedef struct eddy_plugin_host {
    uint32_t version;
#define EDDY_PLUGIN_HOST_ROW(result, name, parameters, arguments) result(*name) parameters;
    EDDY_PLUGIN_HOST_LIST(EDDY_PLUGIN_HOST_ROW)
#undef EDDY_PLUGIN_HOST_ROW
    void (*assert_failed)(const char *condition, const char *file, int line);
    void (*log_line)(const char *format, ...) EDDY_PRINTF(1, 2);
} eddy_plugin_host;

typedef struct eddy_plugin {
    uint32_t version;
    /* Starts the driver, once: UNSUPPORTED, with a sentence in `why`, where there is none or it is of no use. */
    eddy_status (*start)(char *why, size_t size);
    /* After an OK of start; any thread. */
    int32_t (*device_count)(void);
    void (*describe)(int32_t index, eddy_device_info *info);
    /* OUT_OF_MEMORY, UNSUPPORTED (it lacks what Eddy needs), DEVICE_LOST, with a sentence in `why`. */
    eddy_status (*device_create)(int32_t index, const eddy_backend_options *options,
                                 eddy_backend **backend, char *why, size_t size);
    /* The device's kernel in place of the CPU's of that name, for calls that compute in the dtype; NULL: there is none. Static. */
    const eddy_kernel *(*kernel)(const char *name, eddy_dtype compute);
    /* Kernels of fusions, which are made while the process runs. Of a device that was created; what compiles is called by one thread at a time. */
    /* The source, as snprintf; 0: of one of its steps there is none. */
    size_t (*fusion_write)(const eddy_fusion *fusion, char *text, size_t size);
    /* What an image depends on beside the source, as a text of its own. UNSUPPORTED, with a sentence in `why`: nothing compiles here. */
    eddy_status (*compiler_describe)(int32_t device, char *text, size_t size, char *why,
                                     size_t why_size);
    /* An image, acquired with EDDY_MEMORY_CACHE. UNSUPPORTED, OUT_OF_MEMORY, INTERNAL, with a sentence in `why`. */
    eddy_status (*compile)(int32_t device, const char *source, void **image, size_t *bytes,
                           char *why, size_t why_size);
    /* Its kernel, whose views are the fusion's inputs, then its outputs, under one shape whose dims are merged. It lives until it is unloaded, with nothing of it under way. OUT_OF_MEMORY,
     * DEVICE_LOST, with a sentence in `why`. */
    eddy_status (*fusion_load)(int32_t device, const eddy_fusion *fusion, const void *image,
                               const eddy_kernel **kernel, char *why, size_t size);
    void (*fusion_unload)(int32_t device, const eddy_kernel *kernel);
} eddy_plugin;

/* The one symbol of a plug-in: its table. It keeps the library's, which lives as long as the process, if that is of its version. Of a table of another version either side looks at `version` alone. */
#define EDDY_PLUGIN_SYMBOL "eddy_plugin_open"
typedef const eddy_plugin *eddy_plugin_open_fn(const eddy_plugin_host *host);

/* The plug-in of a kind of device, started. NULL, with a sentence in `why` (a NULL is allowed): what it is that is missing. The first call opens it and may take a second. Any
 * thread. */
const eddy_plugin *eddy_plugin_of(eddy_device_kind kind, char *why, size_t size);
/* In a forked child: what the parent has started is of no use there. */
void eddy_plugin_fork_child(void);

#endif
