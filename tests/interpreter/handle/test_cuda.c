/* CUDA devices through the public functions, on the fake driver (tests/fake_cuda), which says what the real one would not forgive. Ops have the CPU's bits. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tests/fake_cuda/devices.h>
#include <tests/fake_cuda/findings.h>
#include <tests/fake_cuda/needed.h>
#include <tests/foreign.h>
#include <tests/rounds.h>
#include <unistd.h>

static eddy_tensor *numbers(eddy_device device) {
    static const float data[6] = {1, 2, 3, 4, 5, 6};
    eddy_from_data_options options = {.size = sizeof(options), .device = device};
    return eddy_from_data(data, EDDY_SHAPE(2, 3), EDDY_F32, &options);
}

static void expect_elements(eddy_tensor *tensor, const float *expected, int count) {
    float found[64];
    cr_assert_eq(eddy_read(tensor, found, (size_t)count * sizeof(float), NULL), EDDY_OK);
    for (int i = 0; i < count; i++)
        cr_assert_eq(found[i], expected[i], "element %d: %g", i, (double)found[i]);
}

static void expect_error(eddy_status status, const char *word) {
    eddy_error error = {0};
    cr_assert_eq(eddy_error_take(&error), status, "%s", error.message);
    cr_assert_not_null(strstr(error.message, word), "%s", error.message);
}

/* The fake makes a process that it has found something in fail, after its end; a test says so within. */
static void expect_no_findings(void) {
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

Test(cuda, devices_are_counted_and_described) {
    eddy_device_info info = {.size = sizeof(info)};
    cr_assert_eq(eddy_device_describe(cuda_last_device(), &info), EDDY_OK);
    cr_assert(info.name[0] != '\0' && info.memory_bytes > 0 && info.processor_count > 0);
    char beyond[16];
    snprintf(beyond, sizeof(beyond), "cuda:%d", (int)cuda_device_count());
    cr_assert_eq(eddy_device_describe(EDDY_CUDA(cuda_device_count()), &info), EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, beyond);
}

Test(cuda, tensors_go_there_and_back_and_on) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *here = numbers(EDDY_CPU);
    eddy_tensor *there = eddy_to_device(eddy_transpose(here, 0, 1), EDDY_CUDA(0));
    cr_assert_eq(eddy_device_of(there).kind, EDDY_DEVICE_CUDA);
    expect_elements(there, (float[]){1, 4, 2, 5, 3, 6}, 6);
    eddy_tensor *on = eddy_to_device(eddy_narrow(there, 0, 1, 2), cuda_last_device());
    cr_assert_eq(eddy_device_of(on).index, cuda_last_device().index);
    eddy_tensor *back = eddy_to_device(eddy_add(on, on), EDDY_CPU);
    expect_elements(back, (float[]){4, 10, 6, 12}, 4);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
    expect_no_findings();
}

/* Layouts, dtypes, numbers and targets, in a program that runs ahead of the device. */
static void compute(eddy_device device, float *result) {
    eddy_scope *scope = eddy_scope_begin();
    cr_assert_eq(eddy_device_scope_begin(device), EDDY_OK);
    eddy_tensor *x = numbers(device), *y = eddy_full(EDDY_SHAPE(3), EDDY_S(0.75), EDDY_F32, NULL);
    for (int i = 0; i < 50; i++) {
        eddy_tensor *t = eddy_tanh(eddy_mul_s(eddy_add(x, y), EDDY_S(0.3)));
        eddy_tensor *columns = eddy_transpose(t, 0, 1);
        eddy_tensor *half = eddy_cast(eddy_exp(columns), EDDY_BF16);
        eddy_tensor *chosen = eddy_where(eddy_gt_s(columns, EDDY_S(0.5)),
                                         eddy_cast(eddy_mul(half, half), EDDY_F32), columns);
        cr_assert_eq(eddy_add_inplace(eddy_select(x, 0, 1), eddy_select(chosen, 1, 0)), EDDY_OK);
        cr_assert_eq(eddy_copy_into(eddy_neg(eddy_select(chosen, 1, 1)), y), EDDY_OK);
    }
    cr_assert_eq(eddy_read(eddy_clone(eddy_transpose(x, 0, 1)), result, 6 * sizeof(float), NULL),
                 EDDY_OK);
    eddy_device_scope_end();
    eddy_scope_end(scope);
}

