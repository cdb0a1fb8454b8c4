#include "session.h"

static eddy_vm_event *record(vm_session *session, eddy_vm_stream *stream) {
    eddy_vm_event *event;
    cr_assert_eq(eddy_vm_event_record(session->vm, stream, test_origin, &event), EDDY_OK);
    return event;
}

static vm_session open_with_held(bool is_ordered) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    session_hold(&session, is_ordered);
    return session;
}

Test(stream, an_event_of_an_idle_stream_has_passed) {
    vm_session session = session_open_threads(2);
    eddy_vm_event *event = record(&session, NULL);
    cr_assert_eq(eddy_vm_event_wait(event, &forever), EDDY_OK);
    cr_assert(eddy_vm_event_query(event));
    cr_assert_eq(eddy_vm_event_wait(event, &at_once), EDDY_OK);
    eddy_vm_event_release(event);
    session_close(&session);
}

/* All that came before, in whatever order it finishes; nothing that came after. */
static void pass_after_all_before(bool is_ordered) {
    vm_session session = open_with_held(is_ordered);
    session.stream = session.held;
    eddy_storage_number before[4], after;
    for (int i = 0; i < 4; i++)
        before[i] = session_make(&session, i);
    eddy_vm_event *event = record(&session, session.held);
    after = session_make(&session, 9);
    for (int i = 0; i < 4; i++) {
        cr_assert_not(eddy_vm_event_query(event));
        cr_assert_eq(eddy_vm_event_wait(event, &at_once), EDDY_TIMED_OUT);
        session_step(&session);
        session_read(&session, before[i]);
    }
    cr_assert_eq(eddy_vm_event_wait(event, &forever), EDDY_OK);
    cr_assert_not(eddy_vm_is_ready(session.vm, after));
    session_step(&session);
    cr_assert_eq(session_read(&session, after), value_of(9, 0));
    taken_error();
    eddy_vm_event_release(event);
    for (int i = 0; i < 4; i++)
        session_release(&session, before[i]);
    session_release(&session, after);
    session_close(&session);
}

Test(stream, an_event_passes_once_all_before_it_has_retired) {
    pass_after_all_before(true);
    pass_after_all_before(false);
}

Test(stream, what_comes_after_a_stream_wait_runs_after_the_event) {
    for (int is_ordered = 0; is_ordered < 2; is_ordered++) {
        vm_session session = open_with_held(true);
        eddy_vm_stream *other;
        cr_assert_eq(eddy_vm_stream_create(session.vm, is_ordered, 0, NULL, &other), EDDY_OK);
        session.stream = session.held;
        eddy_storage_number first = session_make(&session, 1);
        eddy_vm_event *event = record(&session, session.held);
        session.stream = other;
        eddy_storage_number before = session_make(&session, 2);
        cr_assert_eq(eddy_vm_stream_wait(session.vm, other, event, test_origin), EDDY_OK);
        eddy_storage_number after = session_make(&session, 3);
        session.stream = NULL;
        eddy_storage_number elsewhere = session_make(&session, 4);
        cr_assert_eq(session_read(&session, before), value_of(2, 0));
        cr_assert_eq(session_read(&session, elsewhere), value_of(4, 0));
        cr_assert_eq(eddy_vm_wait_storage(session.vm, after, &at_once), EDDY_TIMED_OUT);
        taken_error();
        session_step(&session);
        cr_assert_eq(session_read(&session, after), value_of(3, 0));
        eddy_vm_event_release(event);
        eddy_storage_number all[] = {first, before, after, elsewhere};
        for (int i = 0; i < 4; i++)
            session_release(&session, all[i]);
        eddy_vm_stream_release(other);
        session_close(&session);
    }
}

/* Two gates on an unordered stream: the second does not let through what the first still holds. */
Test(stream, gates_add_up) {
    vm_session session = open_with_held(false);
    eddy_vm_stream *other;
    cr_assert_eq(eddy_vm_stream_create(session.vm, false, 0, NULL, &other), EDDY_OK);
    session.stream = session.held;
    eddy_storage_number first = session_make(&session, 1);
    eddy_vm_event *event = record(&session, session.held);
    cr_assert_eq(eddy_vm_stream_wait(session.vm, other, event, test_origin), EDDY_OK);
    eddy_vm_event *passed = record(&session, NULL);
    cr_assert_eq(eddy_vm_event_wait(passed, &forever), EDDY_OK);
    cr_assert_eq(eddy_vm_stream_wait(session.vm, other, passed, test_origin), EDDY_OK);
    session.stream = other;
    session.cost_ps = COST_CALLER;
    eddy_storage_number after = session_make(&session, 2);
    cr_assert_not(eddy_vm_is_ready(session.vm, after));
    session_step(&session);
    cr_assert_eq(session_read(&session, after), value_of(2, 0));
    eddy_vm_event_release(event);
    eddy_vm_event_release(passed);
    session_release(&session, first);
    session_release(&session, after);
    eddy_vm_stream_release(other);
    session_close(&session);
}

/* A cheap op on a gated stream must not run at its call. */
Test(stream, a_gate_holds_back_what_the_caller_could_run_itself) {
    vm_session session = session_open_threads(2);
    session_hold(&session, true);
    session.stream = session.held;
    eddy_storage_number first = session_make(&session, 1);
    eddy_vm_event *event = record(&session, session.held);
    cr_assert_eq(eddy_vm_stream_wait(session.vm, NULL, event, test_origin), EDDY_OK);
    session.stream = NULL;
    eddy_storage_number after = session_make(&session, 2);
    cr_assert_not(eddy_vm_is_ready(session.vm, after));
    session_step(&session);
    cr_assert_eq(session_read(&session, after), value_of(2, 0));
    eddy_vm_event_release(event);
    session_release(&session, first);
    session_release(&session, after);
    session_close(&session);
}

