#include <base/shape.h>

#include <base/digits.h>
#include <string.h>

#define COUNT_MAX (INT64_C(1) << 62)

bool eddy_shape_is_valid(const eddy_shape *shape) {
    if (shape->rank < 0 || shape->rank > EDDY_RANK_MAX)
        return false;
    int64_t product = 1;
    for (int32_t d = 0; d < shape->rank; d++) {
        int64_t dim = shape->dims[d];
        if (dim < 0)
            return false;
        if (dim != 0 && (__builtin_mul_overflow(product, dim, &product) || product > COUNT_MAX))
            return false;
    }
    return true;
}

bool eddy_shape_count(int32_t rank, const int64_t *dims, int64_t *count) {
    int64_t product = 1;
    bool has_overflown = false;
    for (int32_t d = 0; d < rank; d++) {
        if (dims[d] == 0) {
            *count = 0;
            return true;
        }
        has_overflown |= __builtin_mul_overflow(product, dims[d], &product);
    }
    if (!has_overflown)
        *count = product;
    return !has_overflown;
}

bool eddy_shape_equal(int32_t rank_a, const int64_t *a, int32_t rank_b, const int64_t *b) {
    if (rank_a != rank_b)
        return false;
    for (int32_t d = 0; d < rank_a; d++)
        if (a[d] != b[d])
            return false;
    return true;
}

bool eddy_shape_broadcast(const eddy_shape *a, const eddy_shape *b, eddy_shape *result) {
    eddy_shape shape = a->rank >= b->rank ? *a : *b;
    const eddy_shape *shorter = a->rank >= b->rank ? b : a;
    int32_t skipped = shape.rank - shorter->rank;
    for (int32_t d = 0; d < shorter->rank; d++) {
        int64_t *dim = &shape.dims[skipped + d];
        if (*dim == 1)
            *dim = shorter->dims[d];
        else if (shorter->dims[d] != 1 && shorter->dims[d] != *dim)
            return false;
    }
    *result = shape;
    return true;
}

/* Without printf, which takes ten times as long: a profiler is told of each kernel. */
int eddy_shape_format(int32_t rank, const int64_t *dims, char *buffer, size_t size) {
    char text[EDDY_RANK_MAX * 22 + 3];
    size_t length = 0;
    text[length++] = '[';
    for (int32_t d = 0; d < rank && d < EDDY_RANK_MAX; d++) {
        if (d > 0) {
            text[length++] = ',';
            text[length++] = ' ';
        }
        length += eddy_digits_put_signed(text + length, dims[d]);
    }
    text[length++] = ']';
    if (size > 0) {
        size_t copied = length < size ? length : size - 1;
        memcpy(buffer, text, copied);
        buffer[copied] = '\0';
    }
    return (int)length;
}

bool eddy_shape_axis_normalize(int64_t axis, int32_t rank, int32_t *result) {
    int64_t bound = rank == 0 ? 1 : rank;
    if (axis < -bound || axis >= bound)
        return false;
    *result = (int32_t)(axis < 0 ? axis + bound : axis);
    return true;
}

bool eddy_shape_axes_mask(const eddy_axes *axes, int32_t rank, uint32_t *mask) {
    uint32_t all = (UINT32_C(1) << rank) - 1;
    if (eddy_shape_axes_are_all(axes)) {
        *mask = all;
        return true;
    }
    if (axes->count < 0 || axes->count > EDDY_RANK_MAX)
        return false;
    uint32_t seen = 0;
    for (int32_t i = 0; i < axes->count; i++) {
        int32_t axis;
        if (!eddy_shape_axis_normalize(axes->axes[i], rank, &axis) || (seen >> axis & 1u))
            return false;
        seen |= UINT32_C(1) << axis;
    }
    /* Axis 0 of a single number is legal and names no dim. */
    *mask = seen & all;
    return true;
}
