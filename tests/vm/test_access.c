#include "session.h"
#include <vm/service.h>

typedef struct seen {
    eddy_vm *vm;
    int calls;
    int64_t first_cell;
    int64_t bytes;
    bool had_data, had_error, was_service_thread;
    eddy_status status;
    eddy_error error;
    int64_t writes;  /* written to cell 0 where not 0 */
    vm_latch *latch; /* passed where not NULL */
    void (*also)(struct seen *seen);
} seen;

static void note(void *context, void *data, int64_t bytes, const eddy_error *error) {
    seen *noted = context;
    if (noted->latch)
        latch_pass(noted->latch);
    noted->was_service_thread = eddy_service_is_current_thread();
    noted->bytes = bytes;
    noted->had_data = data != NULL;
    noted->had_error = error != NULL;
    if (error)
        noted->error = *error;
    if (data) {
        noted->first_cell = *(int64_t *)data;
        if (noted->writes)
            *(int64_t *)data = noted->writes;
    }
    if (noted->also)
        noted->also(noted);
    noted->calls++;
}

static void call_back(vm_session *session, eddy_storage_number storage, bool is_mut, seen *noted) {
    cr_assert_eq(eddy_vm_access(session->vm, storage, is_mut, note, noted, test_origin), EDDY_OK);
}

Test(access, a_reading_callback_gets_the_bytes_on_the_service_thread) {
    vm_session session = session_open_threads(2);
    eddy_storage_number a = session_make(&session, 1);
    seen noted = {0};
    call_back(&session, a, false, &noted);
    session_overwrite(&session, a, 2);
    cr_assert_eq(session_read(&session, a), value_of(2, 0));
    cr_assert_eq(noted.calls, 1);
    cr_assert_eq(noted.first_cell, value_of(1, 0), "what was there at the call");
    cr_assert_eq(noted.bytes, CELLS * 8);
    cr_assert(noted.was_service_thread);
    cr_assert_not(noted.had_error);
    session_release(&session, a);
    session_close(&session);
}

Test(access, a_writing_callback_is_ordered_like_an_instruction_that_writes) {
    vm_session session = session_open_threads(2);
    eddy_storage_number a = session_make(&session, 1);
    seen first = {.writes = 500}, second = {.writes = 600};
    call_back(&session, a, true, &first);
    eddy_storage_number b = session_make_from(&session, 3, 1, &a);
    call_back(&session, a, true, &second);
    cr_assert_eq(session_read(&session, b), value_from(3, 500));
    cr_assert_eq(session_read(&session, a), 600);
    cr_assert_eq(second.first_cell, 500);
    session_release(&session, a);
    session_release(&session, b);
    session_close(&session);
}

Test(access, a_poisoned_storage_gives_its_record_and_no_data) {
    vm_session session = session_open_threads(2);
    eddy_storage_number a = session_make_failing(&session, 8);
    seen noted = {0};
    call_back(&session, a, true, &noted);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, a, &forever), EDDY_OUT_OF_RANGE);
    taken_error();
    cr_assert_eq(noted.calls, 1);
    cr_assert(noted.had_error);
    cr_assert_not(noted.had_data);
    cr_assert_eq(noted.error.status, EDDY_OUT_OF_RANGE);
    cr_assert_not_null(strstr(noted.error.message, "seed 8"));
    session_release(&session, a);
    session_close(&session);
}

Test(access, a_storage_released_before_the_callback_ran_lives_until_it_has) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    session_hold(&session, true);
    session.stream = session.held;
    eddy_storage_number a = session_make(&session, 1);
    seen noted = {0};
    call_back(&session, a, false, &noted);
    session_release(&session, a);
    session_step(&session);
    session_settle(&session);
    cr_assert_eq(noted.first_cell, value_of(1, 0));
    session_close(&session);
}

Test(access, callbacks_run_one_at_a_time_in_order) {
    vm_session session = session_open_threads(3);
    enum { COUNT = 200 };
    static seen noted[COUNT];
    eddy_storage_number a = session_make(&session, 1);
    for (int i = 0; i < COUNT; i++) {
        noted[i].writes = i + 1;
        call_back(&session, a, true, &noted[i]);
    }
    cr_assert_eq(session_read(&session, a), COUNT);
    for (int i = 1; i < COUNT; i++)
        cr_assert_eq(noted[i].first_cell, i);
    session_release(&session, a);
    session_close(&session);
}

static int reads_seen;

static void note_place(seen *noted) {
    noted->writes = reads_seen++;
}

/* Though they all wait for the same instruction. */
Test(access, reads_of_what_is_being_made_come_in_order) {
    enum { COUNT = 9 };
    static seen noted[COUNT];
    vm_session session = session_open_threads(2);
    vm_latch latch = {0};
    session.cost_ps = COST_WORKER;
    eddy_storage_number a = session_latch(&session, &latch, 0, NULL);
    for (int i = 0; i < COUNT; i++) {
        noted[i] = (seen){.also = note_place};
        call_back(&session, a, false, &noted[i]);
    }
    latch_open(&latch);
    session_settle(&session);
    cr_assert_eq(eddy_vm_sync_service(session.vm, &forever), EDDY_OK);
    for (int i = 0; i < COUNT; i++)
        cr_assert_eq(noted[i].writes, i, "%d", i);
    session_release(&session, a);
    session_close(&session);
}

Test(access, kernels_run_while_a_callback_takes_its_time) {
    vm_session session = session_open_threads(2);
    eddy_storage_number a = session_make(&session, 1), b = session_make(&session, 2);
    vm_latch latch = {0};
    seen noted = {.latch = &latch};
    call_back(&session, a, true, &noted);
    latch_await(&latch, 1);
    for (int i = 0; i < 100; i++)
        session_mix_in(&session, b, i, 0, NULL);
    session_read(&session, b);
    cr_assert_not(eddy_vm_is_ready(session.vm, a));
    latch_open(&latch);
    session_settle(&session);
    cr_assert_eq(noted.calls, 1);
    session_release(&session, a);
    session_release(&session, b);
    session_close(&session);
}

/* The system gives no thread when the first callback is due: the call says so, or the callback runs; nothing hangs. */
Test(access, no_service_thread_to_be_had_is_no_hang) {
    vm_session session = session_open_threads(2);
    eddy_storage_number a = session_make(&session, 1);
    eddy_thread_fail_at(0, 1000);
    seen noted = {0};
    if (eddy_vm_access(session.vm, a, true, note, &noted, test_origin) == EDDY_OK) {
        cr_assert_eq(eddy_vm_wait_storage(session.vm, a, &forever), EDDY_OK);
        cr_assert_eq(noted.calls, 1);
    } else {
        cr_assert_neq(taken_error().status, EDDY_OK);
    }
    eddy_thread_fail_at(0, 0);
    call_back(&session, a, true, &noted);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, a, &forever), EDDY_OK);
    session_release(&session, a);
    session_close(&session);
}

Test(access, a_callback_of_a_released_vm_is_refused) {
    vm_session session = session_open_threads(2);
    eddy_storage_number a = session_make(&session, 1);
    cr_assert_eq(eddy_vm_close(session.vm, EDDY_CLOCK_FOREVER), EDDY_OK);
    seen noted = {0};
    cr_assert_eq(eddy_vm_access(session.vm, a, true, note, &noted, test_origin), EDDY_SHUT_DOWN);
    taken_error();
    eddy_vm_destroy(session.vm);
    cr_assert_eq(noted.calls, 0);
}