Test(cuda, a_program_of_small_ops_has_the_bits_of_the_cpu) {
    float here[6], there[6];
    compute(EDDY_CPU, here);
    compute(EDDY_CUDA(0), there);
    cr_assert_arr_eq(here, there, sizeof(here));
    expect_no_findings();
}

/* More operands than the call's arguments are read with on the stack. */
Test(cuda, many_operands_are_joined) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *parts[100];
    for (int i = 0; i < 100; i++)
        parts[i] = eddy_full(EDDY_SHAPE(2), EDDY_S(i), EDDY_F32,
                             EDDY_OPTIONS(full, .device = EDDY_CUDA(0)));
    float found[200];
    cr_assert_eq(eddy_read(eddy_cat((eddy_list){parts, 100}, 0), found, sizeof(found), NULL),
                 EDDY_OK);
    for (int i = 0; i < 200; i++)
        cr_assert_eq(found[i], (float)(i / 2));
    eddy_scope_end(scope);
    expect_no_findings();
}

Test(cuda, operands_of_two_devices_are_refused) {
    cuda_ask_for_two();
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *here = numbers(EDDY_CPU), *there = numbers(EDDY_CUDA(0)),
                *elsewhere = numbers(EDDY_CUDA(1)), *far = numbers(EDDY_FAR(0));
    cr_assert_null(eddy_add(here, there));
    expect_error(EDDY_DEVICE_MISMATCH, "operand 1 is on cuda:0, and those before it on cpu");
    cr_assert_null(eddy_add(there, elsewhere));
    expect_error(EDDY_DEVICE_MISMATCH, "operand 1 is on cuda:1, and those before it on cuda:0");
    cr_assert_null(eddy_add(there, far));
    expect_error(EDDY_DEVICE_MISMATCH, "operand 1 is on far:0, and those before it on cuda:0");
    cr_assert_null(eddy_to_device(here, EDDY_CUDA(9)));
    expect_error(EDDY_UNSUPPORTED, "cuda:9");
    expect_elements(eddy_to_device(far, EDDY_CUDA(1)), (float[]){1, 2, 3, 4, 5, 6}, 6);
    eddy_scope_end(scope);
    expect_no_findings();
}

Test(cuda, what_is_written_through_a_map_is_copied_back) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *there = numbers(EDDY_CUDA(0));
    float *elements = eddy_map(there, EDDY_READ | EDDY_WRITE, EDDY_FOREVER);
    cr_assert_eq(elements[5], 6);
    elements[5] = 60;
    eddy_tensor *twice = eddy_add(there, there);
    cr_assert_not(eddy_is_ready(twice));
    cr_assert_eq(eddy_unmap(there), EDDY_OK);
    expect_elements(twice, (float[]){2, 4, 6, 8, 10, 120}, 6);
    eddy_scope_end(scope);
    expect_no_findings();
}

Test(cuda, streams_and_events_order_what_they_have_to) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_stream *streams[3];
    eddy_tensor *x = numbers(EDDY_CUDA(0)), *sums[3];
    for (int i = 0; i < 3; i++)
        cr_assert_not_null(streams[i] = eddy_stream_create(EDDY_CUDA(0), NULL));
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 3; i++) {
            cr_assert_eq(eddy_stream_scope_begin(streams[i]), EDDY_OK);
            sums[i] = eddy_add(x, i > 0 ? sums[i - 1] : x);
            eddy_stream_scope_end();
        }
        eddy_event *event = eddy_event_record(streams[2]);
        cr_assert_eq(eddy_stream_wait(streams[0], event), EDDY_OK);
        cr_assert_eq(eddy_stream_scope_begin(streams[round % 3]), EDDY_OK);
        cr_assert_eq(eddy_sub_inplace(x, eddy_mul_s(sums[round % 3], EDDY_S(0.25))), EDDY_OK);
        eddy_stream_scope_end();
        eddy_event_release(&event);
    }
    float found[6];
    cr_assert_eq(eddy_read(x, found, sizeof(found), NULL), EDDY_OK);
    float expected = 1;
    for (int round = 0; round < 10; round++)
        expected -= expected * (float)(round % 3 + 2) * 0.25f;
    cr_assert_eq(found[0], expected);
    for (int i = 0; i < 3; i++)
        eddy_stream_release(&streams[i]);
    eddy_scope_end(scope);
    expect_no_findings();
}

