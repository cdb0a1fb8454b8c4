#include <base/shape.h>
#include <criterion/criterion.h>
#include <string.h>

Test(shape, validity_bounds_rank_sign_and_size) {
    eddy_shape shape = EDDY_SHAPE();
    cr_assert(eddy_shape_is_valid(&shape));
    shape = EDDY_SHAPE(64, 784);
    cr_assert(eddy_shape_is_valid(&shape));
    shape = EDDY_SHAPE(0, INT64_C(1) << 62);
    cr_assert(eddy_shape_is_valid(&shape));
    shape = EDDY_SHAPE(0, INT64_C(1) << 62, 2);
    cr_assert_not(eddy_shape_is_valid(&shape), "zero dims count as 1");
    shape = EDDY_SHAPE(INT64_MAX, INT64_MAX);
    cr_assert_not(eddy_shape_is_valid(&shape));
    shape = EDDY_SHAPE(-1);
    cr_assert_not(eddy_shape_is_valid(&shape));
    shape = EDDY_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
    cr_assert_eq(shape.rank, 16);
    cr_assert(eddy_shape_is_valid(&shape));
    shape.rank = 17;
    cr_assert_not(eddy_shape_is_valid(&shape));
    shape.rank = -1;
    cr_assert_not(eddy_shape_is_valid(&shape));
}

Test(shape, count_is_a_product_that_refuses_overflow) {
    int64_t count = -7;
    cr_assert(eddy_shape_count(0, NULL, &count) && count == 1);
    cr_assert(eddy_shape_count(3, (int64_t[]){2, 3, 5}, &count) && count == 30);
    cr_assert(eddy_shape_count(3, (int64_t[]){INT64_MAX, INT64_MAX, 0}, &count) && count == 0);
    count = -7;
    cr_assert_not(eddy_shape_count(2, (int64_t[]){INT64_MAX, 2}, &count));
    cr_assert_eq(count, -7);
}

Test(shape, broadcast_follows_pytorch) {
    eddy_shape a = EDDY_SHAPE(3, 1, 5), b = EDDY_SHAPE(4, 1), result, single = EDDY_SHAPE(),
               empty = EDDY_SHAPE(0);
    cr_assert(eddy_shape_broadcast(&a, &b, &result));
    cr_assert(eddy_shape_equal(result.rank, result.dims, 3, (int64_t[]){3, 4, 5}));
    cr_assert(eddy_shape_broadcast(&b, &a, &result));
    cr_assert(eddy_shape_equal(result.rank, result.dims, 3, (int64_t[]){3, 4, 5}));
    cr_assert(eddy_shape_broadcast(&single, &a, &result));
    cr_assert(eddy_shape_equal(result.rank, result.dims, 3, a.dims));
    cr_assert(eddy_shape_broadcast(&empty, &single, &result) && result.rank == 1 &&
              result.dims[0] == 0);
    b = EDDY_SHAPE(2, 1);
    cr_assert(eddy_shape_broadcast(&empty, &b, &result));
    cr_assert(eddy_shape_equal(result.rank, result.dims, 2, (int64_t[]){2, 0}));
    b = EDDY_SHAPE(3);
    cr_assert_not(eddy_shape_broadcast(&a, &b, &result));
    cr_assert_not(eddy_shape_broadcast(&empty, &b, &result));
    cr_assert(eddy_shape_broadcast(&a, &a, &a), "the result may be an operand");
}

Test(shape, format_tells_its_length_as_snprintf_does) {
    char text[32];
    cr_assert_eq(eddy_shape_format(2, (int64_t[]){64, 784}, text, sizeof(text)), 9);
    cr_assert_str_eq(text, "[64, 784]");
    cr_assert_eq(eddy_shape_format(0, NULL, text, sizeof(text)), 2);
    cr_assert_str_eq(text, "[]");
    cr_assert_eq(eddy_shape_format(2, (int64_t[]){64, 784}, text, 4), 9);
    cr_assert_str_eq(text, "[64");
    cr_assert_eq(eddy_shape_format(1, (int64_t[]){5}, NULL, 0), 3);
    int64_t long_dims[EDDY_RANK_MAX];
    for (int i = 0; i < EDDY_RANK_MAX; i++)
        long_dims[i] = INT64_MIN;
    cr_assert_eq(eddy_shape_format(EDDY_RANK_MAX, long_dims, text, sizeof(text)),
                 16 * 20 + 15 * 2 + 2);
}

Test(shape, axes_count_from_the_end) {
    int32_t axis = 99;
    cr_assert(eddy_shape_axis_normalize(-1, 3, &axis) && axis == 2);
    cr_assert(eddy_shape_axis_normalize(0, 3, &axis) && axis == 0);
    cr_assert(eddy_shape_axis_normalize(-1, 0, &axis) && axis == 0);
    cr_assert_not(eddy_shape_axis_normalize(3, 3, &axis));
    cr_assert_not(eddy_shape_axis_normalize(-4, 3, &axis));
    cr_assert_not(eddy_shape_axis_normalize(1, 0, &axis));
    cr_assert_not(eddy_shape_axis_normalize(INT64_MIN, 3, &axis));
}

Test(shape, a_mask_of_axes_refuses_doubles) {
    uint32_t mask = 99;
    cr_assert(eddy_shape_axes_mask(&EDDY_ALL_AXES, 3, &mask) && mask == 7);
    cr_assert(eddy_shape_axes_mask(&EDDY_ALL_AXES, 0, &mask) && mask == 0);
    cr_assert(eddy_shape_axes_mask(&EDDY_ALL_AXES, 16, &mask) && mask == 0xffff);
    cr_assert(eddy_shape_axes_mask(&EDDY_AXES(0, -1), 3, &mask) && mask == 5);
    cr_assert(eddy_shape_axes_mask(&EDDY_AXES(-1), 0, &mask) && mask == 0);
    cr_assert_not(eddy_shape_axes_mask(&EDDY_AXES(0, -3), 3, &mask));
    cr_assert_not(eddy_shape_axes_mask(&EDDY_AXES(3), 3, &mask));
    eddy_axes wrong = {17, {0}};
    cr_assert_not(eddy_shape_axes_mask(&wrong, 3, &mask));
}
