/* The backend of GPUs on the fake driver (tests/fake_cuda), which checks the calls and finds missing waits: seeds are the fake's, one a process, so that the
 * tests run in many processes (tests/streams/meson.build). */
#include <dlfcn.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/selection.h>
#include <streams/cuda/backend.h>
#include <tests/fake_cuda/findings.h>
#include <tests/streams/backend_conformance.h>

#define BYTES 4096

static const eddy_cuda_device *device;

static eddy_backend *create(uint64_t seed) {
    (void)seed; /* the environment's */
    char why[160] = "";
    eddy_backend *made = NULL;
    cr_assert_eq(eddy_cuda_driver_open(why, sizeof(why)), EDDY_OK, "%s", why);
    eddy_cuda_devices_find();
    cr_assert_geq(eddy_cuda_device_count(), 1);
    cr_assert_eq(eddy_cuda_device_start(0, &device, why, sizeof(why)), EDDY_OK, "%s", why);
    eddy_status status =
        eddy_cuda_backend_create(device, &(eddy_backend_options){0}, &made, why, sizeof(why));
    cr_assert(status == EDDY_OK || status == EDDY_OUT_OF_MEMORY, "%s", why);
    return made;
}

/* ---- the suite of all backends ---- */

static bool is_simulated(void) {
    return fake_cuda_find("fake_cuda_calls") != NULL;
}

/* The second fill of the process, which the backend has no part in: no entry is within the driver then. */
static void prepare_loss(void) {
    fake_cuda_fails("cuMemsetD8Async:2");
}

static void lose(eddy_backend *backend) {
    (void)backend;
    cr_assert_eq(eddy_cuda_device_enter(device), 0);
    cr_assert_neq(eddy_cuda.fill_bytes(0, 0, 1, NULL), 0);
}

static const backend_kind kind = {.create = create,
                                  .seeds = 1,
                                  .has_pinned_memory = true,
                                  .has_native_streams = true,
                                  .has_waiting_marks = true,
                                  .has_fences = true,
                                  .has_rows = true,
                                  .is_simulated = is_simulated,
                                  .prepare_loss = prepare_loss,
                                  .lose = lose};

BACKEND_CONFORMANCE_SUITE(cuda_conformance, kind)

/* ---- what this one has of its own ---- */

static eddy_backend *cuda;
static eddy_backend_queue *queues[3];

static void begin(void) {
    alarm(120);
    cuda = create(1);
    cr_assert_not_null(cuda);
    for (uint32_t q = 0; q < 3; q++) {
        queues[q] = cuda->class->queue_create(cuda, (int32_t)q);
        cr_assert_not_null(queues[q]);
    }
}

static void end(void) {
    cuda->class->destroy(cuda);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_RUNTIME).bytes, 0);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

static void *take(int64_t bytes) {
    void *data = cuda->class->memory_acquire(cuda, bytes);
    cr_assert_not_null(data);
    cr_assert_eq((uintptr_t)data % 512, 0);
    return data;
}

static void give(void *data) {
    cuda->class->memory_release(cuda, data, BYTES);
}

static void mark(int queue, uint64_t ticket) {
    cr_assert_eq(cuda->class->mark(queues[queue], ticket), EDDY_OK);
}

static void copy(int queue, void *to, const void *from, eddy_copy_direction direction) {
    cr_assert_eq(cuda->class->copy(queues[queue], to, from, BYTES, direction), EDDY_OK);
}

static void await_ticket(int queue, uint64_t ticket) {
    for (;;) {
        uint32_t seen = eddy_doorbell_seen(&cuda->progress);
        if (eddy_load_acquire(&queues[queue]->completed) >= ticket)
            return;
        cuda->class->await(cuda, seen);
    }
}

/* ---- priorities ---- */

