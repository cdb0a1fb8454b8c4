/* Arithmetic on shapes and strides. Strides are in elements. Pure functions: no state, no errors recorded. */
#ifndef EDDY_BASE_SHAPE_H
#define EDDY_BASE_SHAPE_H

#include <eddy/dtype.h>
#include <eddy/shape.h>
#include <stdbool.h>
#include <stddef.h>

/* A tensor's place in its storage. */
typedef struct eddy_layout {
    int32_t rank;
    int64_t offset; /* elements from the storage's start to the first element */
    int64_t dims[EDDY_RANK_MAX];
    int64_t strides[EDDY_RANK_MAX]; /* elements; 0 where broadcast */
} eddy_layout;

/* rank within 0..16, dims >= 0, product (zero dims counted as 1) within 2^62 */
bool eddy_shape_is_valid(const eddy_shape *shape);
/* Product of dims; false when it leaves int64 (then *count is untouched). 1 for rank 0. */
bool eddy_shape_count(int32_t rank, const int64_t *dims, int64_t *count);
bool eddy_shape_equal(int32_t rank_a, const int64_t *a, int32_t rank_b, const int64_t *b);
/* PyTorch's broadcasting; false when the shapes do not fit. */
bool eddy_shape_broadcast(const eddy_shape *a, const eddy_shape *b, eddy_shape *result);
/* "[64, 784]"; returns the length as snprintf does. */
int eddy_shape_format(int32_t rank, const int64_t *dims, char *buffer, size_t size);

/* Row-major strides. */
void eddy_shape_strides_contiguous(int32_t rank, const int64_t *dims, int64_t *strides);
/* Strides without gaps, with the axes in the order of the operands' strides, which are given for the same axes (0: broadcast, which
 * does not count). The order of two axes is that of the first operand that has both; row-major if none has. */
void eddy_shape_strides_follow(int32_t rank, const int64_t *dims,
                               int64_t (*operands)[EDDY_RANK_MAX], int operand_count,
                               int64_t *strides);
bool eddy_layout_is_contiguous(const eddy_layout *layout);
/* Whether rank, offset, dims and strides are the same. */
bool eddy_layout_is_equal(const eddy_layout *a, const eddy_layout *b);
/* Whether there are no gaps between the first element and the last. */
bool eddy_layout_is_dense(const eddy_layout *layout);
/* True when no two different indices name the same element (proven; false when not known). */
bool eddy_layout_is_injective(const eddy_layout *layout);
/* The lowest element and one past the highest, relative to the storage; *low == *high when empty. */
void eddy_layout_extent(const eddy_layout *layout, int64_t *low, int64_t *high);
/* Strides of `layout` under a larger shape (broadcast dims get stride 0); false when it does not broadcast. */
bool eddy_layout_broadcast(const eddy_layout *layout, const eddy_shape *shape, int64_t *strides);
/* Strides that view `layout` under a new shape without a copy, as PyTorch's view does; false when it cannot. */
bool eddy_layout_view(const eddy_layout *layout, const eddy_shape *shape, int64_t *strides);

/* Merges adjacent dims that every operand walks evenly and drops dims of size 1: `rank`, `dims` and the `operand_count`
 * stride arrays (each of EDDY_RANK_MAX) are rewritten in place. The order of dims is kept. */
void eddy_layout_collapse(int32_t *rank, int64_t *dims, int64_t (*strides)[EDDY_RANK_MAX],
                          int operand_count);

/* Reorders dims so that operand `by` walks memory forward, the smallest stride innermost; equal strides keep their order. Before a
 * collapse, for work whose order does not matter. */
void eddy_layout_sort(int32_t rank, int64_t *dims, int64_t (*strides)[EDDY_RANK_MAX],
                      int operand_count, int by);

/* Negative axis -> 0..rank-1 (rank 0 counts as 1); false when out of range. */
bool eddy_shape_axis_normalize(int64_t axis, int32_t rank, int32_t *result);
/* Whether the value is EDDY_ALL_AXES. */
static inline bool eddy_shape_axes_are_all(const eddy_axes *axes) {
    return axes->count == -1;
}

/* A set of axes as a bit mask; false when one is out of range or named twice. */
bool eddy_shape_axes_mask(const eddy_axes *axes, int32_t rank, uint32_t *mask);

#endif
