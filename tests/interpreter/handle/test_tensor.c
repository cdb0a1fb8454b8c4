#include "../calls.h"
#include <eddy/eddy.h>
#include <pthread.h>
#include <stdio.h>

Test(tensor, what_it_is_like) {
    eddy_tensor *t = eddy_t(counting(EDDY_SHAPE(2, 3)));
    cr_assert_eq(eddy_rank_of(t), 2);
    cr_assert(has_shape(t, EDDY_SHAPE(3, 2)));
    cr_assert_eq(eddy_dim_of(t, 0), 3);
    cr_assert_eq(eddy_dim_of(t, -1), 2);
    cr_assert_eq(eddy_stride_of(t, 0), 1);
    cr_assert_eq(eddy_stride_of(t, 1), 3);
    int64_t strides[2];
    cr_assert_eq(eddy_strides_of(t, strides), EDDY_OK);
    cr_assert_eq(strides[1], 3);
    cr_assert_eq(eddy_count_of(t), 6);
    cr_assert_eq(eddy_dtype_of(t), EDDY_F32);
    cr_assert_eq(eddy_device_of(t).kind, eddy_device_current().kind);
    cr_assert_eq(eddy_runtime_of(t), eddy_runtime_current());
    cr_assert_not(eddy_is_contiguous(t));
}

Test(tensor, getters_fail_cleanly) {
    cr_assert_eq(eddy_rank_of(NULL), -1);
    cr_assert_eq(eddy_shape_of(NULL).rank, -1);
    cr_assert_eq(eddy_count_of(NULL), -1);
    cr_assert_eq(eddy_dtype_of(NULL), EDDY_DTYPE_COUNT);
    cr_assert_null(eddy_runtime_of(NULL));
    cr_assert_not(eddy_is_ready(NULL));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "rank_of: tensor is NULL");
    eddy_tensor *t = counting(EDDY_SHAPE(2));
    cr_assert_eq(eddy_dim_of(t, 1), -1);
    ASSERT_ERROR(EDDY_OUT_OF_RANGE, "dim_of: f32[2] has no axis 1");
    cr_assert_eq(eddy_stride_of(t, -2), INT64_MIN);
    eddy_error_take(NULL);
    cr_assert_eq(eddy_rank_of(EDDY_NONE), -1);
    eddy_error_take(NULL);
}

Test(tensor, retain_and_release_take_null_and_none) {
    eddy_tensor *none = EDDY_NONE, *null = NULL;
    eddy_release(NULL);
    eddy_release(&none);
    eddy_release(&null);
    cr_assert_null(none);
    cr_assert_null(eddy_retain(NULL));
    cr_assert_eq(eddy_retain(EDDY_NONE), EDDY_NONE);
}

Test(tensor, handles_are_reused_last_in_first_out) {
    eddy_tensor *t = counting(EDDY_SHAPE(2)), *before = t;
    eddy_release(&t);
    cr_assert_eq(counting(EDDY_SHAPE(3)), before);
}

Test(tensor, rank_16_and_rank_0) {
    eddy_shape shape = {.rank = 16};
    for (int d = 0; d < 16; d++)
        shape.dims[d] = d % 5 == 0 ? 2 : 1;
    eddy_tensor *t = counting(shape);
    cr_assert(has_shape(call("add", OF(t, t)), shape));
    eddy_tensor *flipped = eddy_transpose(t, 0, 15);
    cr_assert(has_shape(call("add", OF(flipped, t)), shape));
    cr_assert_eq(eddy_item_f64(call("neg", OF(F32(EDDY_SHAPE(), 3))), NULL), -3);
}

static eddy_tensor *shared[64];

static void *release_all(void *context) {
    (void)context;
    for (int i = 0; i < 64; i++)
        eddy_release(&shared[i]);
    return NULL;
}

static void lies_like(eddy_tensor *like, const int64_t *dims, const int64_t *strides,
                      bool is_contiguous) {
    struct eddy_tensor made = {0};
    int64_t count = 1;
    for (int32_t d = 0; d < like->rank; d++)
        count *= dims[d];
    eddy_tensor_lay_like(&made, like->rank, dims, count, like);
    cr_assert_eq(made.rank, like->rank);
    cr_assert_eq(made.count, count);
    cr_assert_eq(made.is_contiguous, is_contiguous);
    for (int32_t d = 0; d < like->rank; d++) {
        cr_assert_eq(made.axes[d].dim, dims[d]);
        cr_assert_eq(made.axes[d].stride, strides[d], "axis %d: %lld", (int)d,
                     (long long)made.axes[d].stride);
    }
}

