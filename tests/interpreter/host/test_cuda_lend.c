/* Tensors lent to code of a CUDA device, on the fake driver (tests/fake_cuda): what that launches is in order with Eddy's ops, whatever the stream. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tests/fake_cuda/findings.h>
#include <tests/foreign.h>
#include <unistd.h>

#define THERE EDDY_CUDA(0)
#define COUNT 500
#define BYTES (COUNT * sizeof(float))

static void must(eddy_status status) {
    eddy_error error = {0};
    eddy_error_take(&error);
    cr_assert_eq(status, EDDY_OK, "%s", error.message);
}

static void expect_failure(eddy_status found, eddy_status status, const char *part) {
    eddy_error error = {0};
    cr_assert_eq(found, status, "%s", eddy_status_name(found));
    cr_assert_eq(eddy_error_take(&error), status);
    cr_assert_not_null(strstr(error.message, part), "%s", error.message);
}

static void expect_no_findings(void) {
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(eddy_live_count(), 0);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

static eddy_tensor *full(double value) {
    return eddy_full(EDDY_SHAPE(COUNT), EDDY_S(value), EDDY_F32,
                     EDDY_OPTIONS(full, .device = THERE));
}

static void expect_all(eddy_tensor *tensor, float value) {
    float found[COUNT];
    must(eddy_read(tensor, found, BYTES, NULL));
    for (int i = 0; i < COUNT; i++)
        cr_assert_eq(found[i], value, "%d: %g, not %g", i, (double)found[i], (double)value);
}

static eddy_lend begin(eddy_tensor *tensor, int flags) {
    eddy_lend lend = {.size = sizeof(lend)};
    must(eddy_lend_begin(tensor, flags, EDDY_FOREVER, &lend));
    foreign_enter();
    return lend;
}

/* ---- order ---- */

Test(cuda_lend, what_is_launched_comes_between_the_ops_around_it) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = full(3), *y = eddy_add(x, x);
    eddy_lend lend = begin(y, EDDY_READ | EDDY_WRITE);
    cr_assert_not_null(lend.stream);
    cr_assert_eq(foreign_fill(lend.data, 0, BYTES, lend.stream), 0);
    eddy_tensor *behind = eddy_add_s(y, EDDY_S(1)); /* waits for the end */
    must(eddy_add_into(x, y, y));
    must(eddy_lend_end(y));
    expect_all(behind, 1);
    expect_all(y, 3);
    eddy_scope_end(scope);
    expect_no_findings();
}

/* Values show a wrong order, and the fake a missing wait: the readers and writers are on other streams. */
Test(cuda_lend, streams_of_others_wait_for_it, .timeout = 60) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_stream *streams[3];
    for (int i = 0; i < 3; i++)
        streams[i] = eddy_stream_create(THERE, NULL);
    eddy_tensor *x = full(0), *y = full(0), *sum = full(0);
    for (int round = 0; round < 30; round++) {
        must(eddy_stream_scope_begin(streams[round % 3]));
        must(eddy_add_s_into(x, x, EDDY_S(round)));
        eddy_stream_scope_end();
        must(eddy_stream_scope_begin(streams[(round + 1) % 3]));
        eddy_lend from = begin(x, EDDY_READ), to = begin(y, EDDY_READ | EDDY_WRITE);
        cr_assert_eq(from.stream, to.stream);
        cr_assert_eq(foreign_copy(to.data, from.data, BYTES, to.stream), 0);
        must(eddy_lend_end(x));
        must(eddy_lend_end(y));
        eddy_stream_scope_end();
        must(eddy_stream_scope_begin(streams[(round + 2) % 3]));
        must(eddy_add_into(sum, y, sum));
        must(eddy_sub_into(x, y, x)); /* 0, once the copy has read it */
        eddy_stream_scope_end();
    }
    expect_all(sum, 29 * 30 / 2);
    for (int i = 0; i < 3; i++)
        eddy_stream_release(&streams[i]);
    eddy_scope_end(scope);
    expect_no_findings();
}

