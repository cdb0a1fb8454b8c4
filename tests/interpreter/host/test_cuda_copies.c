/* Copies between the host and CUDA devices by every public way, in sizes around those where the way changes. On the fake driver, which knows what is pinned and counts what would hold
 * the launching thread up. */
#include <base/atomic.h>
#include <base/trace.h>
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <eddy/eddy.h>
#include <stdio.h>
#include <stdlib.h>
#include <streams/cuda/device.h>
#include <string.h>
#include <tests/fake_cuda/findings.h>

#define KB ((int64_t)1024)
#define MB (1024 * KB)

/* Of elements of a byte: none, a short copy, a whole block, one chunk, several, more than a ring has, and what is no multiple of anything. */
static const int64_t sizes[] = {0,      1,          511,        64 * KB,     64 * KB + 1, 256 * KB,
                                1 * MB, 1 * MB + 1, 2 * MB + 7, 8 * MB + 13, 21 * MB + 5};
#define SIZES (sizeof(sizes) / sizeof(*sizes))
#define MOST (21 * MB + 5)

static unsigned char here[MOST + 8], back[MOST];

/* Elements that tell their places apart, eight at a time: sanitizers look at each access. */
static void fill(int64_t count, unsigned salt) {
    for (int64_t i = 0; i < count; i += 8) {
        uint64_t eight = (uint64_t)(i + 8) * UINT64_C(0x9E3779B97F4A7C15) ^
                         (salt & 255) * UINT64_C(0x0101010101010101);
        memcpy(here + i, &eight, sizeof(eight));
    }
}

static eddy_tensor *there(int64_t count, unsigned salt) {
    fill(count, salt);
    return eddy_from_data(here, EDDY_SHAPE(count), EDDY_U8,
                          EDDY_OPTIONS(from_data, .device = EDDY_CUDA(0)));
}

static long holding_copies(void) {
    long (*count)(void);
    *(void **)&count = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "fake_cuda_holding_copies");
    return count ? count() : 0; /* a GPU's driver does not tell */
}

static void expect_same(int64_t count) {
    cr_assert_eq(memcmp(here, back, (size_t)count), 0, "%lld bytes", (long long)count);
}

