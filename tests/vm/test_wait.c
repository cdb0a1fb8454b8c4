#include "session.h"
#include <errno.h>
#include <vm/engine.h>

#define SHORT_NS INT64_C(2000000)

/* A VM with one storage whose writer is held. */
static vm_session open_held(eddy_storage_number *storage) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    session_hold(&session, true);
    session.stream = session.held;
    *storage = session_make(&session, 1);
    return session;
}

static void let_go_and_close(vm_session *session, eddy_storage_number storage) {
    session_step(session);
    cr_assert_eq(session_read(session, storage), value_of(1, 0));
    session_release(session, storage);
    session_close(session);
}

Test(wait, a_finished_storage_needs_no_waiting) {
    vm_session session = session_open_threads(2);
    eddy_storage_number a = session_make(&session, 1);
    cr_assert(eddy_vm_is_ready(session.vm, a));
    cr_assert_eq(eddy_vm_wait_storage(session.vm, a, &at_once), EDDY_OK);
    int64_t value;
    cr_assert_eq(eddy_vm_read_small(session.vm, a, 8, 8, &value, &at_once), EDDY_OK);
    cr_assert_eq(value, value_of(1, 1));
    session_release(&session, a);
    session_close(&session);
}

Test(wait, a_timeout_of_zero_asks_and_queues_nothing) {
    eddy_storage_number a;
    vm_session session = open_held(&a);
    int64_t value = 77;
    uint64_t submitted = eddy_vm_counters_read(session.vm).submitted;
    for (int i = 0; i < 100; i++) {
        cr_assert_not(eddy_vm_is_ready(session.vm, a));
        cr_assert_eq(eddy_vm_wait_storage(session.vm, a, &at_once), EDDY_TIMED_OUT);
        cr_assert_eq(eddy_vm_read_small(session.vm, a, 0, 8, &value, &at_once), EDDY_TIMED_OUT);
    }
    cr_assert_eq(taken_error().status, EDDY_TIMED_OUT);
    cr_assert_eq(value, 77, "written on success only");
    cr_assert_eq(eddy_vm_counters_read(session.vm).submitted, submitted);
    let_go_and_close(&session, a);
}

Test(wait, a_short_timeout_ends_and_its_waiter_is_given_back) {
    eddy_storage_number a;
    vm_session session = open_held(&a);
    eddy_vm_wait briefly = {SHORT_NS, {"read", &session}};
    int64_t value = 77;
    for (int i = 0; i < 5; i++) {
        int64_t begin = eddy_clock_ns();
        cr_assert_eq(eddy_vm_read_small(session.vm, a, 0, 8, &value, &briefly), EDDY_TIMED_OUT);
        cr_assert_geq(eddy_clock_ns() - begin, SHORT_NS);
    }
    eddy_error error = taken_error();
    cr_assert_eq(error.status, EDDY_TIMED_OUT);
    cr_assert_str_eq(error.op, "read");
    cr_assert_eq(error.address, &session);
    cr_assert_eq(error.more, 4);
    cr_assert_eq(value, 77);
    cr_assert_eq(eddy_vm_sync(session.vm, &briefly, NULL), EDDY_TIMED_OUT);
    taken_error();
    let_go_and_close(&session, a);
}

static _Atomic int64_t test_clock_ns;

static int64_t test_clock(void) {
    return eddy_load_acquire(&test_clock_ns);
}

static void *wait_an_hour(void *context) {
    vm_session *session = context;
    eddy_vm_wait hour = {INT64_C(3600000000000), {"wait", NULL}};
    return (void *)(intptr_t)eddy_vm_wait_storage(session->vm,
                                                  (eddy_storage_number)session->cost_ps, &hour);
}