/* The memory stays, though nobody holds the tensor any more. */
Test(cuda_lend, a_tensor_that_is_released_meanwhile_stays) {
    eddy_tensor *x = full(3);
    eddy_lend lend = begin(x, EDDY_READ | EDDY_WRITE);
    eddy_tensor *held = x;
    eddy_retain(held);
    eddy_release(&x);
    for (int i = 0; i < 8; i++) {
        eddy_tensor *other = full(i);
        eddy_release(&other);
    }
    cr_assert_eq(foreign_fill(lend.data, 0, BYTES, lend.stream), 0);
    must(eddy_lend_end(held));
    expect_all(held, 0);
    eddy_release(&held);
    expect_no_findings();
}

Test(cuda_lend, a_view_is_lent_from_its_first_element) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = full(3), *part = eddy_narrow(x, 0, 10, 5);
    eddy_lend whole = begin(x, EDDY_READ), lend = begin(part, EDDY_READ);
    cr_assert_eq((char *)lend.data, (char *)whole.data + 10 * sizeof(float));
    must(eddy_lend_end(part));
    must(eddy_lend_end(x));
    eddy_tensor *none = eddy_narrow(x, 0, 10, 0);
    cr_assert_null(begin(none, EDDY_READ).data);
    must(eddy_lend_end(none));
    eddy_scope_end(scope);
    expect_no_findings();
}

Test(cuda_lend, its_stream_is_that_of_the_scope) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = full(3);
    void *usual = begin(x, EDDY_READ).stream;
    must(eddy_lend_end(x));
    eddy_stream *stream = eddy_stream_create(THERE, NULL);
    must(eddy_stream_scope_begin(stream));
    void *own = begin(x, EDDY_READ).stream;
    eddy_stream_scope_end();
    eddy_stream_release(&stream); /* the end does not need it */
    must(eddy_lend_end(x));
    cr_assert_neq(usual, own);
    cr_assert_eq(begin(x, EDDY_READ).stream, usual);
    must(eddy_lend_end(x));
    eddy_scope_end(scope);
    expect_no_findings();
}

Test(cuda_lend, in_one_thread_mode_it_is_over_at_its_end) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_one_thread = true));
    must(eddy_runtime_use(runtime));
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = full(3);
    eddy_lend lend = begin(x, EDDY_READ | EDDY_WRITE);
    cr_assert_eq(foreign_fill(lend.data, 0, BYTES, lend.stream), 0);
    must(eddy_lend_end(x));
    cr_assert(eddy_is_ready(x));
    expect_all(x, 0);
    eddy_scope_end(scope);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

/* ---- two lends ---- */

static void *write_it(void *context) {
    eddy_tensor *x = context;
    eddy_lend lend = begin(x, EDDY_READ | EDDY_WRITE);
    cr_assert_eq(foreign_fill(lend.data, 0, BYTES, lend.stream), 0);
    must(eddy_lend_end(x));
    return NULL;
}

Test(cuda_lend, readers_share_it_and_a_writer_is_alone, .timeout = 60) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = full(3), *copy = full(0);
    eddy_lend lend = begin(x, EDDY_READ), other = {.size = sizeof(other)};
    eddy_lend again = begin(x, EDDY_READ);
    cr_assert_eq(again.data, lend.data);
    cr_assert_not_null(eddy_map(x, EDDY_READ, EDDY_FOREVER));
    expect_failure(eddy_lend_begin(x, EDDY_READ | EDDY_WRITE, EDDY_FOREVER, &other),
                   EDDY_WOULD_DEADLOCK, "");
    cr_assert_null(other.data);
    pthread_t writer;
    cr_assert_eq(pthread_create(&writer, NULL, write_it, x), 0);
    usleep(20000);
    eddy_lend to = begin(copy, EDDY_READ | EDDY_WRITE);
    cr_assert_eq(foreign_copy(to.data, lend.data, BYTES, to.stream), 0);
    must(eddy_lend_end(copy));
    must(eddy_unmap(x));
    must(eddy_lend_end(x));
    must(eddy_lend_end(x));
    pthread_join(writer, NULL);
    expect_all(copy, 3);
    expect_all(x, 0);
    eddy_scope_end(scope);
    expect_no_findings();
}

Test(cuda_lend, a_wait_for_it_has_a_timeout) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = full(3);
    begin(x, EDDY_READ | EDDY_WRITE);
    eddy_tensor *behind = eddy_neg(x);
    expect_failure(eddy_wait(behind, 1000000), EDDY_WOULD_DEADLOCK, "itself");
    must(eddy_lend_end(x));
    expect_all(behind, -3);
    eddy_scope_end(scope);
    expect_no_findings();
}

