/* A VM for a test, with short names for what tests do: storages of int64 cells, latches that hold a kernel, held streams.
 *
 * Nothing here sleeps: a test that needs "now it runs" waits for a latch, one that needs "later" holds a fake stream. */
#ifndef EDDY_TESTS_SESSION_H
#define EDDY_TESTS_SESSION_H

#include "synthetic.h"
#include <base/sleep.h>
#include <base/status.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <streams/fake.h>
#include <streams/far.h>
#include <tests/asleep.h>
#include <unistd.h>
#include <vm/machine.h>
#include <vm/stream.h>

#define CELLS 4
/* Costs that lead to the caller under the lock, the caller in the engine's role (on the full path: the scheduler thread), and a
 * worker. */
#define COST_CALLER INT64_C(100000)
#define COST_SCHEDULER INT64_C(2000000)
#define COST_WORKER INT64_C(10000000000)

/* A test that hangs is ended by the alarm. */
#define SESSION_SECONDS 60

static const eddy_origin test_origin = {"test", NULL};
static const eddy_vm_wait forever = {EDDY_CLOCK_FOREVER, {"test", NULL}};
static const eddy_vm_wait at_once = {0, {"test", NULL}};

/* ---- latches ---- */

/* A kernel or a callback that says that it is there and stays until it may go. */
typedef struct vm_latch {
    eddy_sleep_word entered; /* atomic: how many are inside */
    eddy_sleep_word is_open; /* atomic */
} vm_latch;

static inline void latch_pass(vm_latch *latch) {
    eddy_add_release(&latch->entered, 1u);
    eddy_sleep_wake_all(&latch->entered);
    while (eddy_load_acquire(&latch->is_open) == 0)
        eddy_sleep_wait(&latch->is_open, 0, EDDY_CLOCK_FOREVER);
}

static inline void latch_await(vm_latch *latch, uint32_t count) {
    uint32_t now;
    while ((now = eddy_load_acquire(&latch->entered)) < count)
        eddy_sleep_wait(&latch->entered, now, EDDY_CLOCK_FOREVER);
}

static inline void latch_open(vm_latch *latch) {
    eddy_store_release(&latch->is_open, 1u);
    eddy_sleep_wake_all(&latch->is_open);
}

typedef struct latch_arguments {
    vm_latch *latch;
} latch_arguments;

static inline void latch_run(const eddy_vm_run *run) {
    latch_pass(((const latch_arguments *)run->instruction->arguments)->latch);
}

static inline const char *latch_name(const eddy_vm_instruction *instruction) {
    (void)instruction;
    return "latch";
}

static const eddy_vm_descriptor latch_op = {.run = latch_run, .name = latch_name};

/* ---- sessions ---- */

typedef struct vm_session {
    eddy_vm *vm;
    eddy_vm_stream *held;   /* a stream whose works the test lets go; NULL until session_hold */
    eddy_work_queue *fake;  /* what is under it */
    int64_t cost_ps;        /* of the ops that follow */
    eddy_vm_stream *stream; /* of the ops that follow; NULL: the default one */
    unsigned turn;          /* of calls that may be plain */
    uint8_t device;         /* of the storages that are made */
    eddy_backend *far;      /* the far device, and streams of it; NULL until session_far */
    eddy_vm_stream *far_streams[3];
} vm_session;

static _Atomic int sessions_open;

/* Adds the held stream. */
static inline void session_hold(vm_session *session, bool is_ordered) {
    session->fake = eddy_fake_queue_create(is_ordered);
    cr_assert_not_null(session->fake);
    cr_assert_eq(eddy_vm_stream_add(session->vm, session->fake, true, NULL, &session->held),
                 EDDY_OK);
}

/* Adds a far device; the ops that follow run there. */
static inline void session_add(vm_session *session, eddy_backend *far) {
    session->far = far;
    cr_assert_not_null(session->far);
    cr_assert_eq(eddy_vm_device_add(session->vm, session->far, "far", INT64_MAX, test_origin,
                                    &session->device),
                 EDDY_OK);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(eddy_vm_device_stream_create(session->vm, session->device, 0, NULL,
                                                  &session->far_streams[i]),
                     EDDY_OK);
    session->stream = session->far_streams[0];
}

static inline void session_far(vm_session *session, eddy_far_options options) {
    session_add(session, eddy_far_create(&options));
}

/* The ops that follow run on the host; with EDDY_DEVICE=far (tests/meson.build) on a far device. */
static inline vm_session session_open(eddy_runtime_options options) {
    alarm(SESSION_SECONDS);
    vm_session session = {.cost_ps = COST_CALLER};
    eddy_add_relaxed(&sessions_open, 1);
    cr_assert_eq(eddy_vm_create(&options, &session.vm), EDDY_OK);
    const char *device = getenv("EDDY_DEVICE");
    if (device && strcmp(device, "far") == 0)
        session_far(&session, (eddy_far_options){.seed = 1});
    return session;
}

static inline vm_session session_open_threads(int64_t threads) {
    return session_open((eddy_runtime_options){.threads = threads});
}

