#include "session.h"

static vm_session open_one(void) {
    return session_open((eddy_runtime_options){.uses_one_thread = true});
}

static pthread_t ran_on;

static void where_run(const eddy_vm_run *run) {
    ran_on = pthread_self();
    *(int64_t *)run->data[0] = 1;
}

static const eddy_vm_descriptor where_op = {.run = where_run, .name = synthetic_name};

Test(one_thread, each_op_runs_at_its_call_on_its_caller) {
    vm_session session = open_one();
    cr_assert_eq(eddy_vm_thread_count(session.vm), 1);
    static const int64_t costs[3] = {COST_CALLER, COST_SCHEDULER, COST_WORKER};
    for (int i = 0; i < 6; i++) {
        session.cost_ps = costs[i % 3];
        eddy_vm_operand operand = {
            .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = 8};
        cr_assert_eq(session_submit(&session, &where_op, &operand, 1, NULL, 0), EDDY_OK);
        cr_assert(pthread_equal(ran_on, pthread_self()));
        cr_assert(eddy_vm_is_ready(session.vm, operand.storage));
        session_release(&session, operand.storage);
    }
    session_close(&session);
}

Test(one_thread, one_thread_asked_for_is_the_same) {
    vm_session session = session_open_threads(1);
    cr_assert_eq(eddy_vm_thread_count(session.vm), 1);
    session.cost_ps = COST_WORKER;
    eddy_storage_number a = session_make(&session, 1);
    cr_assert(eddy_vm_is_ready(session.vm, a));
    session_release(&session, a);
    session_close(&session);
}

Test(one_thread, it_makes_no_thread) {
    eddy_thread_fail_at(0, 1000);
    vm_session session = open_one();
    eddy_storage_number a = session_make(&session, 1);
    cr_assert_eq(session_read(&session, a), value_of(1, 0));
    session_release(&session, a);
    session_close(&session);
}

static void note_thread(void *context) {
    *(pthread_t *)context = pthread_self();
}

static int64_t cells[CELLS];

Test(one_thread, user_code_runs_on_the_caller_after_its_call) {
    vm_session session = open_one();
    pthread_t thread = 0;
    eddy_storage_number a;
    cr_assert_eq(eddy_vm_storage_borrow(session.vm, cells, sizeof(cells), note_thread, &thread, &a),
                 EDDY_OK);
    session_release(&session, a);
    cr_assert(pthread_equal(thread, pthread_self()));
    session_close(&session);
}

typedef struct nested {
    vm_session *session;
    eddy_storage_number storage;
    int depth, deepest;
    eddy_status waited;
} nested;

static void call_again(void *context, void *data, int64_t bytes, const eddy_error *error) {
    nested *nested_calls = context;
    (void)data, (void)bytes, (void)error;
    int depth = ++nested_calls->depth;
    if (depth > nested_calls->deepest)
        nested_calls->deepest = depth;
    static int calls;
    if (++calls < 10) {
        cr_assert_eq(eddy_vm_access(nested_calls->session->vm, nested_calls->storage, true,
                                    call_again, nested_calls, test_origin),
                     EDDY_OK);
        session_mix_in(nested_calls->session, nested_calls->storage, 1, 0, NULL);
        nested_calls->waited =
            eddy_vm_wait_storage(nested_calls->session->vm, nested_calls->storage, &forever);
    }
    nested_calls->depth--;
}

/* Never one inside the other: what a callback causes comes after it. */
Test(one_thread, callbacks_are_not_nested) {
    vm_session session = open_one();
    nested calls = {.session = &session, .storage = session_make(&session, 1)};
    cr_assert_eq(eddy_vm_access(session.vm, calls.storage, true, call_again, &calls, test_origin),
                 EDDY_OK);
    cr_assert_eq(calls.deepest, 1);
    cr_assert_eq(calls.waited, EDDY_WOULD_DEADLOCK);
    int64_t expected = value_of(1, 0);
    for (int i = 0; i < 9; i++)
        expected = synthetic_mix(expected, 1);
    cr_assert_eq(session_read(&session, calls.storage), expected);
    session_release(&session, calls.storage);
    taken_error();
    session_close(&session);
}

typedef struct sharer {
    vm_session session;
    int number;
} sharer;

static void *share(void *context) {
    sharer *mine = context;
    for (int i = 0; i < 2000; i++) {
        eddy_storage_number a = session_make(&mine->session, mine->number * 10000 + i);
        session_mix_in(&mine->session, a, i, 0, NULL);
        int64_t expected = synthetic_mix(value_of(mine->number * 10000 + i, 0), i);
        if (session_read(&mine->session, a) != expected)
            return mine;
        session_release(&mine->session, a);
    }
    return NULL;
}

Test(one_thread, several_threads_may_issue_all_the_same) {
    vm_session session = open_one();
    session.cost_ps = COST_WORKER;
    sharer sharers[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        sharers[i] = (sharer){session, i};
        start_thread(&threads[i], share, &sharers[i]);
    }
    for (int i = 0; i < 3; i++) {
        void *failed;
        cr_assert_eq(pthread_join(threads[i], &failed), 0);
        cr_assert_null(failed);
    }
    session_close(&session);
}

/* Threads are refused one after the other, from the first worker to the scheduler: each time a VM comes out that works. */
Test(one_thread, a_vm_that_gets_no_threads_falls_back) {
    for (int64_t allowed = 0; allowed < 5; allowed++) {
        eddy_thread_fail_at(allowed, 1000);
        vm_session session = session_open_threads(3);
        eddy_thread_fail_at(0, 0);
        cr_assert_eq(eddy_vm_thread_count(session.vm),
                     allowed >= 2 && session.vm->has_scheduler ? 3 : 1, "%lld threads",
                     (long long)allowed);
        session.cost_ps = COST_WORKER;
        eddy_storage_number a = session_make(&session, 1);
        cr_assert_eq(session_read(&session, a), value_of(1, 0));
        pthread_t thread = 0;
        eddy_storage_number b;
        cr_assert_eq(
            eddy_vm_storage_borrow(session.vm, cells, sizeof(cells), note_thread, &thread, &b),
            EDDY_OK);
        session_release(&session, b);
        cr_assert_eq(eddy_vm_sync_service(session.vm, &forever), EDDY_OK);
        cr_assert_neq(thread, 0);
        session_release(&session, a);
        session_close(&session);
    }
}

/* Another thread finishes what the service has to run: a held stream's completion, and then the VM closes. */
Test(one_thread, user_code_that_a_stream_made_due_runs_before_the_end) {
    vm_session session = open_one();
    session_hold(&session, true);
    session.stream = session.held;
    pthread_t thread = 0;
    eddy_storage_number a;
    cr_assert_eq(eddy_vm_storage_borrow(session.vm, cells, sizeof(cells), note_thread, &thread, &a),
                 EDDY_OK);
    eddy_storage_number b = session_make_from(&session, 1, 1, &a);
    session_release(&session, a);
    session_step(&session);
    session_release(&session, b);
    session_close(&session);
    cr_assert_neq(thread, 0);
}
