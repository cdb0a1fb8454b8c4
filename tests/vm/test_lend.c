#include "session.h"

static eddy_vm_lend *lend(vm_session *session, eddy_storage_number storage, bool is_mut,
                          int64_t **cells) {
    void *data;
    eddy_vm_lend *lend;
    eddy_status status = eddy_vm_lend_begin(session->vm, storage, is_mut, &forever, &data, &lend);
    cr_assert_eq(status, EDDY_OK, "%s", eddy_status_text(status));
    *cells = data;
    return lend;
}

static vm_session open_two_threads(void) {
    return session_open_threads(2);
}

Test(lend, what_is_issued_meanwhile_runs_after_the_end) {
    vm_session session = open_two_threads();
    eddy_storage_number a = session_make(&session, 1);
    int64_t *cells;
    eddy_vm_lend *open = lend(&session, a, true, &cells);
    eddy_storage_number b = session_make_from(&session, 2, 1, &a);
    session_mix_in(&session, a, 3, 0, NULL);
    cells[0] = 1000;
    cr_assert_not(eddy_vm_is_ready(session.vm, b));
    eddy_vm_lend_end(session.vm, open, false);
    cr_assert_eq(session_read(&session, b), value_from(2, 1000));
    cr_assert_eq(session_read(&session, a), synthetic_mix(1000, 3));
    session_release(&session, a);
    session_release(&session, b);
    session_close(&session);
}

Test(lend, readers_run_beside_a_lend_for_reading_and_writers_wait) {
    vm_session session = open_two_threads();
    eddy_storage_number a = session_make(&session, 1);
    int64_t *cells;
    eddy_vm_lend *open = lend(&session, a, false, &cells);
    eddy_storage_number b = session_make_from(&session, 2, 1, &a);
    cr_assert_eq(session_read(&session, b), value_from(2, value_of(1, 0)));
    session_overwrite(&session, a, 5);
    cr_assert_eq(cells[1], value_of(1, 1));
    cr_assert_not(eddy_vm_is_ready(session.vm, a));
    eddy_vm_lend_end(session.vm, open, false);
    cr_assert_eq(session_read(&session, a), value_of(5, 0));
    session_release(&session, a);
    session_release(&session, b);
    session_close(&session);
}

static void *end_it(void *context) {
    eddy_vm_lend **open = context;
    eddy_vm_lend_end(((eddy_node *)(void *)*open)->vm, *open, false);
    return NULL;
}

Test(lend, any_thread_may_end_it) {
    vm_session session = open_two_threads();
    eddy_storage_number a = session_make(&session, 1);
    int64_t *cells;
    eddy_vm_lend *open = lend(&session, a, true, &cells);
    pthread_t thread;
    start_thread(&thread, end_it, &open);
    join_thread(thread);
    session_overwrite(&session, a, 2);
    cr_assert_eq(session_read(&session, a), value_of(2, 0));
    session_release(&session, a);
    session_close(&session);
}