#define ARRAY(...) ((int64_t[]){__VA_ARGS__})

Test(tensor, a_layout_follows_another) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_zeros(EDDY_SHAPE(2, 5, 7, 3), EDDY_F32, NULL);
    eddy_tensor *last = eddy_permute(x, EDDY_AXES(0, 3, 1, 2)), *row = eddy_narrow(last, 0, 0, 1);
    lies_like(x, ARRAY(2, 4, 6, 8), ARRAY(192, 48, 8, 1), true);
    lies_like(last, ARRAY(2, 4, 6, 8), ARRAY(192, 1, 32, 4), false);
    lies_like(row, ARRAY(1, 4, 6, 8), ARRAY(192, 1, 32, 4), false);
    lies_like(last, ARRAY(2, 0, 6, 8), ARRAY(48, 48, 8, 1), true);
    lies_like(eddy_unsqueeze(eddy_select(last, 0, 1), 0), ARRAY(1, 4, 6, 8), ARRAY(4, 1, 32, 4),
              false);
    lies_like(eddy_slice(x, 3, 0, 3, 2), ARRAY(2, 5, 7, 2), ARRAY(70, 14, 2, 1), true);
    lies_like(eddy_flip(last, EDDY_AXES(2)), ARRAY(2, 1, 1, 1), ARRAY(1, 1, 1, 1), true);
    /* An axis that repeats has no place, and goes outside. */
    lies_like(eddy_expand(eddy_narrow(last, 0, 0, 1), EDDY_SHAPE(4, 3, 5, 7)), ARRAY(4, 3, 5, 7),
              ARRAY(105, 1, 21, 3), false);
    eddy_scope_end(scope);
}

static eddy_tensor_key key_of(eddy_tensor *tensor) {
    cr_assert_not_null(tensor);
    return eddy_tensor_find_key(tensor);
}

/* Every order of the axes of one shape. */
static void key_orders(eddy_tensor *x, eddy_axes *axes, int32_t at, eddy_tensor_key *keys,
                       int *count) {
    int32_t rank = eddy_rank_of(x);
    if (at < rank) {
        for (int32_t d = 0; d < rank; d++) {
            bool is_taken = false;
            for (int32_t e = 0; e < at; e++)
                is_taken |= axes->axes[e] == d;
            axes->axes[at] = d;
            if (!is_taken)
                key_orders(x, axes, at + 1, keys, count);
        }
        return;
    }
    eddy_axes back = {.count = rank};
    for (int32_t d = 0; d < rank; d++)
        back.axes[axes->axes[d]] = d;
    eddy_tensor *turned = eddy_permute(eddy_contiguous(eddy_permute(x, *axes)), back);
    keys[*count] = key_of(turned);
    cr_assert(keys[*count] != 0 && key_of(eddy_add(turned, turned)) == keys[*count]);
    cr_assert_eq(eddy_tensor_key_shape(keys[*count]), eddy_tensor_key_shape(key_of(x)));
    for (int i = 0; i < *count; i++)
        cr_assert_neq(keys[i], keys[*count]);
    ++*count;
}