/* A runtime that closes waits for it, as long as it may. */
Test(cuda_lend, a_runtime_waits_for_its_end) {
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    must(eddy_runtime_use(runtime));
    eddy_tensor *x = full(3);
    eddy_lend lend = begin(x, EDDY_READ | EDDY_WRITE);
    cr_assert_eq(eddy_runtime_shutdown(runtime, 50000000), EDDY_TIMED_OUT);
    eddy_error_take(NULL);
    cr_assert_eq(foreign_fill(lend.data, 0, BYTES, lend.stream), 0);
    must(eddy_lend_end(x));
    eddy_release(&x);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

/* ---- what is refused ---- */

Test(cuda_lend, what_cannot_be_lent_is_said) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_lend lend = {.size = sizeof(lend)}, small = {.size = 3};
    eddy_tensor *x = full(3);
    expect_failure(eddy_lend_begin(x, 0, 0, &lend), EDDY_INVALID_ARGUMENT, "flags");
    expect_failure(eddy_lend_begin(x, EDDY_READ, 0, NULL), EDDY_INVALID_ARGUMENT, "lend");
    expect_failure(eddy_lend_begin(x, EDDY_READ, 0, &small), EDDY_INVALID_ARGUMENT, "size");
    expect_failure(eddy_lend_begin(NULL, EDDY_READ, 0, &lend), EDDY_INVALID_ARGUMENT, "tensor");
    expect_failure(eddy_lend_end(x), EDDY_INVALID_ARGUMENT, "not lent");
    expect_failure(eddy_lend_begin(eddy_to_device(x, EDDY_CPU), EDDY_READ, 0, &lend),
                   EDDY_UNSUPPORTED, "cpu runs no code");
    expect_failure(eddy_lend_begin(eddy_to_device(x, EDDY_FAR(0)), EDDY_READ, 0, &lend),
                   EDDY_UNSUPPORTED, "far:0 runs no code");
    begin(x, EDDY_READ);
    expect_failure(eddy_unmap(x), EDDY_INVALID_ARGUMENT, "not mapped");
    must(eddy_lend_end(x));
    must(eddy_record_begin(NULL));
    expect_failure(eddy_lend_begin(x, EDDY_READ, 0, &lend), EDDY_UNSUPPORTED, "recorded");
    eddy_tensor *y = eddy_neg(x);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS({"y", y, EDDY_ROLE_OUTPUT}));
    eddy_program_release(&program);
    eddy_error_take(NULL);
    cr_assert(!lend.data && !lend.stream);
    eddy_scope_end(scope);
    expect_no_findings();
}

