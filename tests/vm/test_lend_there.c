/* Lends to code of the device, from their end to the arrival of the ticket that settles them (vm/DEVICES.md 7). The device is a far one by hand that has streams to lend, on which the test
 * launches nothing; what the borrower of a CUDA stream launches is in tests/interpreter/host/test_cuda_lend.c. */
#include "by_hand.h"

static void *lend_stream(eddy_backend_queue *queue) {
    return queue;
}

static eddy_status end_lend(eddy_backend_queue *queue) {
    (void)queue;
    return EDDY_OK;
}

static vm_session open_lending_of(int64_t bytes) {
    vm_session session = session_open_threads(2);
    session.far = eddy_far_create(&(eddy_far_options){.is_by_hand = true, .bytes = bytes});
    cr_assert_not_null(session.far);
    own_class = *session.far->class;
    own_class.lend_begin = lend_stream;
    own_class.lend_end = end_lend;
    session.far->class = &own_class;
    session_add(&session, session.far);
    return session;
}

static vm_session open_lending(void) {
    return open_lending_of(0);
}

static eddy_storage_number make_there(vm_session *session, uint64_t ticket) {
    eddy_storage_number storage = session_make(session, (int64_t)ticket);
    await_ticket(session, ticket);
    run_pieces(session, 2);
    cr_assert_eq(eddy_vm_wait_storage(session->vm, storage, &forever), EDDY_OK);
    return storage;
}

static eddy_vm_lend *lend(vm_session *session, eddy_storage_number storage, bool is_mut) {
    void *data, *native;
    eddy_vm_lend *lend;
    cr_assert_eq(eddy_vm_lend_begin_there(session->vm, storage, is_mut, session->far_streams[0],
                                          &forever, &data, &native, &lend),
                 EDDY_OK);
    return lend;
}

/* The borrower's launches may not have run, whatever they say. */
Test(lend_there, a_device_lost_before_it_settles_tears_what_was_written) {
    vm_session session = open_lending();
    eddy_storage_number written = make_there(&session, 1), read = make_there(&session, 2);
    eddy_vm_lend *writes = lend(&session, written, true), *reads = lend(&session, read, false);
    cr_assert_eq(eddy_vm_lend_end_there(session.vm, writes), EDDY_OK);
    cr_assert_eq(eddy_vm_lend_end_there(session.vm, reads), EDDY_OK);
    await_ticket(&session, 4);
    cr_assert_not(eddy_vm_is_ready(session.vm, written));
    eddy_far_lose(session.far);
    cr_assert_eq(wait_for(&session, written), EDDY_TORN);
    cr_assert_eq(wait_for(&session, read), EDDY_OK, "it was only read");
    session_release(&session, written);
    session_release(&session, read);
    session_close(&session);
}

Test(lend_there, a_device_lost_once_it_has_settled_leaves_what_was_written) {
    vm_session session = open_lending();
    eddy_storage_number storage = make_there(&session, 1);
    cr_assert_eq(eddy_vm_lend_end_there(session.vm, lend(&session, storage, true)), EDDY_OK);
    await_ticket(&session, 2);
    run_pieces(&session, 1);
    eddy_far_lose(session.far);
    cr_assert_eq(wait_for(&session, storage), EDDY_OK);
    session_release(&session, storage);
    session_close(&session);
}

/* Also on the queue that was lent, where the order would do: an instruction that has no ticket yet is ordered with any queue. */
Test(lend_there, what_comes_behind_is_not_launched_before_it_has_settled) {
    vm_session session = open_lending();
    eddy_storage_number storage = make_there(&session, 1), behind[2];
    eddy_vm_lend *writes = lend(&session, storage, true);
    for (int i = 0; i < 2; i++) {
        session.stream = session.far_streams[i];
        behind[i] = session_make_from(&session, 10 + i, 1, &storage);
    }
    cr_assert_eq(eddy_vm_lend_end_there(session.vm, writes), EDDY_OK);
    await_ticket(&session, 2);
    cr_assert_eq(session.vm->devices[session.device]->ticket, 2, "that with which it settles");
    run_pieces(&session, 1);
    await_ticket(&session, 4);
    run_pieces(&session, 4);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(wait_for(&session, behind[i]), EDDY_OK);
    eddy_storage_number all[] = {storage, behind[0], behind[1]};
    for (int i = 0; i < 3; i++)
        session_release(&session, all[i]);
    session_close(&session);
}

