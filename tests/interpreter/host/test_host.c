#include "../calls.h"
#include <base/sleep.h>
#include <eddy/stream.h>
#include <math.h>
#include <pthread.h>

Test(host, from_data_copies_before_it_returns) {
    float values[] = {1, 2, 3};
    eddy_tensor *t = f32(EDDY_SHAPE(3), values);
    values[0] = 99;
    ASSERT_F32(t, 1, 2, 3);
}

Test(host, from_data_refuses_what_is_no_tensor) {
    float one = 1;
    cr_assert_null(eddy_from_data(NULL, EDDY_SHAPE(3), EDDY_F32, NULL));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "from_data: data is NULL");
    cr_assert_null(eddy_from_data(&one, EDDY_SHAPE(-1), EDDY_F32, NULL));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "shape [-1] has a negative dim");
    cr_assert_null(eddy_from_data(&one, EDDY_SHAPE(INT64_MAX, 2), EDDY_F32, NULL));
    ASSERT_ERROR(EDDY_SIZE_OVERFLOW, "does not fit");
    cr_assert_null(eddy_from_data(&one, EDDY_SHAPE((int64_t)1 << 61), EDDY_F64, NULL));
    ASSERT_ERROR(EDDY_SIZE_OVERFLOW, "does not fit");
    cr_assert_null(eddy_from_data(&one, EDDY_SHAPE((int64_t)1 << 50), EDDY_F32, NULL));
    ASSERT_ERROR(EDDY_OUT_OF_MEMORY, "from_data");
    cr_assert_null(eddy_from_data(&one, (eddy_shape){.rank = 17}, EDDY_F32, NULL));
    eddy_error_take(NULL);
    cr_assert_null(eddy_from_data(&one, EDDY_SHAPE(1), (eddy_dtype)77, NULL));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "77 is no dtype");
    eddy_from_data_options cuda = {sizeof(cuda), {EDDY_DEVICE_CUDA, 99}};
    cr_assert_null(eddy_from_data(&one, EDDY_SHAPE(1), EDDY_F32, &cuda));
    ASSERT_ERROR(EDDY_UNSUPPORTED, "there is no device cuda:99 here");
    cr_assert_not_null(eddy_from_data(NULL, EDDY_SHAPE(0), EDDY_F32, NULL), "no elements, no data");
    cr_assert_eq(eddy_live_count(), 1);
}

static int deletions;

static void count_deletion(void *context) {
    deletions += *(int *)context;
}

