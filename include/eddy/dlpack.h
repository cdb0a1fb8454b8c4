/* Tensors to and from other libraries, without a copy, by DLPack (https://github.com/dmlc/dlpack): on the CPU and on CUDA devices.
 *
 * The structs are DLPack's own: this header only names them, so that any <dlpack/dlpack.h> may be included before it or after it.
 * The versioned struct is that of DLPack 1; the unversioned one is older, and what Python's __dlpack__ gives by default.
 *
 * Memory is shared, order is not. Eddy orders its own ops; it does not see what the other library reads and writes, and that
 * library does not see which ops are in flight. Ops on shared memory race with accesses of the other library. On the CPU map
 * the tensor meanwhile (eddy_map ... eddy_unmap): eddy_map waits for ops issued before, and ops issued later run after the unmap. On a CUDA device hand the
 * memory over anew each time, which costs no copy: each export and import takes a stream that the other side's work is on, and orders the two sides on the device.
 *
 * Streams are numbers: the handle of the driver or of the runtime (cudaStream_t, CUstream) as an integer; 1 is the legacy default stream, 2 the calling thread's default
 * stream, as for Python's __dlpack__(stream=...). 0 names none; a binding that is given -1 or None passes 0. */
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
    uintptr_t stream; /* of a CUDA device: where the consumer uses the memory; 0: anywhere */
} eddy_to_dlpack_options;

/* Exports the tensor's memory, with its strides, to another library. Without a stream the call blocks until everything issued on the tensor has run. With one it blocks only
 * until that is launched, which does not wait for the device: what the stream is given from now on comes after it, by an event. The
 * caller, or the library that it gives the struct to, calls result->deleter(result) once: on any thread, at any time, also after
 * the runtime has ended. While the runtime lives the elements stay until then, also if the tensor is given up (<eddy/output_ring.h>): its memory then goes back with
 * its last handle. On a CUDA device other tensors may get the memory as soon as the deleter was called, so the consumer's work on it has to be over by then. NULL with the error: that
 * of the tensor, as far as it is known (with a stream ops that fail later are not: eddy_wait tells); INVALID_ARGUMENT if it requires a
 * gradient (the tape cannot see writes of others: eddy_detach), or where the driver knows no such stream, or for a stream and a tensor on the CPU; WOULD_DEADLOCK if the calling thread has
 * it mapped; UNSUPPORTED (another device), DEVICE_LOST, OUT_OF_MEMORY, TIMED_OUT. The unversioned struct cannot say that it must not be written: is_read_only is UNSUPPORTED
 * there. */
EDDY_API struct DLManagedTensorVersioned *eddy_to_dlpack(eddy_tensor *tensor,
                                                         const eddy_to_dlpack_options *options);
EDDY_API struct DLManagedTensor *eddy_to_dlpack_unversioned(eddy_tensor *tensor,
                                                            const eddy_to_dlpack_options *options);

typedef struct eddy_from_dlpack_options {
    size_t size;
    bool takes_read_only; /* the caller makes sure that no op writes the tensor */
    uintptr_t
        stream; /* of a CUDA device: ops come after what it has been given before; 0: the elements are there */
} eddy_from_dlpack_options;

/* A new tensor over the memory of another library: on the CPU, or on the CUDA device that the struct names. Memory that CUDA has pinned or manages is the CPU's. The stream is the one
 * that the producer was asked to make the elements ready on (__dlpack__(stream=...)): ops wait for it on the device, by an event. The tensor takes the struct: its deleter runs once, on the service thread,
 * after the last use, which on a device is over by then (see eddy_from_buffer). On failure it is not called and the caller keeps the struct: UNSUPPORTED (a device that
 * is not there or none of these, an element type or a rank that Eddy does not have, negative strides, DLPack of another major version, read-only
 * memory without the option takes_read_only), INVALID_ARGUMENT (NULL, no shape, memory not aligned for the dtype, memory that the device does not have, a stream that the driver does
 * not know, or for memory of the CPU), SIZE_OVERFLOW, DEVICE_LOST, OUT_OF_MEMORY. That a copy was made for this struct alone (the flag is-copied) means nothing to Eddy. Never blocks; the first use of a device
 * starts it. */
EDDY_API eddy_tensor *eddy_from_dlpack(struct DLManagedTensorVersioned *managed,
                                       const eddy_from_dlpack_options *options);
EDDY_API eddy_tensor *eddy_from_dlpack_unversioned(struct DLManagedTensor *managed,
                                                   const eddy_from_dlpack_options *options);

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
