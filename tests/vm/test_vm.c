#include "session.h"
#include <sys/wait.h>
#include <unistd.h>

Test(vm, counters_add_up) {
    vm_session session = session_open_threads(2);
    enum { COUNT = 300 };
    static const int64_t costs[3] = {COST_CALLER, COST_SCHEDULER, COST_WORKER};
    eddy_storage_number a = session_make(&session, 0);
    for (int i = 1; i < COUNT; i++) {
        session.cost_ps = costs[i % 3];
        session_mix_in(&session, a, i, 0, NULL);
    }
    eddy_vm_counters counters = session_settled_counters(&session);
    cr_assert_eq(counters.submitted, COUNT + 1, "the barrier included");
    cr_assert_eq(counters.caller_run + counters.scheduler_run + counters.worker_run, COUNT);
    cr_assert_eq(counters.in_flight, 0);
    cr_assert_eq(counters.bytes_in_flight, 0);
    cr_assert_eq(counters.errors_made, 0);
    cr_assert_geq(counters.bytes_live, CELLS * 8);
    cr_assert_geq(counters.bytes_peak, counters.bytes_live);
    session_release(&session, a);
    session_close(&session);
}

typedef struct sync_reader {
    vm_session *session;
    eddy_vm_counters counters;
} sync_reader;

static void *sync_and_read(void *context) {
    sync_reader *reader = context;
    session_settle(reader->session);
    reader->counters = eddy_vm_counters_read(reader->session->vm);
    return NULL;
}

/* The engine goes from the barrier to what follows it, and has published nothing when the waiter is back. */
Test(vm, a_sync_returns_with_what_it_waited_for_counted) {
    vm_session session = session_open((eddy_runtime_options){.threads = 2, .uses_full_path = true});
    enum { CALLS = 5 };
    vm_latch before = {0}, after = {0};
    session_release(&session, session_latch(&session, &before, 0, NULL));
    latch_await(&before, 1);
    for (int i = 0; i < CALLS; i++)
        session_release(&session, session_make(&session, i));
    sync_reader reader = {.session = &session};
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, sync_and_read, &reader), 0);
    while (eddy_vm_counters_read(session.vm).submitted < 1 + CALLS + 1)
        sched_yield();
    session_release(&session, session_latch(&session, &after, 0, NULL));
    latch_open(&before);
    pthread_join(thread, NULL);
    latch_open(&after);
    cr_assert_geq(reader.counters.scheduler_run, 1 + CALLS);
    session_close(&session);
}

typedef struct engine_holder {
    vm_session *session;
    vm_latch latch;
} engine_holder;

static void *hold_the_engine(void *context) {
    engine_holder *holder = context;
    vm_session own = *holder->session;
    session_release(&own, session_latch(&own, &holder->latch, 0, NULL));
    return NULL;
}

/* A round takes 64 records at most, and nobody asks or wakes anybody after the last of more. */
Test(vm, what_more_than_a_round_takes_is_left_by_nobody) {
    enum { CALLS = 300 };
    vm_session session = session_open((eddy_runtime_options){.threads = 2});
    session.cost_ps = COST_SCHEDULER;
    engine_holder holder = {.session = &session};
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, hold_the_engine, &holder), 0);
    latch_await(&holder.latch, 1);
    eddy_storage_number last = session_make(&session, 0);
    for (int i = 1; i < CALLS; i++)
        session_mix_in(&session, last, i, 0, NULL);
    latch_open(&holder.latch);
    while (!eddy_vm_is_ready(session.vm, last))
        sched_yield();
    pthread_join(thread, NULL);
    session_release(&session, last);
    session_close(&session);
}

Test(vm, trimming_gives_the_cached_memory_back) {
    vm_session session = session_open_threads(2);
    eddy_vm_operand target = {
        .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = 4 << 20};
    cr_assert_eq(session_call(&session, &synthetic_op, 1, false, 0, NULL, 1, &target), EDDY_OK);
    session_settle(&session);
    session_release(&session, target.storage);
    session_settle(&session);
    cr_assert_geq(eddy_vm_counters_read(session.vm).bytes_cached, 4 << 20);
    int64_t held = eddy_memory_counted(EDDY_MEMORY_TENSOR).bytes;
    int64_t given = eddy_vm_trim(session.vm);
    cr_assert_geq(given, 4 << 20);
    cr_assert_leq(eddy_memory_counted(EDDY_MEMORY_TENSOR).bytes, held - (4 << 20));
    cr_assert_eq(eddy_vm_counters_read(session.vm).bytes_cached, 0);
    session_close(&session);
}