/* The driver's number of the stream that ops of a stream with this priority are launched on. */
static int arriving_priority(int32_t priority) {
    eddy_cu_result (*read)(eddy_cu_stream, int *);
    *(void **)&read = foreign_entry("cuStreamGetPriority");
    eddy_stream *stream = eddy_stream_create(
        EDDY_CUDA(0), EDDY_OPTIONS(stream, .is_ordered = true, .priority = priority));
    cr_assert_not_null(stream);
    cr_assert_eq(eddy_stream_scope_begin(stream), EDDY_OK);
    eddy_tensor *x = numbers(EDDY_CUDA(0));
    eddy_lend lend = {.size = sizeof(lend)};
    cr_assert_eq(eddy_lend_begin(x, EDDY_READ, EDDY_FOREVER, &lend), EDDY_OK);
    foreign_enter();
    int found;
    cr_assert_eq(read(lend.stream, &found), 0);
    cr_assert_eq(eddy_lend_end(x), EDDY_OK);
    eddy_stream_scope_end();
    eddy_release(&x);
    eddy_stream_release(&stream);
    return found;
}

Test(cuda, priorities_of_streams_arrive_at_the_driver) {
    eddy_cu_result (*range)(int *, int *);
    *(void **)&range = foreign_entry("cuCtxGetStreamPriorityRange");
    int first = arriving_priority(0), least, greatest;
    cr_assert_eq(range(&least, &greatest), 0);
    cr_assert_lt(greatest, least, "the device has one priority");
    cr_assert_eq(first, 0);
    cr_assert_eq(arriving_priority(-least + 1), least - 1);
    cr_assert_eq(arriving_priority(INT32_MAX), greatest);
    cr_assert_eq(arriving_priority(INT32_MIN), least);
    expect_no_findings();
}

/* A failure is known late, what depends on it is skipped, and what was there before it can be had again. */
Test(cuda, what_depends_on_a_failure_is_skipped) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *kept = numbers(EDDY_CUDA(0));
    cr_assert_eq(eddy_device_memory_limit_set(EDDY_CUDA(0), 8 << 20), EDDY_OK);
    eddy_tensor *large =
        eddy_zeros(EDDY_SHAPE(3, 1 << 20), EDDY_F32, EDDY_OPTIONS(zeros, .device = EDDY_CUDA(0)));
    cr_assert_not_null(large);
    eddy_tensor *row = eddy_narrow(eddy_select(large, 0, 1), 0, 5, 3);
    cr_assert_eq(eddy_add_inplace(kept, row), EDDY_OK);
    eddy_tensor *after = eddy_add(kept, kept);
    cr_assert_eq(eddy_wait(after, EDDY_FOREVER), EDDY_OUT_OF_MEMORY);
    expect_error(EDDY_OUT_OF_MEMORY, "zeros");
    cr_assert_eq(eddy_recover(EDDY_LIST(kept)), EDDY_OK);
    expect_elements(kept, (float[]){1, 2, 3, 4, 5, 6}, 6);
    eddy_scope_end(scope);
    expect_no_findings();
}