/* Lets the oldest held work go, once there is one. */
static inline void session_step(vm_session *session) {
    while (!eddy_fake_queue_step(session->fake, 0, NULL, NULL))
        sched_yield();
}

static inline eddy_status session_lose_device(void *context, const eddy_work *work) {
    (void)context;
    (void)work;
    return EDDY_DEVICE_LOST;
}

static inline void session_settle(vm_session *session) {
    eddy_status status = eddy_vm_sync(session->vm, &forever, NULL);
    if (status != EDDY_OK)
        eddy_error_take(NULL);
}

/* What has retired is said when the engine has gone through its work: a waiter may be back before. The alarm ends what never comes to 0. */
static inline eddy_vm_counters session_settled_counters(vm_session *session) {
    session_settle(session);
    eddy_vm_counters counters = eddy_vm_counters_read(session->vm);
    for (; counters.in_flight != 0; counters = eddy_vm_counters_read(session->vm))
        sched_yield();
    return counters;
}

static inline void assert_no_memory_held(void) {
    for (int p = 0; p < EDDY_MEMORY_PURPOSE_COUNT; p++)
        cr_assert_eq(eddy_memory_counted((eddy_memory_purpose)p).bytes, 0,
                     "purpose %d holds %lld bytes", p,
                     (long long)eddy_memory_counted((eddy_memory_purpose)p).bytes);
}

/* Ends the VM and sees to it that it gave everything back, and all calls have ended. */
static inline void session_close(vm_session *session) {
    eddy_vm_stream_release(session->held);
    for (int i = 0; i < 3; i++)
        eddy_vm_stream_release(session->far_streams[i]);
    cr_assert_eq(eddy_vm_close(session->vm, EDDY_CLOCK_FOREVER), EDDY_OK);
    cr_assert_eq(session->vm->engine.sent_count, eddy_load_relaxed(&session->vm->begun_count),
                 "what was sent to a thread has begun, once");
    cr_assert_eq(session->vm->engine.ready_count, 0);
    eddy_vm_destroy(session->vm);
    assert_no_memory_held();
    if (eddy_sub_relaxed(&sessions_open, 1) == 1)
        cr_assert_eq(eddy_load_relaxed(&synthetic_open), 0,
                     "each call that was submitted has ended, once");
}

/* ---- calls ---- */

static inline eddy_status session_submit(vm_session *session, const eddy_vm_descriptor *descriptor,
                                         eddy_vm_operand *operands, int64_t count,
                                         const void *arguments, size_t argument_bytes) {
    /* Every other call that may promise to be plain does. */
    bool is_plain = synthetic_is_plain(descriptor, operands, count) &&
                    (descriptor != &synthetic_op || session->turn++ % 2);
    eddy_vm_call call = {
        .instruction = {.descriptor = is_plain && descriptor == &synthetic_op ? &synthetic_plain_op
                                                                              : descriptor,
                        .arguments = arguments,
                        .operand_count = count},
        .argument_bytes = argument_bytes,
        .operands = operands,
        .stream = session->stream,
        .cost_ps = session->cost_ps,
        /* Who issues it opens the latch: it is no call that it may run itself. */
        .place = descriptor == &latch_op && session->cost_ps > COST_SCHEDULER ? EDDY_PLACE_WORKER
                                                                              : EDDY_PLACE_ANY,
        .is_plain = is_plain};
    return synthetic_submit(session->vm, &call);
}

/* Up to eight inputs, then one target; role 1: written whole, 2: in place. */
static inline eddy_status session_call(vm_session *session, const eddy_vm_descriptor *descriptor,
                                       int64_t seed, bool fails, int input_count,
                                       const eddy_storage_number *inputs, int64_t role,
                                       eddy_vm_operand *target) {
    eddy_vm_operand operands[9] = {0};
    synthetic_arguments arguments = {.seed = seed, .fails = fails, .late_count = CELLS};
    for (int i = 0; i < input_count; i++)
        operands[i].storage = inputs[i];
    operands[input_count] = *target;
    arguments.accesses = role << 2 * input_count;
    eddy_status status = session_submit(session, descriptor, operands, input_count + 1, &arguments,
                                        sizeof(arguments));
    *target = operands[input_count];
    return status;
}

static inline eddy_storage_number session_make_from(vm_session *session, int64_t seed,
                                                    int input_count,
                                                    const eddy_storage_number *inputs) {
    eddy_vm_operand target = {.access = EDDY_ACCESS_MUT,
                              .is_new = true,
                              .covers_all = true,
                              .device = session->device,
                              .bytes = CELLS * 8};
    cr_assert_eq(session_call(session, &synthetic_op, seed, false, input_count, inputs, 1, &target),
                 EDDY_OK);
    return target.storage;
}

/* The cells of session_make(seed) are value_of(seed, cell). */
static inline eddy_storage_number session_make(vm_session *session, int64_t seed) {
    return session_make_from(session, seed, 0, NULL);
}

