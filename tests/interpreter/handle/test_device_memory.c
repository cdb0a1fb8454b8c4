/* What there is of devices, and the memory of each: taken, kept, limited, given back, listed. */
#include "../calls.h"

#include <base/atomic.h>
#include <eddy/eddy.h>
#include <interpreter/handle/runtime.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <tests/asleep.h>
#include <unistd.h>
#include <vm/machine.h>

#define MB ((int64_t)1 << 20)

static eddy_device_memory read_memory(eddy_device device) {
    eddy_device_memory memory = {.size = sizeof(memory)};
    cr_assert_eq(eddy_device_memory_read(device, &memory), EDDY_OK);
    return memory;
}

static eddy_tensor *zeros_on(eddy_device device, int64_t bytes) {
    return eddy_zeros(EDDY_SHAPE(bytes / 4), EDDY_F32, EDDY_OPTIONS(zeros, .device = device));
}

/* ---- what there is ---- */

Test(device_memory, devices_are_counted_and_described) {
    cr_assert_eq(eddy_device_count(EDDY_DEVICE_CPU), 1);
    cr_assert_eq(eddy_device_count(EDDY_DEVICE_FAR), 4);
    cr_assert_eq(eddy_device_count(EDDY_DEVICE_DEFAULT), 0);
    cr_assert_eq(eddy_device_count((eddy_device_kind)99), 0);
    eddy_device_info info = {.size = sizeof(info)};
    cr_assert_eq(eddy_device_describe(EDDY_CPU, &info), EDDY_OK);
    cr_assert(info.memory_bytes > MB && info.processor_count >= 1 && !info.is_simulated);
    cr_assert_lt(strlen(info.name), sizeof(info.name));
    for (int32_t i = 0; i < eddy_device_count(EDDY_DEVICE_FAR); i++) {
        cr_assert_eq(eddy_device_describe(EDDY_FAR(i), &info), EDDY_OK);
        cr_assert(info.is_simulated && info.memory_bytes == 1024 * MB && info.queue_count > 0);
    }
    cr_assert_eq(eddy_device_describe(EDDY_FAR(4), &info), EDDY_UNSUPPORTED);
    ASSERT_ERROR(EDDY_UNSUPPORTED, "device_describe: there is no device far:4 here");
    cr_assert_eq(eddy_device_describe(EDDY_CUDA(99), &info), EDDY_UNSUPPORTED);
    ASSERT_ERROR(EDDY_UNSUPPORTED, "cuda:99");
    cr_assert_eq(eddy_device_describe(EDDY_CPU, NULL), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "info is NULL");
}

/* An older program's struct is shorter. */
Test(device_memory, no_more_is_written_than_the_caller_has_room_for) {
    struct {
        eddy_device_info info;
        char behind;
    } room = {.info = {.size = offsetof(eddy_device_info, processor_count)}, .behind = 7};
    room.info.processor_count = -5;
    cr_assert_eq(eddy_device_describe(EDDY_CPU, &room.info), EDDY_OK);
    cr_assert(room.info.memory_bytes > 0 && room.info.processor_count == -5 && room.behind == 7);
    eddy_device_memory memory = {.size = offsetof(eddy_device_memory, cached_bytes),
                                 .limit_bytes = -5};
    cr_assert_eq(eddy_device_memory_read(EDDY_CPU, &memory), EDDY_OK);
    cr_assert_eq(memory.limit_bytes, -5);
}

/* ---- taken and kept ---- */

static void expect_books(eddy_device device) {
    eddy_device_memory_trim(device);
    eddy_device_memory before = read_memory(device), now;
    eddy_tensor *x = zeros_on(device, 4 * MB);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    now = read_memory(device);
    cr_assert_geq(now.live_bytes, before.live_bytes + 4 * MB);
    cr_assert_leq(now.live_bytes, before.live_bytes + 5 * MB);
    cr_assert_geq(now.peak_bytes, now.live_bytes);
    eddy_release(&x);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    now = read_memory(device);
    cr_assert_eq(now.live_bytes, before.live_bytes);
    cr_assert_geq(now.cached_bytes, 4 * MB);
    cr_assert_geq(now.peak_bytes, before.live_bytes + 4 * MB);
    int64_t given = eddy_device_memory_trim(device);
    cr_assert_geq(given, 4 * MB, "%lld", (long long)given);
    cr_assert_eq(read_memory(device).cached_bytes, now.cached_bytes - given);
}