Test(lend, a_wait_behind_ones_own_lend_is_refused_at_once) {
    vm_session session = open_two_threads();
    eddy_storage_number a = session_make(&session, 1);
    int64_t *cells;
    eddy_vm_lend *open = lend(&session, a, true, &cells);
    eddy_storage_number b = session_make_from(&session, 2, 1, &a);
    eddy_storage_number c = session_make_from(&session, 3, 1, &b);
    void *data;
    eddy_vm_lend *second;
    eddy_vm_event *event;
    cr_assert_eq(eddy_vm_wait_storage(session.vm, a, &forever), EDDY_WOULD_DEADLOCK);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, c, &forever), EDDY_WOULD_DEADLOCK);
    cr_assert_eq(eddy_vm_lend_begin(session.vm, c, false, &forever, &data, &second),
                 EDDY_WOULD_DEADLOCK);
    cr_assert_eq(eddy_vm_lend_begin(session.vm, a, true, &forever, &data, &second),
                 EDDY_WOULD_DEADLOCK);
    cr_assert_eq(eddy_vm_sync(session.vm, &forever, NULL), EDDY_WOULD_DEADLOCK);
    cr_assert_eq(eddy_vm_event_record(session.vm, NULL, test_origin, &event), EDDY_OK);
    cr_assert_eq(eddy_vm_event_wait(event, &forever), EDDY_WOULD_DEADLOCK);
    eddy_error error = taken_error();
    cr_assert_eq(error.status, EDDY_WOULD_DEADLOCK);
    cr_assert_eq(error.more, 5);
    eddy_vm_lend_end(session.vm, open, false);
    cr_assert_eq(eddy_vm_event_wait(event, &forever), EDDY_OK);
    cr_assert_eq(session_read(&session, c), value_from(3, value_from(2, value_of(1, 0))));
    eddy_vm_event_release(event);
    session_release(&session, a);
    session_release(&session, b);
    session_release(&session, c);
    session_close(&session);
}

/* A chain that is longer than a search for something to help with. */
#define CHAIN 1000

static eddy_storage_number chain_behind(vm_session *session, eddy_storage_number first) {
    eddy_storage_number last = session_make_from(session, 0, 1, &first);
    for (int i = 1; i < CHAIN; i++)
        session_mix_in(session, last, i, 0, NULL);
    return last;
}

/* Calls of an ordered stream have no edges between them: those that are not in its queue yet are a chain. */
Test(lend, a_wait_far_down_the_stream_behind_ones_own_lend_is_refused_at_once) {
    vm_session session = open_two_threads();
    eddy_storage_number a = session_make(&session, 1), made[CHAIN];
    int64_t *cells;
    session_hold(&session, true);
    eddy_vm_lend *open = lend(&session, a, true, &cells);
    session.stream = session.held;
    eddy_storage_number behind = session_make_from(&session, 2, 1, &a);
    for (int i = 0; i < CHAIN; i++)
        made[i] = session_make(&session, i);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, made[CHAIN - 1], &forever), EDDY_WOULD_DEADLOCK);
    cr_assert_eq(taken_error().status, EDDY_WOULD_DEADLOCK);
    eddy_vm_lend_end(session.vm, open, false);
    for (int i = 0; i < CHAIN + 1; i++)
        session_step(&session);
    session_release(&session, a);
    session_release(&session, behind);
    for (int i = 0; i < CHAIN; i++) {
        cr_assert_eq(session_read(&session, made[i]), value_of(i, 0));
        session_release(&session, made[i]);
    }
    session_close(&session);
}

Test(lend, a_wait_far_behind_ones_own_lend_is_refused_at_once) {
    vm_session session = open_two_threads();
    eddy_storage_number a = session_make(&session, 1);
    int64_t *cells;
    eddy_vm_lend *open = lend(&session, a, true, &cells);
    eddy_storage_number last = chain_behind(&session, a);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, last, &forever), EDDY_WOULD_DEADLOCK);
    cr_assert_eq(taken_error().status, EDDY_WOULD_DEADLOCK);
    cr_assert_eq(eddy_vm_sync(session.vm, &forever, NULL), EDDY_WOULD_DEADLOCK);
    cr_assert_eq(taken_error().status, EDDY_WOULD_DEADLOCK);
    eddy_vm_lend_end(session.vm, open, false);
    session_release(&session, a);
    session_release(&session, last);
    session_close(&session);
}

typedef struct poller {
    vm_session *session;
    eddy_storage_number storage;
} poller;

/* Waits for a nanosecond, so many times. */
static void *poll(void *context) {
    poller *p = context;
    eddy_vm_wait soon = {1, {"test", NULL}};
    for (int i = 0; i < 10; i++) {
        cr_assert_eq(eddy_vm_wait_storage(p->session->vm, p->storage, &soon), EDDY_TIMED_OUT);
        cr_assert_eq(taken_error().status, EDDY_TIMED_OUT);
    }
    return NULL;
}