static void expect_nobody_held(void) {
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(holding_copies(), 0);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

Test(cuda_copies, what_goes_there_comes_back) {
    for (size_t i = 0; i < SIZES; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *t = there(sizes[i], (unsigned)i);
        memset(back, 0, (size_t)sizes[i]);
        cr_assert_eq(eddy_read(t, back, (size_t)sizes[i], NULL), EDDY_OK);
        expect_same(sizes[i]);
        eddy_scope_end(scope);
    }
    expect_nobody_held();
}

static _Atomic int64_t staged_bytes, chunk_count;

static void count_chunk(void *context, const eddy_trace_event *event) {
    (void)context;
    if (event->kind != EDDY_TRACE_ENDS || strcmp(event->op, "stage") != 0)
        return;
    staged_bytes += event->bytes;
    chunk_count++;
}

/* Whoever listens hears of each chunk that the host copies, on the thread that does it. */
Test(cuda_copies, chunks_are_heard) {
    const eddy_trace_listener listener = {count_chunk, NULL, 1u << EDDY_TRACE_COPY};
    uint32_t place;
    cr_assert_eq(eddy_trace_add(&listener, &place), EDDY_OK);
    eddy_tensor *t = there(MOST, 1);
    cr_assert_eq(eddy_wait(t, EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(staged_bytes, MOST);
    int64_t there_count = chunk_count;
    cr_assert_gt(there_count, 4);
    cr_assert_eq(eddy_read(t, back, MOST, NULL), EDDY_OK);
    expect_same(MOST);
    cr_assert_eq(staged_bytes, 2 * MOST);
    cr_assert_eq(chunk_count, 2 * there_count);
    eddy_trace_remove(place);
    eddy_release(&t);
    expect_nobody_held();
}

Test(cuda_copies, to_device_and_back_is_the_same) {
    for (size_t i = 0; i < SIZES; i++) {
        eddy_scope *scope = eddy_scope_begin();
        fill(sizes[i], (unsigned)i);
        eddy_tensor *cpu = eddy_from_data(here, EDDY_SHAPE(sizes[i]), EDDY_U8, NULL);
        eddy_tensor *gpu = eddy_to_device(cpu, EDDY_CUDA(1));
        eddy_tensor *home = eddy_to_device(gpu, EDDY_CPU);
        cr_assert_eq(eddy_read(home, back, (size_t)sizes[i], NULL), EDDY_OK);
        expect_same(sizes[i]);
        eddy_scope_end(scope);
    }
    expect_nobody_held();
}

/* The host's memory in between is read once what was copied there is there, though both copies are the same device's, and nobody waits. */
Test(cuda_copies, to_the_host_and_back_to_the_same_device_at_once) {
    for (size_t i = 1; i < SIZES; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *gpu = there(sizes[i], (unsigned)i), *turned = eddy_bitwise_not(gpu);
        eddy_tensor *cpu = eddy_to_device(eddy_bitwise_not(turned), EDDY_CPU);
        eddy_tensor *again = eddy_to_device(cpu, EDDY_CUDA(0));
        cr_assert_eq(eddy_copy_into(turned, cpu), EDDY_OK);
        cr_assert_eq(eddy_copy_into(cpu, gpu), EDDY_OK);
        cr_assert_eq(eddy_read(again, back, (size_t)sizes[i], NULL), EDDY_OK);
        expect_same(sizes[i]);
        cr_assert_eq(eddy_read(eddy_bitwise_not(gpu), back, (size_t)sizes[i], NULL), EDDY_OK);
        expect_same(sizes[i]);
        eddy_scope_end(scope);
    }
    expect_nobody_held();
}

Test(cuda_copies, maps_are_written_back) {
    for (size_t i = 1; i < SIZES; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *t = there(sizes[i], (unsigned)i);
        unsigned char *lent = eddy_map(t, EDDY_READ | EDDY_WRITE, EDDY_FOREVER);
        cr_assert_eq(memcmp(lent, here, (size_t)sizes[i]), 0);
        fill(sizes[i], (unsigned)i + 99);
        memcpy(lent, here, (size_t)sizes[i]);
        cr_assert_eq(eddy_unmap(t), EDDY_OK);
        cr_assert_eq(eddy_read(t, back, (size_t)sizes[i], NULL), EDDY_OK);
        expect_same(sizes[i]);
        eddy_scope_end(scope);
    }
    expect_nobody_held();
}

/* Many at once, both ways, of all sizes: rings are used again before the last copy is over, and in both directions. */
static void copy_many(void) {
    enum { ROUNDS = 3 };
    eddy_tensor *gpu[ROUNDS * SIZES], *home[ROUNDS * SIZES];
    eddy_scope *scope = eddy_scope_begin();
    for (size_t i = 0; i < ROUNDS * SIZES; i++)
        gpu[i] = there(sizes[i * 7 % SIZES], (unsigned)i);
    for (size_t i = 0; i < ROUNDS * SIZES; i++)
        home[i] = eddy_to_device(eddy_bitwise_not(gpu[i]), EDDY_CPU);
    for (size_t i = ROUNDS * SIZES; i-- > 0;) {
        int64_t count = sizes[i * 7 % SIZES];
        fill(count, ~(unsigned)i);
        cr_assert_eq(eddy_read(home[i], back, (size_t)count, NULL), EDDY_OK);
        expect_same(count);
    }
    eddy_scope_end(scope);
}

Test(cuda_copies, many_are_under_way_at_once) {
    copy_many();
    copy_many();
    expect_nobody_held();
}

/* ---- between two devices ---- */

static eddy_tensor *filled(int64_t count, int value, int32_t index) {
    return eddy_full(EDDY_SHAPE(count), EDDY_S(value), EDDY_U8,
                     EDDY_OPTIONS(full, .device = EDDY_CUDA(index)));
}

static void expect_filled(eddy_tensor *tensor, int value) {
    int64_t count = eddy_count_of(tensor);
    memset(here, value, (size_t)count);
    cr_assert_eq(eddy_read(tensor, back, (size_t)count, NULL), EDDY_OK);
    expect_same(count);
}

static void go_across(void) {
    for (size_t i = 0; i < SIZES; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *t = eddy_to_device(there(sizes[i], (unsigned)i), EDDY_CUDA(1));
        cr_assert_eq(eddy_device_of(t).index, 1);
        cr_assert_eq(eddy_read(t, back, (size_t)sizes[i], NULL), EDDY_OK);
        expect_same(sizes[i]);
        eddy_scope_end(scope);
    }
    expect_nobody_held();
}

Test(cuda_copies, elements_go_from_one_device_to_another) {
    go_across();
}

Test(cuda_copies, devices_that_cannot_reach_each_other_copy_too) {
    setenv("FAKE_CUDA_PEERS", "0", 1);
    go_across();
}

static eddy_device_memory memory_of(eddy_device device) {
    eddy_device_memory memory = {.size = sizeof(memory)};
    cr_assert_eq(eddy_device_memory_read(device, &memory), EDDY_OK);
    return memory;
}

Test(cuda_copies, memory_of_the_host_has_no_part_in_it) {
    eddy_scope *scope = eddy_scope_begin();
    int64_t before = memory_of(EDDY_CPU).peak_bytes;
    eddy_tensor *t = eddy_to_device(filled(16 * MB, 7, 0), EDDY_CUDA(1));
    cr_assert_eq(eddy_wait(t, EDDY_FOREVER), EDDY_OK);
    cr_assert_lt(memory_of(EDDY_CPU).peak_bytes, before + MB);
    cr_assert_lt(memory_of(EDDY_CUDA(0)).staging_bytes + memory_of(EDDY_CUDA(1)).staging_bytes,
                 4 * MB);
    expect_filled(t, 7);
    eddy_scope_end(scope);
    expect_nobody_held();
}

/* Both sides are written again and again, which the copies come before or after. */
Test(cuda_copies, writes_on_either_side_are_ordered) {
    enum { COUNT = 3000 };
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *first = filled(COUNT, 1, 0), *second = filled(COUNT, 0, 1);
    for (int round = 0; round < 20; round++) {
        cr_assert_eq(eddy_copy_into(first, second), EDDY_OK);
        cr_assert_eq(eddy_add_s_inplace(first, EDDY_S(1)), EDDY_OK);
        cr_assert_eq(eddy_add_s_inplace(second, EDDY_S(2)), EDDY_OK);
        cr_assert_eq(eddy_copy_into(second, first), EDDY_OK);
    }
    expect_filled(first, 41);
    expect_filled(second, 41);
    eddy_scope_end(scope);
    expect_nobody_held();
}

/* The device that is copied from is lost, with its tensors; the other one goes on. */
static void lose_the_first(const char *entry) {
    setenv("FAKE_CUDA_FAIL_ENTRY", entry, 1);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *kept = filled(1000, 5, 1), *t = filled(1000, 1, 0), *sum = t;
    cr_assert_eq(eddy_wait(kept, EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(eddy_wait(t, EDDY_FOREVER), EDDY_OK);
    for (int i = 0; i < 8; i++)
        sum = eddy_add(sum, t);
    eddy_tensor *copy = eddy_to_device(sum, EDDY_CUDA(1)), *old = eddy_to_device(t, EDDY_CUDA(1));
    cr_assert_eq(eddy_wait(copy, EDDY_FOREVER), EDDY_DEVICE_LOST);
    eddy_error_take(NULL);
    (void)eddy_wait(old, EDDY_FOREVER); /* it was copied before the loss, or was not */
    eddy_error_take(NULL);
    cr_assert_eq(eddy_wait(eddy_to_device(t, EDDY_CUDA(1)), EDDY_FOREVER), EDDY_DEVICE_LOST);
    eddy_error_take(NULL);
    expect_filled(eddy_add(kept, kept), 10);
    eddy_scope_end(scope);
    eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

Test(cuda_copies, a_lost_source_takes_no_other_device_along) {
    lose_the_first("cuLaunchKernel:5");
}

/* A call of others on the first device that fails, and takes its context with it: Eddy has nothing under way there, and notices nothing. */
static void break_the_first(void) {
    const eddy_cuda_device *device;
    eddy_cu_stream stream;
    eddy_cu_address memory;
    char why[160];
    cr_assert_eq(eddy_cuda_driver_open(why, sizeof(why)), EDDY_OK);
    eddy_cuda_devices_find();
    cr_assert_eq(eddy_cuda_device_start(0, &device, why, sizeof(why)), EDDY_OK);
    cr_assert_eq(eddy_cuda_device_enter(device), 0);
    cr_assert_eq(eddy_cuda.stream_create(&stream, EDDY_CU_STREAM_NON_BLOCKING, 0), 0);
    cr_assert_eq(eddy_cuda.memory_acquire(&memory, 512), 0);
    cr_assert_neq(eddy_cuda.fill_bytes(memory, 0, 512, stream), 0);
}

Test(cuda_copies, a_source_that_is_lost_unnoticed_takes_none_along) {
    setenv("FAKE_CUDA_FAIL_ENTRY", "cuMemsetD8Async:3",
           1); /* the third: each device has made one */
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *kept = filled(1000, 5, 1), *t = filled(1000, 1, 0);
    cr_assert_eq(eddy_wait(kept, EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(eddy_wait(t, EDDY_FOREVER), EDDY_OK);
    break_the_first();
    cr_assert_eq(eddy_wait(eddy_to_device(t, EDDY_CUDA(1)), EDDY_FOREVER), EDDY_DEVICE_LOST);
    eddy_error error;
    eddy_error_take(&error);
    cr_assert_not_null(
        strstr(error.message,
               "copy of 1000 bytes from cuda:0 to cuda:1: the device is lost (cuda:0)"),
        "%s", error.message);
    expect_filled(eddy_add(kept, kept), 10);
    cr_assert_eq(eddy_wait(eddy_add(t, t), EDDY_FOREVER), EDDY_DEVICE_LOST);
    eddy_error_take(NULL);
    eddy_scope_end(scope);
    eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
}

/* ---- memory ---- */

Test(cuda_copies, pinned_memory_is_bounded_counted_and_trimmed) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *lent[80];
    for (int i = 0; i < 80; i++) {
        lent[i] = there(1 * MB, (unsigned)i);
        cr_assert_not_null(eddy_map(lent[i], EDDY_READ, EDDY_FOREVER));
    }
    cr_assert_gt(memory_of(EDDY_CUDA(0)).staging_bytes, 32 * MB);
    cr_assert_leq(memory_of(EDDY_CUDA(0)).staging_bytes, 64 * MB + 2 * 9 * MB);
    cr_assert_eq(memory_of(EDDY_CPU).staging_bytes, 0);
    for (int i = 0; i < 80; i++)
        cr_assert_eq(eddy_unmap(lent[i]), EDDY_OK);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    int64_t before = memory_of(EDDY_CUDA(0)).staging_bytes;
    cr_assert_geq(eddy_device_memory_trim(EDDY_CUDA(0)), 32 * MB);
    cr_assert_lt(memory_of(EDDY_CUDA(0)).staging_bytes, before - 32 * MB);
    expect_nobody_held();
}

static _Atomic int lines;

static void note_line(void *context, const char *line) {
    (void)context;
    if (strstr(line, "no pinned memory"))
        lines++;
}

/* Then the driver stages, and the log says so, once. */
Test(cuda_copies, without_pinned_memory_they_are_made_all_the_same) {
    setenv("FAKE_CUDA_PINNED", "1000000", 1); /* what the backend itself takes fits in */
    eddy_log_set(note_line, NULL);
    eddy_scope *scope = eddy_scope_begin();
    for (size_t i = 0; i < SIZES; i++) {
        eddy_tensor *t = there(sizes[i], (unsigned)i);
        cr_assert_eq(eddy_read(t, back, (size_t)sizes[i], NULL), EDDY_OK);
        expect_same(sizes[i]);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_gt(holding_copies(), 0);
    cr_assert_eq(lines, 1);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

/* ---- ends ---- */

static void note_read(void *context, const void *data, int64_t bytes, const eddy_error *error) {
    cr_assert(!error && bytes == 8 * MB + 13);
    *(bool *)context = memcmp(data, here, (size_t)bytes) == 0;
}

Test(cuda_copies, a_runtime_ends_after_its_copies) {
    bool was_same = false;
    eddy_tensor *t = there(8 * MB + 13, 1);
    cr_assert_eq(eddy_read_async(t, note_read, &was_same), EDDY_OK);
    eddy_tensor *home = eddy_to_device(t, EDDY_CPU);
    cr_assert_eq(eddy_runtime_shutdown(eddy_runtime_current(), EDDY_FOREVER), EDDY_OK);
    cr_assert(was_same);
    eddy_release(&home);
    eddy_release(&t);
    cr_assert_eq(holding_copies(), 0);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

/* In the midst of a copy, in a call of the driver or in what it runs: all waits end, and the memory of both sides can go. */
static void lose(const char *variable, const char *value) {
    setenv(variable, value, 1);
    eddy_scope *scope = eddy_scope_begin();
    for (int i = 0; i < 4; i++) {
        eddy_tensor *t = there(21 * MB + 5, (unsigned)i);
        eddy_tensor *home = t ? eddy_to_device(t, EDDY_CPU) : NULL;
        if (t)
            (void)eddy_read(t, back, (size_t)(21 * MB + 5), NULL);
        if (home)
            (void)eddy_wait(home, EDDY_FOREVER);
    }
    eddy_error error = {0};
    cr_assert_eq(eddy_error_take(&error), EDDY_DEVICE_LOST, "%s", error.message);
    eddy_scope_end(scope);
    eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(cuda_copies, a_device_is_lost_at_the_first_chunk) {
    lose("FAKE_CUDA_FAIL_ENTRY", "cuMemcpyHtoDAsync_v2:1");
}

Test(cuda_copies, a_device_is_lost_between_two_chunks) {
    lose("FAKE_CUDA_FAIL_ENTRY",
         "cuMemcpyHtoDAsync_v2:7:1"); /* INVALID_VALUE: the driver goes on */
}

Test(cuda_copies, a_device_is_lost_at_a_wait) {
    lose("FAKE_CUDA_FAIL_ENTRY", "cuStreamWaitValue64_v2:9:1");
}

Test(cuda_copies, a_device_is_lost_on_the_way_back) {
    lose("FAKE_CUDA_FAIL_ENTRY", "cuMemcpyDtoHAsync_v2:3:1");
}

Test(cuda_copies, a_device_is_lost_by_what_it_runs) {
    lose("FAKE_CUDA_FAIL_RUN", "20");
}

Test(cuda_copies, a_device_is_lost_by_what_it_runs_on_the_way_back) {
    lose("FAKE_CUDA_FAIL_RUN", "40");
}

/* ---- the thread's context ---- */

/* As the program has made it, which has a stream and memory on another device: the driver's entries act on what is current. */
static eddy_cu_context take_the_second(void) {
    const eddy_cuda_device *device;
    char why[160];
    cr_assert_eq(eddy_cuda_driver_open(why, sizeof(why)), EDDY_OK);
    eddy_cuda_devices_find();
    cr_assert_eq(eddy_cuda_device_start(1, &device, why, sizeof(why)), EDDY_OK);
    cr_assert_eq(eddy_cuda_device_enter(device), 0);
    return device->context;
}

static void expect_context(eddy_cu_context mine, const char *after) {
    eddy_cu_context now = NULL;
    cr_assert_eq(eddy_cuda.context_get(&now), 0);
    cr_assert_eq(now, mine, "%s", after);
}

static void use_the_first(eddy_cu_context mine) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *t = filled(100000, 1, 0);
    expect_context(mine, "the first op");
    cr_assert_eq(eddy_wait(eddy_add(t, t), EDDY_FOREVER), EDDY_OK);
    expect_context(mine, "a wait");
    float *mapped = eddy_map(t, EDDY_WRITE, EDDY_FOREVER);
    cr_assert_not_null(mapped);
    expect_context(mine, "a map");
    cr_assert_eq(eddy_unmap(t), EDDY_OK);
    eddy_stream *stream = eddy_stream_create(EDDY_CUDA(0), NULL);
    cr_assert_not_null(stream);
    expect_context(mine, "a stream");
    eddy_stream_release(&stream);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    eddy_device_memory_trim(EDDY_CUDA(0));
    expect_context(mine, "a trim");
}

static void keep_context(const eddy_runtime_options *options) {
    eddy_runtime *runtime = eddy_runtime_create(options);
    cr_assert_not_null(runtime);
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
    eddy_cu_context mine = take_the_second();
    use_the_first(mine);
    cr_assert_eq(eddy_runtime_use(NULL), EDDY_OK);
    eddy_runtime_release(&runtime);
    expect_context(mine, "the end of the runtime");
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

Test(cuda_copies, a_thread_of_the_program_keeps_its_context) {
    keep_context(NULL);
}

Test(cuda_copies, a_thread_that_launches_keeps_its_context) {
    keep_context(EDDY_OPTIONS(runtime, .threads = 1));
}