/* Ops between the failure and the write launch nothing, as there are no elements; what they make is lost all the same. */
Test(cuda, what_has_no_elements_is_skipped_too) {
    for (int kind = 0; kind < 3; kind++) {
        eddy_scope *scope = eddy_scope_begin();
        cr_assert_eq(eddy_device_scope_begin(EDDY_CUDA(0)), EDDY_OK);
        float number = 1;
        int64_t zero = 0;
        eddy_tensor *kept = numbers(EDDY_CUDA(0));
        eddy_tensor *bad = eddy_scatter(eddy_zeros(EDDY_SHAPE(0), EDDY_F32, NULL),
                                        eddy_from_data(&zero, EDDY_SHAPE(1), EDDY_I64, NULL),
                                        eddy_from_data(&number, EDDY_SHAPE(1), EDDY_F32, NULL), 0);
        eddy_tensor *first = eddy_narrow(eddy_select(kept, 0, 0), 0, 0, 0);
        eddy_tensor *sum = eddy_sum(kind == 0 ? eddy_neg(bad) : eddy_cat(EDDY_LIST(bad, bad), 0),
                                    EDDY_ALL_AXES, NULL);
        cr_assert_eq(kind < 2 ? eddy_add_inplace(kept, sum) : eddy_add_inplace(first, bad),
                     EDDY_OK);
        cr_assert_eq(eddy_wait(kept, EDDY_FOREVER), EDDY_SKIPPED);
        expect_error(EDDY_SKIPPED, "index[0] is 0, out of range [0, 0)");
        cr_assert_eq(eddy_recover(EDDY_LIST(kept)), EDDY_OK);
        expect_elements(kept, (float[]){1, 2, 3, 4, 5, 6}, 6);
        eddy_device_scope_end();
        eddy_scope_end(scope);
    }
    expect_no_findings();
}

Test(cuda, memory_is_counted_trimmed_and_shown) {
    eddy_device device = cuda_last_device();
    eddy_tensor *x =
        eddy_zeros(EDDY_SHAPE(1024, 256), EDDY_F32, EDDY_OPTIONS(zeros, .device = device));
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    eddy_device_memory memory = {.size = sizeof(memory)};
    cr_assert_eq(eddy_device_memory_read(device, &memory), EDDY_OK);
    cr_assert_eq(memory.live_bytes, 1 << 20);
    cr_assert_gt(memory.limit_bytes, memory.live_bytes);
    eddy_release(&x);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_geq(eddy_device_memory_trim(device), 1 << 20);
    cr_assert_eq(eddy_device_memory_read(device, &memory), EDDY_OK);
    cr_assert_eq(memory.live_bytes + memory.cached_bytes, 0);
    expect_no_findings();
}

/* ---- memory that is kept unused ---- */

/* The first kernel: copies are none. */
static eddy_status add_without_memory(int64_t kept_bytes) {
    fake_cuda_fails("cuLaunchKernel:1:2");
    eddy_tensor *there = numbers(EDDY_CUDA(0));
    void *data = calloc(1, (size_t)kept_bytes);
    eddy_tensor *kept = eddy_from_data(data, EDDY_SHAPE(kept_bytes), EDDY_U8,
                                       EDDY_OPTIONS(from_data, .device = EDDY_CUDA(0)));
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    free(data);
    eddy_release(&kept);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    eddy_tensor *sum = eddy_add(there, there);
    eddy_status status = eddy_wait(sum, EDDY_FOREVER);
    if (status == EDDY_OK)
        expect_elements(sum, (float[]){2, 4, 6, 8, 10, 12}, 6);
    eddy_release(&sum);
    eddy_release(&there);
    return status;
}

Test(cuda, a_launch_gets_what_the_pool_keeps) {
    cr_assert_eq(add_without_memory(8 << 20), EDDY_OK);
    expect_no_findings();
}

/* What is kept lies in the chunk of what is in use. */
Test(cuda, a_launch_without_memory_fails_its_call_alone) {
    cr_assert_eq(add_without_memory(64), EDDY_OUT_OF_MEMORY);
    expect_error(EDDY_OUT_OF_MEMORY, "add");
    eddy_tensor *there = numbers(EDDY_CUDA(0)), *sum = eddy_add(there, there);
    expect_elements(sum, (float[]){2, 4, 6, 8, 10, 12}, 6);
    eddy_release(&sum);
    eddy_release(&there);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
}

