#include "../calls.h"

Test(target, into_writes_where_it_is_told) {
    eddy_tensor *a = F32(EDDY_SHAPE(3), 1, 2, 3), *target = counting(EDDY_SHAPE(3));
    cr_assert_eq(call_into("add", OF(a, a), target), EDDY_OK);
    ASSERT_F32(target, 2, 4, 6);
}

Test(target, a_strided_target_keeps_its_neighbours) {
    eddy_tensor *m = counting(EDDY_SHAPE(2, 3));
    cr_assert_eq(call_into("neg", OF(F32(EDDY_SHAPE(2), 7, 8)), eddy_select(m, 1, 1)), EDDY_OK);
    ASSERT_F32(m, 0, -7, 2, 3, -8, 5);
}

Test(target, an_exact_alias_is_allowed) {
    eddy_tensor *a = F32(EDDY_SHAPE(3), 1, 2, 3);
    cr_assert_eq(call_into("add", OF(a, a), a), EDDY_OK);
    ASSERT_F32(a, 2, 4, 6);
    eddy_tensor *m = counting(EDDY_SHAPE(2, 2));
    cr_assert_eq(call_into("neg", OF(eddy_t(m)), eddy_t(m)), EDDY_OK,
                 "two views of the same elements");
    ASSERT_F32(m, 0, -1, -2, -3);
}

Test(target, partial_overlap_is_refused) {
    eddy_tensor *v = counting(EDDY_SHAPE(8));
    cr_assert_eq(call_into("neg", OF(eddy_narrow(v, 0, 0, 4)), eddy_narrow(v, 0, 2, 4)),
                 EDDY_OVERLAP);
    ASSERT_ERROR(EDDY_OVERLAP, "neg: target overlaps");
    eddy_tensor *m = counting(EDDY_SHAPE(3, 3));
    cr_assert_eq(call_into("neg", OF(m), eddy_t(m)), EDDY_OVERLAP,
                 "the same elements in another order");
    eddy_error_take(NULL);
    eddy_tensor *flags = empty_of(EDDY_BOOL, EDDY_SHAPE(3));
    cr_assert_eq(call_into("lt", OF(flags, flags), flags), EDDY_OK);
}

Test(target, interleaved_ranges_are_allowed) {
    eddy_tensor *m = counting(EDDY_SHAPE(2, 4));
    cr_assert_eq(call_into("neg", OF(eddy_narrow(m, 1, 0, 2)), eddy_narrow(m, 1, 2, 2)), EDDY_OK);
    ASSERT_F32(m, 0, 1, -0.0f, -1, 4, 5, -4, -5);
}

Test(target, repeated_elements_cannot_be_written) {
    eddy_tensor *one = F32(EDDY_SHAPE(1), 1);
    cr_assert_eq(call_into("neg", OF(counting(EDDY_SHAPE(4))), eddy_expand(one, EDDY_SHAPE(4))),
                 EDDY_OVERLAP);
    ASSERT_ERROR(EDDY_OVERLAP, "neg: target f32[4] cannot be written to");
}

Test(target, shape_and_dtype_must_be_the_results) {
    eddy_tensor *a = counting(EDDY_SHAPE(2, 3));
    cr_assert_eq(call_into("neg", OF(a), counting(EDDY_SHAPE(3, 2))), EDDY_SHAPE_MISMATCH);
    ASSERT_ERROR(EDDY_SHAPE_MISMATCH,
                 "neg: the result is f32[2, 3], the target f32[3, 2] (f32[2, 3])");
    cr_assert_eq(call_into("neg", OF(a), empty_of(EDDY_F64, EDDY_SHAPE(2, 3))),
                 EDDY_DTYPE_MISMATCH);
    eddy_error_take(NULL);
    cr_assert_eq(call_into("neg", OF(a), NULL), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "target is NULL");
}

Test(target, copy_into_broadcasts_and_casts) {
    eddy_tensor *target = counting(EDDY_SHAPE(2, 3));
    cr_assert_eq(copy_into(I64(EDDY_SHAPE(3), 7, 8, 9), target), EDDY_OK);
    ASSERT_F32(target, 7, 8, 9, 7, 8, 9);
    cr_assert_eq(copy_into(counting(EDDY_SHAPE(4)), target), EDDY_SHAPE_MISMATCH);
    eddy_error_take(NULL);
    cr_assert_eq(copy_into(target, eddy_narrow(target, 0, 0, 1)), EDDY_SHAPE_MISMATCH);
    eddy_error_take(NULL);
}

Test(target, a_full_overwrite_heals_and_a_partial_one_does_not) {
    eddy_tensor *bad = index_select(counting(EDDY_SHAPE(4)), I64(EDDY_SHAPE(4), 0, 1, 2, 9));
    cr_assert_eq(call_into("neg", OF(counting(EDDY_SHAPE(2))), eddy_narrow(bad, 0, 0, 2)), EDDY_OK);
    cr_assert_eq(eddy_wait(bad, EDDY_FOREVER), EDDY_OUT_OF_RANGE);
    eddy_error_take(NULL);
    cr_assert_eq(copy_into(F32(EDDY_SHAPE(4), 1, 2, 3, 4), bad), EDDY_OK);
    ASSERT_F32(bad, 1, 2, 3, 4);
    eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
}

Test(target, a_skipped_target_is_recovered_with_its_bytes) {
    eddy_tensor *weights = F32(EDDY_SHAPE(2), 1, 2);
    eddy_tensor *bad = index_select(counting(EDDY_SHAPE(4)), I64(EDDY_SHAPE(2), 0, 9));
    cr_assert_eq(call_into("add", OF(weights, bad), weights), EDDY_OK,
                 "the call is fine, its input is not");
    float values[2];
    cr_assert_eq(eddy_read(weights, values, sizeof(values), NULL), EDDY_SKIPPED);
    eddy_error_take(NULL);
    cr_assert_eq(eddy_recover(EDDY_LIST(weights)), EDDY_OK);
    ASSERT_F32(weights, 1, 2);
    eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
}

Test(target, lists_written_in_place_may_not_overlap) {
    eddy_tensor *p = counting(EDDY_SHAPE(4)), *g = F32(EDDY_SHAPE(4), 1, 1, 1, 1);
    eddy_tensor *inputs[] = {p, g};
    int64_t list_counts[] = {1, 1};
    double attributes[8] = {0.5};
    eddy_apply apply = {.op = eddy_op_find("sgd_step"),
                        .inputs = inputs,
                        .input_count = 2,
                        .list_counts = list_counts,
                        .attributes = attributes};
    cr_assert_eq(eddy_interpreter_apply(&apply), EDDY_OK);
    ASSERT_F32(p, -0.5f, 0.5f, 1.5f, 2.5f);
    inputs[1] = p;
    cr_assert_eq(eddy_interpreter_apply(&apply), EDDY_OVERLAP);
    ASSERT_ERROR(EDDY_OVERLAP, "sgd_step: params overlaps another operand");
}
