#include <program/affine.h>

#include <base/dtype.h>
#include <base/shape.h>
#include <string.h>

/* The integers up to here are all doubles. */
#define DOUBLE_INTEGERS_MOST (INT64_C(1) << 53)

bool eddy_affine_number(const eddy_affine *affine, int64_t first, int64_t second, int64_t *third) {
    int64_t steps = affine->sizes[1] - affine->sizes[0], away = affine->size - affine->sizes[0];
    int64_t rise, way;
    *third = first;
    if (first == second)
        return true;
    /* The least number divided by -1 is none. */
    if (steps < 0) {
        steps = -steps;
        away = -away;
    }
    return !__builtin_sub_overflow(second, first, &rise) &&
           !__builtin_mul_overflow(rise, away, &way) && way % steps == 0 &&
           !__builtin_add_overflow(first, way / steps, third);
}

/* Where it changes, it is 2 or more in all three. */
static bool find_dim(const eddy_affine *affine, int64_t first, int64_t second, int64_t *third) {
    if (!eddy_affine_number(affine, first, second, third))
        return false;
    return first == second ||
           (first >= EDDY_SIZE_LEAST && second >= EDDY_SIZE_LEAST && *third >= EDDY_SIZE_LEAST);
}

/* The stride of a dim in a row-major layout; -1 if there is none. */
static int64_t row_major_stride(const eddy_layout *layout, int32_t dim) {
    int64_t stride = 1;
    for (int32_t d = layout->rank - 1; d > dim; d--)
        if (__builtin_mul_overflow(stride, layout->dims[d], &stride))
            return -1;
    return stride;
}

/* One that is as in a row-major layout in both is so in the third: the product of dims is on no line. */
static bool find_stride(const eddy_affine *affine, const eddy_layout *first,
                        const eddy_layout *second, int32_t dim, eddy_layout *third) {
    int64_t *stride = &third->strides[dim];
    if (first->strides[dim] != row_major_stride(first, dim) ||
        second->strides[dim] != row_major_stride(second, dim))
        return eddy_affine_number(affine, first->strides[dim], second->strides[dim], stride);
    *stride = row_major_stride(third, dim);
    return *stride >= 0;
}

/* Foretold numbers may be any. In a layout no two elements lie farther apart than 63 bits of bytes can say. */
static bool is_within_reach(const eddy_layout *layout) {
    int64_t low = layout->offset, high = layout->offset;
    for (int32_t d = 0; d < layout->rank; d++) {
        int64_t last = layout->dims[d] > 0 ? layout->dims[d] - 1 : 0, reach;
        if (__builtin_mul_overflow(last, layout->strides[d], &reach) ||
            __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
            return false;
    }
    const int64_t most = INT64_MAX / (int64_t)sizeof(double); /* no dtype is larger */
    return low > -most && high < most;
}

bool eddy_affine_layout(const eddy_affine *affine, const eddy_layout *first,
                        const eddy_layout *second, eddy_layout *third) {
    third->rank = first->rank;
    if (first->rank != second->rank ||
        !eddy_affine_number(affine, first->offset, second->offset, &third->offset))
        return false;
    for (int32_t d = 0; d < first->rank; d++)
        if (!find_dim(affine, first->dims[d], second->dims[d], &third->dims[d]))
            return false;
    for (int32_t d = 0; d < first->rank; d++)
        if (!find_stride(affine, first, second, d, third))
            return false;
    return is_within_reach(third);
}

static bool find_int(const eddy_affine *affine, const void *first, const void *second,
                     void *third) {
    int64_t a, b, c;
    memcpy(&a, first, sizeof(a));
    memcpy(&b, second, sizeof(b));
    bool is_found = eddy_affine_number(affine, a, b, &c);
    memcpy(third, &c, sizeof(c));
    return is_found;
}

static bool is_integer(double number) {
    return number >= -(double)DOUBLE_INTEGERS_MOST && number <= (double)DOUBLE_INTEGERS_MOST &&
           number == (double)(int64_t)number;
}

/* How many elements a mean divides by, for example. No line tells the sign of a zero. */
static bool find_double(const eddy_affine *affine, const void *first, const void *second,
                        void *third) {
    double a, b;
    int64_t c;
    if (memcmp(first, second, sizeof(a)) == 0)
        return true;
    memcpy(&a, first, sizeof(a));
    memcpy(&b, second, sizeof(b));
    if (!is_integer(a) || !is_integer(b) ||
        !eddy_affine_number(affine, (int64_t)a, (int64_t)b, &c) || c == 0 ||
        c < -DOUBLE_INTEGERS_MOST || c > DOUBLE_INTEGERS_MOST)
        return false;
    a = (double)c;
    memcpy(third, &a, sizeof(a));
    return true;
}

static bool find_scalar(const eddy_affine *affine, const void *first, const void *second,
                        void *third) {
    eddy_scalar a, b, c;
    memcpy(&a, first, sizeof(a));
    memcpy(&b, second, sizeof(b));
    c = a;
    if (a.kind != b.kind || a.slot != b.slot)
        return false;
    bool is_found = a.kind == EDDY_SCALAR_FLOAT
                        ? find_double(affine, &a.value, &b.value, &c.value)
                        : (a.kind == EDDY_SCALAR_INT || a.value.integer == b.value.integer) &&
                              find_int(affine, &a.value, &b.value, &c.value);
    memcpy(third, &c, sizeof(c));
    return is_found;
}

static bool find_shape(const eddy_affine *affine, const void *first, const void *second,
                       void *third) {
    eddy_shape a, b, c;
    memcpy(&a, first, sizeof(a));
    memcpy(&b, second, sizeof(b));
    c = a;
    if (a.rank != b.rank)
        return false;
    for (int32_t d = 0; d < a.rank; d++)
        if (!find_dim(affine, a.dims[d], b.dims[d], &c.dims[d]))
            return false;
    memcpy(third, &c, sizeof(c));
    return true;
}

static bool find_pair(const eddy_affine *affine, const char *first, const char *second,
                      char *third) {
    return find_int(affine, first, second, third) &&
           find_int(affine, first + sizeof(int64_t), second + sizeof(int64_t),
                    third + sizeof(int64_t));
}

bool eddy_affine_attribute(const eddy_affine *affine, const eddy_op_attribute *attribute,
                           const char *first, const char *second, char *third) {
    switch (attribute->type) {
    case EDDY_ATTRIBUTE_INT:
        return find_int(affine, first, second, third);
    case EDDY_ATTRIBUTE_FLOAT:
        return find_double(affine, first, second, third);
    case EDDY_ATTRIBUTE_SCALAR:
        return find_scalar(affine, first, second, third);
    case EDDY_ATTRIBUTE_SHAPE:
        return find_shape(affine, first, second, third);
    case EDDY_ATTRIBUTE_PAIR:
        return find_pair(affine, first, second, third);
    case EDDY_ATTRIBUTE_BOOL:
        return *first == *second;
    case EDDY_ATTRIBUTE_DTYPE:
        return memcmp(first, second, sizeof(eddy_dtype)) == 0;
    default:
        return memcmp(first, second, sizeof(int32_t)) == 0;
    }
}
