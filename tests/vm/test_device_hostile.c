/* The VM on a device that is lost, short of memory, or used in odd orders (vm/DEVICES.md 4 to 7). */
#include "session.h"
#include <sched.h>
#include <vm/device.h>

static void expect_failure(vm_session *session, eddy_storage_number storage, eddy_status expected) {
    int64_t value;
    cr_assert_eq(eddy_vm_read_small(session->vm, storage, 0, 8, &value, &forever), expected);
    taken_error();
}

/* ---- a lost device ---- */

/* A far device that is lost within a mark, just after it has taken the ticket, and that nobody hears of again. */
typedef struct losing {
    eddy_backend_class class;
    const eddy_backend_class *real;
    _Atomic uint32_t sleeps_at; /* progress that the reaper has seen and sleeps on */
} losing;

static losing lost_in_mark;

static eddy_status mark_and_lose(eddy_backend_queue *queue, uint64_t ticket) {
    eddy_status status = lost_in_mark.real->mark(queue, ticket);
    eddy_far_lose(queue->backend);
    while (eddy_load_acquire(&lost_in_mark.sleeps_at) !=
           eddy_load_acquire(&queue->backend->progress))
        sched_yield();
    return status;
}

static void await_and_tell(eddy_backend *backend, uint32_t seen) {
    eddy_store_release(&lost_in_mark.sleeps_at, seen);
    lost_in_mark.real->await(backend, seen);
}

Test(device_hostile, a_device_may_be_lost_between_a_mark_and_the_note_of_it) {
    vm_session session = session_open_threads(2);
    session.far = eddy_far_create(&(eddy_far_options){.is_by_hand = true});
    cr_assert_not_null(session.far);
    lost_in_mark.real = session.far->class;
    lost_in_mark.class = *session.far->class;
    lost_in_mark.class.mark = mark_and_lose;
    lost_in_mark.class.await = await_and_tell;
    session.far->class = &lost_in_mark.class;
    cr_assert_eq(eddy_vm_device_add(session.vm, session.far, INT64_MAX, &session.device), EDDY_OK);
    cr_assert_eq(
        eddy_vm_device_stream_create(session.vm, session.device, 0, &session.far_streams[0]),
        EDDY_OK);
    session.stream = session.far_streams[0];
    eddy_storage_number a = session_make(&session, 1);
    expect_failure(&session, a, EDDY_DEVICE_LOST);
    session_release(&session, a);
    session_close(&session);
}