Test(device_memory, what_is_taken_is_live_then_kept_then_given_back) {
    expect_books(EDDY_CPU);
    expect_books(EDDY_FAR(0));
    expect_books(EDDY_FAR(2));
}

/* Of the CPU, what the engine keeps for the next op counts as live. */
static void for_each_device(void (*check)(eddy_device device)) {
    check(EDDY_FAR(0));
    if (eddy_device_current().kind != EDDY_DEVICE_CPU)
        check(eddy_device_current());
}

/* More small ones than a thread keeps for its next call, and than a record has room for. */
static void expect_nothing_left(eddy_device device) {
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    int64_t before = read_memory(device).live_bytes;
    for (int count = 1; count <= 40; count++) {
        eddy_tensor *made[40];
        for (int i = 0; i < count; i++)
            made[i] = zeros_on(device, 16);
        for (int i = 0; i < count; i++)
            eddy_release(&made[i]);
        cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
        cr_assert_eq(read_memory(device).live_bytes, before, "of %d", count);
    }
}

Test(device_memory, what_was_released_is_given_back_when_all_is_over) {
    for_each_device(expect_nothing_left);
}

/* Not one may start before the map ends: then all are launched in a row, while the device computes. */
static void expect_few_at_once(eddy_device device) {
    int64_t bytes = 64 << 10, count = 500;
    eddy_tensor *here = zeros_on(EDDY_CPU, bytes);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    int64_t before = read_memory(device).peak_bytes;
    float *elements = eddy_map(here, EDDY_READ | EDDY_WRITE, EDDY_FOREVER);
    cr_assert_not_null(elements);
    elements[0] = -1;
    eddy_tensor *x = eddy_to_device(here, device);
    for (int64_t i = 0; i < count; i++) {
        eddy_tensor *next = eddy_add_s(x, EDDY_S(1.0));
        eddy_release(&x);
        x = next;
    }
    cr_assert_eq(eddy_unmap(here), EDDY_OK);
    float found;
    eddy_tensor *first = eddy_narrow(x, 0, 0, 1);
    cr_assert_eq(eddy_read(first, &found, sizeof(found), NULL), EDDY_OK);
    cr_assert_eq(found, (float)count - 1);
    int64_t most = read_memory(device).peak_bytes - before;
    cr_assert_leq(most, count / 5 * bytes, "%lld", (long long)most);
    eddy_release(&first);
    eddy_release(&x);
    eddy_release(&here);
}

Test(device_memory, a_chain_of_ops_has_the_memory_of_a_few_tensors) {
    for_each_device(expect_few_at_once);
}

static pthread_barrier_t turn;

static void *release_and_end(void *context) {
    eddy_tensor *made[5];
    for (int i = 0; i < 5; i++)
        made[i] = zeros_on(*(eddy_device *)context, 16);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    for (int i = 0; i < 5; i++)
        eddy_release(&made[i]);
    pthread_barrier_wait(&turn); /* released, and kept for the thread's next call */
    pthread_barrier_wait(&turn); /* the lock is held */
    return NULL;
}

/* It cannot hand them over at its end. */
static void end_beside_a_held_lock(eddy_device device) {
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    int64_t before = read_memory(device).live_bytes;
    eddy_vm *vm = eddy_runtime_current()->vm;
    pthread_t thread;
    pthread_barrier_init(&turn, NULL, 2);
    pthread_create(&thread, NULL, release_and_end, &device);
    pthread_barrier_wait(&turn);
    eddy_vm_lock(vm);
    pthread_barrier_wait(&turn);
    pthread_join(thread, NULL);
    eddy_vm_unlock(vm);
    cr_assert_gt(read_memory(device).live_bytes, before);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(read_memory(device).live_bytes, before);
}

Test(device_memory, what_ended_threads_have_released_is_given_back_too) {
    for_each_device(end_beside_a_held_lock);
}

