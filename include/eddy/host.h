/* Data between tensors and the program's memory.
 *
 * Host data are row-major unless strides are asked for; elements have the dtype's C type (bool: one byte, 0 or 1;
 * f16 and bf16: their 16 bits). Functions that wait also return earlier errors: an op that failed late
 * left its error in the tensors that it should have written, and each read of one returns that record. A wait fails with TIMED_OUT,
 * WOULD_DEADLOCK (it waits for the caller's own lend, or would block inside a callback), SHUT_DOWN or FORKED. Any
 * thread. */
#ifndef EDDY_HOST_H
#define EDDY_HOST_H

#include <eddy/device.h>
#include <eddy/dtype.h>
#include <eddy/export.h>
#include <eddy/shape.h>
#include <eddy/status.h>
#include <eddy/tensor.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- in ---- */

typedef struct eddy_from_data_options {
    size_t size; /* of this struct; EDDY_OPTIONS fills it in */
    eddy_device device;
} eddy_from_data_options;

/* A new tensor with a copy of `data`, made before the call returns; data may be NULL if the shape has no elements.
 * Waits only if memory is short and work in flight may free some (never inside a callback).
 * INVALID_ARGUMENT, SIZE_OVERFLOW, OUT_OF_MEMORY, UNSUPPORTED (device). */
EDDY_API eddy_tensor *eddy_from_data(const void *data, eddy_shape shape, eddy_dtype dtype,
                                     const eddy_from_data_options *options);

typedef struct eddy_from_buffer_options {
    size_t size;
    eddy_device device; /* the CPU, whatever the default is */
} eddy_from_buffer_options;

/* A new tensor over `data` itself, without a copy. The memory must be aligned for the dtype and stay valid until deleter(context) is
 * called, and the program accesses it only while it has mapped the tensor (eddy_map). The deleter is called once, on the service thread,
 * after the last use; it may call no function of the library but eddy_retain and eddy_release. deleter may be NULL. On failure it is
 * not called and the caller keeps the buffer. */
EDDY_API eddy_tensor *eddy_from_buffer(void *data, eddy_shape shape, eddy_dtype dtype,
                                       void (*deleter)(void *context), void *context,
                                       const eddy_from_buffer_options *options);

/* ---- out ---- */

typedef struct eddy_read_options {
    size_t size;
    int64_t timeout; /* ns that the call may wait; 0: no limit */
} eddy_read_options;

/* Copies the elements, row-major and in the tensor's own dtype, to `buffer` of `bytes` bytes, which must be count times element size
 * (INVALID_ARGUMENT). Blocks until they are computed. On failure the buffer is unchanged. */
EDDY_API eddy_status eddy_read(eddy_tensor *tensor, void *buffer, size_t bytes,
                               const eddy_read_options *options);
/* The same with the elements converted to `dtype` as by eddy_cast: `buffer` has elements of that C type, and
 * `bytes` is count times its size. */
EDDY_API eddy_status eddy_read_as(eddy_tensor *tensor, eddy_dtype dtype, void *buffer, size_t bytes,
                                  const eddy_read_options *options);
/* The value of a tensor with one element, converted; blocks. *value is unchanged on failure. To i64: floats
 * are truncated; NaN and values out of range give INT64_MIN. */
EDDY_API eddy_status eddy_read_f64(eddy_tensor *tensor, double *value,
                                   const eddy_read_options *options);
EDDY_API eddy_status eddy_read_i64(eddy_tensor *tensor, int64_t *value,
                                   const eddy_read_options *options);
/* The same, returning the value: NaN or INT64_MIN on failure, with the error in the slot. */
EDDY_API double eddy_item_f64(eddy_tensor *tensor, const eddy_read_options *options);
EDDY_API int64_t eddy_item_i64(eddy_tensor *tensor, const eddy_read_options *options);

/* Called once on the service thread with `bytes` bytes of elements at `data` (valid during the call), or with data
 * NULL and the error. May issue ops, retain and release; a wait that would block returns WOULD_DEADLOCK. */
typedef void eddy_read_callback(void *context, const void *data, int64_t bytes,
                                const eddy_error *error);
