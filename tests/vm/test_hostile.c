/* The interleavings of vm/PROTOCOL.md section 13 that a program brings about beside its calls, each by its name: it shuts down, polls,
 * holds a lend or a lock, runs out of memory, forks. */
#include "session.h"
#include <sys/syscall.h>
#include <sys/wait.h>
#include <vm/engine.h>

#define MB ((int64_t)1 << 20)

static eddy_storage_number make_bytes(vm_session *session, int64_t bytes, int64_t seed) {
    eddy_vm_operand target = {
        .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = bytes};
    cr_assert_eq(session_call(session, &synthetic_op, seed, false, 0, NULL, 1, &target), EDDY_OK);
    return target.storage;
}

/* ---- shutdown beside what another thread is about ---- */

typedef struct vm_closer {
    vm_session *session;
    _Atomic pid_t thread;
    eddy_status status;
} vm_closer;

static void *close_for_ever(void *context) {
    vm_closer *closer = context;
    eddy_store_release(&closer->thread, (pid_t)syscall(SYS_gettid));
    closer->status = eddy_vm_close(closer->session->vm, EDDY_CLOCK_FOREVER);
    return NULL;
}

/* Returns once the VM is closing. */
static pthread_t start_closer(vm_closer *closer) {
    pthread_t thread;
    start_thread(&thread, close_for_ever, closer);
    while (eddy_load_seq_cst(&closer->session->vm->state) == EDDY_VM_RUNNING)
        sched_yield();
    return thread;
}

static void destroy_closed(vm_session *session) {
    eddy_vm_destroy(session->vm);
    assert_no_memory_held();
}

/* A lend that ends when the VM refuses all else: the closer waits for it. */
Test(interleavings, unmap_shutdown) {
    vm_session session = session_open_threads(2);
    eddy_storage_number a = session_make(&session, 1);
    void *data;
    eddy_vm_lend *lend;
    cr_assert_eq(eddy_vm_lend_begin(session.vm, a, true, &forever, &data, &lend), EDDY_OK);
    vm_closer closer = {.session = &session};
    pthread_t thread = start_closer(&closer);
    *(int64_t *)data = 2;
    eddy_vm_lend_end(session.vm, lend, false);
    join_thread(thread);
    cr_assert_eq(closer.status, EDDY_OK);
    destroy_closed(&session);
}

/* Nothing is in flight, but somebody still copies into memory of the VM. */
Test(interleavings, from_data_shutdown) {
    vm_session session = session_open_threads(2);
    eddy_storage_number a;
    void *data;
    cr_assert_eq(eddy_vm_storage_create(session.vm, CELLS * 8, &a, &data), EDDY_OK);
    cr_assert_eq(eddy_vm_close(session.vm, 0), EDDY_TIMED_OUT, "it does not take the memory away");
    cr_assert_not_null(session.vm->table);
    memset(data, 1, CELLS * 8);
    eddy_vm_storage_written(session.vm);
}

/* The handle outlives the VM, and names a stream that nobody runs. */
Test(interleavings, stream_after_shutdown) {
    vm_session session = session_open_threads(2);
    eddy_vm_stream *stream;
    cr_assert_eq(eddy_vm_stream_create(session.vm, true, 0, NULL, &stream), EDDY_OK);
    session.stream = stream;
    session.cost_ps = COST_WORKER;
    session_make(&session, 1);
    vm_closer closer = {.session = &session};
    join_thread(start_closer(&closer));
    cr_assert_eq(closer.status, EDDY_OK);
    eddy_vm_operand target = {
        .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = 8};
    cr_assert_eq(session_call(&session, &synthetic_op, 1, false, 0, NULL, 1, &target),
                 EDDY_SHUT_DOWN);
    taken_error();
    eddy_vm_destroy(session.vm);
    cr_assert_null(stream->queue, "nobody runs it");
    eddy_vm_stream_retain(stream);
    eddy_vm_stream_release(stream);
    eddy_vm_stream_release(stream);
    assert_no_memory_held();
}

