/* sort, argsort and topk on a CUDA device: the CPU's order, of equals too, and the elements' own bits. On the fake driver (tests/fake_cuda). */
#include <criterion/criterion.h>
#include <tests/functional/random.h>
#include <tests/functional/twin.h>

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

/* Special ones among the elements, or many equals. Of any layout. */
static twin some_elements(eddy_dtype dtype, eddy_shape shape) {
    return random_below(2) ? twin_random(dtype, shape, false) : twin_numbers(dtype, shape, false);
}

static void expect_sorted(twin x, int32_t axis) {
    bool is_descending = random_below(2);
    eddy_tensor *values[2], *indices[2];
    cr_assert_eq(eddy_sort(x.here, axis, EDDY_OPTIONS(sort, .is_descending = is_descending),
                           &values[0], &indices[0]),
                 EDDY_OK);
    cr_assert_eq(eddy_sort(x.there, axis, EDDY_OPTIONS(sort, .is_descending = is_descending),
                           &values[1], &indices[1]),
                 EDDY_OK);
    twin_expect_equal("indices of sort", indices[0], indices[1]);
    twin_expect_equal("values of sort", values[0], values[1]);
    const eddy_argsort_options *options = EDDY_OPTIONS(argsort, .is_descending = is_descending);
    twin_expect_equal("argsort", eddy_argsort(x.here, axis, options),
                      eddy_argsort(x.there, axis, options));
}

static void expect_chosen(twin x, int64_t k, int32_t axis) {
    const eddy_topk_options *options = EDDY_OPTIONS(topk, .is_smallest = random_below(2));
    eddy_tensor *values[2], *indices[2];
    cr_assert_eq(eddy_topk(x.here, k, axis, options, &values[0], &indices[0]), EDDY_OK);
    cr_assert_eq(eddy_topk(x.there, k, axis, options, &values[1], &indices[1]), EDDY_OK);
    twin_expect_equal("indices of topk", indices[0], indices[1]);
    twin_expect_equal("values of topk", values[0], values[1]);
}

Test(cuda_sort, any_shape_axis_and_layout) {
    TWIN_EACH_DTYPE(dtype) {
        eddy_shape shape = twin_shape(5, 7);
        int32_t axis = shape.rank == 0 ? 0 : (int32_t)random_below(shape.rank);
        int64_t length = shape.rank == 0 ? 1 : shape.dims[axis];
        twin x = some_elements(dtype, shape);
        expect_sorted(x, axis);
        expect_chosen(x, shape.rank == 0 ? 1 : random_below(length + 1), axis);
    }
    twin_expect_no_findings();
}

/* Round the powers of two to which a tile is made, and those of tiles, which are merged. */
static const int64_t lengths[] = {1,    2,    3,    4,    5,    31,   32,   33,   63,
                                  65,   127,  255,  257,  1000, 1023, 1024, 1025, 2047,
                                  2048, 2049, 4095, 4096, 4097, 6145, 8191, 8193, 10241};

Test(cuda_sort, lengths_round_every_limit) {
    for (int n = 0; n < COUNT(lengths); n++)
        for (int round = 0; round < 3; round++) {
            eddy_scope *scope = eddy_scope_begin();
            eddy_dtype dtype = (eddy_dtype)random_below(EDDY_DTYPE_COUNT);
            int64_t length = lengths[n], lines = 1 + random_below(length > 2048 ? 3 : 5);
            bool is_across = random_below(2);
            twin x = some_elements(dtype, is_across ? EDDY_SHAPE(length, lines)
                                                    : EDDY_SHAPE(lines, length));
            expect_sorted(x, is_across ? 0 : 1);
            expect_chosen(x, random_below(length + 1), is_across ? 0 : 1);
            expect_chosen(x, 1 + random_below(length < 20 ? length : 20), is_across ? 0 : 1);
            eddy_scope_end(scope);
        }
    twin_expect_no_findings();
}