Test(stream, a_touch_reads_on_its_stream) {
    vm_session session = open_with_held(true);
    eddy_vm_stream *other;
    cr_assert_eq(eddy_vm_stream_create(session.vm, true, 0, NULL, &other), EDDY_OK);
    session.stream = session.held;
    eddy_storage_number a = session_make(&session, 1);
    cr_assert_eq(eddy_vm_touch(session.vm, other, &a, 1, test_origin), EDDY_OK);
    eddy_vm_event *event = record(&session, other);
    cr_assert_not(eddy_vm_event_query(event));
    session_step(&session);
    cr_assert_eq(eddy_vm_event_wait(event, &forever), EDDY_OK, "the touch was in its way");
    cr_assert_eq(session_read(&session, a), value_of(1, 0));
    cr_assert_eq(eddy_vm_touch(session.vm, NULL, &a, 0, test_origin), EDDY_OK);
    eddy_vm_event_release(event);
    session_release(&session, a);
    eddy_vm_stream_release(other);
    session_close(&session);
}

Test(stream, an_ordered_stream_runs_in_order_whatever_the_costs) {
    vm_session session = session_open_threads(3);
    cr_assert_eq(eddy_vm_stream_create(session.vm, true, 1, NULL, &session.held), EDDY_OK);
    session.stream = session.held;
    static const int64_t costs[3] = {COST_CALLER, COST_SCHEDULER, COST_WORKER};
    eddy_storage_number a = session_make(&session, 1);
    int64_t expected = value_of(1, 0);
    for (int i = 0; i < 3000; i++) {
        session.cost_ps = costs[i * 7 % 3];
        session_mix_in(&session, a, i, 0, NULL);
        expected = synthetic_mix(expected, i);
    }
    cr_assert_eq(session_read(&session, a), expected);
    session_release(&session, a);
    session_close(&session);
}

Test(stream, a_released_stream_still_runs_what_it_was_given) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    eddy_vm_stream *stream;
    cr_assert_eq(eddy_vm_stream_create(session.vm, true, 0, NULL, &stream), EDDY_OK);
    session.stream = stream;
    vm_latch latch = {0};
    eddy_storage_number a = session_latch(&session, &latch, 0, NULL);
    eddy_storage_number b = session_make(&session, 2);
    eddy_vm_stream_release(stream);
    latch_open(&latch);
    cr_assert_eq(session_read(&session, b), value_of(2, 0));
    session_release(&session, a);
    session_release(&session, b);
    session_close(&session);
}

Test(stream, numbers_of_released_streams_are_used_again) {
    vm_session session = session_open_threads(2);
    for (int i = 0; i < 3 * EDDY_STREAM_MAX; i++) {
        eddy_vm_stream *stream;
        cr_assert_eq(eddy_vm_stream_create(session.vm, i % 2, 0, NULL, &stream), EDDY_OK,
                     "stream %d", i);
        session.stream = stream;
        session_release(&session, session_make(&session, i));
        session_settle(&session);
        eddy_vm_stream_release(stream);
    }
    session_close(&session);
}

Test(stream, more_streams_than_there_are_numbers_is_an_error) {
    vm_session session = session_open_threads(2);
    static eddy_vm_stream *streams[EDDY_STREAM_MAX];
    int count = 0;
    eddy_status status;
    while ((status = eddy_vm_stream_create(session.vm, true, 0, NULL, &streams[count])) == EDDY_OK)
        count++;
    cr_assert_eq(count, EDDY_STREAM_MAX - 1);
    cr_assert_eq(status, EDDY_OUT_OF_MEMORY);
    cr_assert_eq(taken_error().status, EDDY_OUT_OF_MEMORY);
    while (count > 0)
        eddy_vm_stream_release(streams[--count]);
    session_close(&session);
}

/* The wait outlives its caller's reference to the event. Records are kept in the ring meanwhile: the scheduler thread is
 * inside a kernel that it took for a cheap one. */
Test(stream, an_event_may_be_released_after_a_wait_on_it_timed_out) {
    vm_session session = session_open((eddy_runtime_options){.threads = 2, .uses_full_path = true});
    session.cost_ps = COST_SCHEDULER;
    vm_latch latch = {0};
    eddy_storage_number a = session_latch(&session, &latch, 0, NULL);
    latch_await(&latch, 1);
    eddy_vm_event *event = record(&session, NULL);
    cr_assert_eq(eddy_vm_event_wait(event, &at_once), EDDY_TIMED_OUT);
    taken_error();
    eddy_vm_event_release(event);
    latch_open(&latch);
    session_release(&session, a);
    session_close(&session);
}

Test(stream, an_event_of_another_vm_is_refused) {
    vm_session session = session_open_threads(2), other = session_open_threads(2);
    eddy_vm_event *event = record(&other, NULL);
    cr_assert_eq(eddy_vm_stream_wait(session.vm, NULL, event, test_origin), EDDY_RUNTIME_MISMATCH);
    cr_assert_eq(taken_error().status, EDDY_RUNTIME_MISMATCH);
    eddy_vm_event_release(event);
    cr_assert_eq(eddy_vm_close(other.vm, EDDY_CLOCK_FOREVER), EDDY_OK);
    eddy_vm_destroy(other.vm);
    session_close(&session);
}