/* Who closes second comes back after the VM is gone, not before. */
Test(interleavings, shutdown_twice) {
    vm_session session = session_open_threads(2);
    vm_latch latch = {0};
    session.cost_ps = COST_WORKER;
    session_latch(&session, &latch, 0, NULL);
    latch_await(&latch, 1);
    vm_closer first = {.session = &session}, second = first;
    pthread_t first_thread = start_closer(&first), second_thread = start_closer(&second);
    while (eddy_load_acquire(&second.thread) == 0)
        sched_yield();
    await_asleep(eddy_load_acquire(&second.thread));
    latch_open(&latch);
    join_thread(second_thread);
    cr_assert_eq(second.status, EDDY_SHUT_DOWN, "it has seen the first end");
    join_thread(first_thread);
    cr_assert_eq(first.status, EDDY_OK);
    destroy_closed(&session);
}

static void pass_latch(void *context) {
    latch_pass(context);
}

/* A deleter that stays does not hold up the closer, and keeps what it needs. */
Test(interleavings, shutdown_deleter) {
    static int64_t cells[CELLS];
    vm_session session = session_open_threads(2);
    static vm_latch latch;
    eddy_storage_number a;
    cr_assert_eq(eddy_vm_storage_borrow(session.vm, cells, sizeof(cells), pass_latch, &latch, &a),
                 EDDY_OK);
    session_release(&session, a);
    latch_await(&latch, 1);
    cr_assert_eq(eddy_vm_close(session.vm, 0), EDDY_TIMED_OUT);
    cr_assert(session.vm->is_kept && session.vm->service, "the service thread is in there");
    eddy_vm_destroy(session.vm); /* does nothing; the deleter stays to the end of the process */
}

typedef struct leaving_stream {
    eddy_work_queue base;
    vm_latch latch;
} leaving_stream;

static void leave_slowly(eddy_work_queue *stream) {
    latch_pass(&((leaving_stream *)stream)->latch);
}

static void *add_stream(void *context) {
    vm_session *session = context;
    session_hold(session, true);
    return NULL;
}

/* An old stream is destroyed for its number, which waits for its last drain; that may be an engine that is short of memory, and wants
 * the submission lock to collect what issuers keep. */
Test(interleavings, stream_reuse_starve) {
    static const eddy_work_queue_class leaving_class = {.name = "leaving", .destroy = leave_slowly};
    static leaving_stream leaving = {.base = {.class = &leaving_class, .is_ordered = true}};
    enum { COUNT = 64, BYTES = 32768 };
    vm_session session = session_open_threads(2);
    eddy_vm_stream *stream;
    cr_assert_eq(eddy_vm_stream_add(session.vm, &leaving.base, true, NULL, &stream), EDDY_OK);
    eddy_vm_stream_release(stream);
    for (int i = 2; i < EDDY_STREAM_MAX; i++) {
        cr_assert_eq(
            eddy_vm_stream_add(session.vm, eddy_fake_queue_create(true), true, NULL, &stream),
            EDDY_OK);
        eddy_vm_stream_release(stream);
    }
    eddy_storage_number small[COUNT];
    for (int i = 0; i < COUNT; i++)
        small[i] = make_bytes(&session, BYTES, i);
    for (int i = 0; i < COUNT; i++)
        session_release(&session, small[i]); /* issuers keep them */
    eddy_memory_limit_set(4 * MB);
    vm_session other = session;
    pthread_t adder;
    start_thread(&adder, add_stream, &other);
    latch_await(&leaving.latch, 1);
    session.cost_ps = COST_WORKER;
    eddy_storage_number large = make_bytes(&session, 3 * MB, 1);
    cr_assert_eq(session_read(&session, large), value_of(1, 0));
    latch_open(&leaving.latch);
    join_thread(adder);
    session_release(&session, large);
    eddy_vm_stream_release(other.held);
    session_close(&session);
}

/* ---- bounds ---- */

