/* Tensors to and from other libraries, without a copy, by DLPack (https://github.com/dmlc/dlpack).
 *
 * The structs are DLPack's own: this header only names them, so that any <dlpack/dlpack.h> may be included before it or after it.
 * The versioned struct is that of DLPack 1; the unversioned one is older, and what Python's __dlpack__ gives by default.
 *
 * Memory is shared, order is not. Eddy orders its own ops; it does not see what the other library reads and writes, and that
 * library does not see which ops are in flight. Ops on shared memory race with accesses of the other library. Map
 * the tensor meanwhile (eddy_map ... eddy_unmap): eddy_map waits for ops issued before, and ops issued later run after the unmap. */
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
        is_read_only; /* the consumer is told not to write, and reads in flight are not waited for */
    int64_t timeout;  /* ns that the call may wait; 0: no limit */
} eddy_to_dlpack_options;

/* Exports the tensor's memory, with its strides, to another library. Blocks until everything issued on the tensor has run. The
 * caller, or the library that it gives the struct to, calls result->deleter(result) once: on any thread, at any time, also after
 * the runtime has ended. Until then the elements stay, also if the tensor is given up (<eddy/output_ring.h>): its memory then goes back with
 * its last handle. NULL with the error: that of the tensor; INVALID_ARGUMENT if it requires a
 * gradient (the tape cannot see writes of others: eddy_detach), WOULD_DEADLOCK if the calling thread has it mapped, UNSUPPORTED
 * (device), OUT_OF_MEMORY, TIMED_OUT. The unversioned struct cannot say that it must not be written: is_read_only is UNSUPPORTED
 * there. */
EDDY_API struct DLManagedTensorVersioned *eddy_to_dlpack(eddy_tensor *tensor,
                                                         const eddy_to_dlpack_options *options);
EDDY_API struct DLManagedTensor *eddy_to_dlpack_unversioned(eddy_tensor *tensor,
                                                            const eddy_to_dlpack_options *options);

typedef struct eddy_from_dlpack_options {
    size_t size;
    bool takes_read_only; /* the caller makes sure that no op writes the tensor */
} eddy_from_dlpack_options;

/* A new tensor over the memory of another library. The tensor takes the struct: its deleter runs once, on the service thread,
 * after the last use (see eddy_from_buffer). On failure it is not called and the caller keeps the struct: UNSUPPORTED (a device that
 * is not the CPU, an element type or a rank that Eddy does not have, negative strides, DLPack of another major version, read-only
 * memory without the option takes_read_only), INVALID_ARGUMENT (NULL, no shape, memory not aligned for the dtype),
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