/* On an injected clock, so that an hour passes at once. */
Test(wait, the_timeout_covers_the_wait_for_room_in_the_ring) {
    vm_session session = session_open((eddy_runtime_options){.threads = 2, .uses_full_path = true});
    /* The test has the engine's role, and does nothing. */
    while (!eddy_engine_request(session.vm))
        sched_yield();
    eddy_storage_number a = session_make(&session, 0);
    for (int i = 1; eddy_ring_has_room(&session.vm->ring, EDDY_RECORD_LINES_MAX + 2); i++)
        session_overwrite(&session, a, i);
    eddy_vm_wait soon = {1000000, {"test", NULL}};
    cr_assert_eq(eddy_vm_wait_storage(session.vm, a, &soon), EDDY_TIMED_OUT);
    cr_assert_eq(eddy_vm_sync(session.vm, &soon, NULL), EDDY_TIMED_OUT);
    eddy_error error = taken_error();
    cr_assert_eq(error.status, EDDY_TIMED_OUT);
    cr_assert_eq(error.more, 1);
    eddy_engine_turn turn = {.budget_ns = INT64_MAX};
    eddy_engine_work(session.vm, &turn);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, a, &forever), EDDY_OK);
    session_release(&session, a);
    session_close(&session);
}

Test(wait, an_hour_is_over_when_the_clock_says_so) {
    eddy_store_release(&test_clock_ns, 1000000000);
    eddy_clock_replace(test_clock);
    eddy_storage_number a;
    vm_session session = open_held(&a);
    vm_session other = session;
    other.cost_ps = a;
    pthread_t thread;
    start_thread(&thread, wait_an_hour, &other);
    void *status;
    while (pthread_tryjoin_np(thread, &status) == EBUSY) {
        eddy_add_relaxed(&test_clock_ns, INT64_C(60000000000));
        sched_yield();
    }
    cr_assert_eq((eddy_status)(intptr_t)status, EDDY_TIMED_OUT);
    eddy_clock_replace(NULL);
    let_go_and_close(&session, a);
}

static void *read_it(void *context) {
    vm_session *session = context;
    int64_t value = 0;
    eddy_status status = eddy_vm_read_small(session->vm, (eddy_storage_number)session->cost_ps, 0,
                                            8, &value, &forever);
    return (void *)(intptr_t)(status == EDDY_OK ? value : 0);
}

Test(wait, many_threads_wait_for_one_storage_and_all_are_woken) {
    eddy_storage_number a;
    vm_session session = open_held(&a);
    vm_session other = session;
    other.cost_ps = a;
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        start_thread(&threads[i], read_it, &other);
    /* All have their instruction in the VM: one each, after the writer. */
    while (eddy_vm_counters_read(session.vm).submitted < 9)
        sched_yield();
    session_step(&session);
    for (int i = 0; i < 8; i++) {
        void *value;
        cr_assert_eq(pthread_join(threads[i], &value), 0);
        cr_assert_eq((int64_t)(intptr_t)value, value_of(1, 0));
    }
    session_release(&session, a);
    session_close(&session);
}

/* The bytes are those of the moment of the call, however much is issued after it. */
Test(wait, a_read_is_ordered_like_an_instruction) {
    eddy_storage_number a;
    vm_session session = open_held(&a);
    vm_session other = session;
    other.cost_ps = a;
    pthread_t thread;
    start_thread(&thread, read_it, &other);
    while (eddy_vm_counters_read(session.vm).submitted < 2)
        sched_yield();
    session_overwrite(&session, a, 2);
    session_overwrite(&session, a, 3);
    session_step(&session);
    void *value;
    cr_assert_eq(pthread_join(thread, &value), 0);
    cr_assert_eq((int64_t)(intptr_t)value, value_of(1, 0));
    session_step(&session);
    session_step(&session);
    cr_assert_eq(session_read(&session, a), value_of(3, 0));
    session_release(&session, a);
    session_close(&session);
}