Test(lend, a_wait_behind_anothers_lend_does_not_look_at_all_of_what_is_behind_it) {
    vm_session session = session_open((eddy_runtime_options){.uses_one_thread = true});
    eddy_storage_number a = session_make(&session, 1);
    int64_t *cells;
    eddy_vm_lend *open = lend(&session, a, true, &cells);
    eddy_storage_number last = chain_behind(&session, a);
    uint64_t before = session.vm->engine.visited;
    poller p = {&session, last};
    pthread_t thread;
    start_thread(&thread, poll, &p);
    join_thread(thread);
    /* In one-thread mode each has played the engine itself, and is over. */
    cr_assert_gt(session.vm->engine.visited, before);
    cr_assert_lt(session.vm->engine.visited - before, 10 * CHAIN / 2);
    eddy_vm_lend_end(session.vm, open, false);
    session_release(&session, a);
    session_release(&session, last);
    session_close(&session);
}

Test(lend, what_has_nothing_to_do_with_the_lend_may_be_waited_for) {
    vm_session session = open_two_threads();
    eddy_storage_number a = session_make(&session, 1), b = session_make(&session, 2);
    int64_t *cells;
    eddy_vm_lend *open = lend(&session, a, true, &cells);
    session_mix_in(&session, b, 3, 0, NULL);
    cr_assert_eq(session_read(&session, b), synthetic_mix(value_of(2, 0), 3));
    eddy_vm_lend_end(session.vm, open, false);
    session_release(&session, a);
    session_release(&session, b);
    session_close(&session);
}

Test(lend, a_poisoned_storage_is_refused_with_its_record) {
    vm_session session = open_two_threads();
    eddy_storage_number a = session_make_failing(&session, 9);
    void *data = NULL;
    eddy_vm_lend *open = NULL;
    cr_assert_eq(eddy_vm_lend_begin(session.vm, a, true, &forever, &data, &open),
                 EDDY_OUT_OF_RANGE);
    cr_assert_not_null(strstr(taken_error().message, "seed 9"));
    session_overwrite(&session, a, 4);
    cr_assert_eq(session_read(&session, a), value_of(4, 0), "nothing stayed lent");
    session_release(&session, a);
    session_close(&session);
}

Test(lend, a_lender_whose_write_failed_leaves_it_torn) {
    vm_session session = open_two_threads();
    eddy_storage_number a = session_make(&session, 1);
    int64_t *cells;
    eddy_vm_lend *open = lend(&session, a, true, &cells);
    eddy_vm_lend_end(session.vm, open, true);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, a, &forever), EDDY_TORN);
    eddy_error error = taken_error();
    cr_assert_str_eq(error.op, "map");
    session_overwrite(&session, a, 2);
    cr_assert_eq(session_read(&session, a), value_of(2, 0));
    session_release(&session, a);
    session_close(&session);
}

Test(lend, a_lend_that_timed_out_is_not_granted_later) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    session_hold(&session, true);
    session.stream = session.held;
    eddy_storage_number a = session_make(&session, 1);
    void *data;
    eddy_vm_lend *open;
    cr_assert_eq(eddy_vm_lend_begin(session.vm, a, true, &at_once, &data, &open), EDDY_TIMED_OUT);
    eddy_vm_wait briefly = {1000000, {"map", NULL}};
    cr_assert_eq(eddy_vm_lend_begin(session.vm, a, true, &briefly, &data, &open), EDDY_TIMED_OUT);
    taken_error();
    session_step(&session);
    cr_assert_eq(session_read(&session, a), value_of(1, 0), "nobody has it");
    session_release(&session, a);
    session_close(&session);
}

