#include "session.h"

Test(release, an_idle_storage_goes_back_at_once) {
    vm_session session = session_open_threads(2);
    eddy_storage_number a = session_make(&session, 1);
    session_settle(&session);
    session_release(&session, a);
    cr_assert_eq(session_make(&session, 2), a, "last in, first out");
    session_release(&session, a);
    session_close(&session);
}

Test(release, it_takes_effect_after_every_use_that_came_before) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 3, .uses_worker_path = true});
    session.cost_ps = COST_WORKER;
    session_hold(&session, false);
    session.stream = session.held;
    eddy_storage_number a = session_make(&session, 1);
    eddy_storage_number b = session_make_from(&session, 2, 1, &a);
    eddy_storage_number c = session_make_from(&session, 3, 2, (eddy_storage_number[]){a, b});
    session_release(&session, a);
    session_release(&session, b);
    for (int i = 0; i < 3; i++)
        session_step(&session);
    int64_t first = value_of(1, 0), second = value_from(2, first);
    int64_t expected = synthetic_mix(synthetic_mix(synthetic_mix(3, first), second), 0);
    cr_assert_eq(session_read(&session, c), expected);
    session_release(&session, c);
    session_close(&session);
}

Test(release, numbers_of_a_busy_vm_are_used_again) {
    vm_session session = session_open((eddy_runtime_options){.threads = 2, .uses_full_path = true});
    eddy_storage_number highest = 0;
    for (int i = 0; i < 200000; i++) {
        eddy_storage_number a = session_make(&session, i);
        if (a > highest)
            highest = a;
        session_release(&session, a);
    }
    /* As many as can be in flight, in the ring and in the ring of numbers: not one for each of the 200,000. */
    cr_assert_lt(highest, 16384 + 4096 + 4096 + 1024, "%u", highest);
    session_close(&session);
}

static int deleted;

static void note_deleted(void *context) {
    *(int *)context += 1;
}

static eddy_storage_number borrow(vm_session *session, int64_t *cells, void (*deleter)(void *),
                                  void *context) {
    eddy_storage_number storage;
    cr_assert_eq(eddy_vm_storage_borrow(session->vm, cells, CELLS * 8, deleter, context, &storage),
                 EDDY_OK);
    return storage;
}

Test(release, a_deleter_runs_once_on_the_service_thread_after_the_last_use) {
    vm_session session = session_open_threads(2);
    int64_t cells[CELLS] = {11, 12, 13, 14};
    eddy_storage_number a = borrow(&session, cells, note_deleted, &deleted);
    eddy_storage_number b = session_make_from(&session, 1, 1, &a);
    cr_assert_eq(session_read(&session, b), value_from(1, 11));
    session_release(&session, a);
    cr_assert_eq(eddy_vm_sync_service(session.vm, &forever), EDDY_OK);
    cr_assert_eq(deleted, 1);
    session_release(&session, b);
    session_close(&session);
    cr_assert_eq(deleted, 1);
}

/* Nothing is called after the release: it must not wait for company in the pending array. */
Test(release, a_deleter_of_a_busy_storage_needs_no_later_call) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    session_hold(&session, true);
    session.stream = session.held;
    int64_t cells[CELLS] = {1};
    vm_latch latch = {.is_open = 1};
    eddy_storage_number a = borrow(&session, cells, (void (*)(void *))latch_pass, &latch);
    eddy_storage_number b = session_make_from(&session, 1, 1, &a);
    session_release(&session, a);
    session_step(&session);
    latch_await(&latch, 1);
    session_release(&session, b);
    session_close(&session);
}

Test(release, a_deleter_of_what_is_left_runs_when_the_vm_closes) {
    vm_session session = session_open_threads(2);
    int64_t cells[CELLS] = {0};
    borrow(&session, cells, note_deleted, &deleted);
    session_close(&session);
    cr_assert_eq(deleted, 1);
}

/* ---- without the lock ---- */

static void *release_from_here(void *context) {
    vm_session *session = context;
    session_release(session, (eddy_storage_number)session->cost_ps);
    return NULL;
}

/* With the submission lock held by somebody, the handle goes onto the list and is freed by the engine. */
Test(release, a_thread_that_does_not_get_the_lock_hands_over) {
    vm_session session = session_open_threads(2);
    eddy_storage_number a = session_make(&session, 1);
    session_settle(&session);
    eddy_lock_acquire(&session.vm->submission);
    vm_session other = session;
    other.cost_ps = a;
    pthread_t thread;
    start_thread(&thread, release_from_here, &other);
    join_thread(thread);
    eddy_lock_release(&session.vm->submission);
    /* Freed by the scheduler thread, with no further call: the handle was recycled then. */
    while (eddy_memory_counted(EDDY_MEMORY_HANDLE).bytes > 0)
        sched_yield();
    session_close(&session);
}