/* Both have room for one alone. */
Test(cuda, memory_that_another_runtime_keeps_is_got) {
    (void)fake_cuda_ask("fake_cuda_calls");
    setenv("FAKE_CUDA_BYTES", "67108864", 1);
    const int64_t bytes = 40 << 20;
    eddy_runtime *runtimes[2];
    for (int r = 0; r < 2; r++) {
        runtimes[r] = eddy_runtime_create(NULL);
        cr_assert_eq(eddy_runtime_use(runtimes[r]), EDDY_OK);
        for (int time = 0; time < 2; time++) {
            eddy_tensor *large =
                eddy_ones(EDDY_SHAPE(bytes), EDDY_U8, EDDY_OPTIONS(ones, .device = EDDY_CUDA(0)));
            cr_assert_eq(eddy_wait(large, EDDY_FOREVER), EDDY_OK);
            eddy_release(&large);
            cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
        }
        eddy_device_memory memory = {.size = sizeof(memory)};
        cr_assert_eq(eddy_device_memory_read(EDDY_CUDA(0), &memory), EDDY_OK);
        cr_assert_geq(memory.cached_bytes, bytes);
    }
    for (int r = 0; r < 2; r++)
        cr_assert_eq(eddy_runtime_shutdown(runtimes[r], EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

Test(cuda, a_lost_device_takes_its_own_tensors_only) {
    fake_cuda_fails("cuLaunchKernel:3"); /* which is read when the driver starts */
    cuda_ask_for_two();
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *there = numbers(EDDY_CUDA(0)), *other = numbers(EDDY_CUDA(1)),
                *here = numbers(EDDY_CPU);
    cr_assert_eq(eddy_wait(there, EDDY_FOREVER), EDDY_OK);
    eddy_tensor *sum = there;
    for (int i = 0; i < 8; i++)
        sum = eddy_add(sum, there);
    cr_assert_eq(eddy_wait(sum, EDDY_FOREVER), EDDY_DEVICE_LOST);
    expect_error(EDDY_DEVICE_LOST, "add(f32[2, 3], f32[2, 3]): the device is lost (cuda:0)");
    float found[6];
    cr_assert_eq(eddy_read(there, found, sizeof(found), NULL), EDDY_DEVICE_LOST);
    expect_error(EDDY_DEVICE_LOST, "the device is lost (cuda:0)");
    cr_assert_eq(eddy_wait(eddy_add(there, there), EDDY_FOREVER), EDDY_DEVICE_LOST);
    eddy_error_take(NULL);
    expect_elements(eddy_add(other, other), (float[]){2, 4, 6, 8, 10, 12}, 6);
    expect_elements(eddy_add(here, here), (float[]){2, 4, 6, 8, 10, 12}, 6);
    eddy_scope_end(scope);
}

/* ---- captures of other code ---- */

/* Each call that may have to take memory, wait, ask or load something, on a runtime and a device that start meanwhile. */
static void call_all(eddy_device device) {
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *there = numbers(device);
    eddy_stream *stream = eddy_stream_create(device, NULL);
    cr_assert_eq(eddy_stream_scope_begin(stream), EDDY_OK);
    eddy_tensor *sum =
        eddy_add(there, eddy_matmul(eddy_matmul(there, eddy_transpose(there, 0, 1)), there));
    eddy_stream_scope_end();
    expect_elements(sum, (float[]){143, 190, 237, 344, 454, 564}, 6);
    eddy_tensor *large =
        eddy_zeros(EDDY_SHAPE(1 << 22), EDDY_F32, EDDY_OPTIONS(zeros, .device = device));
    cr_assert_eq(eddy_count_of(eddy_nonzero(large)), 0);
    cr_assert_eq(eddy_wait(eddy_to_device(large, EDDY_CPU), EDDY_FOREVER), EDDY_OK);
    const float *mapped = eddy_map(there, EDDY_READ, EDDY_FOREVER);
    cr_assert(mapped && mapped[5] == 6);
    cr_assert_eq(eddy_unmap(there), EDDY_OK);
    eddy_release(&large);
    eddy_stream_release(&stream);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    (void)eddy_device_memory_trim(device);
    cr_assert_eq(eddy_runtime_shutdown(runtime, EDDY_FOREVER), EDDY_OK);
    eddy_runtime_release(&runtime);
}

static void expect_valid(eddy_cu_capture_mode mode) {
    foreign_enter();
    void *stream = foreign_stream();
    cr_assert_eq(foreign_capture_begin(stream, mode), 0);
    call_all(EDDY_CUDA(0));
    cr_assert_eq(foreign_capture_end(stream), 0);
    cr_assert_eq(foreign_mode(), EDDY_CU_CAPTURE_GLOBAL, "the thread heeds captures as before");
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

/* The stream is none of Eddy's, the thread calls Eddy. */
Test(cuda, a_capture_meanwhile_stays_valid) {
    expect_valid(EDDY_CU_CAPTURE_GLOBAL);
}

Test(cuda, a_capture_of_the_calling_thread_stays_valid) {
    expect_valid(EDDY_CU_CAPTURE_THREAD_LOCAL);
}

static void *call_all_here(void *context) {
    call_all(EDDY_CUDA(0));
    return context;
}

Test(cuda, a_capture_of_another_thread_stays_valid) {
    foreign_enter();
    void *stream = foreign_stream();
    cr_assert_eq(foreign_capture_begin(stream, EDDY_CU_CAPTURE_GLOBAL), 0);
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, call_all_here, NULL), 0);
    pthread_join(thread, NULL);
    cr_assert_eq(foreign_capture_end(stream), 0);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

Test(cuda, in_one_thread_mode_a_capture_stays_valid) {
    setenv("EDDY_THREADS", "1", 1);
    expect_valid(EDDY_CU_CAPTURE_GLOBAL);
}

/* Nobody calls the driver any more, which would say so. */
static void expect_noticed(void) {
    (void)fake_cuda_ask("fake_cuda_calls");
    setenv("FAKE_CUDA_FAIL_RUN", "4", 1);
    alarm(60);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *there = numbers(EDDY_CUDA(0));
    cr_assert_eq(eddy_wait(eddy_add(there, there), EDDY_FOREVER), EDDY_DEVICE_LOST);
    expect_error(EDDY_DEVICE_LOST, "the device is lost");
    eddy_scope_end(scope);
}

Test(cuda, what_fails_while_it_runs_is_noticed) {
    expect_noticed();
}

/* Nor within a call that was made before. */
Test(cuda, what_fails_after_all_calls_is_noticed) {
    setenv("FAKE_CUDA_MODE", "lazy", 1);
    expect_noticed();
}

/* ---- each call of the driver fails once ---- */

/* Whether the call is well, or the thread's first error says why not. */
static bool is_well_or_said(eddy_status status) {
    eddy_error error;
    return status == EDDY_OK || (eddy_error_take(&error) != EDDY_OK && error.message[0] != '\0');
}

#define SHORT_STREAMS 3

/* Chains on three streams that need each other, an index, an op in place, a read. Any of it may fail; `found` is what was read, if the read was well. */
static bool run_short_program(eddy_device device, float *found) {
    int64_t back[] = {1, 0};
    eddy_scope *scope = eddy_scope_begin();
    eddy_from_data_options options = {.size = sizeof(options), .device = device};
    eddy_tensor *a = numbers(device), *b = a,
                *index = eddy_from_data(back, EDDY_SHAPE(2), EDDY_I64, &options);
    eddy_stream *streams[SHORT_STREAMS];
    for (int i = 0; i < SHORT_STREAMS; i++)
        streams[i] = eddy_stream_create(device, NULL);
    for (int i = 0; i < 2 * SHORT_STREAMS; i++) {
        eddy_stream *stream = streams[i % SHORT_STREAMS];
        bool has_scope = stream && eddy_stream_scope_begin(stream) == EDDY_OK;
        a = eddy_tanh(eddy_add(a, eddy_mul_s(b, EDDY_S(0.1))));
        b = eddy_index_select(eddy_sub(a, b), index, 0);
        if (has_scope)
            eddy_stream_scope_end();
    }
    bool is_well = is_well_or_said(eddy_add_inplace(b, a));
    is_well &= is_well_or_said(eddy_read(b, found, 6 * sizeof(float), NULL));
    for (int i = 0; i < SHORT_STREAMS; i++)
        eddy_stream_release(&streams[i]);
    eddy_scope_end(scope);
    eddy_error_take(NULL);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    return is_well;
}

/* What is read is right, and the runtime ends. */
static bool is_short_program_well(void) {
    float expected[6], found[6], unread[6] = {0};
    memset(found, 0, sizeof(found));
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    bool is_well = eddy_runtime_use(runtime) == EDDY_OK;
    is_well &= run_short_program(EDDY_CPU, expected);
    is_well &= run_short_program(EDDY_CUDA(0), found);
    is_well &=
        memcmp(found, unread, sizeof(found)) == 0 || memcmp(found, expected, sizeof(found)) == 0;
    is_well &= eddy_runtime_shutdown(runtime, EDDY_FOREVER) == EDDY_OK;
    eddy_runtime_release(&runtime);
    return is_well;
}

/* In a process of its own, which uses the driver first. */
static int run_failing(long number, int result) {
    pid_t child = fork();
    if (child == 0) {
        char text[64];
        snprintf(text, sizeof(text), "%ld:%d", number, result);
        setenv("FAKE_CUDA_FAIL", text, 1);
        alarm(60);
        bool is_well = is_short_program_well();
        long (*calls)(void);
        *(void **)&calls = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "fake_cuda_calls");
        _exit(!is_well ? 1 : calls() < number ? 2 : 0);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status), "call %ld fails with %d: signal %d", number, result,
              WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* With a sanitizer, which makes a process slow to begin, one call of eight. */
#define CALLS_AT_ONCE (8 / ROUNDS_OF(8) > 1 ? 8 : 1)

Test(cuda, each_call_of_the_driver_may_fail) {
    (void)fake_cuda_ask("fake_cuda_calls");
    static const int results[] = {1, 2, 719}; /* refused once, no memory, lost for good */
    for (int r = 0; r < 3; r++) {
        long number = 1;
        for (int status = 0; status != 2; number += CALLS_AT_ONCE) {
            status = run_failing(number, results[r]);
            cr_assert_neq(status, 1, "call %ld fails with %d", number, results[r]);
        }
        cr_assert_gt(number, 150);
    }
}

Test(cuda, a_forked_child_is_refused_and_the_parent_goes_on) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *there = numbers(EDDY_CUDA(0)), *sum = eddy_add(there, there);
    pid_t child = fork();
    if (child == 0) {
        bool is_well = eddy_wait(sum, EDDY_FOREVER) == EDDY_FORKED;
        eddy_error_take(NULL);
#ifndef __SANITIZE_THREAD__ /* it starts no thread behind a fork */
        eddy_tensor *own = numbers(EDDY_CPU);
        is_well &= own && eddy_item_f64(eddy_sum(own, EDDY_ALL_AXES, NULL), NULL) == 21;
        eddy_error error;
        is_well &= !numbers(EDDY_CUDA(0)) && eddy_error_take(&error) == EDDY_UNSUPPORTED &&
                   strstr(error.message, "fork");
#endif
        _exit(is_well ? 0 : 1);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    expect_elements(sum, (float[]){2, 4, 6, 8, 10, 12}, 6);
    eddy_scope_end(scope);
    expect_no_findings();
}

static void write_elements(void *context, const void *data, int64_t bytes,
                           const eddy_error *error) {
    (void)error;
    if (data)
        (void)!write(*(int *)context, data, (size_t)bytes);
}

/* The driver has an exit handler too, which must not come first. */
Test(cuda, exit_waits_for_what_is_under_way) {
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        eddy_tensor *x = numbers(EDDY_CUDA(0));
        for (int i = 0; i < 30; i++)
            x = eddy_add_s(x, EDDY_S(1));
        (void)eddy_read_async(x, write_elements, &ends[1]);
        exit(0);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    close(ends[1]);
    float found[6] = {0};
    cr_assert_eq(read(ends[0], found, sizeof(found)), (ssize_t)sizeof(found));
    cr_assert_eq(found[5], 36);
    close(ends[0]);
}

Test(cuda, a_shutdown_ends_what_is_under_way) {
    for (int round = 0; round < 5; round++) {
        eddy_runtime *runtime = eddy_runtime_create(NULL);
        cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = numbers(EDDY_CUDA(0));
        for (int i = 0; i < 40; i++)
            x = eddy_mul_s(x, EDDY_S(0.5));
        eddy_scope_end(scope);
        cr_assert_eq(eddy_runtime_shutdown(runtime, EDDY_FOREVER), EDDY_OK);
        eddy_runtime_release(&runtime);
    }
}
