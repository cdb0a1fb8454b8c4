/* Tensors: references, scopes, and properties.
 *
 * A tensor is a handle: dtype, shape, strides and an offset over a storage that views share. Handles are reference-counted.
 * A tensor that a function returns belongs to the innermost scope open on the calling thread, or, if none is open, to the
 * caller.
 *
 * NULL as a tensor always means "failed before": functions given NULL fail too, and record an error only if the slot
 * is empty. An optional operand that is left out is EDDY_NONE. Every function fails with INVALID_ARGUMENT for a tensor whose last
 * reference is gone, until its handle is reused for another tensor (docs/errors.md).
 *
 * Unless a function says otherwise: any thread, never blocks; failures fill the calling thread's error slot.
 * Functions that need the shape wait if the tensor comes from an op whose shape depends on its data (nonzero)
 * and that has not run. */
#ifndef EDDY_TENSOR_H
#define EDDY_TENSOR_H

#include <eddy/device.h>
#include <eddy/dtype.h>
#include <eddy/export.h>
#include <eddy/generator.h>
#include <eddy/shape.h>
#include <eddy/status.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct eddy_scope eddy_scope;
typedef struct eddy_runtime eddy_runtime;

/* An optional operand that is absent. Retain and release ignore it. */
#define EDDY_NONE ((eddy_tensor *)1)

/* No time limit. Timeouts are nanoseconds; one that is negative has passed when the call begins. */
#define EDDY_FOREVER INT64_MAX

/* ---- references ---- */

/* Takes a reference, which belongs to the caller whatever scopes are open; returns its argument, which may be NULL. Any thread, callback
 * or state of the runtime. Fails only for a tensor that was released before: NULL with INVALID_ARGUMENT. */
EDDY_API eddy_tensor *eddy_retain(eddy_tensor *tensor);

/* Gives up one reference and clears *tensor: a reference of eddy_retain, if there is one, else that of the calling thread's scope
 * or of the caller. So a retain and a release change nothing, wherever the pair stands. A tensor that is to outlive its scope is
 * retained and not released, or returned (eddy_scope_return). After the last reference the storage is freed when every use issued
 * before has run. NULL, or a pointer to NULL or EDDY_NONE, does nothing. Nothing is given up either if only the reference of
 * another thread's scope is left (WRONG_THREAD in the slot), or none (INVALID_ARGUMENT). Never blocks: any thread, callback or
 * state of the runtime. */
EDDY_API void eddy_release(eddy_tensor **tensor);

/* ---- scopes ---- */

/* Opens a scope on the calling thread: it owns one reference of each tensor that functions return on this thread
 * until it ends (inner scopes own theirs). NULL with OUT_OF_MEMORY in the slot. A thread's open scopes end with the
 * thread. */
EDDY_API eddy_scope *eddy_scope_begin(void);

/* Releases the references that the scope and all scopes opened inside it own. The calling thread must be the one that opened it
 * (else WRONG_THREAD in the slot, and nothing is done); NULL does nothing. */
EDDY_API void eddy_scope_end(eddy_scope *scope);

/* Moves the reference that `scope` (or a scope inside it) owns to the enclosing scope, or to the caller if
 * there is none. Returns `tensor`; NULL stays NULL, and a tensor that no such scope owns is returned unchanged. NULL with
 * OUT_OF_MEMORY in the slot if the enclosing scope cannot grow: the tensor then ends with its scope. */
EDDY_API eddy_tensor *eddy_scope_return(eddy_scope *scope, eddy_tensor *tensor);

/* ---- properties ---- */

/* Rank 0 to 16; -1 on failure. */
EDDY_API int32_t eddy_rank_of(const eddy_tensor *tensor);
/* The shape; rank -1 on failure. */
EDDY_API eddy_shape eddy_shape_of(const eddy_tensor *tensor);
/* Elements along an axis, negative axes counting from the end; -1 on failure (OUT_OF_RANGE). */
EDDY_API int64_t eddy_dim_of(const eddy_tensor *tensor, int32_t axis);
/* The distance in elements from one element to the next along an axis (0 if expanded); INT64_MIN on failure (OUT_OF_RANGE). */
EDDY_API int64_t eddy_stride_of(const eddy_tensor *tensor, int32_t axis);
/* All strides, in elements: strides[0 .. rank - 1] are written. */
EDDY_API eddy_status eddy_strides_of(const eddy_tensor *tensor, int64_t *strides);
/* Number of elements, 1 for rank 0; -1 on failure. */
EDDY_API int64_t eddy_count_of(const eddy_tensor *tensor);
/* Elements between the start of the storage and the tensor's first element; -1 on failure. */
EDDY_API int64_t eddy_offset_of(const eddy_tensor *tensor);
/* EDDY_DTYPE_COUNT on failure. Never waits. */
EDDY_API eddy_dtype eddy_dtype_of(const eddy_tensor *tensor);
/* Kind EDDY_DEVICE_DEFAULT on failure. Never waits. */
EDDY_API eddy_device eddy_device_of(const eddy_tensor *tensor);
/* Borrowed: valid while the tensor is; NULL on failure. Never waits. */
EDDY_API eddy_runtime *eddy_runtime_of(const eddy_tensor *tensor);
/* True if the elements are in row-major order without gaps; false on failure. Results of elementwise ops, copies and images have
 * the layout of their operands (docs/layout.md), so the result of a transposed operand is not contiguous. */