Test(vm, a_storage_made_by_hand_is_ready_and_its_bytes_are_the_callers) {
    vm_session session = session_open_threads(2);
    eddy_storage_number a;
    void *data;
    cr_assert_eq(eddy_vm_storage_create(session.vm, CELLS * 8, &a, &data), EDDY_OK);
    for (int i = 0; i < CELLS; i++)
        ((int64_t *)data)[i] = 10 + i;
    eddy_vm_storage_written(session.vm);
    cr_assert(eddy_vm_is_ready(session.vm, a));
    eddy_storage_number b = session_make_from(&session, 1, 1, &a);
    cr_assert_eq(session_read(&session, b), value_from(1, 10));
    session_release(&session, a);
    session_release(&session, b);
    session_close(&session);
}

Test(vm, closing_with_live_storages_gives_their_memory_back) {
    for (int mode = 0; mode < 3; mode++) {
        vm_session session = session_open((eddy_runtime_options){
            .threads = 2, .uses_worker_path = mode == 1, .uses_one_thread = mode == 2});
        eddy_storage_number kept[50];
        for (int i = 0; i < 50; i++)
            kept[i] = session_make(&session, i);
        kept[0] = session_make_late(&session, 1);
        session_close(&session); /* and nobody has released any of them */
        (void)kept;
    }
}

Test(vm, closing_waits_for_what_is_in_flight) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    enum { COUNT = 2000 };
    eddy_storage_number a = session_make(&session, 1);
    int64_t borrowed[CELLS] = {0};
    eddy_storage_number out;
    static vm_latch latch = {.is_open = 1};
    cr_assert_eq(eddy_vm_storage_borrow(session.vm, borrowed, sizeof(borrowed),
                                        (void (*)(void *))latch_pass, &latch, &out),
                 EDDY_OK);
    int64_t expected = value_of(1, 0);
    for (int i = 0; i < COUNT; i++) {
        session_mix_in(&session, a, i, 0, NULL);
        expected = synthetic_mix(expected, i);
    }
    eddy_vm_operand target = {.storage = out, .access = EDDY_ACCESS_MUT, .covers_all = true};
    cr_assert_eq(session_call(&session, &synthetic_op, 3, false, 1, &a, 1, &target), EDDY_OK);
    session_close(&session);
    cr_assert_eq(borrowed[0], value_from(3, expected));
    cr_assert_eq(eddy_load_relaxed(&latch.entered), 1);
}

/* What is behind a lend counts as finished for the marks long before it retires: the closer waits for the latter. */
Test(vm, closing_right_after_a_lend_with_much_behind_it_ends) {
    for (int round = 0; round < 200; round++) {
        vm_session session = session_open_threads(2);
        eddy_storage_number a = session_make(&session, 1);
        void *data;
        eddy_vm_lend *lend;
        cr_assert_eq(eddy_vm_lend_begin(session.vm, a, true, &forever, &data, &lend), EDDY_OK);
        for (int i = 0; i < 150 + round; i++)
            session_mix_in(&session, a, i, 0, NULL);
        eddy_vm_lend_end(session.vm, lend, false);
        session_close(&session);
    }
}

Test(vm, closing_a_busy_vm_obeys_its_time_and_leaves_it_as_it_is) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    session_hold(&session, true);
    session.stream = session.held;
    eddy_storage_number a = session_make(&session, 1);
    cr_assert_eq(eddy_vm_close(session.vm, 2000000), EDDY_TIMED_OUT);
    eddy_vm_destroy(session.vm); /* does nothing */
    cr_assert_eq(eddy_vm_close(session.vm, 2000000), EDDY_TIMED_OUT, "it is abandoned for good");
    int64_t value;
    cr_assert_eq(eddy_vm_read_small(session.vm, a, 0, 8, &value, &forever), EDDY_SHUT_DOWN);
    taken_error();
    session_step(&session); /* its threads are still there */
    session_release(&session, a);
}

Test(vm, calls_on_a_closed_one_are_refused) {
    vm_session session = session_open_threads(2);
    eddy_storage_number a = session_make(&session, 1);
    cr_assert_eq(eddy_vm_close(session.vm, EDDY_CLOCK_FOREVER), EDDY_OK);
    eddy_vm_operand target = {
        .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = 8};
    cr_assert_eq(session_call(&session, &synthetic_op, 1, false, 1, &a, 1, &target),
                 EDDY_SHUT_DOWN);
    eddy_error error = taken_error();
    cr_assert_eq(error.status, EDDY_SHUT_DOWN);
    cr_assert_str_eq(error.op, "synthetic");
    cr_assert_eq(target.storage, 0);
    void *data;
    eddy_storage_number b;
    cr_assert_eq(eddy_vm_storage_create(session.vm, 8, &b, &data), EDDY_SHUT_DOWN);
    cr_assert_eq(eddy_vm_storage_borrow(session.vm, &error, 8, free, NULL, &b), EDDY_SHUT_DOWN);
    cr_assert_eq(eddy_vm_recover(session.vm, &a, 1, test_origin), EDDY_SHUT_DOWN);
    cr_assert_eq(eddy_vm_touch(session.vm, NULL, &a, 1, test_origin), EDDY_SHUT_DOWN);
    eddy_vm_stream *stream;
    cr_assert_eq(eddy_vm_stream_create(session.vm, true, 0, NULL, &stream), EDDY_SHUT_DOWN);
    taken_error();
    session_release(&session, a);
    eddy_vm_destroy(session.vm);
    assert_no_memory_held();
}