/* A waiter runs what it waits for itself where the system gave fewer workers than were asked for, and they are busy. */
Test(wait, a_waiting_thread_helps_with_the_kernels_in_its_way) {
    eddy_thread_fail_at(2, 1); /* two workers, no third; then the scheduler */
    vm_session session = session_open_threads(3);
    session.cost_ps = COST_WORKER;
    vm_latch latch = {0};
    eddy_storage_number held[2] = {session_latch(&session, &latch, 0, NULL),
                                   session_latch(&session, &latch, 0, NULL)};
    latch_await(&latch, 2); /* every worker is inside */
    eddy_storage_number a = session_make(&session, 1);
    eddy_storage_number b = session_make_from(&session, 2, 1, &a);
    cr_assert_eq(session_read(&session, b), value_from(2, value_of(1, 0)));
    latch_open(&latch);
    session_release(&session, a);
    session_release(&session, b);
    session_release(&session, held[0]);
    session_release(&session, held[1]);
    session_close(&session);
}

/* With all threads in kernels a waiter is not one more. */
Test(wait, a_waiting_thread_is_no_further_thread_in_kernels) {
    vm_session session = session_open_threads(2);
    session.cost_ps = COST_WORKER;
    vm_latch latch = {0};
    eddy_storage_number held[2] = {session_latch(&session, &latch, 0, NULL),
                                   session_latch(&session, &latch, 0, NULL)};
    latch_await(&latch, 2);
    eddy_storage_number a = session_make(&session, 1);
    vm_session other = session;
    other.cost_ps = a;
    pthread_t thread;
    start_thread(&thread, read_it, &other);
    while (eddy_vm_counters_read(session.vm).submitted < 4)
        sched_yield();
    eddy_vm_wait briefly = {SHORT_NS, {"wait", NULL}};
    cr_assert_eq(eddy_vm_wait_storage(session.vm, a, &briefly), EDDY_TIMED_OUT);
    taken_error();
    latch_open(&latch);
    void *value;
    cr_assert_eq(pthread_join(thread, &value), 0);
    cr_assert_eq((int64_t)(intptr_t)value, value_of(1, 0));
    session_release(&session, a);
    session_release(&session, held[0]);
    session_release(&session, held[1]);
    session_close(&session);
}

Test(wait, kernels_meant_for_workers_are_not_run_by_a_waiting_thread) {
    vm_session session = session_open_threads(2);
    vm_latch latch = {0};
    session.cost_ps = COST_WORKER;
    eddy_storage_number held[2] = {session_latch(&session, &latch, 0, NULL),
                                   session_latch(&session, &latch, 0, NULL)};
    latch_await(&latch, 2);
    eddy_vm_operand operand = {
        .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = CELLS * 8};
    synthetic_arguments arguments = {.seed = 4, .accesses = 1};
    eddy_vm_call call = {
        .instruction = {.descriptor = &synthetic_op, .arguments = &arguments, .operand_count = 1},
        .argument_bytes = sizeof(arguments),
        .operands = &operand,
        .cost_ps = COST_CALLER,
        .place = EDDY_PLACE_WORKER};
    cr_assert_eq(synthetic_submit(session.vm, &call), EDDY_OK);
    eddy_vm_wait briefly = {SHORT_NS, {"wait", NULL}};
    cr_assert_eq(eddy_vm_wait_storage(session.vm, operand.storage, &briefly), EDDY_TIMED_OUT);
    taken_error();
    latch_open(&latch);
    cr_assert_eq(session_read(&session, operand.storage), value_of(4, 0));
    cr_assert_eq(eddy_vm_counters_read(session.vm).caller_run, 0);
    cr_assert_eq(eddy_vm_counters_read(session.vm).scheduler_run, 0);
    session_release(&session, operand.storage);
    session_release(&session, held[0]);
    session_release(&session, held[1]);
    session_close(&session);
}