Test(cuda_lend, what_has_failed_is_not_lent) {
    eddy_scope *scope = eddy_scope_begin();
    const int64_t at[] = {2 * COUNT};
    eddy_tensor *index =
        eddy_from_data(at, EDDY_SHAPE(1), EDDY_I64, EDDY_OPTIONS(from_data, .device = THERE));
    eddy_tensor *bad = eddy_index_select(full(3), index, 0);
    eddy_lend lend = {.size = sizeof(lend)};
    expect_failure(eddy_lend_begin(bad, EDDY_READ, EDDY_FOREVER, &lend), EDDY_OUT_OF_RANGE,
                   "index_select");
    cr_assert_null(lend.data);
    expect_failure(eddy_lend_end(bad), EDDY_INVALID_ARGUMENT, "not lent");
    eddy_scope_end(scope);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

/* ---- fork ---- */

/* The driver has nothing of the child's. */
Test(cuda_lend, a_forked_child_ends_a_lend_without_the_driver, .timeout = 60) {
    long (*calls)(void);
    *(void **)&calls = fake_cuda_ask("fake_cuda_calls");
    eddy_tensor *x = full(3);
    begin(x, EDDY_READ);
    must(eddy_wait(x, EDDY_FOREVER));
    pid_t child = fork();
    if (child == 0) {
        const long before = calls();
        (void)eddy_lend_end(x);
        _exit(calls() == before ? 0 : 1);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    must(eddy_lend_end(x));
    eddy_release(&x);
    expect_no_findings();
}

/* ---- captures ---- */

/* What went to it never runs. All waits end, and other devices go on. */
Test(cuda_lend, a_stream_that_is_left_capturing_costs_the_device, .timeout = 60) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = full(3), *y = full(4);
    eddy_lend lend = begin(x, EDDY_READ | EDDY_WRITE);
    cr_assert_eq(foreign_capture_begin(lend.stream, EDDY_CU_CAPTURE_GLOBAL), 0);
    expect_failure(eddy_lend_end(x), EDDY_DEVICE_LOST, "cuda:0 is lost");
    cr_assert_eq(eddy_error_of(x, EDDY_FOREVER, NULL), EDDY_TORN);
    expect_failure(eddy_wait(eddy_add(y, y), EDDY_FOREVER), EDDY_DEVICE_LOST, "lost");
    expect_all(eddy_full(EDDY_SHAPE(COUNT), EDDY_S(5), EDDY_F32, NULL), 5);
    eddy_scope_end(scope);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
}

static void *capture_it(void *stream) {
    foreign_enter();
    cr_assert_eq(foreign_capture_begin(stream, EDDY_CU_CAPTURE_GLOBAL), 0);
    return NULL;
}

/* Who may not end it. */
Test(cuda_lend, a_capture_that_another_thread_has_begun_costs_the_device, .timeout = 60) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = full(3);
    eddy_lend lend = begin(x, EDDY_READ);
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, capture_it, lend.stream), 0);
    pthread_join(thread, NULL);
    expect_failure(eddy_lend_end(x), EDDY_DEVICE_LOST, "left capturing");
    expect_failure(eddy_wait(eddy_add(x, x), EDDY_FOREVER), EDDY_DEVICE_LOST, "lost");
    eddy_scope_end(scope);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
}

/* Of tickets: each launch ends with one. */
static long writes_so_far(void) {
    long (*calls_of)(const char *entry);
    *(void **)&calls_of = fake_cuda_ask("fake_cuda_calls_of");
    return calls_of("cuStreamWriteValue64");
}

/* A capture that is over when the lend ends has taken an op of Eddy's with it. It is seen before the ticket is written: behind that it may be over. */
Test(cuda_lend, ops_that_were_captured_cost_the_device, .timeout = 60) {
    setenv("FAKE_CUDA_CAPTURES_WRITES", "1", 1);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = full(3), *y = full(4);
    eddy_lend lend = begin(x, EDDY_READ);
    must(eddy_wait(y, EDDY_FOREVER));
    cr_assert_eq(foreign_capture_begin(lend.stream, EDDY_CU_CAPTURE_GLOBAL), 0);
    const long before = writes_so_far();
    expect_failure(eddy_wait(eddy_add(y, y), EDDY_FOREVER), EDDY_DEVICE_LOST, "lost");
    cr_assert_eq(writes_so_far(), before, "a ticket was captured, and would never come");
    (void)foreign_capture_end(lend.stream); /* which is invalid, or not */
    eddy_lend_end(x);
    eddy_scope_end(scope);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
}

/* ---- a lost device ---- */

/* The second fill of the process, after that of the backend's own table. */
Test(cuda_lend, a_device_that_is_lost_meanwhile_tears_what_is_written, .timeout = 60) {
    setenv("FAKE_CUDA_FAIL_ENTRY", "cuMemsetD8Async:2", 1);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = full(3), *read = full(4);
    begin(read, EDDY_READ);
    eddy_lend lend = begin(x, EDDY_READ | EDDY_WRITE), other = {.size = sizeof(other)};
    cr_assert_neq(foreign_fill(lend.data, 0, BYTES, lend.stream), 0);
    must(eddy_lend_end(x));
    must(eddy_lend_end(read));
    eddy_error error = {0};
    cr_assert_eq(eddy_error_of(x, EDDY_FOREVER, &error), EDDY_TORN);
    cr_assert_not_null(strstr(error.message, "lost"), "%s", error.message);
    expect_failure(eddy_lend_begin(read, EDDY_READ, EDDY_FOREVER, &other), EDDY_DEVICE_LOST,
                   "the device is lost (cuda:0)");
    cr_assert_null(other.data);
    eddy_scope_end(scope);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
}
