#include "../calls.h"
#include <base/dtype.h>

Test(apply, add_of_two_contiguous_tensors) {
    ASSERT_F32(call("add", OF(F32(EDDY_SHAPE(3), 1, 2, 3), F32(EDDY_SHAPE(3), 10, 20, 30))), 11, 22,
               33);
}

Test(apply, broadcasts_and_keeps_row_major_results) {
    eddy_tensor *column = F32(EDDY_SHAPE(2, 1), 10, 20), *row = F32(EDDY_SHAPE(3), 1, 2, 3);
    eddy_tensor *sum = call("add", OF(column, row));
    cr_assert(has_shape(sum, EDDY_SHAPE(2, 3)));
    cr_assert(eddy_is_contiguous(sum));
    ASSERT_F32(sum, 11, 12, 13, 21, 22, 23);
}

Test(apply, takes_strided_and_offset_operands) {
    eddy_tensor *m = counting(EDDY_SHAPE(3, 4));
    ASSERT_F32(call("add", OF(eddy_t(m), eddy_t(m))), 0, 8, 16, 2, 10, 18, 4, 12, 20, 6, 14, 22);
    eddy_tensor *part = eddy_narrow(eddy_narrow(m, 0, 1, 2), 1, 1, 2);
    ASSERT_F32(call("neg", OF(part)), -5, -6, -9, -10);
    eddy_tensor *every_second = eddy_slice(m, 1, 0, 4, 2),
                *column = eddy_narrow(eddy_select(m, 1, 3), 0, 0, 2);
    ASSERT_F32(call("add", OF(every_second, column)), 3, 9, 7, 13, 11, 17);
}

Test(apply, every_dtype_adds) {
    for (int dtype = 0; dtype < EDDY_DTYPE_COUNT; dtype++) {
        char bytes[64] = {0};
        for (int i = 0; i < 5; i++)
            eddy_dtype_store_f64((eddy_dtype)dtype,
                                 bytes + (size_t)i * eddy_dtype_bytes((eddy_dtype)dtype), i);
        eddy_tensor *t = eddy_from_data(bytes, EDDY_SHAPE(5), (eddy_dtype)dtype, NULL);
        eddy_tensor *sum = call("add", OF(t, t));
        cr_assert_eq(eddy_dtype_of(sum), (eddy_dtype)dtype);
        for (int i = 0; i < 5; i++)
            cr_assert_eq(eddy_item_f64(eddy_select(sum, 0, i), NULL),
                         dtype == EDDY_BOOL ? i > 0 : 2 * i, "%s",
                         eddy_dtype_name((eddy_dtype)dtype));
    }
}

Test(apply, sizes_round_the_short_way_agree) {
    const int64_t sizes[] = {0, 1, 2, 31, 4095, 4096, 4097, 100003};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        eddy_tensor *t = counting(EDDY_SHAPE(sizes[s]));
        eddy_tensor *sum = call("add", OF(t, t));
        cr_assert_eq(eddy_count_of(sum), sizes[s]);
        if (sizes[s] == 0)
            continue;
        cr_assert_eq(eddy_item_f64(eddy_select(sum, 0, -1), NULL), 2.0 * (double)(sizes[s] - 1));
        cr_assert_eq(eddy_item_f64(eddy_select(sum, 0, 0), NULL), 0.0);
    }
}

Test(apply, scalars_promote_by_category) {
    eddy_tensor *ints = empty_of(EDDY_I32, EDDY_SHAPE(2));
    cr_assert_eq(eddy_dtype_of(call_scalar("add_s", ints, EDDY_S(2))), EDDY_I32);
    cr_assert_eq(eddy_dtype_of(call_scalar("add_s", ints, EDDY_S(0.5))), EDDY_F32);
    cr_assert_eq(eddy_item_f64(eddy_select(call_scalar("add_s", ints, EDDY_S(0.5)), 0, 1), NULL),
                 0.5);
    cr_assert_eq(
        eddy_dtype_of(call_scalar("add_s", empty_of(EDDY_F16, EDDY_SHAPE(2)), EDDY_S(0.5))),
        EDDY_F16);
    cr_assert_eq(eddy_dtype_of(call_scalar("add_s", empty_of(EDDY_BOOL, EDDY_SHAPE(2)), EDDY_S(2))),
                 EDDY_I64);
    ASSERT_F32(call_scalar("add_s", F32(EDDY_SHAPE(2), 1, 2), EDDY_S(2)), 3, 4);
}