/* The same in a storage of so many bytes: up to eight inputs. */
static inline eddy_storage_number session_make_sized(vm_session *session, int64_t seed,
                                                     int64_t bytes, int input_count,
                                                     const eddy_storage_number *inputs) {
    eddy_vm_operand target = {.access = EDDY_ACCESS_MUT,
                              .is_new = true,
                              .covers_all = true,
                              .device = session->device,
                              .bytes = bytes};
    cr_assert_eq(session_call(session, &synthetic_op, seed, false, input_count, inputs, 1, &target),
                 EDDY_OK);
    return target.storage;
}

static inline eddy_storage_number session_make_failing(vm_session *session, int64_t seed) {
    eddy_vm_operand target = {.access = EDDY_ACCESS_MUT,
                              .is_new = true,
                              .covers_all = true,
                              .device = session->device,
                              .bytes = CELLS * 8};
    cr_assert_eq(session_call(session, &synthetic_op, seed, true, 0, NULL, 1, &target), EDDY_OK);
    return target.storage;
}

static inline eddy_storage_number session_make_late(vm_session *session, int64_t seed) {
    eddy_vm_operand target = {.access = EDDY_ACCESS_MUT2, .is_new = true, .covers_all = true};
    cr_assert_eq(session_call(session, &synthetic_late_op, seed, false, 0, NULL, 1, &target),
                 EDDY_OK);
    return target.storage;
}

static inline void session_overwrite(vm_session *session, eddy_storage_number storage,
                                     int64_t seed) {
    eddy_vm_operand target = {.storage = storage, .access = EDDY_ACCESS_MUT, .covers_all = true};
    cr_assert_eq(session_call(session, &synthetic_op, seed, false, 0, NULL, 1, &target), EDDY_OK);
}

static inline void session_mix_in(vm_session *session, eddy_storage_number storage, int64_t seed,
                                  int input_count, const eddy_storage_number *inputs) {
    eddy_vm_operand target = {.storage = storage, .access = EDDY_ACCESS_MUT};
    cr_assert_eq(session_call(session, &synthetic_op, seed, false, input_count, inputs, 2, &target),
                 EDDY_OK);
}

static inline void session_mix_in_failing(vm_session *session, eddy_storage_number storage,
                                          int64_t seed) {
    eddy_vm_operand target = {.storage = storage, .access = EDDY_ACCESS_MUT};
    cr_assert_eq(session_call(session, &synthetic_op, seed, true, 0, NULL, 2, &target), EDDY_OK);
}

/* A read of the storage that writes a new one, at the latch until it is opened. */
static inline eddy_storage_number session_latch(vm_session *session, vm_latch *latch,
                                                int input_count,
                                                const eddy_storage_number *inputs) {
    eddy_vm_operand operands[9] = {0};
    latch_arguments arguments = {latch};
    for (int i = 0; i < input_count; i++)
        operands[i].storage = inputs[i];
    operands[input_count] = (eddy_vm_operand){.access = EDDY_ACCESS_MUT,
                                              .is_new = true,
                                              .covers_all = true,
                                              .device = session->device,
                                              .bytes = CELLS * 8};
    cr_assert_eq(session_submit(session, &latch_op, operands, input_count + 1, &arguments,
                                sizeof(arguments)),
                 EDDY_OK);
    return operands[input_count].storage;
}

static inline int64_t value_of(int64_t seed, int64_t cell) {
    return synthetic_mix(seed, cell);
}

/* Cell 0 of what session_make_from(seed, input) gives, from cell 0 of the input. */
static inline int64_t value_from(int64_t seed, int64_t input) {
    return synthetic_mix(synthetic_mix(seed, input), 0);
}

static inline int64_t session_read(vm_session *session, eddy_storage_number storage) {
    int64_t value = 0;
    eddy_status status =
        eddy_vm_read_small(session->vm, storage, 0, sizeof(value), &value, &forever);
    cr_assert_eq(status, EDDY_OK, "%s", eddy_status_text(status));
    return value;
}

static inline void session_release(vm_session *session, eddy_storage_number storage) {
    synthetic_release(session->vm, storage);
}

/* The record of the calling thread's error slot, which is then empty. */
static inline eddy_error taken_error(void) {
    eddy_error error = {0};
    eddy_error_take(&error);
    return error;
}

static inline void start_thread(pthread_t *thread, void *(*run)(void *context), void *context) {
    cr_assert_eq(pthread_create(thread, NULL, run, context), 0);
}

static inline void join_thread(pthread_t thread) {
    cr_assert_eq(pthread_join(thread, NULL), 0);
}

/* ---- all ways that an instruction may go ---- */

static const eddy_runtime_options session_paths[] = {{.threads = 2},
                                                     {.threads = 2, .uses_full_path = true},
                                                     {.threads = 3, .uses_worker_path = true},
                                                     {.uses_one_thread = true}};

#define ON_EACH_PATH(session)                                                                      \
    for (size_t path = 0; path < sizeof(session_paths) / sizeof(session_paths[0]); path++)         \
        for (vm_session session = session_open(session_paths[path]); session.vm;                   \
             session_close(&session), session.vm = NULL)

#endif