/* Greater ones are smaller numbers of the driver's, which has a few of them. */
Test(cuda, priorities_are_the_nearest_of_the_drivers) {
    static const int32_t priorities[] = {INT32_MIN, -7, -1, 0, 1, 2, 3, 5, 6, INT32_MAX};
    begin();
    cr_assert_eq(eddy_cuda_device_enter(device), 0);
    int least, greatest, before = INT32_MAX;
    cr_assert_eq(eddy_cuda.priority_range(&least, &greatest), 0);
    for (size_t i = 0; i < sizeof(priorities) / sizeof(*priorities); i++) {
        eddy_backend_queue *queue = cuda->class->queue_create(cuda, priorities[i]);
        cr_assert_not_null(queue);
        int found;
        cr_assert_eq(eddy_cuda.stream_priority(cuda->class->native(queue), &found), 0);
        int64_t wanted = -(int64_t)priorities[i];
        cr_assert_eq(found, wanted > least ? least : wanted < greatest ? greatest : wanted);
        cr_assert_leq(found, before);
        before = found;
    }
    cr_assert_eq(before, greatest);
    end();
}

static long turn(int queue) {
    long (*found)(eddy_cu_stream);
    *(void **)&found = fake_cuda_find("fake_cuda_turn");
    return found(cuda->class->native(queues[queue]));
}

/* Of devices this is a preference; the fake is told to obey. */
Test(cuda, urgent_work_overtakes_what_was_launched_before) {
    static unsigned char there[2][BYTES];
    (void)fake_cuda_ask("fake_cuda_turn");
    setenv("FAKE_CUDA_PRIORITIES", "1", 1);
    setenv("FAKE_CUDA_MODE", "eager", 1);
    begin();
    void *blocks[2] = {take(BYTES), take(BYTES)};
    _Atomic uint64_t *word = cuda->class->pinned_acquire(cuda, sizeof(*word));
    cr_assert_not_null(word);
    eddy_store_relaxed(word, 0u);
    for (int q = 0; q < 2; q++) {
        cr_assert_eq(cuda->class->await_word(queues[q], word, 1), EDDY_OK);
        for (int i = 0; i < (q == 0 ? 1 : 20); i++)
            copy(q, blocks[q], there[q], EDDY_COPY_TO_DEVICE);
        mark(q, (uint64_t)q + 1);
    }
    eddy_store_release(word, 1u);
    await_ticket(0, 1);
    await_ticket(1, 2);
    cr_assert_eq(eddy_cuda_device_enter(device), 0);
    cr_assert_lt(turn(1), turn(0));
    cuda->class->pinned_release(cuda, (void *)(uintptr_t)word, sizeof(*word));
    give(blocks[0]);
    give(blocks[1]);
    end();
}

/* ---- missing waits ---- */

/* That the fake would find it is what the suite stands on. */
Test(cuda, a_wait_left_out_is_found) {
    static unsigned char there[BYTES];
    (void)fake_cuda_ask("fake_cuda_findings");
    unsetenv("FAKE_CUDA_ABORT");
    begin();
    void *data = take(BYTES);
    copy(0, data, there, EDDY_COPY_TO_DEVICE);
    copy(1, data, there, EDDY_COPY_TO_DEVICE);
    mark(0, 1);
    mark(1, 2);
    await_ticket(0, 1);
    await_ticket(1, 2);
    give(data);
    cuda->class->destroy(cuda);
    cr_assert_gt(fake_cuda_findings_so_far(), 0);
    _exit(0); /* the fake makes a process with findings fail */
}

static int32_t said(uint64_t ticket) {
    return eddy_load_relaxed(&eddy_backend_error(cuda, ticket)->status);
}

/* ---- errors of the driver ---- */

Test(cuda, an_error_of_the_driver_loses_the_device) {
    static unsigned char there[BYTES];
    fake_cuda_fails("cuMemcpyHtoDAsync_v2:2");
    begin();
    void *data = take(BYTES);
    copy(0, data, there, EDDY_COPY_TO_DEVICE);
    mark(0, 1);
    cr_assert_eq(cuda->class->copy(queues[0], data, there, BYTES, EDDY_COPY_TO_DEVICE),
                 EDDY_DEVICE_LOST);
    cr_assert(eddy_load_acquire(&cuda->is_lost));
    cr_assert_null(cuda->class->memory_acquire(cuda, BYTES));
    cr_assert_null(cuda->class->pinned_acquire(cuda, BYTES));
    give(data);
    cuda->class->destroy(cuda);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_RUNTIME).bytes, 0);
}