Test(apply, mixed_dtypes_are_cast) {
    eddy_tensor *sum = call("add", OF(F32(EDDY_SHAPE(2), 0.5f, 1.5f), I64(EDDY_SHAPE(2), 1, 2)));
    cr_assert_eq(eddy_dtype_of(sum), EDDY_F32);
    ASSERT_F32(sum, 1.5f, 3.5f);
    cr_assert_eq(eddy_dtype_of(call("lt", OF(F32(EDDY_SHAPE(1), 1), I64(EDDY_SHAPE(1), 2)))),
                 EDDY_BOOL);
    cr_assert_eq(eddy_dtype_of(call("exp", OF(I64(EDDY_SHAPE(1), 2)))), EDDY_F32);
}

Test(apply, temporaries_of_casts_do_not_leak) {
    int64_t before = eddy_live_count();
    eddy_scope *scope = eddy_scope_begin();
    call("add", OF(F32(EDDY_SHAPE(2), 0.5f, 1.5f), I64(EDDY_SHAPE(2), 1, 2)));
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), before);
}

Test(apply, a_condition_has_to_be_bool) {
    eddy_tensor *c = eddy_from_data((bool[]){true, false}, EDDY_SHAPE(2), EDDY_BOOL, NULL);
    ASSERT_F32(call("where", OF(c, F32(EDDY_SHAPE(2), 1, 2), F32(EDDY_SHAPE(), 9))), 1, 9);
    cr_assert_null(call(
        "where", OF(F32(EDDY_SHAPE(2), 1, 2), F32(EDDY_SHAPE(2), 1, 2), F32(EDDY_SHAPE(2), 1, 2))));
    ASSERT_ERROR(EDDY_DTYPE_MISMATCH, "condition has to be bool (f32[2], f32[2], f32[2])");
}

Test(apply, shapes_that_do_not_fit_are_named) {
    cr_assert_null(call("add", OF(counting(EDDY_SHAPE(64, 784)), counting(EDDY_SHAPE(64, 10)))));
    ASSERT_ERROR(
        EDDY_SHAPE_MISMATCH,
        "add: shapes [64, 784] and [64, 10] cannot be broadcast (f32[64, 784], f32[64, 10])");
}

Test(apply, null_means_failed_before) {
    cr_assert_null(call("add", OF(NULL, F32(EDDY_SHAPE(1), 1))));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "add: a is NULL");
    eddy_tensor *bad = call("add", OF(counting(EDDY_SHAPE(2)), counting(EDDY_SHAPE(3))));
    cr_assert_null(call("exp", OF(call("neg", OF(bad)))));
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), EDDY_SHAPE_MISMATCH, "the first error stays");
    cr_assert_eq(error.more, 0, "what follows from it is not counted");
    cr_assert_null(call("neg", OF(EDDY_NONE)));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "EDDY_NONE");
}

Test(apply, a_late_error_reaches_who_reads) {
    eddy_tensor *picked = index_select(counting(EDDY_SHAPE(10)), I64(EDDY_SHAPE(3), 1, 12, 2));
    eddy_tensor *after = call("neg", OF(picked));
    float values[3] = {7, 7, 7};
    cr_assert_eq(eddy_read(after, values, sizeof(values), NULL), EDDY_OUT_OF_RANGE);
    cr_assert_eq(values[0], 7, "a failed read leaves the buffer");
    ASSERT_ERROR(
        EDDY_OUT_OF_RANGE,
        "index_select: index[1] is 12, out of range [0, 10) (index_select(f32[10], i64[3]))");
    cr_assert_eq(eddy_error_of(after, EDDY_FOREVER, NULL), EDDY_OUT_OF_RANGE);
    cr_assert_eq(eddy_error_take(NULL), EDDY_OK, "error_of leaves the slot alone");
    cr_assert_eq(eddy_wait(after, EDDY_FOREVER), EDDY_OUT_OF_RANGE, "each time");
}

Test(apply, many_operands) {
    enum { COUNT = 3000 };
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *items[COUNT];
    for (int i = 0; i < COUNT; i++)
        items[i] = F32(EDDY_SHAPE(1), (float)i);
    int64_t list_count = COUNT;
    uint64_t attributes[8] = {0};
    eddy_tensor *all = NULL;
    eddy_apply apply = {.op = eddy_op_find("cat"),
                        .inputs = items,
                        .input_count = COUNT,
                        .list_counts = &list_count,
                        .attributes = attributes,
                        .outputs = &all};
    cr_assert_eq(eddy_interpreter_apply(&apply), EDDY_OK);
    cr_assert_eq(eddy_count_of(all), COUNT);
    cr_assert_eq(eddy_item_f64(eddy_select(all, 0, COUNT - 1), NULL), COUNT - 1);
    eddy_scope_end(scope);
}

