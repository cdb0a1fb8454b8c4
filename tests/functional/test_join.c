/* stack, pad, repeat, repeat_interleave, flip, roll through the public functions: shapes, values, what is refused. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <string.h>

static eddy_tensor *counting(eddy_shape shape) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    return eddy_reshape(eddy_arange(EDDY_S(0), EDDY_S(count), EDDY_S(1), EDDY_I64, NULL), shape);
}

static void expect(eddy_tensor *tensor, eddy_shape shape, const int64_t *values) {
    cr_assert_not_null(tensor);
    eddy_shape is = eddy_shape_of(tensor);
    cr_assert(is.rank == shape.rank &&
              memcmp(is.dims, shape.dims, (size_t)is.rank * sizeof(is.dims[0])) == 0);
    int64_t got[64], count = eddy_count_of(tensor);
    cr_assert_eq(eddy_read(tensor, got, (size_t)eddy_count_of(tensor) * sizeof(got[0]), NULL),
                 EDDY_OK);
    for (int64_t i = 0; i < count; i++)
        cr_assert_eq(got[i], values[i], "element %lld is %lld", (long long)i, (long long)got[i]);
}
#define EXPECT(tensor, shape, ...) expect(tensor, shape, (const int64_t[]){__VA_ARGS__})

static void refused(const eddy_tensor *tensor, eddy_status status, const char *op) {
    eddy_error error;
    cr_assert_null(tensor);
    cr_assert_eq(eddy_error_take(&error), status, "%s: %s", eddy_status_name(error.status),
                 error.message);
    cr_assert_str_eq(error.op, op);
}

Test(join, stack_makes_a_new_axis) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = counting(EDDY_SHAPE(2)), *b = eddy_add_s(a, EDDY_S(5));
    EXPECT(eddy_stack(EDDY_LIST(a, b), 0), EDDY_SHAPE(2, 2), 0, 1, 5, 6);
    EXPECT(eddy_stack(EDDY_LIST(a, b), -1), EDDY_SHAPE(2, 2), 0, 5, 1, 6);
    EXPECT(eddy_stack(EDDY_LIST(a), 1), EDDY_SHAPE(2, 1), 0, 1);
    refused(eddy_stack(EDDY_LIST(a, b), 2), EDDY_OUT_OF_RANGE, "stack");
    refused(eddy_stack((eddy_list){NULL, 0}, 0), EDDY_INVALID_ARGUMENT, "stack");
    refused(eddy_stack(EDDY_LIST(a, counting(EDDY_SHAPE(3))), 0), EDDY_SHAPE_MISMATCH, "stack");
    refused(eddy_stack(EDDY_LIST(a, eddy_cast(b, EDDY_F32)), 0), EDDY_DTYPE_MISMATCH, "stack");
    eddy_shape full = {.rank = EDDY_RANK_MAX};
    for (int d = 0; d < EDDY_RANK_MAX; d++)
        full.dims[d] = 1;
    refused(eddy_stack(EDDY_LIST(eddy_zeros(full, EDDY_F32, NULL)), 0), EDDY_SHAPE_MISMATCH,
            "stack");
    cr_assert_eq(eddy_stack_into(EDDY_LIST(a, b), eddy_zeros(EDDY_SHAPE(2, 2), EDDY_I64, NULL), 0),
                 EDDY_OK);
    eddy_scope_end(scope);
}

Test(join, pad_takes_numbers_for_the_last_axes) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *m = counting(EDDY_SHAPE(2, 2));
    EXPECT(eddy_pad(m, EDDY_SHAPE(1), EDDY_SHAPE(0), EDDY_S(9)), EDDY_SHAPE(2, 3), 9, 0, 1, 9, 2,
           3);
    EXPECT(eddy_pad(m, EDDY_SHAPE(1, 0), EDDY_SHAPE(0, -1), EDDY_S(9)), EDDY_SHAPE(3, 1), 9, 0, 2);
    EXPECT(eddy_pad(m, EDDY_SHAPE(), EDDY_SHAPE(), EDDY_S(9)), EDDY_SHAPE(2, 2), 0, 1, 2, 3);
    EXPECT(eddy_pad(m, EDDY_SHAPE(-2), EDDY_SHAPE(1), EDDY_S(4.9)), EDDY_SHAPE(2, 1), 4, 4);
    refused(eddy_pad(m, EDDY_SHAPE(1), EDDY_SHAPE(1, 1), EDDY_S(0)), EDDY_INVALID_ARGUMENT, "pad");
    refused(eddy_pad(m, EDDY_SHAPE(1, 1, 1), EDDY_SHAPE(1, 1, 1), EDDY_S(0)), EDDY_INVALID_ARGUMENT,
            "pad");
    refused(eddy_pad(m, EDDY_SHAPE(-3), EDDY_SHAPE(9), EDDY_S(0)), EDDY_INVALID_ARGUMENT, "pad");
    refused(eddy_pad(m, EDDY_SHAPE(9), EDDY_SHAPE(-3), EDDY_S(0)), EDDY_INVALID_ARGUMENT, "pad");
    refused(eddy_pad(m, EDDY_SHAPE(-1), EDDY_SHAPE(-2), EDDY_S(0)), EDDY_INVALID_ARGUMENT, "pad");
    refused(eddy_pad(m, EDDY_SHAPE(INT64_MIN), EDDY_SHAPE(INT64_MIN), EDDY_S(0)),
            EDDY_INVALID_ARGUMENT, "pad");
    refused(eddy_pad(m, EDDY_SHAPE(INT64_MAX), EDDY_SHAPE(0), EDDY_S(0)), EDDY_SIZE_OVERFLOW,
            "pad");
    refused(eddy_pad(m, (eddy_shape){.rank = -1}, (eddy_shape){.rank = -1}, EDDY_S(0)),
            EDDY_INVALID_ARGUMENT, "pad");
    eddy_scope_end(scope);
}

Test(join, repeats) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *m = counting(EDDY_SHAPE(2, 2)),
                *number = eddy_full(EDDY_SHAPE(), EDDY_S(3), EDDY_I64, NULL);
    EXPECT(eddy_repeat(m, EDDY_SHAPE(1, 2)), EDDY_SHAPE(2, 4), 0, 1, 0, 1, 2, 3, 2, 3);
    EXPECT(eddy_repeat(m, EDDY_SHAPE(2, 1, 1)), EDDY_SHAPE(2, 2, 2), 0, 1, 2, 3, 0, 1, 2, 3);
    EXPECT(eddy_repeat(number, EDDY_SHAPE(3)), EDDY_SHAPE(3), 3, 3, 3);
    cr_assert_eq(eddy_count_of(eddy_repeat(m, EDDY_SHAPE(0, 2))), 0);
    refused(eddy_repeat(m, EDDY_SHAPE(2)), EDDY_INVALID_ARGUMENT, "repeat");
    refused(eddy_repeat(m, EDDY_SHAPE(2, -1)), EDDY_INVALID_ARGUMENT, "repeat");
    refused(eddy_repeat(m, (eddy_shape){.rank = 17}), EDDY_INVALID_ARGUMENT, "repeat");
    refused(eddy_repeat(m, EDDY_SHAPE(1, INT64_MAX)), EDDY_SIZE_OVERFLOW, "repeat");
    EXPECT(eddy_repeat_interleave(m, 2, 1), EDDY_SHAPE(2, 4), 0, 0, 1, 1, 2, 2, 3, 3);
    EXPECT(eddy_repeat_interleave(m, 2, -2), EDDY_SHAPE(4, 2), 0, 1, 0, 1, 2, 3, 2, 3);
    cr_assert_eq(eddy_count_of(eddy_repeat_interleave(m, 0, 0)), 0);
    /* No strides that overflow where there are no elements. */
    cr_assert_eq(eddy_count_of(eddy_repeat_interleave(
                     eddy_zeros(EDDY_SHAPE(0, 2, 0), EDDY_U8, NULL), INT64_C(1) << 62, 0)),
                 0);
    refused(eddy_repeat_interleave(m, -1, 0), EDDY_INVALID_ARGUMENT, "repeat_interleave");
    refused(eddy_repeat_interleave(m, 2, 2), EDDY_OUT_OF_RANGE, "repeat_interleave");
    EXPECT(eddy_repeat_interleave(number, 2, 0), EDDY_SHAPE(2), 3, 3);
    refused(eddy_repeat_interleave(m, INT64_MAX, 0), EDDY_SIZE_OVERFLOW, "repeat_interleave");
    eddy_scope_end(scope);
}