/* What would have waited is not launched: it would read what is not there yet. */
static void refuse_wait(const char *entry) {
    fake_cuda_fails(entry);
    setenv("FAKE_CUDA_MODE", "lazy", 1); /* a ticket is not complete before somebody waits */
    begin();
    mark(0, 1);
    cr_assert_eq(cuda->class->wait(queues[1], queues[0], 1), EDDY_DEVICE_LOST);
    cr_assert(eddy_load_acquire(&cuda->is_lost));
    cuda->class->destroy(cuda);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_RUNTIME).bytes, 0);
}

Test(cuda, a_wait_that_is_refused_loses_the_device) {
    refuse_wait("cuStreamWaitEvent:1:1");
}

Test(cuda, an_event_that_is_not_recorded_loses_the_device) {
    refuse_wait("cuEventRecord:2:1"); /* the first is of a device that starts */
}

/* ---- kernels ---- */

/* Calls of the driver so far. */
static long calls(void) {
    long (*count)(void);
    *(void **)&count = dlsym(dlopen(EDDY_CUDA_DRIVER_LIBRARY, RTLD_NOW), "fake_cuda_calls");
    cr_assert_not_null(count);
    return count();
}

/* The later kernels of a call would take what the failed one has not written for indices. */
Test(cuda, a_call_that_fails_in_part_launches_no_more) {
    static eddy_cuda_image image = {.data = eddy_cuda_image_look};
    static _Atomic(void *) loaded[EDDY_CUDA_DEVICES];
    const eddy_cuda_function function = {"eddy_look", &image, loaded};
    fake_cuda_fails("cuLaunchKernel:2:2"); /* OUT_OF_MEMORY */
    begin();
    eddy_backend_launch launch = {.queue = queues[0], .ticket = 1};
    eddy_kernel_call call = {.launch = &launch};
    eddy_cuda_look parameters;
    long before = calls();
    eddy_cuda_launch(&call, &function, &parameters, sizeof(parameters), 1);
    cr_assert_gt(calls(), before);
    eddy_cuda_launch(&call, &function, &parameters, sizeof(parameters), 1);
    before = calls();
    eddy_cuda_launch(&call, &function, &parameters, sizeof(parameters), 1);
    cr_assert_eq(calls(), before);
    mark(0, 1);
    await_ticket(0, 1);
    cr_assert_eq(said(1), EDDY_OUT_OF_MEMORY);
    end();
}

/* What a late call has counted comes to the host with its ticket. */
Test(cuda, what_is_counted_is_in_the_word) {
    static eddy_cuda_image image = {.data = eddy_cuda_image_selection};
    static _Atomic(void *) loaded[EDDY_CUDA_DEVICES];
    static int64_t begins[BYTES / sizeof(int64_t)] = {3, 4, 5};
    const eddy_cuda_function function = {"eddy_selection_begin", &image, loaded};
    begin();
    void *data = take(BYTES);
    for (uint64_t ticket = 1; ticket <= 3; ticket++) {
        eddy_backend_launch launch = {.queue = queues[0], .ticket = ticket};
        eddy_kernel_call call = {.launch = &launch};
        eddy_cuda_selection_call parameters = {.begins = data, .count = 3 * 2048};
        cr_assert_eq(eddy_backend_error(cuda, ticket)->counted, 0);
        copy(0, data, begins, EDDY_COPY_TO_DEVICE);
        eddy_cuda_launch(&call, &function, &parameters, sizeof(parameters), 1);
        mark(0, ticket);
        await_ticket(0, ticket);
        cr_assert_eq(said(ticket), EDDY_OK);
        cr_assert_eq(eddy_backend_error(cuda, ticket)->counted, 11 + (int64_t)ticket);
        begins[0]++;
    }
    give(data);
    end();
}