/* More numbers come free at once than the way back to the issuers holds, wave after wave. */
Test(interleavings, number_leak) {
    enum { COUNT = EDDY_NUMBER_RING + 2000 };
    vm_session session = session_open((eddy_runtime_options){.threads = 2, .uses_full_path = true});
    uint32_t chunks = 0;
    for (int wave = 0; wave < 6; wave++) {
        static eddy_storage_number all[COUNT];
        vm_latch latch = {0};
        session.cost_ps = COST_WORKER;
        eddy_storage_number held = session_latch(&session, &latch, 0, NULL);
        session.cost_ps = COST_SCHEDULER;
        for (int i = 0; i < COUNT; i++)
            all[i] = session_make_from(&session, i, 1, &held);
        for (int i = 0; i < COUNT; i++)
            session_release(&session, all[i]);
        session_release(&session, held);
        latch_open(&latch);
        session_settle(&session);
        cr_assert_lt(session.vm->pending_count, EDDY_PENDING_RELEASES,
                     "what found the ring full goes with the next record");
        /* Who has the role publishes what came free before it gives that up. */
        while (eddy_engine_has_work(session.vm) || eddy_load_acquire(&session.vm->engine_word) != 0)
            sched_yield();
        if (wave == 1)
            chunks = session.vm->table->chunk_count;
        cr_assert(wave < 2 || session.vm->table->chunk_count == chunks, "wave %d", wave);
    }
    session_close(&session);
}

/* Waits that nobody waits for any more stay until what they wait for has come. */
Test(interleavings, poll_timeout) {
    static const eddy_vm_wait impatient = {1, {"test", NULL}};
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    vm_latch latch = {0};
    eddy_storage_number held = session_latch(&session, &latch, 0, NULL);
    latch_await(&latch, 1);
    for (int i = 0; i < 20000; i++) {
        cr_assert_eq(eddy_vm_wait_storage(session.vm, held, &impatient), EDDY_TIMED_OUT);
        taken_error();
    }
    /* The bound, and what is in the ring, uncounted yet. */
    cr_assert_leq(eddy_vm_counters_read(session.vm).in_flight, 4100 + EDDY_RING_LINES);
    latch_open(&latch);
    session_settle(&session);
    while (eddy_vm_counters_read(session.vm).in_flight >
           0) /* the last are published after the wait is over */
        sched_yield();
    session_release(&session, held);
    session_close(&session);
}

typedef struct persistent_issuer {
    vm_session session;
    eddy_storage_number storage;
    int issued;
    eddy_error error;
} persistent_issuer;

static void *issue_until_refused(void *context) {
    persistent_issuer *issuer = context;
    eddy_vm_operand target = {.storage = issuer->storage, .access = EDDY_ACCESS_MUT};
    while (session_call(&issuer->session, &synthetic_op, issuer->issued, false, 0, NULL, 2,
                        &target) == EDDY_OK)
        issuer->issued++;
    issuer->error = taken_error();
    return NULL;
}

/* The marks do not count what stands behind a lend; a bound of its own does, and the lender goes on all the same. */
Test(interleavings, behind_lend) {
    vm_session session = session_open_threads(2);
    eddy_storage_number a = session_make(&session, 1);
    void *data;
    eddy_vm_lend *lend;
    cr_assert_eq(eddy_vm_lend_begin(session.vm, a, true, &forever, &data, &lend), EDDY_OK);
    persistent_issuer issuer = {.session = session, .storage = a};
    pthread_t thread;
    start_thread(&thread, issue_until_refused, &issuer);
    join_thread(thread);
    cr_assert_eq(issuer.error.status, EDDY_WOULD_DEADLOCK);
    /* The lend is one of those that are counted. */
    cr_assert(issuer.issued >= EDDY_BEHIND_MOST - 1 &&
              issuer.issued < EDDY_BEHIND_MOST + EDDY_RING_LINES);
    session_release(&session, session_make(&session, 2)); /* what is not behind it goes on */
    eddy_vm_lend_end(session.vm, lend, false);
    int64_t expected = value_of(1, 0);
    for (int i = 0; i < issuer.issued; i++)
        expected = synthetic_mix(expected, i);
    cr_assert_eq(session_read(&session, a), expected);
    session_release(&session, a);
    session_close(&session);
}

