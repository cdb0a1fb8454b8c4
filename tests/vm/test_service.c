#include "session.h"
#include <vm/service.h>

typedef struct service_piece {
    eddy_vm *vm;
    _Atomic int *order;
    int found;
    pthread_t thread;
    vm_latch *latch;
    eddy_storage_number released; /* given up from inside the deleter, where not 0 */
} service_piece;

static void run_piece(void *context) {
    service_piece *piece = context;
    if (piece->latch)
        latch_pass(piece->latch);
    piece->thread = pthread_self();
    piece->found = eddy_add_relaxed(piece->order, 1);
    if (piece->released)
        synthetic_release(piece->vm, piece->released);
}

static int64_t borrowed[CELLS];

static void delete_later(vm_session *session, service_piece *piece) {
    eddy_storage_number storage;
    cr_assert_eq(
        eddy_vm_storage_borrow(session->vm, borrowed, sizeof(borrowed), run_piece, piece, &storage),
        EDDY_OK);
    session_release(session, storage);
}

typedef struct pushed_piece {
    eddy_service_item item; /* first: the service hands it back */
    service_piece piece;
} pushed_piece;

static void run_pushed(eddy_service_item *item) {
    run_piece(&((pushed_piece *)(void *)item)->piece);
}

/* Pushed by hand: releases may take effect in another order than they are asked for in, where one of them finds the lock taken. */
Test(service, pieces_run_in_order_on_one_thread) {
    vm_session session = session_open_threads(2);
    enum { COUNT = 500 };
    static pushed_piece pieces[COUNT];
    static _Atomic int order;
    cr_assert_eq(eddy_service_start(session.vm, test_origin), EDDY_OK);
    for (int i = 0; i < COUNT; i++) {
        pieces[i] = (pushed_piece){{.run = run_pushed}, {.order = &order}};
        eddy_service_push(session.vm, &pieces[i].item);
    }
    cr_assert_eq(eddy_vm_sync_service(session.vm, &forever), EDDY_OK);
    for (int i = 0; i < COUNT; i++) {
        const service_piece *piece = &pieces[i].piece;
        cr_assert_eq(piece->found, i);
        cr_assert(pthread_equal(piece->thread, pieces[0].piece.thread));
        cr_assert_not(pthread_equal(piece->thread, pthread_self()));
    }
    session_close(&session);
}

Test(service, each_deleter_runs_once_on_that_thread) {
    vm_session session = session_open_threads(2);
    enum { COUNT = 500 };
    static service_piece pieces[COUNT];
    static _Atomic int order;
    static bool was_found[COUNT];
    for (int i = 0; i < COUNT; i++) {
        pieces[i] = (service_piece){.order = &order};
        delete_later(&session, &pieces[i]);
    }
    session_settle(&session); /* each release has taken effect */
    cr_assert_eq(eddy_vm_sync_service(session.vm, &forever), EDDY_OK);
    cr_assert_eq(order, COUNT);
    for (int i = 0; i < COUNT; i++) {
        cr_assert_not(was_found[pieces[i].found]);
        was_found[pieces[i].found] = true;
        cr_assert(pthread_equal(pieces[i].thread, pieces[0].thread));
    }
    session_close(&session);
}

Test(service, waiting_for_it_obeys_the_timeout) {
    vm_session session = session_open_threads(2);
    _Atomic int order = 0;
    vm_latch latch = {0};
    service_piece piece = {.order = &order, .latch = &latch};
    delete_later(&session, &piece);
    latch_await(&latch, 1);
    eddy_vm_wait briefly = {1000000, {"sync", NULL}};
    cr_assert_eq(eddy_vm_sync_service(session.vm, &at_once), EDDY_TIMED_OUT);
    cr_assert_eq(eddy_vm_sync_service(session.vm, &briefly), EDDY_TIMED_OUT);
    cr_assert_eq(taken_error().status, EDDY_TIMED_OUT);
    latch_open(&latch);
    cr_assert_eq(eddy_vm_sync_service(session.vm, &forever), EDDY_OK);
    session_close(&session);
}

Test(service, a_vm_without_user_code_has_no_service_thread) {
    vm_session session = session_open_threads(2);
    /* The next thread that the VM makes would fail. */
    eddy_thread_fail_at(0, 1000);
    session_release(&session, session_make(&session, 1));
    session_settle(&session);
    cr_assert_eq(eddy_vm_sync_service(session.vm, &forever), EDDY_OK);
    eddy_thread_fail_at(0, 0);
    session_close(&session);
}

Test(service, no_thread_to_be_had_refuses_the_buffer_and_calls_nothing) {
    vm_session session = session_open_threads(2);
    _Atomic int order = 0;
    service_piece piece = {.order = &order};
    eddy_storage_number storage;
    eddy_thread_fail_at(0, 1);
    cr_assert_eq(
        eddy_vm_storage_borrow(session.vm, borrowed, sizeof(borrowed), run_piece, &piece, &storage),
        EDDY_INTERNAL);
    cr_assert_eq(taken_error().status, EDDY_INTERNAL);
    delete_later(&session, &piece);
    cr_assert_eq(eddy_vm_sync_service(session.vm, &forever), EDDY_OK);
    cr_assert_eq(order, 1);
    session_close(&session);
}

Test(service, deleters_that_are_still_due_run_before_the_vm_is_gone) {
    vm_session session = session_open_threads(2);
    _Atomic int order = 0;
    vm_latch latch = {.is_open = 1};
    service_piece pieces[20];
    for (int i = 0; i < 20; i++) {
        pieces[i] = (service_piece){.order = &order, .latch = &latch};
        delete_later(&session, &pieces[i]);
    }
    session_close(&session);
    cr_assert_eq(order, 20);
}

/* A deleter that releases while the VM closes: the release finds it closed, and only recycles. */
Test(service, a_deleter_may_release_while_the_vm_closes) {
    vm_session session = session_open_threads(2);
    _Atomic int order = 0;
    eddy_storage_number other = session_make(&session, 1);
    service_piece piece = {.order = &order, .vm = session.vm, .released = other};
    eddy_storage_number storage;
    cr_assert_eq(
        eddy_vm_storage_borrow(session.vm, borrowed, sizeof(borrowed), run_piece, &piece, &storage),
        EDDY_OK);
    session_close(&session);
    cr_assert_eq(order, 1);
}