/* Two VMs share one team: one may go while the other's kernels keep the workers. */
Test(vm, one_of_two_may_be_closed_while_the_other_works) {
    vm_session lasting =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    for (int round = 0; round < 100; round++) {
        vm_session session =
            session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
        eddy_storage_number a = session_make(&session, round), b = session_make(&lasting, round);
        for (int i = 0; i < 20; i++) {
            session_mix_in(&session, a, i, 0, NULL);
            session_mix_in(&lasting, b, i, 0, NULL);
        }
        cr_assert_eq(eddy_vm_close(session.vm, EDDY_CLOCK_FOREVER), EDDY_OK);
        session_release(&session, a);
        eddy_vm_destroy(session.vm);
        session_release(&lasting, b);
    }
    session_close(&lasting);
}

typedef struct late_waiter {
    vm_session session;
    eddy_storage_number storage;
    eddy_status status;
} late_waiter;

static void *wait_late(void *context) {
    late_waiter *waiter = context;
    waiter->status = eddy_vm_wait_storage(waiter->session.vm, waiter->storage, &forever);
    return NULL;
}

/* A thread that waits when the VM is closed gets its answer, and its waiter does not outlive the VM. */
Test(vm, closing_waits_for_waiting_threads_to_leave) {
    for (int round = 0; round < 200; round++) {
        late_waiter waiter = {.session = session_open(
                                  (eddy_runtime_options){.threads = 2, .uses_worker_path = true})};
        session_hold(&waiter.session, true);
        waiter.session.stream = waiter.session.held;
        waiter.storage = session_make(&waiter.session, 1);
        pthread_t thread;
        start_thread(&thread, wait_late, &waiter);
        while (eddy_vm_counters_read(waiter.session.vm).submitted < 2)
            sched_yield();
        session_step(&waiter.session);
        eddy_vm_stream_release(waiter.session.held);
        cr_assert_eq(eddy_vm_close(waiter.session.vm, EDDY_CLOCK_FOREVER), EDDY_OK);
        join_thread(thread);
        cr_assert_eq(waiter.status, EDDY_OK);
        eddy_vm_destroy(waiter.session.vm);
        assert_no_memory_held();
    }
}

Test(vm, no_memory_at_the_start_is_an_answer_that_leaks_nothing) {
    for (int64_t n = 0;; n++) {
        eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, n, 1);
        eddy_runtime_options options = {.threads = 2};
        eddy_vm *vm = NULL;
        eddy_status status = eddy_vm_create(&options, &vm);
        bool was_injected = eddy_memory_failures_injected() > 0;
        eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, 0, 0);
        if (!was_injected) {
            cr_assert_eq(status, EDDY_OK);
            cr_assert_eq(eddy_vm_close(vm, EDDY_CLOCK_FOREVER), EDDY_OK);
            eddy_vm_destroy(vm);
            cr_assert_geq(n, 4);
            break;
        }
        cr_assert_eq(status, EDDY_OUT_OF_MEMORY, "allocation %lld", (long long)n);
        cr_assert_eq(taken_error().status, EDDY_OUT_OF_MEMORY);
        cr_assert_null(vm);
        assert_no_memory_held();
    }
}