Test(lend_there, a_lost_device_lends_nothing) {
    vm_session session = open_lending();
    eddy_storage_number storage = make_there(&session, 1);
    eddy_far_lose(session.far);
    void *data, *native;
    eddy_vm_lend *none;
    cr_assert_eq(eddy_vm_lend_begin_there(session.vm, storage, false, session.far_streams[0],
                                          &forever, &data, &native, &none),
                 EDDY_DEVICE_LOST);
    taken_error();
    session_release(&session, storage);
    session_close(&session);
}

/* It has been released, and goes with the end of the lend, which comes ahead of what was called before it and lacks its memory. */
Test(lend_there, what_lacks_the_memory_of_a_lend_that_has_ended_gets_it) {
    vm_session session = open_lending_of(8 << 20);
    eddy_storage_number storage = session_make_sized(&session, 1, 6 << 20, 0, NULL);
    await_ticket(&session, 1);
    run_pieces(&session, 2);
    cr_assert_eq(wait_for(&session, storage), EDDY_OK);
    session.stream = session.far_streams[1];
    hold_back(&session, session.stream);
    eddy_storage_number large = session_make_sized(&session, 1, 6 << 20, 0, NULL);
    eddy_vm_lend *reads = lend(&session, storage, false);
    session_release(&session, storage);
    session.stream = session.far_streams[2];
    eddy_storage_number running = session_make(&session, 2);
    await_ticket(&session, 2);
    session_step(&session);
    await_stall(&session);
    cr_assert_eq(eddy_vm_lend_end_there(session.vm, reads), EDDY_OK);
    run_pieces(&session, 2 + 1 + 1 + 2);
    cr_assert_eq(wait_for(&session, large), EDDY_OK);
    session_release(&session, large);
    session_release(&session, running);
    session_close(&session);
}

/* A call of the host, which runs until session_step: meanwhile nobody fails for want of memory. */
static void run_on_the_host(vm_session session) {
    session.device = 0;
    session.stream = session.held;
    session_release(&session, session_make(&session, 1));
}

/* One that began when something lacked memory already gives it no further chance: such lends might come without end. */
Test(lend_there, what_lacks_memory_waits_for_no_lend_that_begins_meanwhile) {
    vm_session session = open_lending_of(12 << 20);
    eddy_storage_number kept = session_make_sized(&session, 1, 6 << 20, 0, NULL);
    await_ticket(&session, 1);
    run_pieces(&session, 2);
    eddy_storage_number lent[2] = {make_there(&session, 2), make_there(&session, 3)};
    session_hold(&session, true);
    run_on_the_host(session);
    eddy_vm_lend *first = lend(&session, lent[0], false);
    eddy_storage_number large = session_make_sized(&session, 4, 6 << 20, 0, NULL);
    await_stall(&session);
    cr_assert_eq(eddy_vm_lend_end_there(session.vm, first), EDDY_OK);
    session_step(&session);
    await_ticket(&session, 6); /* its end has been taken back, with its first one, and launched */
    run_on_the_host(session);
    eddy_vm_lend *second = lend(&session, lent[1], false);
    run_pieces(&session, 1); /* the first has settled */
    await_stall(&session);
    cr_assert_eq(eddy_vm_lend_end_there(session.vm, second), EDDY_OK);
    session_step(&session);
    run_pieces(&session, 1); /* of what fails, not of the end of the second lend */
    cr_assert_eq(wait_for(&session, large), EDDY_OUT_OF_MEMORY);
    run_pieces(&session, 1);
    eddy_storage_number all[] = {kept, lent[0], lent[1], large};
    for (int i = 0; i < 4; i++)
        session_release(&session, all[i]);
    session_close(&session);
}
