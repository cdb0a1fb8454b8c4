/* The parts of cost estimates: picoseconds on one core of an average processor. The cost_* rows of the bench compare the estimates with
 * the times of calls. */
#ifndef EDDY_KERNELS_COST_H
#define EDDY_KERNELS_COST_H

#include <base/dtype.h>
#include <kernels/kernel.h>

/* Operands of a call that take at most this many bytes in all are assumed to be in a fast cache. */
#define EDDY_COST_NEAR_BYTES INT64_C(2500000)
/* Beyond it, up to this many bytes in a slow one. */
#define EDDY_COST_CACHED_BYTES INT64_C(10000000)
/* Time of each byte there. */
#define EDDY_COST_CACHED_PS 12
/* Time of each byte beyond: some 33 GB/s, with the page faults of new outputs. */
#define EDDY_COST_FAR_PS 30
/* At most an hour, so that sums do not overflow. */
#define EDDY_COST_MOST INT64_C(3600000000000000)

#define EDDY_COST_ELEMENTS_MOST (INT64_C(1) << 40)

/* `count` times `each_ps`. */
static inline int64_t eddy_cost_ps(int64_t count, int64_t each_ps) {
    return count < EDDY_COST_MOST / each_ps ? count * each_ps : EDDY_COST_MOST;
}

/* Time for the memory traffic of a call that reads and writes `bytes` bytes, in addition to its arithmetic. */
static inline int64_t eddy_cost_far_ps(int64_t bytes) {
    if (bytes <= EDDY_COST_NEAR_BYTES)
        return 0;
    if (bytes <= EDDY_COST_CACHED_BYTES)
        return (bytes - EDDY_COST_NEAR_BYTES) * EDDY_COST_CACHED_PS;
    return (EDDY_COST_CACHED_BYTES - EDDY_COST_NEAR_BYTES) * EDDY_COST_CACHED_PS +
           eddy_cost_ps(bytes - EDDY_COST_CACHED_BYTES, EDDY_COST_FAR_PS);
}

/* Whether `operands` operands of at most `elements` elements each fit the caches whatever their dtypes. Their bytes then
 * need not be counted. */
static inline bool eddy_cost_is_near(int64_t elements, int32_t operands) {
    return elements <= EDDY_COST_NEAR_BYTES / 8 && elements * 8 * operands <= EDDY_COST_NEAR_BYTES;
}

/* Estimate for a kernel without its own, from the elements of its largest operand and the bytes of all operands. */
static inline int64_t eddy_cost_flat_ps(const eddy_kernel *kernel, int64_t elements,
                                        int64_t bytes) {
    int64_t near_ps;
    if (__builtin_mul_overflow(elements, (int64_t)kernel->cost_element_ps, &near_ps) ||
        near_ps > EDDY_COST_MOST)
        near_ps = EDDY_COST_MOST;
    return kernel->cost_base_ps + near_ps + eddy_cost_far_ps(bytes);
}

/* Bytes of `count` elements. The count is limited, since a broadcast view may have more elements than any memory. */
static inline int64_t eddy_cost_bytes(int64_t count, eddy_dtype dtype) {
    return (count < EDDY_COST_ELEMENTS_MOST ? count : EDDY_COST_ELEMENTS_MOST) *
           eddy_dtype_size(dtype);
}

/* Elements in the view's memory: broadcast elements count once. */
static inline int64_t eddy_cost_stored_count(const eddy_op_view *view) {
    int64_t count = 1;
    for (int32_t d = 0; d < view->rank; d++)
        count *= view->strides[d] == 0 ? 1 : view->shape[d];
    return count;
}

/* Time of a kernel from its base, its elements (of the largest operand, each broadcast one as often as it is visited) and the memory of all
 * views. */
static inline int64_t eddy_cost_views_ps(const eddy_kernel_call *call) {
    int64_t largest = 0, bytes = 0;
    for (int32_t i = 0; i < call->view_count; i++) {
        const eddy_op_view *view = &call->views[i];
        if (eddy_kernel_view_is_absent(view))
            continue;
        int64_t count = eddy_kernel_view_count(view);
        largest = count > largest ? count : largest;
        bytes += eddy_cost_bytes(eddy_cost_stored_count(view), view->dtype);
    }
    return eddy_cost_flat_ps(call->kernel, largest, bytes);
}

/* Time for the memory traffic of a call that reads or writes all of its views, in addition to its arithmetic. */
static inline int64_t eddy_cost_far_views_ps(const eddy_kernel_call *call) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < call->view_count; i++)
        if (!eddy_kernel_view_is_absent(&call->views[i]))
            bytes += eddy_cost_bytes(eddy_kernel_view_count(&call->views[i]), call->views[i].dtype);
    return eddy_cost_far_ps(bytes);
}

#endif
