#include <base/dtype.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tests/fake_cuda/findings.h>
#include <tests/functional/random.h>
#include <tests/functional/twin.h>

static int64_t count_of(eddy_shape shape) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    return count;
}

eddy_dtype twin_index_dtype(void) {
    return random_below(2) == 0 ? EDDY_I64 : EDDY_I32;
}

twin twin_of(const void *elements, eddy_shape shape, eddy_dtype dtype) {
    twin made = {.here = eddy_from_data(elements, shape, dtype, NULL)};
    cr_assert_not_null(made.here);
    made.there = eddy_to_device(made.here, TWIN_THERE);
    cr_assert_not_null(made.there);
    return made;
}

/* ---- layouts ---- */

/* How a dim lies in memory: where it begins, how far apart its elements are, and whether there is only one. */
typedef struct dim {
    int64_t base, begin, step;
    bool is_broadcast;
} dim;

static dim dim_random(int64_t length, bool is_written) {
    dim made = {.step = random_below(3) == 0 ? 2 : 1, .begin = random_below(3) == 0};
    made.is_broadcast = !is_written && length > 0 && random_below(8) == 0;
    if (made.is_broadcast)
        made.step = 1;
    made.base = made.begin + (made.is_broadcast ? 1 : length * made.step);
    return made;
}

static eddy_tensor *lay(eddy_tensor *base, eddy_shape shape, eddy_axes order, const dim *dims) {
    eddy_tensor *view = eddy_permute(base, order);
    for (int32_t d = 0; d < shape.rank; d++)
        view = eddy_slice(view, d, dims[d].begin, dims[d].base, dims[d].step);
    view = eddy_expand(view, shape);
    cr_assert_not_null(view);
    return view;
}

static twin twin_laid(eddy_dtype dtype, eddy_shape shape, bool is_written,
                      void (*element)(eddy_dtype, void *, const int64_t *), const int64_t *within) {
    dim dims[EDDY_RANK_MAX];
    eddy_axes order = {.count = shape.rank};
    eddy_shape base = {.rank = shape.rank};
    for (int32_t d = 0; d < shape.rank; d++) {
        dims[d] = dim_random(shape.dims[d], is_written);
        int32_t to = (int32_t)random_below(d + 1);
        order.axes[d] = order.axes[to];
        order.axes[to] = d;
    }
    for (int32_t d = 0; d < shape.rank; d++)
        base.dims[order.axes[d]] = dims[d].base;
    int64_t count = count_of(base), bytes = eddy_dtype_size(dtype);
    char *elements = malloc((size_t)(count * bytes + 1));
    for (int64_t i = 0; i < count; i++)
        element(dtype, elements + i * bytes, within);
    twin made = twin_of(elements, base, dtype);
    free(elements);
    return (twin){lay(made.here, shape, order, dims), lay(made.there, shape, order, dims)};
}

static void any_element(eddy_dtype dtype, void *element, const int64_t *within) {
    (void)within;
    random_element(dtype, element);
}

static void element_within(eddy_dtype dtype, void *element, const int64_t *within) {
    eddy_dtype_store_i64(dtype, element, within[0] + random_below(within[1] - within[0] + 1));
}

static void number_element(eddy_dtype dtype, void *element, const int64_t *within) {
    (void)within;
    eddy_dtype_store_f64(dtype, element, (double)(random_below(200001) - 100000) / 1234);
}

twin twin_random(eddy_dtype dtype, eddy_shape shape, bool is_written) {
    return twin_laid(dtype, shape, is_written, any_element, NULL);
}

twin twin_numbers(eddy_dtype dtype, eddy_shape shape, bool is_written) {
    return twin_laid(dtype, shape, is_written, number_element, NULL);
}

twin twin_indices(eddy_dtype dtype, eddy_shape shape, int64_t least, int64_t most) {
    return twin_laid(dtype, shape, false, element_within, (int64_t[]){least, most});
}

eddy_shape twin_shape(int32_t rank, int64_t most) {
    eddy_shape shape = {.rank = (int32_t)random_below(rank + 1)};
    for (int32_t d = 0; d < shape.rank; d++)
        shape.dims[d] = random_below(16) == 0 ? 0 : 1 + random_below(most);
    return shape;
}

/* ---- comparing ---- */

static bool is_same(eddy_dtype dtype, const void *one, const void *other) {
    return memcmp(one, other, eddy_dtype_bytes(dtype)) == 0 ||
           (eddy_dtype_is_float(dtype) && isnan(eddy_dtype_load_f64(dtype, one)) &&
            isnan(eddy_dtype_load_f64(dtype, other)));
}

void twin_expect_equal(const char *what, eddy_tensor *here, eddy_tensor *there) {
    eddy_error error = {0};
    if (!here || !there)
        eddy_error_take(&error);
    cr_assert(here && there, "%s: %s", what, error.message);
    eddy_shape shape = eddy_shape_of(here), other = eddy_shape_of(there);
    cr_assert(shape.rank == other.rank &&
              memcmp(shape.dims, other.dims, (size_t)shape.rank * sizeof(int64_t)) == 0);
    int64_t count = eddy_count_of(here), size = eddy_dtype_size(eddy_dtype_of(here));
    size_t bytes = (size_t)(count * size);
    char *a = malloc(bytes + 1), *b = malloc(bytes + 1);
    eddy_status read = eddy_read(here, a, bytes, NULL),
                read_there = eddy_read(there, b, bytes, NULL);
    if (read || read_there)
        eddy_error_take(&error);
    cr_assert(!read && !read_there, "%s: %s", what, error.message);
    for (int64_t i = 0; i < count; i++)
        cr_assert(is_same(eddy_dtype_of(here), a + i * size, b + i * size),
                  "%s, %s, seed %llu: element %lld of %lld differs", what,
                  eddy_dtype_name(eddy_dtype_of(here)), (unsigned long long)random_seed(),
                  (long long)i, (long long)count);
    free(a);
    free(b);
}

bool twin_fail_alike(eddy_tensor *here, eddy_tensor *there) {
    eddy_error error = {0}, error_there = {0};
    cr_assert(here && there);
    eddy_status status = eddy_error_of(here, EDDY_FOREVER, &error),
                status_there = eddy_error_of(there, EDDY_FOREVER, &error_there);
    cr_assert_eq(status, status_there, "%s: %s", error.message, error_there.message);
    cr_assert_str_eq(error_there.op, error.op);
    cr_assert_str_eq(error_there.message, error.message);
    return status != EDDY_OK;
}

void twin_expect_error(eddy_tensor *here, eddy_tensor *there) {
    cr_assert(twin_fail_alike(here, there));
}

void twin_expect_no_findings(void) {
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}