Test(join, flip_and_roll) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *m = counting(EDDY_SHAPE(2, 3));
    EXPECT(eddy_flip(m, EDDY_AXES(1)), EDDY_SHAPE(2, 3), 2, 1, 0, 5, 4, 3);
    EXPECT(eddy_flip(m, EDDY_AXES(-2)), EDDY_SHAPE(2, 3), 3, 4, 5, 0, 1, 2);
    EXPECT(eddy_flip(m, EDDY_ALL_AXES), EDDY_SHAPE(2, 3), 5, 4, 3, 2, 1, 0);
    refused(eddy_flip(m, EDDY_AXES(2)), EDDY_OUT_OF_RANGE, "flip");
    refused(eddy_flip(m, EDDY_AXES(1, -1)), EDDY_INVALID_ARGUMENT, "flip");
    EXPECT(eddy_roll(m, EDDY_SHAPE(1), EDDY_AXES(1)), EDDY_SHAPE(2, 3), 2, 0, 1, 5, 3, 4);
    EXPECT(eddy_roll(m, EDDY_SHAPE(-1, 7), EDDY_AXES(-1, 0)), EDDY_SHAPE(2, 3), 4, 5, 3, 1, 2, 0);
    EXPECT(eddy_roll(m, EDDY_SHAPE(2, -1), EDDY_AXES(1, 1)), EDDY_SHAPE(2, 3), 2, 0, 1, 5, 3, 4);
    EXPECT(eddy_roll(m, EDDY_SHAPE(-2), EDDY_ALL_AXES), EDDY_SHAPE(2, 3), 2, 3, 4, 5, 0, 1);
    EXPECT(eddy_roll(m, EDDY_SHAPE(INT64_MIN), EDDY_ALL_AXES), EDDY_SHAPE(2, 3), 2, 3, 4, 5, 0, 1);
    refused(eddy_roll(m, EDDY_SHAPE(1, 1), EDDY_AXES(1)), EDDY_INVALID_ARGUMENT, "roll");
    refused(eddy_roll(m, EDDY_SHAPE(), EDDY_ALL_AXES), EDDY_INVALID_ARGUMENT, "roll");
    refused(eddy_roll(m, EDDY_SHAPE(1), EDDY_AXES(2)), EDDY_OUT_OF_RANGE, "roll");
    refused(eddy_roll(m, EDDY_SHAPE(1), (eddy_axes){.count = 17}), EDDY_INVALID_ARGUMENT, "roll");
    eddy_tensor *number = eddy_full(EDDY_SHAPE(), EDDY_S(3), EDDY_I64, NULL);
    EXPECT(eddy_roll(number, EDDY_SHAPE(4), EDDY_ALL_AXES), EDDY_SHAPE(), 3);
    EXPECT(eddy_roll(number, EDDY_SHAPE(4), EDDY_AXES(0)), EDDY_SHAPE(), 3);
    cr_assert_not_null(
        eddy_roll(eddy_zeros(EDDY_SHAPE(0, 3), EDDY_I64, NULL), EDDY_SHAPE(4), EDDY_ALL_AXES));
    eddy_scope_end(scope);
}

Test(join, a_list_of_axes_comes_by_name_too) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *m = counting(EDDY_SHAPE(2, 3)), *out = NULL;
    cr_assert_eq(
        eddy_call("roll", EDDY_LIST(m),
                  EDDY_ATTRIBUTES({"shifts", EDDY_ATTRIBUTE_SHAPE, {.shape = EDDY_SHAPE(1)}},
                                  {"axes", EDDY_ATTRIBUTE_SHAPE, {.shape = EDDY_SHAPE(1)}}),
                  &out),
        EDDY_OK);
    EXPECT(out, EDDY_SHAPE(2, 3), 2, 0, 1, 5, 3, 4);
    eddy_scope_end(scope);
}