Test(cuda_sort, every_dtype_in_lines_that_are_merged) {
    for (int dtype = 0; dtype < EDDY_DTYPE_COUNT; dtype++)
        for (int round = 0; round < 2; round++) {
            eddy_scope *scope = eddy_scope_begin();
            twin x = round ? twin_random((eddy_dtype)dtype, EDDY_SHAPE(2, 5000), false)
                           : twin_numbers((eddy_dtype)dtype, EDDY_SHAPE(2, 5000), false);
            expect_sorted(x, 1);
            expect_chosen(x, 100 + 4000 * round, 1);
            eddy_scope_end(scope);
        }
    twin_expect_no_findings();
}

/* So that all that is chosen may be in the first tile, or in the last. */
Test(cuda_sort, lines_that_are_in_order) {
    int32_t numbers[5000];
    for (int direction = 0; direction < 2; direction++)
        for (int k = 1; k < 5000; k = 3 * k + 1) {
            eddy_scope *scope = eddy_scope_begin();
            for (int32_t i = 0; i < COUNT(numbers); i++)
                numbers[i] = direction ? -i : i;
            twin x = twin_of(numbers, EDDY_SHAPE(COUNT(numbers)), EDDY_I32);
            expect_sorted(x, 0);
            expect_chosen(x, k, 0);
            expect_chosen(x, k, 0);
            eddy_scope_end(scope);
        }
    twin_expect_no_findings();
}

/* More tiles than blocks of threads work at once. */
Test(cuda_sort, many_lines_and_a_long_one) {
    eddy_scope *scope = eddy_scope_begin();
    expect_sorted(twin_random(EDDY_F32, EDDY_SHAPE(3000, 50), false), 1);
    expect_sorted(twin_random(EDDY_F32, EDDY_SHAPE(150001), false), 0);
    expect_chosen(twin_random(EDDY_F64, EDDY_SHAPE(100000), false), 7, 0);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

Test(cuda_sort, targets_are_written_where_they_lie) {
    for (int round = 0; round < 10; round++) {
        eddy_scope *scope = eddy_scope_begin();
        int64_t length = round % 2 ? 3000 : 9;
        eddy_shape shape = EDDY_SHAPE(3, length);
        twin x = twin_random(EDDY_I32, shape, false), target = twin_random(EDDY_I64, shape, true);
        cr_assert_eq(eddy_argsort_into(x.here, target.here, 1, NULL), EDDY_OK);
        cr_assert_eq(eddy_argsort_into(x.there, target.there, 1, NULL), EDDY_OK);
        twin_expect_equal("argsort_into", target.here, target.there);
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

/* ---- gradients ---- */

static eddy_tensor *gradient(eddy_tensor *leaf, int64_t k) {
    eddy_tensor *x = eddy_detach(leaf), *sorted, *chosen, *indices;
    cr_assert_eq(eddy_requires_grad_set(x, true), EDDY_OK);
    cr_assert_eq(eddy_sort(x, 1, NULL, &sorted, &indices), EDDY_OK);
    cr_assert_eq(eddy_topk(eddy_mul(sorted, sorted), k, 0, NULL, &chosen, &indices), EDDY_OK);
    cr_assert_eq(eddy_backward(eddy_sum(eddy_mul(chosen, chosen), EDDY_ALL_AXES, NULL)), EDDY_OK);
    return eddy_grad_of(x);
}

Test(cuda_sort, gradients_have_the_bits_of_the_cpu) {
    for (int round = 0; round < 6; round++) {
        eddy_scope *scope = eddy_scope_begin();
        twin x = twin_numbers(round % 2 ? EDDY_F32 : EDDY_F64, EDDY_SHAPE(12, 30), true);
        int64_t k = 1 + random_below(12);
        twin_expect_equal("gradient", gradient(x.here, k), gradient(x.there, k));
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}
