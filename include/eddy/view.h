/* Views: tensors over the storage of another, with their own shape, strides and offset.
 *
 * No view copies, runs an instruction or waits (except for a shape that is not known yet). All views of a storage see writes through
 * one of them, in the order of the calls. Each returns a new tensor, owned as <eddy/tensor.h>
 * says, that keeps the storage alive, or NULL with the error in the slot: INVALID_ARGUMENT, OUT_OF_RANGE,
 * SHAPE_MISMATCH, SIZE_OVERFLOW, OUT_OF_MEMORY. Axes may be negative. Semantics follow PyTorch's functions of the
 * same names. Any thread. */
#ifndef EDDY_VIEW_H
#define EDDY_VIEW_H

#include <eddy/device.h>
#include <eddy/export.h>
#include <eddy/shape.h>
#include <eddy/status.h>
#include <eddy/tensor.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The elements in row-major order under another shape of the same count; one dim may be -1 (the remainder). If no
 * strides describe the result, the elements are copied first (one instruction; the result then has its own storage). */
EDDY_API eddy_tensor *eddy_reshape(eddy_tensor *tensor, eddy_shape shape);
/* The same elements, row-major without gaps: a view if the tensor is so already, else a copy (one instruction). */
EDDY_API eddy_tensor *eddy_contiguous(eddy_tensor *tensor);
/* The same elements on a device (kind DEFAULT: that of the thread's creation ops): a view if they are there already.
 * A copy is row-major, and its gradient comes back; between two devices other than the CPU it goes through the host. UNSUPPORTED for devices that
 * do not exist. */
EDDY_API eddy_tensor *eddy_to_device(eddy_tensor *tensor, eddy_device device);
/* Like eddy_reshape, but SHAPE_MISMATCH if it needs a copy. */
EDDY_API eddy_tensor *eddy_view(eddy_tensor *tensor, eddy_shape shape);
/* Elements start, start + step, ... below end along an axis. start and end may be negative (from the end) and are
 * clamped to the axis, as Python's slices are; step is at least 1. */
EDDY_API eddy_tensor *eddy_slice(eddy_tensor *tensor, int32_t axis, int64_t start, int64_t end,
                                 int64_t step);
/* `length` elements from `start` along an axis; OUT_OF_RANGE if the axis does not have them all. */
EDDY_API eddy_tensor *eddy_narrow(eddy_tensor *tensor, int32_t axis, int64_t start, int64_t length);
/* The part at `index` (negative: from the end) of an axis; the result lacks that axis. */
EDDY_API eddy_tensor *eddy_select(eddy_tensor *tensor, int32_t axis, int64_t index);
/* Two axes exchanged; rank 0, whose axes are 0 and -1, is unchanged. */
EDDY_API eddy_tensor *eddy_transpose(eddy_tensor *tensor, int32_t axis0, int32_t axis1);
/* A matrix transposed; rank 0 and 1 are unchanged. Rank at most 2. */
EDDY_API eddy_tensor *eddy_t(eddy_tensor *tensor);
/* Axes in another order: axis i of the result is axes[i] of the tensor. */
EDDY_API eddy_tensor *eddy_permute(eddy_tensor *tensor, eddy_axes axes);
/* A new axis of size 1 at `axis` of the result (-1: last). */
EDDY_API eddy_tensor *eddy_unsqueeze(eddy_tensor *tensor, int32_t axis);
/* Removes those of the named axes (EDDY_AXES(): none) that have size 1. */
EDDY_API eddy_tensor *eddy_squeeze(eddy_tensor *tensor, eddy_axes axes);
/* Axes first..last joined to one, as by reshape; rank 0 becomes rank 1. */
EDDY_API eddy_tensor *eddy_flatten(eddy_tensor *tensor, int32_t first, int32_t last);
/* Broadcast to a larger shape: new axes in front and axes of size 1 are repeated with stride 0; a dim of -1 is
 * unchanged. A view that repeats elements cannot be written to. */