Test(apply, huge_results_are_refused_at_the_call) {
    eddy_tensor *one = F32(EDDY_SHAPE(1, 1), 1);
    eddy_tensor *wide = eddy_expand(one, EDDY_SHAPE((int64_t)1 << 31, (int64_t)1 << 30));
    cr_assert_not_null(wide, "a view takes no memory");
    cr_assert_null(call("neg", OF(wide)));
    cr_assert_eq(eddy_error_take(NULL), EDDY_SIZE_OVERFLOW);
    eddy_tensor *large = eddy_expand(one, EDDY_SHAPE((int64_t)1 << 20, (int64_t)1 << 30));
    cr_assert_null(call("neg", OF(large)));
    ASSERT_ERROR(EDDY_OUT_OF_MEMORY, "the result takes");
    /* Nothing is nothing, however much of it there is along another axis. */
    int64_t none = 0;
    eddy_tensor *empty = eddy_from_data(&none, EDDY_SHAPE((int64_t)1 << 62, 0), EDDY_F64, NULL);
    cr_assert_not_null(empty);
    cr_assert_not_null(call("neg", OF(empty)));
}

Test(apply, tensors_of_two_runtimes_do_not_mix) {
    eddy_runtime *other = eddy_runtime_create(NULL);
    eddy_tensor *here = F32(EDDY_SHAPE(1), 1);
    eddy_runtime_use(other);
    eddy_tensor *there = F32(EDDY_SHAPE(1), 1);
    cr_assert_null(call("add", OF(here, there)));
    ASSERT_ERROR(EDDY_RUNTIME_MISMATCH, "add: operand 1");
    cr_assert_not_null(call("add", OF(here, here)), "tensors know their runtime");
    eddy_runtime_use(NULL);
    eddy_runtime_release(&other);
}

Test(apply, nothing_is_allocated_in_the_steady_state) {
    eddy_tensor *t = counting(EDDY_SHAPE(16)), *m = eddy_t(counting(EDDY_SHAPE(4, 4)));
    eddy_memory_count before = {0};
    for (int round = 0; round < 2000; round++) {
        if (round == 1000)
            before = eddy_memory_counted(EDDY_MEMORY_HANDLE);
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *sum = call("add", OF(t, t));
        eddy_tensor *next = call("mul", OF(sum, t));
        call("neg", OF(m));
        eddy_release(&sum);
        (void)next;
        eddy_scope_end(scope);
    }
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_HANDLE).acquisitions, before.acquisitions);
}

/* Ops of every kind; false when one failed. */
static bool run_some(void) {
    eddy_scope *scope = eddy_scope_begin();
    if (!scope)
        return false;
    eddy_tensor *m = counting(EDDY_SHAPE(3, 4)), *index = I64(EDDY_SHAPE(2), 1, 0);
    eddy_tensor *sum = call("add", OF(eddy_t(m), eddy_t(m)));
    eddy_tensor *mixed = call("add", OF(sum, I64(EDDY_SHAPE(3), 1, 2, 3)));
    eddy_tensor *flat = eddy_reshape(mixed, EDDY_SHAPE(12));
    eddy_tensor *places = call("nonzero", OF(flat));
    eddy_tensor *picked = index_select(m, index);
    float values[8];
    bool is_fine = eddy_rank_of(places) == 2 &&
                   eddy_read(picked, values, sizeof(values), NULL) == EDDY_OK && values[0] == 4 &&
                   copy_into(picked, eddy_narrow(m, 0, 0, 2)) == EDDY_OK;
    eddy_scope_end(scope);
    return is_fine && eddy_sync(EDDY_FOREVER) == EDDY_OK;
}

Test(apply, each_allocation_may_fail_once) {
    cr_assert(run_some(), "warm");
    eddy_trim();
    int failed = 0;
    for (int64_t n = 0; n < 500; n++) {
        eddy_error_take(NULL);
        eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, n, 1);
        bool is_fine = run_some();
        bool was_hit = eddy_memory_failures_injected() > 0;
        eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, 0, 0);
        eddy_sync(EDDY_FOREVER);
        eddy_error_take(NULL);
        cr_assert_eq(eddy_live_count(), 0, "allocation %lld", (long long)n);
        cr_assert(is_fine || was_hit);
        failed += !is_fine;
        cr_assert(run_some(), "all is well again after allocation %lld", (long long)n);
        if (!was_hit)
            break;
        eddy_trim();
    }
    cr_assert_gt(failed, 0);
}