typedef struct locking_callback {
    pthread_mutex_t lock;
    vm_latch latch;
} locking_callback;

static void want_lock(void *context, void *data, int64_t bytes, const eddy_error *error) {
    locking_callback *callback = context;
    (void)data, (void)bytes, (void)error;
    eddy_store_relaxed(&callback->latch.is_open, 1u);
    latch_pass(&callback->latch);
    pthread_mutex_lock(&callback->lock);
    pthread_mutex_unlock(&callback->lock);
}

/* The user's code wants a lock that the issuer holds, as every binding with a lock of its interpreter does. */
Test(interleavings, callback_lock) {
    vm_session session = session_open((eddy_runtime_options){.threads = 2, .in_flight_high = 20});
    eddy_storage_number a = session_make(&session, 1);
    locking_callback callback = {.lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_mutex_lock(&callback.lock);
    cr_assert_eq(eddy_vm_access(session.vm, a, true, want_lock, &callback, test_origin), EDDY_OK);
    latch_await(&callback.latch, 1);
    int64_t expected = value_of(1, 0);
    for (int i = 0; i < 200; i++) {
        session_mix_in(&session, a, i, 0, NULL);
        expected = synthetic_mix(expected, i);
    }
    pthread_mutex_unlock(&callback.lock);
    cr_assert_eq(session_read(&session, a), expected);
    session_release(&session, a);
    session_close(&session);
}

typedef struct full_ring_issuer {
    vm_session session;
    eddy_storage_number storage;
    _Atomic pid_t thread;
} full_ring_issuer;

static void *overfill(void *context) {
    full_ring_issuer *issuer = context;
    eddy_store_release(&issuer->thread, (pid_t)syscall(SYS_gettid));
    for (int i = 0; i < 100; i++)
        session_mix_in(&issuer->session, issuer->storage, i, 0, NULL);
    return NULL;
}

/* Something has finished since the issuer looked last: that is no progress to look for again and again. */
Test(interleavings, ring_full_spin) {
    vm_session session = session_open((eddy_runtime_options){.threads = 2, .uses_full_path = true});
    session.cost_ps = COST_SCHEDULER;
    eddy_storage_number a = session_make(&session, 1);
    session_settle(&session);
    vm_latch latch = {0};
    eddy_storage_number held = session_latch(&session, &latch, 0, NULL);
    latch_await(&latch, 1); /* the scheduler thread is inside: nothing is taken from the ring */
    int64_t expected = value_of(1, 0);
    while (eddy_load_relaxed(&session.vm->ring.tail) < EDDY_RING_LINES - 64) {
        int i = (int)eddy_load_relaxed(&session.vm->ring.tail);
        session_mix_in(&session, a, i, 0, NULL);
        expected = synthetic_mix(expected, i);
    }
    full_ring_issuer issuer = {.session = session, .storage = a};
    pthread_t thread;
    start_thread(&thread, overfill, &issuer);
    while (eddy_load_seq_cst(&session.vm->throttled) == 0)
        sched_yield();
    await_asleep(eddy_load_acquire(&issuer.thread));
    cr_assert_eq(eddy_vm_counters_read(session.vm).ring_stalls, 1);
    latch_open(&latch);
    join_thread(thread);
    for (int i = 0; i < 100; i++)
        expected = synthetic_mix(expected, i);
    cr_assert_eq(session_read(&session, a), expected);
    session_release(&session, a);
    session_release(&session, held);
    session_close(&session);
}

/* ---- memory ---- */

/* Whatever the kernel gives up, it is not enough. */
Test(interleavings, never_fits) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    eddy_memory_limit_set(8 * MB);
    vm_latch latch = {0};
    eddy_storage_number held = session_latch(&session, &latch, 0, NULL);
    latch_await(&latch, 1);
    eddy_storage_number large = make_bytes(&session, 9 * MB, 1);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, large, &forever), EDDY_OUT_OF_MEMORY);
    taken_error();
    latch_open(&latch);
    session_release(&session, held);
    session_release(&session, large);
    session_close(&session);
}