Test(host, a_buffer_is_borrowed_and_given_back_once) {
    static float values[] = {1, 2};
    int one = 1;
    eddy_tensor *t = eddy_from_buffer(values, EDDY_SHAPE(2), EDDY_F32, count_deletion, &one, NULL);
    cr_assert_eq(call_into("add", OF(t, t), t), EDDY_OK);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(values[1], 4, "no copy");
    cr_assert_eq(deletions, 0);
    eddy_tensor *tail = eddy_narrow(t, 0, 1, 1);
    eddy_release(&t);
    cr_assert_eq(eddy_sync_deleters(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(deletions, 0, "a view still needs it");
    eddy_release(&tail);
    eddy_sync(EDDY_FOREVER);
    cr_assert_eq(eddy_sync_deleters(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(deletions, 1);
}

Test(host, on_failure_the_deleter_is_not_called) {
    char bytes[16];
    int one = 1;
    cr_assert_null(
        eddy_from_buffer(bytes + 1, EDDY_SHAPE(1), EDDY_F64, count_deletion, &one, NULL));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "not aligned");
    cr_assert_null(eddy_from_buffer(NULL, EDDY_SHAPE(1), EDDY_F64, count_deletion, &one, NULL));
    eddy_error_take(NULL);
    cr_assert_eq(eddy_sync_deleters(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(deletions, 0);
}

static eddy_status in_deleter[4];
static eddy_tensor *bystander;

static void call_from_deleter(void *context) {
    (void)context;
    float value = 1;
    eddy_tensor *again = eddy_retain(bystander);
    eddy_release(&again);
    cr_assert_null(eddy_from_data(&value, EDDY_SHAPE(1), EDDY_F32, NULL));
    in_deleter[0] = eddy_error_take(NULL);
    cr_assert_null(call("neg", OF(bystander)));
    in_deleter[1] = eddy_error_take(NULL);
    in_deleter[2] = eddy_sync(0);
    in_deleter[3] = eddy_wait(bystander, 0);
    eddy_error_take(NULL);
}

Test(host, a_deleter_may_only_retain_and_release) {
    static float values[2];
    bystander = counting(EDDY_SHAPE(1));
    eddy_tensor *t =
        eddy_from_buffer(values, EDDY_SHAPE(2), EDDY_F32, call_from_deleter, NULL, NULL);
    eddy_release(&t);
    eddy_sync(EDDY_FOREVER);
    cr_assert_eq(eddy_sync_deleters(EDDY_FOREVER), EDDY_OK);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(in_deleter[i], EDDY_WRONG_THREAD, "call %d", i);
}

Test(host, read_packs_and_checks_the_size) {
    eddy_tensor *m = counting(EDDY_SHAPE(40, 30));
    float *values = malloc(1200 * sizeof(float));
    cr_assert_eq(eddy_read(eddy_t(m), values, 1200 * sizeof(float), NULL), EDDY_OK);
    for (int i = 0; i < 1200; i++)
        cr_assert_eq(values[i], (float)(i % 40 * 30 + i / 40));
    cr_assert_eq(eddy_read(m, values, 1199 * sizeof(float), NULL), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "read: f32[40, 30] takes 4800 bytes, the buffer has 4796");
    cr_assert_eq(eddy_read(m, NULL, 4800, NULL), EDDY_INVALID_ARGUMENT);
    eddy_error_take(NULL);
    cr_assert_eq(eddy_read(counting(EDDY_SHAPE(0)), NULL, 0, NULL), EDDY_OK);
    free(values);
}

Test(host, items) {
    cr_assert_eq(eddy_item_f64(F32(EDDY_SHAPE(1, 1), 2.5f), NULL), 2.5);
    cr_assert_eq(eddy_item_i64(F32(EDDY_SHAPE(), -2.9f), NULL), -2);
    cr_assert_eq(eddy_item_i64(F32(EDDY_SHAPE(), NAN), NULL), INT64_MIN);
    cr_assert_eq(eddy_item_i64(I64(EDDY_SHAPE(), INT64_MAX), NULL), INT64_MAX);
    cr_assert(isnan(eddy_item_f64(counting(EDDY_SHAPE(2)), NULL)));
    ASSERT_ERROR(EDDY_SHAPE_MISMATCH, "item_f64: f32[2] has not one element");
    int64_t value = 77;
    cr_assert_eq(eddy_read_i64(counting(EDDY_SHAPE(0)), &value, NULL), EDDY_SHAPE_MISMATCH);
    cr_assert_eq(value, 77);
    eddy_error_take(NULL);
    cr_assert_eq(eddy_item_i64(NULL, NULL), INT64_MIN);
    eddy_error_take(NULL);
}

static float async_values[4];
static int64_t async_bytes = -1;
static eddy_status async_status;

static void take_values(void *context, const void *data, int64_t bytes, const eddy_error *error) {
    (void)context;
    async_bytes = bytes;
    async_status = error ? error->status : EDDY_OK;
    if (data)
        memcpy(async_values, data, (size_t)bytes);
}

Test(host, read_async_is_ordered_and_packs) {
    eddy_tensor *m = counting(EDDY_SHAPE(2, 2));
    cr_assert_eq(call_into("add", OF(m, m), m), EDDY_OK);
    cr_assert_eq(eddy_read_async(eddy_t(m), take_values, NULL), EDDY_OK);
    cr_assert_eq(call_into("neg", OF(m), m), EDDY_OK);
    eddy_sync(EDDY_FOREVER);
    eddy_sync_deleters(EDDY_FOREVER);
    cr_assert_eq(async_bytes, 16);
    cr_assert(async_values[1] == 4 && async_values[2] == 2, "before the neg, transposed");
    cr_assert_eq(eddy_read_async(m, NULL, NULL), EDDY_INVALID_ARGUMENT);
    eddy_error_take(NULL);
}

Test(host, read_async_hands_out_late_errors) {
    eddy_tensor *bad = index_select(counting(EDDY_SHAPE(3)), I64(EDDY_SHAPE(1), 5));
    cr_assert_eq(eddy_read_async(bad, take_values, NULL), EDDY_OK);
    eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    eddy_sync_deleters(EDDY_FOREVER);
    cr_assert_eq(async_status, EDDY_OUT_OF_RANGE);
}

static eddy_status from_callback[2];
static eddy_error from_wait;

static void issue_and_wait(void *context, void *data, const eddy_error *error) {
    eddy_tensor *t = context;
    (void)error;
    ((float *)data)[0] = 5;
    eddy_tensor *sum = call("add", OF(t, t));
    from_callback[0] = sum ? EDDY_OK : eddy_error_take(NULL);
    from_callback[1] = eddy_wait(t, EDDY_FOREVER);
    eddy_error_take(&from_wait);
    eddy_release(&sum);
}

Test(host, a_callback_may_issue_and_is_refused_a_wait) {
    eddy_tensor *t = counting(EDDY_SHAPE(2));
    cr_assert_eq(eddy_access_async(t, EDDY_READ | EDDY_WRITE, issue_and_wait, t), EDDY_OK);
    eddy_sync(EDDY_FOREVER);
    eddy_sync_deleters(EDDY_FOREVER);
    cr_assert_eq(from_callback[0], EDDY_OK);
    cr_assert_eq(from_callback[1], EDDY_WOULD_DEADLOCK);
    cr_assert_not_null(
        strstr(from_wait.message, "a callback may only wait for what is over already"));
    ASSERT_F32(t, 5, 1);
    cr_assert_eq(eddy_access_async(t, 0, issue_and_wait, t), EDDY_INVALID_ARGUMENT);
    eddy_error_take(NULL);
}

/* Leaves scopes open, and ends one that it has not opened. */
static void leave_scopes(void *context, const void *data, int64_t bytes, const eddy_error *error) {
    (void)data, (void)bytes, (void)error;
    eddy_stream_scope_end();
    eddy_device_scope_end();
    eddy_scope_begin();
    eddy_tensor *in_scope = counting(EDDY_SHAPE(3));
    from_callback[0] = in_scope ? eddy_stream_scope_begin(context) : EDDY_INTERNAL;
    from_callback[1] = eddy_device_scope_begin(EDDY_CPU);
}

Test(host, scopes_that_a_callback_leaves_open_end_with_it) {
    for (int i = 0; i < 2; i++) {
        eddy_runtime *runtime =
            eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_one_thread = i == 0, .threads = 2));
        eddy_runtime_use(runtime);
        eddy_stream *stream = eddy_stream_create(EDDY_CPU, NULL),
                    *inner = eddy_stream_create(EDDY_CPU, NULL);
        eddy_tensor *t = counting(EDDY_SHAPE(2));
        int64_t live = eddy_live_count();
        cr_assert_eq(eddy_stream_scope_begin(stream), EDDY_OK);
        cr_assert_eq(eddy_device_scope_begin(EDDY_CPU), EDDY_OK);
        eddy_scope *scope = eddy_scope_begin();
        cr_assert_eq(eddy_read_async(t, leave_scopes, stream), EDDY_OK);
        eddy_sync(EDDY_FOREVER);
        eddy_sync_deleters(EDDY_FOREVER);
        cr_assert(from_callback[0] == EDDY_OK && from_callback[1] == EDDY_OK);
        cr_assert_eq(eddy_live_count(), live, "what was in its scope is gone");
        eddy_caller *caller = eddy_caller_self;
        cr_assert_eq(caller->scope, scope);
        cr_assert(caller->stream == stream && caller->stream_count == 1 &&
                  caller->device_count == 1);
        cr_assert_eq(eddy_stream_scope_begin(inner), EDDY_OK);
        eddy_stream_scope_end();
        cr_assert_eq(caller->stream, stream);
        eddy_scope_end(scope);
        eddy_device_scope_end();
        eddy_stream_scope_end();
        cr_assert_eq(caller->stream_count, 0);
        eddy_release(&t);
        eddy_stream_release(&stream);
        eddy_stream_release(&inner);
        eddy_runtime_use(NULL);
        eddy_runtime_release(&runtime);
    }
    cr_assert_eq(eddy_error_take(NULL), EDDY_OK);
}

Test(host, read_as_converts_to_the_buffers_type) {
    eddy_tensor *numbers = I64(EDDY_SHAPE(2, 2), 1, -2, 3, 1000),
                *bad = index_select(counting(EDDY_SHAPE(3)), I64(EDDY_SHAPE(1), 5));
    double f64[4];
    float f32s[4];
    int32_t i32[4];
    uint8_t u8[4];
    cr_assert_eq(eddy_read_as(eddy_t(numbers), EDDY_F64, f64, sizeof(f64), NULL), EDDY_OK);
    cr_assert(f64[0] == 1 && f64[1] == 3 && f64[2] == -2 && f64[3] == 1000,
              "row-major, of a view too");
    cr_assert_eq(
        eddy_read_as(F32(EDDY_SHAPE(4), 1.9f, -1.9f, 0, 5), EDDY_I32, i32, sizeof(i32), NULL),
        EDDY_OK);
    cr_assert(i32[0] == 1 && i32[1] == -1 && i32[2] == 0 && i32[3] == 5);
    cr_assert_eq(eddy_read_as(F32(EDDY_SHAPE(4), 0.5f, 0, 3, 1), EDDY_BOOL, u8, sizeof(u8), NULL),
                 EDDY_OK);
    cr_assert(u8[0] == 1 && u8[1] == 0 && u8[2] == 1 && u8[3] == 1);
    cr_assert_eq(eddy_read_as(counting(EDDY_SHAPE(4)), EDDY_F32, f32s, sizeof(f32s), NULL), EDDY_OK,
                 "as it is");
    cr_assert(f32s[3] == 3);
    f64[0] = 42;
    cr_assert_eq(eddy_read_as(numbers, EDDY_F64, f64, sizeof(f32s), NULL), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT,
                 "read_as: i64[2, 2] as f64 takes 32 bytes, the buffer has 16");
    cr_assert_eq(eddy_read_as(numbers, (eddy_dtype)99, f64, sizeof(f64), NULL),
                 EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "99 is no dtype");
    cr_assert_eq(eddy_read_as(bad, EDDY_F64, f64, sizeof(double), NULL), EDDY_OUT_OF_RANGE);
    ASSERT_ERROR(EDDY_OUT_OF_RANGE, "index_select");
    cr_assert_eq(f64[0], 42, "the buffer is as it was");
}

Test(host, map_lends_and_ops_wait_for_unmap) {
    eddy_tensor *t = counting(EDDY_SHAPE(2, 2));
    eddy_tensor *row = eddy_select(t, 0, 1);
    float *values = eddy_map(row, EDDY_READ | EDDY_WRITE, EDDY_FOREVER);
    cr_assert_not_null(values);
    cr_assert_eq(values[0], 2, "the view's first element");
    eddy_tensor *sum = call("add", OF(t, t));
    cr_assert_not(eddy_is_ready(sum));
    cr_assert_eq(eddy_wait(sum, EDDY_FOREVER), EDDY_WOULD_DEADLOCK);
    ASSERT_ERROR(
        EDDY_WOULD_DEADLOCK,
        "this wait would never end: this thread itself has mapped or borrowed what it waits for");
    values[0] = 10;
    cr_assert_eq(eddy_unmap(row), EDDY_OK);
    ASSERT_F32(sum, 0, 2, 20, 6);
    cr_assert_eq(eddy_unmap(row), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "not mapped");
    cr_assert_null(eddy_map(t, 4, EDDY_FOREVER));
    eddy_error_take(NULL);
}

static void *unmap_elsewhere(void *context) {
    return (void *)(intptr_t)eddy_unmap(context);
}

static pthread_barrier_t turn;

static void *map_beside(void *context) {
    cr_assert_not_null(eddy_map(context, EDDY_READ, EDDY_FOREVER));
    pthread_barrier_wait(&turn); /* both have it mapped */
    pthread_barrier_wait(&turn); /* the other one has looked */
    return (void *)(intptr_t)eddy_unmap(context);
}

Test(host, a_thread_unmaps_its_own_lend_before_any_other) {
    eddy_tensor *t = counting(EDDY_SHAPE(2));
    cr_assert_not_null(eddy_map(t, EDDY_READ, EDDY_FOREVER));
    pthread_t thread;
    void *status;
    pthread_barrier_init(&turn, NULL, 2);
    pthread_create(&thread, NULL, map_beside, t);
    pthread_barrier_wait(&turn);
    cr_assert_eq(eddy_unmap(t), EDDY_OK);
    cr_assert_eq(copy_into(F32(EDDY_SHAPE(2), 5, 6), t), EDDY_OK);
    cr_assert_eq(eddy_wait(t, 1000000), EDDY_TIMED_OUT,
                 "the other thread's lend is in the way, not the waiter's own");
    eddy_error_take(NULL);
    pthread_barrier_wait(&turn);
    pthread_join(thread, &status);
    cr_assert_eq((eddy_status)(intptr_t)status, EDDY_OK);
    ASSERT_F32(t, 5, 6);
}

static void *hold_a_while(void *context) {
    cr_assert_not_null(eddy_map(context, EDDY_WRITE, EDDY_FOREVER));
    pthread_barrier_wait(&turn); /* mapped */
    pthread_barrier_wait(&turn); /* the other one has given up */
    return (void *)(intptr_t)eddy_unmap(context);
}

/* Another thread has the tensor mapped between the two. */
static pthread_t hold(eddy_tensor *tensor) {
    pthread_t thread;
    pthread_barrier_init(&turn, NULL, 2);
    pthread_create(&thread, NULL, hold_a_while, tensor);
    pthread_barrier_wait(&turn);
    return thread;
}

static void let_go(pthread_t thread) {
    void *status;
    pthread_barrier_wait(&turn);
    pthread_join(thread, &status);
    cr_assert_eq((eddy_status)(intptr_t)status, EDDY_OK);
}

Test(host, maps_timeout_covers_the_wait_for_a_shape, .timeout = 30) {
    eddy_tensor *t = counting(EDDY_SHAPE(4));
    pthread_t thread = hold(t);
    eddy_tensor *places = call("nonzero", OF(t));
    cr_assert_null(eddy_map(places, EDDY_READ, 1000000));
    ASSERT_ERROR(EDDY_TIMED_OUT, "map");
    cr_assert_null(eddy_map(places, EDDY_READ, 0));
    ASSERT_ERROR(EDDY_TIMED_OUT, "map");
    let_go(thread);
    const int64_t *found = eddy_map(places, EDDY_READ, EDDY_FOREVER);
    cr_assert_eq(found[0], 1);
    cr_assert_eq(eddy_unmap(places), EDDY_OK);
}

/* Of a tensor whose elements, and of one whose shape, cannot be had. */
static void read_in_vain(eddy_tensor *tensor) {
    const eddy_read_options *soon = EDDY_OPTIONS(read, .timeout = 1000000);
    double f64 = 7;
    int64_t i64 = 7;
    char bytes[32] = "as it was";
    cr_assert_eq(eddy_read(tensor, bytes, 4, soon), EDDY_TIMED_OUT);
    ASSERT_ERROR(EDDY_TIMED_OUT, "read");
    cr_assert_eq(eddy_read_as(tensor, EDDY_F64, bytes, 8, soon), EDDY_TIMED_OUT);
    eddy_error_take(NULL);
    cr_assert_eq(eddy_read_f64(tensor, &f64, soon), EDDY_TIMED_OUT);
    ASSERT_ERROR(EDDY_TIMED_OUT, "read_f64");
    cr_assert_eq(eddy_read_i64(tensor, &i64, soon), EDDY_TIMED_OUT);
    ASSERT_ERROR(EDDY_TIMED_OUT, "read_i64");
    cr_assert(isnan(eddy_item_f64(tensor, soon)));
    ASSERT_ERROR(EDDY_TIMED_OUT, "item_f64");
    cr_assert_eq(eddy_item_i64(tensor, soon), INT64_MIN);
    ASSERT_ERROR(EDDY_TIMED_OUT, "item_i64");
    cr_assert(f64 == 7 && i64 == 7);
    cr_assert_str_eq(bytes, "as it was");
}

Test(host, reads_give_up_after_their_timeout, .timeout = 30) {
    eddy_tensor *t = counting(EDDY_SHAPE(1));
    pthread_t thread = hold(t);
    eddy_tensor *places = call("nonzero", OF(t));
    read_in_vain(t);
    read_in_vain(places);
    let_go(thread);
    const eddy_read_options *late = EDDY_OPTIONS(read, .timeout = INT64_C(20000000000));
    double value;
    cr_assert_eq(eddy_read_as(t, EDDY_F64, &value, sizeof(value), late), EDDY_OK);
    cr_assert_eq(eddy_item_f64(t, late), value);
    cr_assert(has_shape(places, EDDY_SHAPE(0, 1)));
}

Test(host, another_thread_may_unmap_and_the_tensor_stays_alive) {
    eddy_tensor *t = counting(EDDY_SHAPE(2)), *same = t;
    cr_assert_not_null(eddy_map(t, EDDY_READ, EDDY_FOREVER));
    eddy_release(&t);
    cr_assert_eq(eddy_live_count(), 1);
    pthread_t thread;
    void *status;
    pthread_create(&thread, NULL, unmap_elsewhere, same);
    pthread_join(thread, &status);
    cr_assert_eq((eddy_status)(intptr_t)status, EDDY_OK);
    cr_assert_eq(eddy_live_count(), 0);
}