Test(tensor, keys_tell_layouts_apart) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor_key keys[120];
    int count = 0;
    eddy_tensor *x = eddy_zeros(EDDY_SHAPE(2, 3, 2, 5, 2), EDDY_F32, NULL),
                *matrix = eddy_zeros(EDDY_SHAPE(4, 4), EDDY_F32, NULL);
    key_orders(x, &(eddy_axes){.count = 5}, 0, keys, &count);
    cr_assert_eq(count, 120);
    cr_assert(key_of(matrix) != key_of(eddy_t(matrix)) && key_of(matrix) != 0);
    cr_assert_neq(key_of(eddy_t(matrix)), key_of(eddy_isnan(eddy_t(matrix))));
    /* One image of several lies in other strides than one of its own. */
    eddy_tensor *image =
        eddy_permute(eddy_narrow(eddy_zeros(EDDY_SHAPE(3, 5, 7, 2), EDDY_F32, NULL), 0, 0, 1),
                     EDDY_AXES(0, 3, 1, 2));
    eddy_tensor *alone =
        eddy_permute(eddy_zeros(EDDY_SHAPE(5, 7, 1, 2), EDDY_F32, NULL), EDDY_AXES(2, 3, 0, 1));
    cr_assert_eq(eddy_stride_of(image, 0), 70);
    cr_assert_eq(eddy_stride_of(alone, 0), 2);
    cr_assert(key_of(image) == 0 || key_of(image) != key_of(alone));
    /* Gaps, repetitions, a later start, more axes than there is room for. */
    cr_assert_eq(key_of(eddy_slice(matrix, 1, 0, 4, 2)), 0);
    cr_assert_eq(key_of(eddy_t(eddy_narrow(matrix, 1, 0, 3))), 0);
    cr_assert_eq(key_of(eddy_expand(eddy_narrow(matrix, 0, 0, 1), EDDY_SHAPE(4, 4))), 0);
    cr_assert_eq(key_of(eddy_as_strided(matrix, EDDY_SHAPE(2, 3), (int64_t[]){2, 2}, 0)), 0);
    cr_assert_eq(key_of(eddy_as_strided(matrix, EDDY_SHAPE(2, 2, 2), (int64_t[]){5, 1, 1}, 0)), 0);
    cr_assert_eq(key_of(eddy_t(eddy_narrow(matrix, 0, 1, 3))), 0);
    cr_assert_eq(
        key_of(eddy_transpose(eddy_zeros(EDDY_SHAPE(2, 2, 2, 2, 2, 2), EDDY_F32, NULL), 0, 5)), 0);
    eddy_scope_end(scope);
}

Test(tensor, handles_released_elsewhere_come_back) {
    int64_t bytes = 0;
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 64; i++)
            shared[i] = counting(EDDY_SHAPE(2));
        pthread_t thread;
        pthread_create(&thread, NULL, release_all, NULL);
        pthread_join(thread, NULL);
        int64_t now = eddy_memory_counted(EDDY_MEMORY_HANDLE).bytes;
        if (round == 5)
            bytes = now;
        cr_assert(round < 5 || now == bytes, "round %d: %lld bytes after %lld", round,
                  (long long)now, (long long)bytes);
    }
    cr_assert_eq(eddy_live_count(), 0);
}

static int lines;
static char last_line[512];

static void sink(void *context, const char *line) {
    (void)context;
    lines++;
    snprintf(last_line, sizeof(last_line), "%s", line);
}

Test(tensor, leaks_are_reported) {
    eddy_tensor *t = counting(EDDY_SHAPE(2, 7));
    eddy_log_set(sink, NULL);
    cr_assert_eq(eddy_leaks_report(), 1);
    cr_assert_eq(lines, 1);
    cr_assert_not_null(strstr(last_line, "f32[2, 7], 1 references"), "%s", last_line);
    eddy_release(&t);
    cr_assert_eq(eddy_leaks_report(), 0);
}

Test(tensor, trim_gives_cached_handles_back) {
    enum { COUNT = 500 };
    eddy_tensor *many[COUNT];
    eddy_tensor *kept = counting(EDDY_SHAPE(1));
    for (int i = 0; i < COUNT; i++)
        many[i] = counting(EDDY_SHAPE(1));
    for (int i = 0; i < COUNT; i++)
        eddy_release(&many[i]);
    int64_t before = eddy_memory_counted(EDDY_MEMORY_HANDLE).bytes;
    cr_assert_gt(eddy_trim(), 0);
    cr_assert_lt(eddy_memory_counted(EDDY_MEMORY_HANDLE).bytes, before);
    cr_assert_eq(eddy_item_f64(kept, NULL), 0);
    for (int i = 0; i < COUNT; i++)
        many[i] = counting(EDDY_SHAPE(1));
    cr_assert_eq(eddy_live_count(), COUNT + 1);
}

Test(tensor, freed_handles_are_recognised) {
    eddy_tensor *t = counting(EDDY_SHAPE(1)), *again = t, *third = t;
    eddy_release(&t);
    cr_assert_null(call("neg", OF(again)));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "released before");
    eddy_release(&third);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "released before");
}