Test(wait, sync_covers_what_any_thread_submitted_and_hands_out_the_lowest_error) {
    vm_session session = session_open_threads(2);
    eddy_storage_number bad[3];
    for (int i = 0; i < 3; i++)
        bad[i] = session_make_failing(&session, 100 + i);
    eddy_error error = {0};
    cr_assert_eq(eddy_vm_sync(session.vm, &forever, &error), EDDY_OUT_OF_RANGE);
    cr_assert_not_null(strstr(error.message, "seed 100"), "%s", error.message);
    cr_assert_eq(error.more, 2);
    cr_assert_eq(taken_error().sequence, error.sequence);
    cr_assert_eq(eddy_vm_sync(session.vm, &forever, &error), EDDY_OK, "all of them count as seen");
    eddy_vm_counters counters = eddy_vm_counters_read(session.vm);
    cr_assert_eq(counters.errors_made, 3);
    cr_assert_eq(counters.errors_seen, 3);
    /* A read still tells, each time. */
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(eddy_vm_wait_storage(session.vm, bad[1], &forever), EDDY_OUT_OF_RANGE);
        cr_assert_not_null(strstr(taken_error().message, "seed 101"));
    }
    for (int i = 0; i < 3; i++)
        session_release(&session, bad[i]);
    session_close(&session);
}

Test(wait, late_shapes_are_known_once_the_count_has_run) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    eddy_storage_number a = session_make_late(&session, 5);
    eddy_shape shape;
    cr_assert_eq(eddy_vm_late_shape(session.vm, a, &forever, &shape), EDDY_OK);
    cr_assert_eq(shape.rank, 1);
    cr_assert_eq(shape.dims[0], CELLS);
    cr_assert_eq(session_read(&session, a), value_of(5, 0));
    session_release(&session, a);
    session_close(&session);
}

Test(wait, no_memory_for_a_waiter_is_an_answer_and_the_next_wait_works) {
    eddy_storage_number a;
    vm_session session = open_held(&a);
    eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, 0, 1);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, a, &forever), EDDY_OUT_OF_MEMORY);
    cr_assert_eq(taken_error().status, EDDY_OUT_OF_MEMORY);
    let_go_and_close(&session, a);
}

/* ---- after the end ---- */

Test(wait, every_wait_on_a_closed_vm_is_refused_and_leaks_nothing) {
    vm_session session = session_open_threads(2);
    eddy_storage_number a = session_make(&session, 1);
    eddy_vm_event *event;
    cr_assert_eq(eddy_vm_event_record(session.vm, NULL, test_origin, &event), EDDY_OK);
    cr_assert_eq(eddy_vm_close(session.vm, EDDY_CLOCK_FOREVER), EDDY_OK);
    int64_t value;
    eddy_shape shape;
    eddy_error error;
    void *data;
    eddy_vm_lend *lend;
    eddy_vm_event *other;
    cr_assert_eq(eddy_vm_wait_storage(session.vm, a, &forever), EDDY_SHUT_DOWN);
    cr_assert_eq(eddy_vm_read_small(session.vm, a, 0, 8, &value, &forever), EDDY_SHUT_DOWN);
    cr_assert_eq(eddy_vm_late_shape(session.vm, a, &forever, &shape), EDDY_SHUT_DOWN);
    cr_assert_eq(eddy_vm_poison(session.vm, a, &forever, &error), EDDY_SHUT_DOWN);
    cr_assert_eq(eddy_vm_lend_begin(session.vm, a, true, &forever, &data, &lend), EDDY_SHUT_DOWN);
    cr_assert_eq(eddy_vm_sync(session.vm, &forever, NULL), EDDY_SHUT_DOWN);
    cr_assert_eq(eddy_vm_sync_service(session.vm, &forever), EDDY_SHUT_DOWN);
    cr_assert_eq(eddy_vm_event_record(session.vm, NULL, test_origin, &other), EDDY_SHUT_DOWN);
    cr_assert_eq(eddy_vm_stream_wait(session.vm, NULL, event, test_origin), EDDY_SHUT_DOWN);
    cr_assert_eq(eddy_vm_event_wait(event, &forever), EDDY_OK, "it has passed");
    cr_assert_not(eddy_vm_is_ready(session.vm, a));
    cr_assert_eq(eddy_vm_trim(session.vm), 0);
    cr_assert_eq(eddy_vm_counters_read(session.vm).submitted, 0);
    eddy_vm_dump(session.vm);
    eddy_vm_event_release(event);
    eddy_vm_destroy(session.vm);
    taken_error();
    assert_no_memory_held();
}
