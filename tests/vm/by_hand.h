/* A far device whose every step the test takes (eddy_far_options.is_by_hand), or that runs no code of the host. */
#ifndef EDDY_TESTS_BY_HAND_H
#define EDDY_TESTS_BY_HAND_H

#include "session.h"
#include <streams/launcher.h>
#include <vm/device.h>

/* The far device without its `run`: what is launched there are kernels of its own. */
static eddy_backend_class own_class __attribute__((unused));

static inline void session_own(vm_session *session, eddy_far_options options) {
    eddy_backend *far = eddy_far_create(&options);
    cr_assert_not_null(far);
    own_class = *far->class;
    own_class.run = NULL;
    far->class = &own_class;
    session_add(session, far);
}

/* Runs `count` pieces, as they are launched. */
static inline void run_pieces(vm_session *session, int count) {
    for (int done = 0; done < count;)
        if (eddy_far_step(session->far, 0))
            done++;
        else
            sched_yield();
}

/* How the storage ends; its error is taken. */
static inline eddy_status wait_for(vm_session *session, eddy_storage_number storage) {
    eddy_status status = eddy_vm_wait_storage(session->vm, storage, &forever);
    taken_error();
    return status;
}

/* Calls on this stream of the device wait, from now on, until session_step. */
static inline void hold_back(vm_session *session, eddy_vm_stream *stream) {
    session_hold(session, true);
    vm_session host = *session;
    host.device = 0;
    host.stream = session->held;
    eddy_storage_number passing = session_make(&host, 1);
    eddy_vm_event *event;
    cr_assert_eq(eddy_vm_event_record(session->vm, session->held, test_origin, &event), EDDY_OK);
    cr_assert_eq(eddy_vm_stream_wait(session->vm, stream, event, test_origin), EDDY_OK);
    eddy_vm_event_release(event);
    session_release(session, passing);
}

static inline void await_stall(vm_session *session) {
    while (!eddy_launcher_is_stalled(session->vm->devices[session->device]->launcher))
        sched_yield();
}

/* Until the launcher has marked this ticket. */
static inline void await_ticket(vm_session *session, uint64_t ticket) {
    eddy_vm_device *device = session->vm->devices[session->device];
    for (;;) {
        uint64_t marked = 0;
        for (uint32_t q = 0; q < EDDY_BACKEND_QUEUES; q++) {
            eddy_lock_acquire(&device->queues[q].lock);
            if (device->queues[q].marked > marked)
                marked = device->queues[q].marked;
            eddy_lock_release(&device->queues[q].lock);
        }
        if (marked >= ticket)
            return;
        sched_yield();
    }
}

#endif
