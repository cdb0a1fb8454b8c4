/* Tensors to and from other libraries, without a copy, by DLPack (https://github.com/dmlc/dlpack).
 *
 * The structs are DLPack's own: this header names them only, so that it goes together with any <dlpack/dlpack.h>, before or behind it.
 * The versioned struct is that of DLPack 1; the unversioned one is what came before, and what Python's __dlpack__ gives by default.
 *
 * What is shared is memory, not order. Eddy orders its own ops; it knows nothing of what the other library reads and writes, and that
 * one nothing of what Eddy has in flight. Ops that are issued on shared memory while the other library touches it race with it. Lend
 * the tensor meanwhile (eddy_map ... eddy_unmap): it waits for what was issued, and what is issued then runs after the unmap. */
#ifndef EDDY_DLPACK_H
#define EDDY_DLPACK_H

#include <eddy/export.h>
#include <eddy/shape.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensor;
struct DLManagedTensorVersioned;

typedef struct eddy_to_dlpack_options {
    size_t size; /* of this struct; EDDY_OPTIONS fills it in */
    bool
        is_read_only; /* the consumer is told not to write; readers that are in flight are not waited for */
    int64_t timeout; /* ns that the call may wait; 0: without end */
} eddy_to_dlpack_options;

/* The tensor's memory for another library, strides and all. Blocks until everything issued on the tensor has run. The caller calls
 * result->deleter(result) once, or hands that duty on: on any thread, at any time, also after the runtime has gone; until then the
 * elements stay. NULL with the error: one that the tensor holds; INVALID_ARGUMENT where it requires a gradient (the tape cannot see
 * what is written elsewhere: eddy_detach), WOULD_DEADLOCK where the calling thread has it mapped, UNSUPPORTED (device),
 * OUT_OF_MEMORY, TIMED_OUT. The unversioned struct cannot say that it must not be written: is_read_only is UNSUPPORTED there. */
EDDY_API struct DLManagedTensorVersioned *eddy_to_dlpack(eddy_tensor *tensor,
                                                         const eddy_to_dlpack_options *options);
EDDY_API struct DLManagedTensor *eddy_to_dlpack_unversioned(eddy_tensor *tensor,
                                                            const eddy_to_dlpack_options *options);

typedef struct eddy_from_dlpack_options {
    size_t size;
    bool takes_read_only; /* the caller sees to it that no op writes the tensor */
} eddy_from_dlpack_options;

/* A new tensor over the memory of another library. The struct becomes the tensor's: its deleter runs once, on the service thread,
 * after the last use (see eddy_from_buffer). On failure it is not called and the caller keeps the struct: UNSUPPORTED (a device that
 * is not the CPU, an element type or a rank that Eddy does not have, negative strides, DLPack of another major version, memory that
 * must not be written where the option does not allow it), INVALID_ARGUMENT (NULL, no shape, memory not aligned for the dtype),
 * SIZE_OVERFLOW, OUT_OF_MEMORY. Never blocks. */
EDDY_API eddy_tensor *eddy_from_dlpack(struct DLManagedTensorVersioned *managed,
                                       const eddy_from_dlpack_options *options);
EDDY_API eddy_tensor *eddy_from_dlpack_unversioned(struct DLManagedTensor *managed);

#ifdef __cplusplus
}
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_to_dlpack(...) EDDY_AT_CALL_SITE(eddy_to_dlpack(__VA_ARGS__))
#define eddy_to_dlpack_unversioned(...) EDDY_AT_CALL_SITE(eddy_to_dlpack_unversioned(__VA_ARGS__))
#define eddy_from_dlpack(...) EDDY_AT_CALL_SITE(eddy_from_dlpack(__VA_ARGS__))
#define eddy_from_dlpack_unversioned(...)                                                          \
    EDDY_AT_CALL_SITE(eddy_from_dlpack_unversioned(__VA_ARGS__))
#endif
#endif