/* Two VMs under a limit of 10 MB: 6 of them are the rich one's, and are given up only by what it runs. */
typedef struct two_vms {
    vm_session rich, poor;
    eddy_storage_number held; /* the rich one's 6 MB */
} two_vms;

static two_vms open_two(bool is_rich_on_workers) {
    eddy_runtime_options options = {.threads = 3, .uses_worker_path = true};
    two_vms vms = {.poor = session_open(options)};
    options.uses_worker_path = is_rich_on_workers;
    options.uses_full_path = true;
    vms.rich = session_open(options);
    vms.rich.cost_ps = vms.poor.cost_ps = COST_WORKER;
    eddy_memory_limit_set(10 * MB);
    vms.held = make_bytes(&vms.rich, 6 * MB, 1);
    session_settle(&vms.rich);
    return vms;
}

static void close_two(two_vms *vms) {
    eddy_memory_limit_set(0);
    eddy_vm_stream_release(vms->rich.held);
    cr_assert_eq(eddy_vm_close(vms->rich.vm, EDDY_CLOCK_FOREVER), EDDY_OK);
    eddy_vm_destroy(vms->rich.vm);
    session_close(&vms->poor);
}

/* Whether it has looked for memory in vain, and waits for the other's. */
static bool is_waiting(const vm_session *session) {
    return eddy_load_acquire(&session->vm->engine_word) == 0 &&
           eddy_load_seq_cst(&session->vm->is_hungry);
}

static void await_waiting(const vm_session *session) {
    while (!is_waiting(session))
        sched_yield();
}

/* What starves waits for what a kernel of another VM gives up. */
Test(interleavings, two_limits) {
    two_vms vms = open_two(true);
    vm_latch latch = {0};
    eddy_storage_number reader = session_latch(&vms.rich, &latch, 1, &vms.held);
    latch_await(&latch, 1);
    session_release(&vms.rich, vms.held);
    eddy_storage_number wanted = make_bytes(&vms.poor, 6 * MB, 2);
    await_waiting(&vms.poor);
    latch_open(&latch);
    cr_assert_eq(session_read(&vms.poor, wanted), value_of(2, 0));
    session_release(&vms.rich, reader);
    session_release(&vms.poor, wanted);
    close_two(&vms);
}

static vm_session *looking;
static eddy_storage_number looked_for;

static int look_meanwhile(const eddy_vm_instruction *instruction, char *buffer, size_t size) {
    looked_for = make_bytes(looking, 6 * MB, 2);
    while (!is_waiting(looking) && !eddy_vm_is_ready(looking->vm, looked_for))
        sched_yield();
    return synthetic_describe(instruction, buffer, size);
}

/* The poor one looks, by what `op` does, when a kernel of the rich one has ended whose instruction fails; what that held is released before,
 * or by `op`. */
static void look_at_a_failure(two_vms *vms, const eddy_vm_descriptor *op, bool is_released_before) {
    looking = &vms->poor;
    session_hold(&vms->rich, false);
    vms->rich.stream = vms->rich.held;
    eddy_vm_operand target = {
        .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = 11 * MB};
    cr_assert_eq(session_call(&vms->rich, op, 3, false, 1, &vms->held, 1, &target), EDDY_OK);
    if (is_released_before)
        session_release(&vms->rich, vms->held);
    session_step(&vms->rich);
    cr_assert_eq(eddy_vm_wait_storage(vms->rich.vm, target.storage, &forever), EDDY_OUT_OF_MEMORY);
    taken_error();
    cr_assert_eq(session_read(&vms->poor, looked_for), value_of(2, 0));
    session_release(&vms->rich, target.storage);
    session_release(&vms->poor, looked_for);
    close_two(vms);
}

/* It has not given up what it held. */
Test(interleavings, look_before_the_release) {
    static const eddy_vm_descriptor op = {
        .run = synthetic_run, .name = synthetic_name, .describe = look_meanwhile};
    two_vms vms = open_two(true);
    look_at_a_failure(&vms, &op, true);
}

