#include <program/affine.h>

#include <base/dtype.h>
#include <base/shape.h>
#include <string.h>

/* The integers up to here are all doubles. */
#define DOUBLE_INTEGERS_MOST (INT64_C(1) << 53)
/* Of sizes: products of four of their differences are added up in 128 bits. */
#define SIZE_MOST (INT64_C(1) << 30)

/* ---- what sizes say ---- */

static __int128 gcd_of(__int128 a, __int128 b) {
    while (b != 0) {
        __int128 rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

/* parts / whole in lowest terms, whole > 0. False where they do not fit. */
static bool set_parts(eddy_affine *affine, const __int128 *parts, __int128 whole) {
    __int128 common = whole;
    for (int32_t i = 0; i < affine->count - 1; i++)
        common = gcd_of(common, parts[i]);
    common = whole < 0 ? -common : common;
    for (int32_t i = 0; i < affine->count - 1; i++) {
        affine->parts[i] = (int64_t)(parts[i] / common);
        if (affine->parts[i] != parts[i] / common)
            return false;
    }
    affine->whole = (int64_t)(whole / common);
    return affine->whole == whole / common;
}

static bool find_of_one(const eddy_sizes *known, eddy_sizes size, eddy_affine *affine) {
    *affine = (eddy_affine){.count = 2};
    __int128 first = known[0].of[0], part = size.of[0] - first, whole = known[1].of[0] - first;
    return whole != 0 && set_parts(affine, &part, whole);
}

/* m, n and mn, each as far as it is away from the first program's. */
typedef struct row {
    __int128 of[3];
} row;

static row row_of(eddy_sizes first, eddy_sizes sizes) {
    __int128 m = sizes.of[0] - first.of[0], n = sizes.of[1] - first.of[1];
    return (row){{m, n, m * n}};
}

static __int128 determinant(const row *a, const row *b, const row *c) {
    return a->of[0] * (b->of[1] * c->of[2] - b->of[2] * c->of[1]) -
           a->of[1] * (b->of[0] * c->of[2] - b->of[2] * c->of[0]) +
           a->of[2] * (b->of[0] * c->of[1] - b->of[1] * c->of[0]);
}

static bool is_small(eddy_sizes sizes) {
    return sizes.of[0] >= 0 && sizes.of[0] < SIZE_MOST && sizes.of[1] >= 0 &&
           sizes.of[1] < SIZE_MOST;
}

/* Cramer's rule: the row of the sizes as a sum of those of the known programs. */
static bool find_of_two(const eddy_sizes *known, eddy_sizes sizes, eddy_affine *affine) {
    *affine = (eddy_affine){.count = 4};
    for (int i = 0; i < 4; i++)
        if (!is_small(known[i]) || !is_small(sizes))
            return false;
    row rows[3], wanted = row_of(known[0], sizes);
    for (int i = 0; i < 3; i++)
        rows[i] = row_of(known[0], known[i + 1]);
    __int128 whole = determinant(&rows[0], &rows[1], &rows[2]);
    const __int128 parts[] = {determinant(&wanted, &rows[1], &rows[2]),
                              determinant(&rows[0], &wanted, &rows[2]),
                              determinant(&rows[0], &rows[1], &wanted)};
    return whole != 0 && set_parts(affine, parts, whole);
}

bool eddy_affine_of(const eddy_sizes *known, int32_t size_count, eddy_sizes sizes,
                    eddy_affine *affine) {
    return size_count == 1 ? find_of_one(known, sizes, affine) : find_of_two(known, sizes, affine);
}

/* ---- numbers ---- */

static bool is_same_in_all(const eddy_affine *affine, const int64_t *known) {
    for (int32_t i = 1; i < affine->count; i++)
        if (known[i] != known[0])
            return false;
    return true;
}

bool eddy_affine_number(const eddy_affine *affine, const int64_t *known, int64_t *told) {
    __int128 sum = 0;
    *told = known[0];
    if (is_same_in_all(affine, known))
        return true;
    for (int32_t i = 1; i < affine->count; i++) {
        /* Below 2^127 each, and their sum may not be. */
        __int128 part = ((__int128)known[i] - known[0]) * affine->parts[i - 1];
        if (__builtin_add_overflow(sum, part, &sum))
            return false;
    }
    /* Division in 128 bits takes ten times as long. */
    int64_t small = (int64_t)sum;
    if (EDDY_LIKELY(small == sum))
        return small % affine->whole == 0 &&
               !__builtin_add_overflow(known[0], small / affine->whole, told);
    return sum % affine->whole == 0 && !__builtin_add_overflow(known[0], sum / affine->whole, told);
}

/* Where it changes, it is 2 or more everywhere. */
static bool find_dim(const eddy_affine *affine, const int64_t *known, int64_t *told) {
    if (!eddy_affine_number(affine, known, told))
        return false;
    if (is_same_in_all(affine, known))
        return true;
    for (int32_t i = 0; i < affine->count; i++)
        if (known[i] < EDDY_SIZE_LEAST)
            return false;
    return *told >= EDDY_SIZE_LEAST;
}

/* The stride of a dim in a row-major layout; -1 if there is none. */
static int64_t row_major_stride(const eddy_layout *layout, int32_t dim) {
    int64_t stride = 1;
    for (int32_t d = layout->rank - 1; d > dim; d--)
        if (__builtin_mul_overflow(stride, layout->dims[d], &stride))
            return -1;
    return stride;
}

/* One that is as in a row-major layout in all is so in the one that is told: the product of dims is no such number. */
static bool find_stride(const eddy_affine *affine, const eddy_layout *known, int32_t dim,
                        eddy_layout *told) {
    int64_t strides[EDDY_KNOWN_MOST], *stride = &told->strides[dim];
    bool is_row_major = true;
    for (int32_t i = 0; i < affine->count; i++) {
        strides[i] = known[i].strides[dim];
        is_row_major &= strides[i] == row_major_stride(&known[i], dim);
    }
    if (!is_row_major)
        return eddy_affine_number(affine, strides, stride);
    *stride = row_major_stride(told, dim);
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

bool eddy_affine_layout(const eddy_affine *affine, const eddy_layout *known, eddy_layout *told) {
    int64_t numbers[EDDY_KNOWN_MOST];
    told->rank = known[0].rank;
    for (int32_t i = 0; i < affine->count; i++) {
        if (known[i].rank != known[0].rank)
            return false;
        numbers[i] = known[i].offset;
    }
    if (!eddy_affine_number(affine, numbers, &told->offset))
        return false;
    for (int32_t d = 0; d < told->rank; d++) {
        for (int32_t i = 0; i < affine->count; i++)
            numbers[i] = known[i].dims[d];
        if (!find_dim(affine, numbers, &told->dims[d]))
            return false;
    }
    for (int32_t d = 0; d < told->rank; d++)
        if (!find_stride(affine, known, d, told))
            return false;
    return is_within_reach(told);
}

/* ---- attributes ---- */

static bool find_int(const eddy_affine *affine, const char *const *known, size_t at, char *told) {
    int64_t numbers[EDDY_KNOWN_MOST], number;
    for (int32_t i = 0; i < affine->count; i++)
        memcpy(&numbers[i], known[i] + at, sizeof(numbers[i]));
    bool is_found = eddy_affine_number(affine, numbers, &number);
    memcpy(told + at, &number, sizeof(number));
    return is_found;
}

static bool is_equal_in_all(const eddy_affine *affine, const char *const *known, size_t at,
                            size_t bytes) {
    for (int32_t i = 1; i < affine->count; i++)
        if (memcmp(known[0] + at, known[i] + at, bytes) != 0)
            return false;
    return true;
}

static bool is_integer(double number) {
    return number >= -(double)DOUBLE_INTEGERS_MOST && number <= (double)DOUBLE_INTEGERS_MOST &&
           number == (double)(int64_t)number;
}

/* How many elements a mean divides by, for example. No such number tells the sign of a zero. */
static bool find_double(const eddy_affine *affine, const char *const *known, size_t at,
                        char *told) {
    int64_t numbers[EDDY_KNOWN_MOST], number;
    double value;
    if (is_equal_in_all(affine, known, at, sizeof(value)))
        return true;
    for (int32_t i = 0; i < affine->count; i++) {
        memcpy(&value, known[i] + at, sizeof(value));
        if (!is_integer(value))
            return false;
        numbers[i] = (int64_t)value;
    }
    if (!eddy_affine_number(affine, numbers, &number) || number == 0 ||
        number < -DOUBLE_INTEGERS_MOST || number > DOUBLE_INTEGERS_MOST)
        return false;
    value = (double)number;
    memcpy(told + at, &value, sizeof(value));
    return true;
}

static bool find_scalar(const eddy_affine *affine, const char *const *known, char *told) {
    eddy_scalar first, other;
    memcpy(&first, known[0], sizeof(first));
    for (int32_t i = 1; i < affine->count; i++) {
        memcpy(&other, known[i], sizeof(other));
        if (other.kind != first.kind || other.slot != first.slot)
            return false;
    }
    const size_t at = offsetof(eddy_scalar, value);
    if (first.kind == EDDY_SCALAR_FLOAT)
        return find_double(affine, known, at, told);
    return first.kind == EDDY_SCALAR_INT
               ? find_int(affine, known, at, told)
               : is_equal_in_all(affine, known, at, sizeof(first.value.integer));
}

static bool find_shape(const eddy_affine *affine, const char *const *known, char *told) {
    eddy_shape shapes[EDDY_KNOWN_MOST], shape;
    for (int32_t i = 0; i < affine->count; i++) {
        memcpy(&shapes[i], known[i], sizeof(shapes[i]));
        if (shapes[i].rank != shapes[0].rank)
            return false;
    }
    shape = shapes[0];
    for (int32_t d = 0; d < shape.rank; d++) {
        int64_t dims[EDDY_KNOWN_MOST];
        for (int32_t i = 0; i < affine->count; i++)
            dims[i] = shapes[i].dims[d];
        if (!find_dim(affine, dims, &shape.dims[d]))
            return false;
    }
    memcpy(told, &shape, sizeof(shape));
    return true;
}

bool eddy_affine_attribute(const eddy_affine *affine, const eddy_op_attribute *attribute,
                           const char *const *known, char *told) {
    switch (attribute->type) {
    case EDDY_ATTRIBUTE_INT:
        return find_int(affine, known, 0, told);
    case EDDY_ATTRIBUTE_FLOAT:
        return find_double(affine, known, 0, told);
    case EDDY_ATTRIBUTE_SCALAR:
        return find_scalar(affine, known, told);
    case EDDY_ATTRIBUTE_SHAPE:
        return find_shape(affine, known, told);
    case EDDY_ATTRIBUTE_PAIR:
        return find_int(affine, known, 0, told) && find_int(affine, known, sizeof(int64_t), told);
    case EDDY_ATTRIBUTE_BOOL:
        return is_equal_in_all(affine, known, 0, 1);
    case EDDY_ATTRIBUTE_DTYPE:
        return is_equal_in_all(affine, known, 0, sizeof(eddy_dtype));
    default:
        return is_equal_in_all(affine, known, 0, sizeof(int32_t));
    }
}