/* In every mode, also where each op runs at its call and each call waits. */
Test(lend, ops_behind_a_lend_are_queued_in_every_mode) {
    eddy_runtime_options modes[] = {{.threads = 2},
                                    {.threads = 2, .uses_full_path = true},
                                    {.threads = 2, .uses_worker_path = true},
                                    {.uses_one_thread = true},
                                    {.threads = 2, .syncs_each_op = true},
                                    {.uses_one_thread = true, .syncs_each_op = true}};
    for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
        vm_session session = session_open(modes[m]);
        eddy_storage_number a = session_make(&session, 1);
        int64_t *cells;
        eddy_vm_lend *open = lend(&session, a, true, &cells);
        eddy_storage_number b = session_make_from(&session, 2, 1, &a);
        cells[0] = 77;
        cr_assert_eq(taken_error().status, EDDY_OK, "mode %zu", m);
        eddy_vm_lend_end(session.vm, open, false);
        cr_assert_eq(session_read(&session, b), value_from(2, 77), "mode %zu", m);
        session_release(&session, a);
        session_release(&session, b);
        session_close(&session);
    }
}

/* Released while lent: the memory stays until the lend ends. */
Test(lend, a_storage_released_while_lent_lives_until_the_end) {
    vm_session session = open_two_threads();
    eddy_storage_number a = session_make(&session, 1);
    int64_t *cells;
    eddy_vm_lend *open = lend(&session, a, true, &cells);
    session_release(&session, a);
    for (int i = 0; i < 1000; i++)
        session_release(&session, session_make(&session, i));
    cr_assert_eq(cells[0], value_of(1, 0));
    cells[3] = 5;
    eddy_vm_lend_end(session.vm, open, false);
    session_close(&session);
}

/* An open lend is no instruction in flight: its holder may issue however low the marks are. */
Test(lend, open_lends_do_not_count_against_the_marks) {
    vm_session session = session_open(
        (eddy_runtime_options){.threads = 2, .uses_full_path = true, .in_flight_high = 4});
    enum { LENDS = 6 };
    eddy_storage_number lent[LENDS];
    eddy_vm_lend *open[LENDS];
    int64_t *cells;
    for (int i = 0; i < LENDS; i++) {
        lent[i] = session_make(&session, i);
        open[i] = lend(&session, lent[i], true, &cells);
    }
    for (int i = 0; i < 100; i++)
        session_release(&session, session_make(&session, i));
    for (int i = 0; i < LENDS; i++) {
        eddy_vm_lend_end(session.vm, open[i], false);
        session_release(&session, lent[i]);
    }
    session_close(&session);
}

/* An event recorded behind a lend, and a stream that waits for it: what is issued there is behind the lend as well. */
Test(lend, a_marker_behind_a_lend_does_not_count_against_the_marks) {
    vm_session session = session_open(
        (eddy_runtime_options){.threads = 2, .uses_full_path = true, .in_flight_high = 4});
    eddy_vm_stream *stream;
    cr_assert_eq(eddy_vm_stream_create(session.vm, true, 0, NULL, &stream), EDDY_OK);
    eddy_storage_number a = session_make(&session, 1);
    int64_t *cells;
    eddy_vm_lend *open = lend(&session, a, true, &cells);
    eddy_vm_event *event;
    cr_assert_eq(eddy_vm_event_record(session.vm, NULL, test_origin, &event), EDDY_OK);
    cr_assert_eq(eddy_vm_stream_wait(session.vm, stream, event, test_origin), EDDY_OK);
    session.stream = stream;
    for (int i = 0; i < 100; i++)
        session_release(&session, session_make(&session, i));
    cr_assert_not(eddy_vm_event_query(event));
    eddy_vm_lend_end(session.vm, open, false);
    cr_assert_eq(eddy_vm_event_wait(event, &forever), EDDY_OK);
    eddy_vm_event_release(event);
    session_release(&session, a);
    eddy_vm_stream_release(stream);
    session_close(&session);
}