static void recycle_noted(eddy_vm_release_link *link) {
    *(int *)(void *)(link + 1) += 1;
}

typedef struct noted_link {
    eddy_vm_release_link link;
    int recycled;
} noted_link;

Test(release, the_link_is_recycled_exactly_once_in_every_state) {
    vm_session session = session_open_threads(2);
    noted_link links[4] = {0};
    for (int i = 0; i < 4; i++) {
        links[i].link.recycle = recycle_noted;
        links[i].link.storage = session_make(&session, i);
    }
    eddy_vm_release(session.vm, &links[0].link);
    eddy_lock_acquire(&session.vm->submission);
    eddy_vm_release(session.vm, &links[1].link);
    eddy_lock_release(&session.vm->submission);
    cr_assert_eq(eddy_vm_close(session.vm, EDDY_CLOCK_FOREVER), EDDY_OK);
    eddy_vm_release(session.vm, &links[2].link);
    eddy_lock_acquire(&session.vm->submission);
    eddy_vm_release(session.vm, &links[3].link);
    eddy_lock_release(&session.vm->submission);
    eddy_vm_destroy(session.vm);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(links[i].recycled, 1, "link %d", i);
    assert_no_memory_held();
}

/* Eight pending at most; one more goes by the list, and none is lost. */
Test(release, more_than_fit_the_pending_array_are_all_freed) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    session_hold(&session, true);
    session.stream = session.held;
    enum { COUNT = 100 };
    eddy_storage_number made[COUNT];
    for (int i = 0; i < COUNT; i++)
        made[i] = session_make(&session, i);
    for (int i = 0; i < COUNT; i++)
        session_release(&session, made[i]);
    for (int i = 0; i < COUNT; i++)
        session_step(&session);
    cr_assert_eq(session_settled_counters(&session).in_flight, 0);
    session_close(&session);
}

/* One that holds much memory does not stay in the array. */
Test(release, much_memory_is_given_back_without_a_later_call) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    session_hold(&session, true);
    session.stream = session.held;
    eddy_vm_operand target = {
        .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = 1 << 20};
    cr_assert_eq(session_call(&session, &synthetic_op, 1, false, 0, NULL, 1, &target), EDDY_OK);
    session_release(&session, target.storage);
    session_step(&session);
    while (eddy_vm_counters_read(session.vm).bytes_live >= 1 << 20)
        sched_yield();
    session_close(&session);
}

typedef struct release_elsewhere {
    eddy_vm *vm;
    eddy_storage_number storage;
} release_elsewhere;

static void *release_one(void *context) {
    const release_elsewhere *given = context;
    synthetic_release(given->vm, given->storage);
    return NULL;
}

/* Handed over without the lock, and seen by the engine before the record that still reads the storage: more than it takes at
 * once stand before that. */
Test(release, one_without_the_lock_comes_after_every_use_in_the_ring) {
    vm_session session = session_open((eddy_runtime_options){.threads = 2, .uses_full_path = true});
    eddy_storage_number used = session_make(&session, 1), filler = session_make(&session, 2);
    session_settle(&session);
    session.cost_ps = COST_SCHEDULER;
    vm_latch latch = {0};
    eddy_storage_number held = session_latch(&session, &latch, 0, NULL);
    latch_await(&latch, 1); /* the scheduler thread is inside: nothing is taken from the ring */
    for (int i = 0; i < 200; i++)
        session_mix_in(&session, filler, i, 0, NULL);
    eddy_storage_number result = session_make_from(&session, 3, 1, &used);
    release_elsewhere given = {session.vm, used};
    pthread_t thread;
    eddy_lock_acquire(&session.vm->submission);
    start_thread(&thread, release_one, &given);
    join_thread(thread);
    eddy_lock_release(&session.vm->submission);
    latch_open(&latch);
    cr_assert_eq(session_read(&session, result), value_from(3, value_of(1, 0)));
    session_release(&session, filler);
    session_release(&session, held);
    session_release(&session, result);
    session_close(&session);
}

/* What waits for company is counted down when it leaves: else every later release would get a record of its own. */
Test(release, nothing_is_pending_once_all_is_over) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    vm_latch latch = {0};
    eddy_storage_number made[5];
    for (int i = 0; i < 5; i++)
        made[i] = session_make(&session, i);
    eddy_storage_number held = session_latch(&session, &latch, 5, made);
    latch_await(&latch, 1);
    for (int i = 0; i < 5; i++)
        session_release(&session, made[i]);
    cr_assert_gt(session.vm->pending_bytes, 0);
    latch_open(&latch);
    session_settle(&session);
    cr_assert_eq(session.vm->pending_count, 0);
    cr_assert_eq(session.vm->pending_bytes, 0);
    session_release(&session, held);
    session_close(&session);
}