static void await_look(const eddy_vm_run *run) {
    (void)run;
    while (!(is_waiting(looking) && !eddy_load_seq_cst(&looking->vm->was_told)) &&
           !eddy_vm_is_ready(looking->vm, looked_for))
        sched_yield();
}

static two_vms *scene;

/* A call that waits for the look, and behind it the release, for which the engine comes when it has told that a kernel is over. */
static void *release_behind_a_call(void *unused) {
    static const eddy_vm_descriptor look_op = {.run = await_look, .name = synthetic_name};
    vm_session *rich = &scene->rich;
    eddy_vm_operand target = {
        .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = 8};
    rich->stream = NULL;
    rich->cost_ps = COST_CALLER;
    cr_assert_eq(session_submit(rich, &look_op, &target, 1, NULL, 0), EDDY_OK);
    session_release(rich, target.storage);
    session_release(rich, scene->held);
    return unused;
}

static int release_and_look(const eddy_vm_instruction *instruction, char *buffer, size_t size) {
    pthread_t thread;
    start_thread(&thread, release_behind_a_call, NULL);
    join_thread(thread);
    return look_meanwhile(instruction, buffer, size);
}

/* What the last kernel has read is given up by a release that the engine has not taken when the kernel's end is told. */
Test(interleavings, look_before_a_release_is_taken) {
    static const eddy_vm_descriptor op = {
        .run = synthetic_run, .name = synthetic_name, .describe = release_and_look};
    two_vms vms = open_two(false);
    scene = &vms;
    look_at_a_failure(&vms, &op, false);
}

/* The look comes when the last kernel has ended, and who has the role has left what is ready behind it, which gives up what it holds. */
Test(interleavings, look_before_the_ready_have_run) {
    static const eddy_vm_descriptor look_op = {.run = await_look, .name = synthetic_name};
    two_vms vms = open_two(false);
    vm_session *rich = &vms.rich;
    vm_latch latch = {0};
    looking = &vms.poor;
    eddy_storage_number a = session_make(rich, 1);
    session_settle(rich);
    eddy_storage_number first = session_latch(rich, &latch, 0, NULL);
    latch_await(&latch, 1);
    rich->cost_ps = COST_CALLER;
    for (int i = 0; i < 200; i++)
        session_mix_in(rich, a, i, i == 0, &first);
    eddy_vm_operand operand = {.storage = a, .access = EDDY_ACCESS_MUT};
    cr_assert_eq(session_submit(rich, &look_op, &operand, 1, NULL, 0), EDDY_OK);
    session_mix_in(rich, a, 200, 1, &vms.held);
    session_release(rich, vms.held);
    looked_for = make_bytes(&vms.poor, 6 * MB, 2);
    await_waiting(&vms.poor);
    while (eddy_engine_has_work(rich->vm) || !eddy_engine_request(rich->vm))
        sched_yield();
    latch_open(&latch);
    while (eddy_lifo_is_empty(&rich->vm->completions))
        sched_yield();
    eddy_engine_turn turn = {.budget_ns = 1, .is_caller = true};
    eddy_engine_work(rich->vm, &turn);
    cr_assert_eq(session_read(&vms.poor, looked_for), value_of(2, 0));
    session_release(rich, first);
    session_release(rich, a);
    session_release(&vms.poor, looked_for);
    close_two(&vms);
}

/* What is given up is taken while a kernel of the VM that starved runs: it does not look for it again and again, nor only when that ends. */
Test(interleavings, told_while_busy) {
    two_vms vms = open_two(true);
    vm_latch rich_latch = {0}, poor_latch = {0};
    eddy_storage_number reader = session_latch(&vms.rich, &rich_latch, 1, &vms.held);
    latch_await(&rich_latch, 1);
    session_release(&vms.rich, vms.held);
    eddy_storage_number wanted = make_bytes(&vms.poor, 6 * MB, 2);
    await_waiting(&vms.poor);
    eddy_storage_number busy = session_latch(&vms.poor, &poor_latch, 0, NULL);
    latch_await(&poor_latch, 1);
    latch_open(&rich_latch);
    cr_assert_eq(session_read(&vms.poor, wanted), value_of(2, 0));
    /* Told twice, it may have the second time before it; while the kernel runs. */
    while (eddy_load_seq_cst(&vms.poor.vm->was_told))
        sched_yield();
    latch_open(&poor_latch);
    session_release(&vms.rich, reader);
    session_release(&vms.poor, busy);
    session_release(&vms.poor, wanted);
    close_two(&vms);
}