Test(device_memory, devices_have_books_of_their_own) {
    eddy_device_memory cpu = read_memory(EDDY_CPU), second = read_memory(EDDY_FAR(1));
    eddy_tensor *x = zeros_on(EDDY_FAR(0), 4 * MB);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_lt(read_memory(EDDY_CPU).live_bytes, cpu.live_bytes + MB);
    cr_assert_eq(read_memory(EDDY_FAR(1)).live_bytes, second.live_bytes);
    cr_assert_geq(read_memory(EDDY_FAR(0)).live_bytes, 4 * MB);
    eddy_release(&x);
}

Test(device_memory, the_threads_device_is_meant_where_none_is_named) {
    const eddy_device none = {EDDY_DEVICE_DEFAULT, 0};
    cr_assert_eq(eddy_device_scope_begin(EDDY_FAR(3)), EDDY_OK);
    eddy_tensor *x = zeros_on(EDDY_FAR(3), 3 * MB);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(read_memory(none).live_bytes, read_memory(EDDY_FAR(3)).live_bytes);
    cr_assert_geq(read_memory(none).live_bytes, 3 * MB);
    eddy_device_scope_end();
    eddy_release(&x);
}

/* ---- limits ---- */

/* Below one tensor: its op fails late, what others have stays, and a higher limit lets ops go on. */
static void expect_limited(eddy_device device, int64_t limit) {
    eddy_tensor *kept = zeros_on(device, 2 * MB), *x, *y;
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    eddy_device_memory_trim(device);
    int64_t first = read_memory(device).limit_bytes;
    cr_assert_eq(eddy_device_memory_limit_set(device, limit), EDDY_OK);
    cr_assert_eq(read_memory(device).limit_bytes, limit);
    x = zeros_on(device, 64 * MB);
    eddy_error error = {0};
    if (x) { /* the CPU may refuse at the call, a device does so later */
        cr_assert_eq(eddy_wait(x, EDDY_FOREVER), EDDY_OUT_OF_MEMORY);
    }
    cr_assert_eq(eddy_error_take(&error), EDDY_OUT_OF_MEMORY, "%s", error.message);
    cr_assert_eq(eddy_wait(kept, EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(eddy_device_memory_limit_set(device, 0), EDDY_OK);
    if (device.kind != EDDY_DEVICE_CPU)
        cr_assert_eq(read_memory(device).limit_bytes, first);
    cr_assert_gt(read_memory(device).limit_bytes, 64 * MB);
    y = zeros_on(device, 64 * MB);
    cr_assert_eq(eddy_wait(y, EDDY_FOREVER), EDDY_OK);
    eddy_release(&x);
    eddy_release(&y);
    eddy_release(&kept);
    eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
}

Test(device_memory, a_limit_below_one_tensor_is_its_failure) {
    expect_limited(EDDY_FAR(0), 1);
    expect_limited(EDDY_FAR(1), 8 * MB);
    expect_limited(EDDY_CPU, 16 * MB);
}

Test(device_memory, a_lower_limit_gives_back_what_is_kept) {
    const eddy_device devices[] = {EDDY_FAR(0), EDDY_CPU};
    for (int i = 0; i < 2; i++) {
        eddy_tensor *x = zeros_on(devices[i], 16 * MB);
        cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
        eddy_release(&x);
        cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
        cr_assert_geq(read_memory(devices[i]).cached_bytes, 16 * MB);
        cr_assert_eq(eddy_device_memory_limit_set(devices[i], 4 * MB), EDDY_OK);
        cr_assert_lt(read_memory(devices[i]).cached_bytes, 16 * MB);
        cr_assert_eq(eddy_device_memory_limit_set(devices[i], 0), EDDY_OK);
    }
}

/* What may be in flight there follows the limit; that of the host and of other devices stays. */
Test(device_memory, a_quarter_of_the_limit_may_be_in_flight) {
    eddy_tensor *x = zeros_on(EDDY_FAR(0), MB), *y = zeros_on(EDDY_FAR(1), MB);
    eddy_vm *vm = eddy_runtime_current()->vm;
    int64_t here = vm->marks[0].high_bytes;
    cr_assert_eq(vm->marks[1].high_bytes, 256 * MB);
    cr_assert_eq(eddy_device_memory_limit_set(EDDY_FAR(0), 64 * MB), EDDY_OK);
    cr_assert_eq(vm->marks[1].high_bytes, 16 * MB);
    cr_assert_eq(vm->marks[2].high_bytes, 256 * MB);
    cr_assert_eq(vm->marks[0].high_bytes, here);
    cr_assert_eq(eddy_device_memory_limit_set(EDDY_FAR(0), 0), EDDY_OK);
    cr_assert_eq(vm->marks[1].high_bytes, 256 * MB);
    eddy_release(&x);
    eddy_release(&y);
}

/* The default is far above what is kept. */
Test(device_memory, the_default_limit_leaves_what_is_kept) {
    const eddy_device devices[] = {EDDY_FAR(0), EDDY_CPU};
    for (int i = 0; i < 2; i++) {
        eddy_tensor *x = zeros_on(devices[i], 16 * MB);
        cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
        eddy_release(&x);
        cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
        int64_t kept = read_memory(devices[i]).cached_bytes;
        cr_assert_geq(kept, 16 * MB);
        cr_assert_eq(eddy_device_memory_limit_set(devices[i], 0), EDDY_OK);
        cr_assert_eq(read_memory(devices[i]).cached_bytes, kept);
    }
}

Test(device_memory, bad_arguments_are_refused) {
    eddy_device_memory memory = {.size = sizeof(memory)};
    const eddy_device bad[] = {
        EDDY_CUDA(99), EDDY_FAR(4), EDDY_FAR(-1), {(eddy_device_kind)77, 0}, {EDDY_DEVICE_CPU, 1}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        cr_assert_eq(eddy_device_memory_read(bad[i], &memory), EDDY_UNSUPPORTED);
        eddy_error_take(NULL);
        cr_assert_eq(eddy_device_memory_limit_set(bad[i], MB), EDDY_UNSUPPORTED);
        eddy_error_take(NULL);
        cr_assert_eq(eddy_device_memory_trim(bad[i]), 0);
        ASSERT_ERROR(EDDY_UNSUPPORTED, "device_memory_trim: there is no device");
        cr_assert_eq(eddy_device_memory_snapshot(bad[i], "/tmp/never"), EDDY_UNSUPPORTED);
        eddy_error_take(NULL);
    }
    cr_assert_eq(eddy_device_memory_read(EDDY_CPU, NULL), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "memory is NULL");
    cr_assert_eq(eddy_device_memory_limit_set(EDDY_CPU, -1), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "-1 bytes are no limit");
    cr_assert_eq(eddy_device_memory_snapshot(EDDY_CPU, NULL), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "path is NULL");
    cr_assert_eq(eddy_device_memory_snapshot(EDDY_CPU, "/nowhere/at/all"), EDDY_IO);
    ASSERT_ERROR(EDDY_IO, "/nowhere/at/all");
}

Test(device_memory, a_runtime_that_was_shut_down_has_none) {
    eddy_device_memory memory = {.size = sizeof(memory)};
    cr_assert_eq(eddy_runtime_shutdown(eddy_runtime_current(), EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(eddy_device_memory_read(EDDY_CPU, &memory), EDDY_SHUT_DOWN);
    eddy_error_take(NULL);
    cr_assert_eq(eddy_device_memory_limit_set(EDDY_FAR(0), MB), EDDY_SHUT_DOWN);
    eddy_error_take(NULL);
    cr_assert_eq(eddy_device_memory_trim(EDDY_CPU), 0);
    ASSERT_ERROR(EDDY_SHUT_DOWN, "");
}

Test(device_memory, a_forked_child_is_refused) {
#ifndef __SANITIZE_THREAD__ /* it starts no thread behind a fork */
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
    eddy_tensor *x = zeros_on(EDDY_FAR(0), MB);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    await_safe_fork();
    pid_t child = fork();
    if (child == 0) {
        eddy_device_memory memory = {.size = sizeof(memory)};
        bool is_right = eddy_device_memory_read(EDDY_FAR(0), &memory) == EDDY_FORKED &&
                        eddy_device_memory_limit_set(EDDY_CPU, MB) == EDDY_FORKED &&
                        eddy_device_memory_trim(EDDY_FAR(0)) == 0 &&
                        eddy_device_memory_snapshot(EDDY_FAR(0), "/tmp/never") == EDDY_FORKED;
        _exit(is_right ? 0 : 1);
    }
    int status = -1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    eddy_release(&x);
    eddy_runtime_release(&runtime);
#endif
}

/* ---- while others work, and while the runtime ends ---- */

typedef struct beside {
    eddy_runtime *runtime;
    _Atomic bool is_over;
} beside;

static bool is_expected(eddy_status status) {
    eddy_error_take(NULL);
    return status == EDDY_OK || status == EDDY_OUT_OF_MEMORY || status == EDDY_SKIPPED ||
           status == EDDY_SHUT_DOWN;
}

static void *compute(void *context) {
    beside *b = context;
    cr_assert(is_expected(eddy_runtime_use(b->runtime)));
    for (int i = 0; !eddy_load_relaxed(&b->is_over); i++) {
        eddy_device device = i % 3 == 0 ? EDDY_CPU : EDDY_FAR(i % 3);
        eddy_tensor *x = zeros_on(device, 64 << 10);
        eddy_tensor *y = x ? eddy_to_device(x, EDDY_FAR(i % 2)) : NULL;
        cr_assert(is_expected(y ? eddy_wait(y, EDDY_FOREVER) : eddy_error_take(NULL)));
        eddy_release(&x);
        eddy_release(&y);
    }
    eddy_runtime_use(NULL);
    return NULL;
}

static void *change_limits(void *context) {
    beside *b = context;
    cr_assert(is_expected(eddy_runtime_use(b->runtime)));
    for (int i = 0; !eddy_load_relaxed(&b->is_over); i++)
        cr_assert(
            is_expected(eddy_device_memory_limit_set(EDDY_FAR(1 + i % 2), i % 4 < 2 ? 1 : 0)));
    eddy_runtime_use(NULL);
    return NULL;
}

static void *look(void *context) {
    beside *b = context;
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-beside-%ld.json", (long)getpid());
    cr_assert(is_expected(eddy_runtime_use(b->runtime)));
    for (int i = 0; !eddy_load_relaxed(&b->is_over); i++) {
        eddy_device device = i % 3 == 0 ? EDDY_CPU : EDDY_FAR(i % 3);
        eddy_device_memory memory = {.size = sizeof(memory)};
        cr_assert(is_expected(eddy_device_memory_read(device, &memory)));
        cr_assert(memory.live_bytes >= 0 && memory.cached_bytes >= 0);
        eddy_device_memory_trim(device);
        eddy_error_take(NULL);
        if (i % 16 == 0)
            cr_assert(is_expected(eddy_device_memory_snapshot(device, path)));
        eddy_stream *stream =
            eddy_stream_create(device, EDDY_OPTIONS(stream, .is_ordered = true, .name = "beside"));
        cr_assert(stream || is_expected(eddy_error_take(NULL)));
        eddy_stream_release(&stream);
    }
    unlink(path);
    eddy_runtime_use(NULL);
    return NULL;
}

Test(device_memory, limits_and_looks_beside_work_and_a_shutdown) {
    for (int round = 0; round < 6; round++) {
        beside b = {.runtime = eddy_runtime_create(
                        EDDY_OPTIONS(runtime, .threads = 2, .exits_silently = true))};
        void *(*const bodies[])(void *) = {compute, compute, change_limits, look};
        pthread_t threads[4];
        cr_assert_not_null(b.runtime);
        for (int i = 0; i < 4; i++)
            cr_assert_eq(pthread_create(&threads[i], NULL, bodies[i], &b), 0);
        usleep(30000);
        cr_assert_eq(eddy_runtime_shutdown(b.runtime, EDDY_FOREVER), EDDY_OK);
        usleep(1000);
        eddy_store_relaxed(&b.is_over, true);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        eddy_runtime_release(&b.runtime);
    }
}