/* The answers of every entry in a forked child; as the child's exit status the number of the first that was wrong. */
static int child_of_fork(vm_session *session, eddy_storage_number a, eddy_vm_event *event) {
    eddy_error error;
    int64_t value;
    void *data;
    eddy_vm_lend *lend;
    eddy_storage_number b;
    eddy_vm_event *made;
    eddy_vm_operand target = {
        .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = 8};
    eddy_vm *vm = session->vm;
    if (session_call(session, &synthetic_op, 1, false, 0, NULL, 1, &target) != EDDY_FORKED)
        return 1;
    if (eddy_error_take(&error) != EDDY_FORKED)
        return 2;
    if (eddy_vm_read_small(vm, a, 0, 8, &value, &forever) != EDDY_FORKED ||
        eddy_vm_wait_storage(vm, a, &forever) != EDDY_FORKED ||
        eddy_vm_sync(vm, &forever, NULL) != EDDY_FORKED ||
        eddy_vm_lend_begin(vm, a, true, &forever, &data, &lend) != EDDY_FORKED)
        return 3;
    if (eddy_vm_sync_service(vm, &forever) != EDDY_FORKED ||
        eddy_vm_event_wait(event, &forever) != EDDY_FORKED)
        return 4;
    if (eddy_vm_event_record(vm, NULL, test_origin, &made) != EDDY_FORKED ||
        eddy_vm_storage_create(vm, 8, &b, &data) != EDDY_FORKED || eddy_vm_is_ready(vm, a))
        return 5;
    session_release(session, a);
    eddy_vm_dump(vm);
    eddy_vm_counters_read(vm);
    if (eddy_vm_trim(vm) != 0 || eddy_vm_close(vm, EDDY_CLOCK_FOREVER) != EDDY_FORKED)
        return 6;
    eddy_vm_destroy(vm);
    eddy_error_take(NULL);
    /* ThreadSanitizer allows no threads after a fork; AddressSanitizer's allocator stays locked for them where a thread of the parent
     * was in it. */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    /* A new one works. */
    eddy_runtime_options options = {.threads = 2, .uses_worker_path = true};
    vm_session fresh = {.cost_ps = COST_WORKER};
    if (eddy_vm_create(&options, &fresh.vm) != EDDY_OK)
        return 7;
    eddy_storage_number c = session_make(&fresh, 4);
    if (session_read(&fresh, c) != value_of(4, 0))
        return 8;
    session_release(&fresh, c);
    if (eddy_vm_close(fresh.vm, EDDY_CLOCK_FOREVER) != EDDY_OK)
        return 9;
    eddy_vm_destroy(fresh.vm);
#endif
    return 0;
}

typedef struct lock_holder {
    eddy_vm *vm;
    vm_latch *latch;
} lock_holder;

static void *hold_locks(void *context) {
    lock_holder *holder = context;
    eddy_lock_acquire(&holder->vm->submission);
    eddy_lock_acquire(&holder->vm->waiters.lock);
    latch_pass(holder->latch);
    eddy_lock_release(&holder->vm->waiters.lock);
    eddy_lock_release(&holder->vm->submission);
    return NULL;
}

/* With the locks that others hold at that moment held for good in the child. */
Test(vm, a_forked_child_is_refused_everywhere_and_may_make_a_new_one) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    session_hold(&session, true);
    session.stream = session.held;
    eddy_storage_number a = session_make(&session, 1);
    eddy_vm_event *event;
    cr_assert_eq(eddy_vm_event_record(session.vm, session.held, test_origin, &event), EDDY_OK);
    vm_latch latch = {0};
    lock_holder holder = {session.vm, &latch};
    pthread_t thread;
    start_thread(&thread, hold_locks, &holder);
    latch_await(&latch, 1);
    await_safe_fork();
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        _exit(child_of_fork(&session, a, event));
    }
    latch_open(&latch);
    join_thread(thread);
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: %d", WEXITSTATUS(status));
    session_step(&session);
    cr_assert_eq(session_read(&session, a), value_of(1, 0), "the parent goes on");
    eddy_vm_event_release(event);
    session_release(&session, a);
    session_close(&session);
}

/* A record holds the lower 40 bits of the number and, elsewhere, the rest: blame still goes to who failed first. */
Test(vm, sequence_numbers_go_on_beyond_what_a_record_s_word_holds) {
    vm_session session = session_open((eddy_runtime_options){.threads = 2, .uses_full_path = true});
    session.vm->sequence = ((uint64_t)1 << 40) - 2;
    eddy_storage_number first = session_make_failing(&session, 1);  /* the last number of 40 bits */
    eddy_storage_number second = session_make_failing(&session, 2); /* 2^40 */
    eddy_storage_number both =
        session_make_from(&session, 3, 2, (eddy_storage_number[]){second, first});
    eddy_error error;
    cr_assert_eq(eddy_vm_poison(session.vm, both, &forever, &error), EDDY_OUT_OF_RANGE);
    cr_assert_eq(error.sequence, ((uint64_t)1 << 40) - 1);
    cr_assert_eq(eddy_vm_poison(session.vm, second, &forever, &error), EDDY_OUT_OF_RANGE);
    cr_assert_eq(error.sequence, (uint64_t)1 << 40);
    session_release(&session, first);
    session_release(&session, second);
    session_release(&session, both);
    session_close(&session);
}