typedef struct patient_waiter {
    vm_session *session;
    eddy_storage_number storage;
    eddy_status status;
} patient_waiter;

static void *wait_for_ever(void *context) {
    patient_waiter *waiter = context;
    waiter->status = eddy_vm_wait_storage(waiter->session->vm, waiter->storage, &forever);
    return NULL;
}

/* Nobody waits for what an abandoned VM may give up, nor goes on waiting. */
Test(interleavings, abandoned_neighbour) {
    two_vms vms = open_two(true);
    static vm_latch latch; /* what is abandoned looks at it when the test has returned */
    session_latch(&vms.rich, &latch, 1, &vms.held);
    latch_await(&latch, 1);
    session_release(&vms.rich, vms.held);
    eddy_storage_number wanted = make_bytes(&vms.poor, 6 * MB, 2);
    patient_waiter waiter = {.session = &vms.poor, .storage = wanted};
    uint64_t submitted = eddy_vm_counters_read(vms.poor.vm).submitted;
    pthread_t thread;
    start_thread(&thread, wait_for_ever, &waiter);
    while (eddy_vm_counters_read(vms.poor.vm).submitted == submitted ||
           eddy_engine_has_work(vms.poor.vm))
        sched_yield();
    await_waiting(&vms.poor);
    cr_assert_eq(eddy_vm_close(vms.rich.vm, 0), EDDY_TIMED_OUT);
    join_thread(thread);
    cr_assert_eq(waiter.status, EDDY_OUT_OF_MEMORY);
    latch_open(&latch);
    session_release(&vms.poor, wanted);
    cr_assert_eq(eddy_vm_close(vms.poor.vm, EDDY_CLOCK_FOREVER), EDDY_OK);
    eddy_vm_destroy(vms.poor.vm);
}

/* ---- a callback that forks ---- */

#ifndef __SANITIZE_ADDRESS__ /* its allocator may stay locked in the child */
static void note_call(void *context, void *data, int64_t bytes, const eddy_error *error) {
    (void)data, (void)bytes, (void)error;
    *(bool *)context = true;
}

/* The exit status. One thread: a checker of races allows no others after a fork. */
static int use_in_child(void) {
    bool was_called = false;
    eddy_runtime_options options = {.uses_one_thread = true};
    vm_session fresh = {.cost_ps = COST_CALLER};
    if (eddy_vm_create(&options, &fresh.vm) != EDDY_OK)
        return 1;
    eddy_storage_number a = session_make(&fresh, 4);
    if (eddy_vm_access(fresh.vm, a, true, note_call, &was_called, test_origin) != EDDY_OK ||
        !was_called)
        return 2;
    return eddy_vm_wait_storage(fresh.vm, a, &forever) == EDDY_OK ? 0 : 3;
}

static void fork_here(void *context, void *data, int64_t bytes, const eddy_error *error) {
    (void)data, (void)bytes, (void)error;
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        _exit(use_in_child());
    }
    if (waitpid(child, context, 0) != child)
        *(int *)context = -1;
}

/* The child's only thread is the parent's service thread, and nobody's callback. */
Test(interleavings, fork_in_callback) {
    vm_session session = session_open_threads(2);
    eddy_storage_number a = session_make(&session, 1);
    int status = -1;
    cr_assert_eq(eddy_vm_access(session.vm, a, true, fork_here, &status, test_origin), EDDY_OK);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, a, &forever), EDDY_OK);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: %d", status);
    session_release(&session, a);
    session_close(&session);
}
#endif