EDDY_API eddy_tensor *eddy_expand(eddy_tensor *tensor, eddy_shape shape);
/* Any shape and strides (elements, not negative) from `offset` elements after the start of the storage;
 * OUT_OF_RANGE if that exceeds the storage. */
EDDY_API eddy_tensor *eddy_as_strided(eddy_tensor *tensor, eddy_shape shape, const int64_t *strides,
                                      int64_t offset);

/* Parts along an axis, in order, as views. The caller gives the array: `outputs` has room for `capacity` of them, and
 * *count (unless NULL) gets their number. With outputs NULL they are only counted. All or none are made,
 * owned as <eddy/tensor.h> says. INVALID_ARGUMENT (sizes, too many parts for the array), OUT_OF_RANGE (axis). */

/* Parts of `size`, the last one the remainder; an empty axis has one part. */
EDDY_API eddy_status eddy_split(eddy_tensor *tensor, int64_t size, int32_t axis,
                                eddy_tensor **outputs, int64_t capacity, int64_t *count);
/* `count` parts of these sizes, which add up to the axis; outputs has room for as many. */
EDDY_API eddy_status eddy_split_sizes(eddy_tensor *tensor, const int64_t *sizes, int64_t count,
                                      int32_t axis, eddy_tensor **outputs);
/* At most `chunks` parts, all of the size of the axis divided by chunks and rounded up but the last: 5 in 4 gives
 * 2, 2, 1, as in PyTorch. */
EDDY_API eddy_status eddy_chunk(eddy_tensor *tensor, int64_t chunks, int32_t axis,
                                eddy_tensor **outputs, int64_t capacity, int64_t *count);

#ifdef __cplusplus
}
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_reshape(...) EDDY_AT_CALL_SITE(eddy_reshape(__VA_ARGS__))
#define eddy_contiguous(...) EDDY_AT_CALL_SITE(eddy_contiguous(__VA_ARGS__))
#define eddy_to_device(...) EDDY_AT_CALL_SITE(eddy_to_device(__VA_ARGS__))
#define eddy_view(...) EDDY_AT_CALL_SITE(eddy_view(__VA_ARGS__))
#define eddy_slice(...) EDDY_AT_CALL_SITE(eddy_slice(__VA_ARGS__))
#define eddy_narrow(...) EDDY_AT_CALL_SITE(eddy_narrow(__VA_ARGS__))
#define eddy_select(...) EDDY_AT_CALL_SITE(eddy_select(__VA_ARGS__))
#define eddy_transpose(...) EDDY_AT_CALL_SITE(eddy_transpose(__VA_ARGS__))
#define eddy_t(...) EDDY_AT_CALL_SITE(eddy_t(__VA_ARGS__))
#define eddy_permute(...) EDDY_AT_CALL_SITE(eddy_permute(__VA_ARGS__))
#define eddy_unsqueeze(...) EDDY_AT_CALL_SITE(eddy_unsqueeze(__VA_ARGS__))
#define eddy_squeeze(...) EDDY_AT_CALL_SITE(eddy_squeeze(__VA_ARGS__))
#define eddy_flatten(...) EDDY_AT_CALL_SITE(eddy_flatten(__VA_ARGS__))
#define eddy_expand(...) EDDY_AT_CALL_SITE(eddy_expand(__VA_ARGS__))
#define eddy_as_strided(...) EDDY_AT_CALL_SITE(eddy_as_strided(__VA_ARGS__))
#define eddy_split(...) EDDY_AT_CALL_SITE(eddy_split(__VA_ARGS__))
#define eddy_split_sizes(...) EDDY_AT_CALL_SITE(eddy_split_sizes(__VA_ARGS__))
#define eddy_chunk(...) EDDY_AT_CALL_SITE(eddy_chunk(__VA_ARGS__))
#endif
#endif