/* Calls the callback with the elements when everything issued before has run; returns at once. Callbacks on one tensor come in the order of
 * their calls. The elements are row-major, all of them also if the shape is not known yet. If the call fails, the callback is not called.
 *
 * While the thread records (<eddy/program.h>) the call is recorded too: each run of the program calls the callback once more, with the elements that the
 * recorded call would see in that run. So the callback frees nothing, and both must stay valid until the program is released and the callbacks of its last run have returned. Fails with UNSUPPORTED in a
 * branch or loop that is recorded, in a backward pass that is recorded for the outputs of a program, and where the shape is not known yet. */
EDDY_API eddy_status eddy_read_async(eddy_tensor *tensor, eddy_read_callback *callback,
                                     void *context);

/* The same with the memory itself: data points to the tensor's first element, in the storage; with EDDY_WRITE it
 * may be written. UNSUPPORTED while the thread records. */
typedef void eddy_access_callback(void *context, void *data, const eddy_error *error);
EDDY_API eddy_status eddy_access_async(eddy_tensor *tensor, int flags,
                                       eddy_access_callback *callback, void *context);

/* ---- lending ---- */

#define EDDY_READ 1
#define EDDY_WRITE 2

/* Lends the tensor's storage to the caller: a pointer to its first element, for reading (EDDY_READ) or reading and
 * writing (EDDY_WRITE), valid until eddy_unmap. The elements have the tensor's strides. Blocks until its shape
 * is known and the memory may be accessed, `timeout` ns at most. Ops on the storage issued meanwhile run after the unmap. The tensor
 * stays alive until then. NULL with the error in the slot; for a tensor without elements the pointer must not
 * be dereferenced. */
EDDY_API void *eddy_map(eddy_tensor *tensor, int flags, int64_t timeout);
/* Ends the calling thread's newest lend of this tensor, or, if it has none, the newest of any thread; never blocks.
 * INVALID_ARGUMENT if the tensor is not mapped. */
EDDY_API eddy_status eddy_unmap(eddy_tensor *tensor);

/* ---- waiting ---- */

/* Waits until everything issued on the tensor has run, `timeout` ns at most (0: does not wait), and returns the tensor's status. */
EDDY_API eddy_status eddy_wait(eddy_tensor *tensor, int64_t timeout);
/* The same, but the record of a tensor that holds an error goes to *error and not into the thread's slot. */
EDDY_API eddy_status eddy_error_of(eddy_tensor *tensor, int64_t timeout, eddy_error *error);

#ifdef __cplusplus
}
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_from_data(...) EDDY_AT_CALL_SITE(eddy_from_data(__VA_ARGS__))
#define eddy_from_buffer(...) EDDY_AT_CALL_SITE(eddy_from_buffer(__VA_ARGS__))
#define eddy_read(...) EDDY_AT_CALL_SITE(eddy_read(__VA_ARGS__))
#define eddy_read_as(...) EDDY_AT_CALL_SITE(eddy_read_as(__VA_ARGS__))
#define eddy_read_f64(...) EDDY_AT_CALL_SITE(eddy_read_f64(__VA_ARGS__))
#define eddy_read_i64(...) EDDY_AT_CALL_SITE(eddy_read_i64(__VA_ARGS__))
#define eddy_item_f64(...) EDDY_AT_CALL_SITE(eddy_item_f64(__VA_ARGS__))
#define eddy_item_i64(...) EDDY_AT_CALL_SITE(eddy_item_i64(__VA_ARGS__))
#define eddy_read_async(...) EDDY_AT_CALL_SITE(eddy_read_async(__VA_ARGS__))
#define eddy_access_async(...) EDDY_AT_CALL_SITE(eddy_access_async(__VA_ARGS__))
#define eddy_map(...) EDDY_AT_CALL_SITE(eddy_map(__VA_ARGS__))
#define eddy_unmap(...) EDDY_AT_CALL_SITE(eddy_unmap(__VA_ARGS__))
#define eddy_wait(...) EDDY_AT_CALL_SITE(eddy_wait(__VA_ARGS__))
#define eddy_error_of(...) EDDY_AT_CALL_SITE(eddy_error_of(__VA_ARGS__))
#endif
#endif
