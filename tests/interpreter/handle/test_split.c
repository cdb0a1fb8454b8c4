/* split, split_sizes, chunk: views in order, of PyTorch's sizes. */
#include "../calls.h"

#define MANY 16

static void check_sizes(eddy_tensor *const *parts, int64_t count, int32_t axis,
                        const int64_t *sizes) {
    for (int64_t i = 0; i < count; i++)
        cr_assert_eq(eddy_shape_of(parts[i]).dims[axis], sizes[i], "part %lld", (long long)i);
}

Test(split, parts_are_views_in_order) {
    eddy_tensor *t = counting(EDDY_SHAPE(5, 2)), *parts[MANY];
    int64_t count = -1;
    cr_assert_eq(eddy_split(t, 2, 0, parts, MANY, &count), EDDY_OK);
    cr_assert_eq(count, 3);
    check_sizes(parts, 3, 0, (const int64_t[]){2, 2, 1});
    ASSERT_F32(parts[0], 0, 1, 2, 3);
    ASSERT_F32(parts[2], 8, 9);
    cr_assert_eq(copy_into(F32(EDDY_SHAPE(), 7), parts[1]), EDDY_OK);
    ASSERT_F32(t, 0, 1, 2, 3, 7, 7, 7, 7, 8, 9);
    cr_assert_eq(eddy_split(t, 1, -1, parts, MANY, NULL), EDDY_OK);
    ASSERT_F32(parts[1], 1, 3, 7, 7, 9);
    cr_assert_eq(eddy_split(t, INT64_MAX, 0, parts, MANY, &count), EDDY_OK);
    cr_assert_eq(count, 1);
}

Test(split, the_number_can_be_asked_first) {
    eddy_tensor *t = counting(EDDY_SHAPE(7));
    int64_t count = -1;
    cr_assert_eq(eddy_split(t, 3, 0, NULL, 0, &count), EDDY_OK);
    cr_assert_eq(count, 3);
    cr_assert_eq(eddy_chunk(t, 5, 0, NULL, 0, &count), EDDY_OK);
    cr_assert_eq(count, 4);
}

Test(split, chunks_have_the_sizes_of_pytorch) {
    static const struct {
        int64_t dim, chunks, count, sizes[6];
    } cases[] = {
        {5, 4, 3, {2, 2, 1}}, {6, 4, 3, {2, 2, 2}}, {7, 7, 7, {1, 1, 1, 1, 1, 1}},
        {2, 5, 2, {1, 1}},    {9, 1, 1, {9}},       {0, 3, 3, {0, 0, 0}},
        {1, 1, 1, {1}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        eddy_tensor *parts[MANY];
        int64_t count = -1;
        cr_assert_eq(
            eddy_chunk(counting(EDDY_SHAPE(cases[i].dim)), cases[i].chunks, 0, parts, MANY, &count),
            EDDY_OK);
        cr_assert_eq(count, cases[i].count, "case %zu", i);
        check_sizes(parts, count < 6 ? count : 6, 0, cases[i].sizes);
    }
}

Test(split, an_empty_axis_is_one_part) {
    eddy_tensor *part, *t = counting(EDDY_SHAPE(0, 3));
    int64_t count = -1;
    for (int64_t size = 0; size < 3; size++) {
        cr_assert_eq(eddy_split(t, size, 0, &part, 1, &count), EDDY_OK);
        cr_assert(count == 1 && has_shape(part, EDDY_SHAPE(0, 3)));
    }
}

Test(split, sizes_may_be_given) {
    eddy_tensor *parts[4], *t = counting(EDDY_SHAPE(2, 5));
    const int64_t sizes[] = {1, 0, 3, 1}, short_of[] = {1, 3}, negative[] = {6, -1};
    cr_assert_eq(eddy_split_sizes(t, sizes, 4, 1, parts), EDDY_OK);
    check_sizes(parts, 4, 1, sizes);
    ASSERT_F32(parts[2], 1, 2, 3, 6, 7, 8);
    cr_assert_eq(eddy_split_sizes(t, short_of, 2, 1, parts), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "split_sizes");
    cr_assert_eq(eddy_split_sizes(t, negative, 2, 1, parts), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_split_sizes(t, NULL, 2, 1, parts), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_split_sizes(t, NULL, 0, 1, NULL), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_split_sizes(t, NULL, -1, 1, NULL), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_split_sizes(counting(EDDY_SHAPE(0)), NULL, 0, 0, NULL), EDDY_OK);
    eddy_error_take(NULL);
}

Test(split, what_it_refuses_names_the_function) {
    eddy_tensor *t = counting(EDDY_SHAPE(5)), *parts[2] = {t, t};
    int64_t count = 77;
    cr_assert_eq(eddy_split(t, 2, 0, parts, 2, &count), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "3 parts");
    cr_assert_eq(eddy_split(t, 0, 0, parts, 2, &count), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "split");
    cr_assert_eq(eddy_split(t, -2, 0, parts, 2, &count), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "split");
    cr_assert_eq(eddy_split(t, 2, 1, parts, 2, &count), EDDY_OUT_OF_RANGE);
    ASSERT_ERROR(EDDY_OUT_OF_RANGE, "axis 1");
    cr_assert_eq(eddy_split(counting(EDDY_SHAPE()), 2, 0, parts, 2, &count), EDDY_OUT_OF_RANGE);
    ASSERT_ERROR(EDDY_OUT_OF_RANGE, "split");
    cr_assert_eq(eddy_chunk(t, 0, 0, parts, 2, &count), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "chunk");
    cr_assert_eq(eddy_chunk(NULL, 2, 0, parts, 2, &count), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "chunk");
    cr_assert(parts[0] == t && parts[1] == t && count == 77, "written on failure");
}

Test(split, parts_belong_to_the_scope) {
    eddy_tensor *t = counting(EDDY_SHAPE(6)), *parts[3];
    eddy_scope *scope = eddy_scope_begin();
    cr_assert_eq(eddy_chunk(t, 3, 0, parts, 3, NULL), EDDY_OK);
    cr_assert_eq(eddy_live_count(), 4);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 1);
    eddy_release(&t);
}

Test(split, all_parts_are_made_or_none) {
    eddy_tensor *t = counting(EDDY_SHAPE(400)), *parts[400];
    int failed = 0;
    for (int64_t n = 0; n < 500; n++) {
        eddy_trim();
        eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, n, 1);
        eddy_status status = eddy_chunk(t, 400, 0, parts, 400, NULL);
        bool was_hit = eddy_memory_failures_injected() > 0;
        eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, 0, 0);
        eddy_error_take(NULL);
        cr_assert_eq(eddy_live_count(), status == EDDY_OK ? 401 : 1, "allocation %lld",
                     (long long)n);
        for (int i = 0; i < 400 && status == EDDY_OK; i++)
            eddy_release(&parts[i]);
        cr_assert(status == EDDY_OK ? true : status == EDDY_OUT_OF_MEMORY && was_hit);
        failed += status != EDDY_OK;
        if (!was_hit)
            break;
    }
    cr_assert_gt(failed, 0);
    eddy_release(&t);
}