EDDY_API bool eddy_is_contiguous(const eddy_tensor *tensor);
/* True if everything issued on the tensor's storage has run, or the runtime has ended; false on failure. Never waits. */
EDDY_API bool eddy_is_ready(const eddy_tensor *tensor);
/* Why the tensor is not there yet, as text: the instruction that makes it, what that waits for, and so on back to the one that waits for nothing but its turn, a line each, with the places of
 * the calls where EDDY_CALL_SITES notes them; or how it failed, which then counts as seen; or that it is there. What others do meanwhile may change it at once. As snprintf: returns the length of the whole text; -1 with
 * INVALID_ARGUMENT. Blocks 0.2 s at most, while the thread that orders instructions runs one. Any thread, but not in a callback. */
EDDY_API int eddy_explain(const eddy_tensor *tensor, char *buffer, size_t size);

/* ---- leaks ---- */

/* Tensors of the process that have references. Exact while no other thread makes or releases one; a program's run that is under way holds what the program
 * does, so eddy_sync comes first. */
EDDY_API int64_t eddy_live_count(void);
/* Writes one line for each live tensor, with dtype, shape, references and the call that made it, to the log sink, or to stderr if
 * no sink is set (eddy_log_set, EDDY_LOG); returns their number. Other threads must not make or release tensors meanwhile. */
EDDY_API int64_t eddy_leaks_report(void);

#ifdef __cplusplus
}
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_retain(...) EDDY_AT_CALL_SITE(eddy_retain(__VA_ARGS__))
#define eddy_release(...) EDDY_AT_CALL_SITE_VOID(eddy_release(__VA_ARGS__))
#define eddy_scope_begin(...) EDDY_AT_CALL_SITE(eddy_scope_begin(__VA_ARGS__))
#define eddy_scope_end(...) EDDY_AT_CALL_SITE_VOID(eddy_scope_end(__VA_ARGS__))
#define eddy_scope_return(...) EDDY_AT_CALL_SITE(eddy_scope_return(__VA_ARGS__))
#define eddy_rank_of(...) EDDY_AT_CALL_SITE(eddy_rank_of(__VA_ARGS__))
#define eddy_shape_of(...) EDDY_AT_CALL_SITE(eddy_shape_of(__VA_ARGS__))
#define eddy_dim_of(...) EDDY_AT_CALL_SITE(eddy_dim_of(__VA_ARGS__))
#define eddy_stride_of(...) EDDY_AT_CALL_SITE(eddy_stride_of(__VA_ARGS__))
#define eddy_strides_of(...) EDDY_AT_CALL_SITE(eddy_strides_of(__VA_ARGS__))
#define eddy_count_of(...) EDDY_AT_CALL_SITE(eddy_count_of(__VA_ARGS__))
#define eddy_offset_of(...) EDDY_AT_CALL_SITE(eddy_offset_of(__VA_ARGS__))
#define eddy_dtype_of(...) EDDY_AT_CALL_SITE(eddy_dtype_of(__VA_ARGS__))
#define eddy_device_of(...) EDDY_AT_CALL_SITE(eddy_device_of(__VA_ARGS__))
#define eddy_runtime_of(...) EDDY_AT_CALL_SITE(eddy_runtime_of(__VA_ARGS__))
#define eddy_is_contiguous(...) EDDY_AT_CALL_SITE(eddy_is_contiguous(__VA_ARGS__))
#define eddy_explain(...) EDDY_AT_CALL_SITE(eddy_explain(__VA_ARGS__))
#define eddy_is_ready(...) EDDY_AT_CALL_SITE(eddy_is_ready(__VA_ARGS__))
#endif
#endif
