/* The VM on a device whose memory the host cannot touch and whose work is over late (vm/DEVICES.md). */
#include "by_hand.h"
#include <streams/launcher.h>
#include <tests/rounds.h>
#include <vm/device.h>

/* Each seed is another order among the device's queues. */
#define ON_EACH_PATH_FAR(session, seeds)                                                           \
    for (uint64_t seed = 1; seed <= ROUNDS_OF(seeds); seed++)                                      \
        ON_EACH_PATH(session)                                                                      \
    for (bool is_first = (session_far(&session, (eddy_far_options){.seed = seed}), true);          \
         is_first; is_first = false)

Test(device, calls_on_one_stream_run_in_order) {
    ON_EACH_PATH_FAR(session, 5) {
        eddy_storage_number a = session_make(&session, 1);
        eddy_storage_number b = session_make_from(&session, 2, 1, &a);
        session_overwrite(&session, a, 3);
        eddy_storage_number c = session_make_from(&session, 4, 1, &a);
        cr_assert_eq(session_read(&session, b), value_from(2, value_of(1, 0)));
        cr_assert_eq(session_read(&session, c), value_from(4, value_of(3, 0)));
        session_release(&session, a);
        session_release(&session, b);
        session_release(&session, c);
    }
}

Test(device, what_one_stream_makes_another_reads_after_it) {
    ON_EACH_PATH_FAR(session, 20) {
        eddy_storage_number chain[12];
        int64_t value = value_of(0, 0);
        chain[0] = session_make(&session, 0);
        for (int i = 1; i < 12; i++) {
            session.stream = session.far_streams[i % 3];
            chain[i] = session_make_from(&session, i, 1, &chain[i - 1]);
            value = value_from(i, value);
        }
        cr_assert_eq(session_read(&session, chain[11]), value);
        for (int i = 0; i < 12; i++)
            session_release(&session, chain[i]);
    }
}

Test(device, a_write_comes_after_the_reads_of_other_streams) {
    ON_EACH_PATH_FAR(session, 20) {
        eddy_storage_number target = session_make(&session, 0), readers[8];
        for (int i = 0; i < 8; i++) {
            session.stream = session.far_streams[1 + i % 2];
            readers[i] = session_make_from(&session, 10 + i, 1, &target);
        }
        session.stream = session.far_streams[0];
        session_overwrite(&session, target, 1);
        for (int i = 0; i < 8; i++) {
            cr_assert_eq(session_read(&session, readers[i]), value_from(10 + i, value_of(0, 0)));
            session_release(&session, readers[i]);
        }
        cr_assert_eq(session_read(&session, target), value_of(1, 0));
        session_release(&session, target);
    }
}

/* ---- by hand ---- */

static vm_session open_by_hand(void) {
    vm_session session = session_open_threads(2);
    session_far(&session, (eddy_far_options){.is_by_hand = true});
    return session;
}

Test(device, successors_are_launched_before_their_predecessors_are_over) {
    vm_session session = open_by_hand();
    eddy_storage_number a = session_make(&session, 1), b;
    b = session_make_from(&session, 2, 1, &a);
    session.stream = session.far_streams[1];
    eddy_storage_number c = session_make_from(&session, 3, 2, (eddy_storage_number[]){a, b});
    await_ticket(&session, 3);
    cr_assert_not(eddy_vm_is_ready(session.vm, a), "nothing has run yet");
    /* Three kernels and marks, and a wait of the second stream for the first. */
    run_pieces(&session, 7);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, c, &forever), EDDY_OK);
    cr_assert_not(eddy_far_step(session.far, 0));
    eddy_storage_number all[] = {a, b, c};
    for (int i = 0; i < 3; i++)
        session_release(&session, all[i]);
    session_close(&session);
}

Test(device, what_a_queue_knows_it_does_not_wait_for_again) {
    vm_session session = open_by_hand();
    eddy_storage_number a = session_make(&session, 1), b = session_make(&session, 2);
    session.stream = session.far_streams[1];
    eddy_storage_number c = session_make_from(&session, 3, 1, &b);
    eddy_storage_number d = session_make_from(&session, 4, 1, &a);
    session.stream = session.far_streams[2];
    /* Through c and d it comes after a and b. */
    eddy_storage_number e = session_make_from(&session, 5, 4, (eddy_storage_number[]){d, a, b, c});
    await_ticket(&session, 5);
    /* Five kernels and marks, c's wait for b and e's for d. */
    run_pieces(&session, 12);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, e, &forever), EDDY_OK);
    cr_assert_not(eddy_far_step(session.far, 0));
    eddy_storage_number all[] = {a, b, c, d, e};
    for (int i = 0; i < 5; i++)
        session_release(&session, all[i]);
    session_close(&session);
}

/* All that is launched: how many pieces it was. */
static int run_all(vm_session *session) {
    int count = 0;
    while (eddy_far_step(session->far, 0))
        count++;
    return count;
}

static void end_by_hand(vm_session *session, const eddy_storage_number *all, int count) {
    session_settle(session);
    for (int i = 0; i < count; i++)
        session_release(session, all[i]);
    session_close(session);
}

/* The clock that a wait itself has raised counts. */
Test(device, a_wait_brings_what_its_ticket_has_waited_for) {
    vm_session session = open_by_hand();
    eddy_storage_number all[3] = {session_make(&session, 1)};
    session.stream = session.far_streams[1];
    all[1] = session_make_from(&session, 2, 1, &all[0]);
    session.stream = session.far_streams[2];
    all[2] = session_make_from(&session, 3, 2, all);
    await_ticket(&session, 3);
    cr_assert_eq(run_all(&session), 8, "three kernels and marks, two waits");
    end_by_hand(&session, all, 3);
}

/* Of a queue's clock as it is now, what a later ticket has raised says nothing of the one that is waited for. */
Test(device, a_wait_does_not_bring_what_later_tickets_have_waited_for) {
    vm_session session = open_by_hand();
    eddy_storage_number all[5];
    session.stream = session.far_streams[1];
    all[0] = session_make(&session, 1);
    session.stream = session.far_streams[0];
    all[1] = session_make(&session, 2);
    session.stream = session.far_streams[1];
    all[2] = session_make_from(&session, 3, 1, &all[1]);
    session.stream = session.far_streams[2];
    all[3] = session_make_from(&session, 4, 1, &all[0]);
    all[4] = session_make_from(&session, 5, 1, &all[1]);
    await_ticket(&session, 5);
    cr_assert_eq(run_all(&session), 13, "five kernels and marks; the last three each wait for one");
    end_by_hand(&session, all, 5);
}

/* ---- reaping ---- */

static _Atomic bool reaper_may_look;
static _Atomic int32_t looks_asked_for;
static eddy_backend_class asleep_class;
static const eddy_backend_class *far_class;

static void await_permission(eddy_backend *backend, uint32_t seen) {
    eddy_add_release(&looks_asked_for, 1);
    while (!eddy_load_acquire(&reaper_may_look))
        sched_yield();
    far_class->await(backend, seen);
}

/* What a device has completed ends through the thread that waits, if the reaper is elsewhere. */
Test(device, who_waits_takes_what_is_complete) {
    vm_session session = session_open_threads(2);
    eddy_backend *far = eddy_far_create(&(eddy_far_options){.is_by_hand = true});
    cr_assert_not_null(far);
    far_class = far->class;
    asleep_class = *far_class;
    asleep_class.await = await_permission;
    far->class = &asleep_class;
    session_add(&session, far);
    while (eddy_load_acquire(&looks_asked_for) == 0)
        sched_yield();
    eddy_storage_number all[2] = {session_make(&session, 1)};
    session.stream = session.far_streams[1];
    all[1] = session_make_from(&session, 2, 1, all);
    await_ticket(&session, 2);
    cr_assert_eq(run_all(&session), 5, "two kernels and marks, and a wait");
    cr_assert_not(eddy_vm_is_ready(session.vm, all[1]), "nobody has looked");
    cr_assert_eq(eddy_vm_wait_storage(session.vm, all[1], &forever), EDDY_OK);
    eddy_store_release(&reaper_may_look, true);
    end_by_hand(&session, all, 2);
}

/* At exit, when the driver may have taken the memory of what it says. */
Test(device, who_waits_takes_nothing_once_the_vm_is_halted) {
    vm_session session = open_by_hand();
    eddy_storage_number a = session_make(&session, 1);
    await_ticket(&session, 1);
    cr_assert(eddy_vm_halt(session.vm, EDDY_CLOCK_FOREVER));
    eddy_vm_device *device = session.vm->devices[session.device];
    for (uint32_t q = 0; q < eddy_load_acquire(&device->queue_count); q++)
        eddy_store_release(&device->unders[q]->completed, UINT64_C(9));
    cr_assert_not(eddy_device_reap_all(session.vm));
    cr_assert_not(eddy_vm_is_ready(session.vm, a));
}

/* ---- failures ---- */

static void expect_failure(vm_session *session, eddy_storage_number storage, eddy_status expected) {
    int64_t value;
    cr_assert_eq(eddy_vm_read_small(session->vm, storage, 0, 8, &value, &forever), expected);
    taken_error();
}

Test(device, what_follows_a_failure_is_skipped_also_if_it_was_launched_before) {
    ON_EACH_PATH_FAR(session, 20) {
        eddy_storage_number healthy = session_make(&session, 7);
        eddy_storage_number bad = session_make_failing(&session, 1);
        session.stream = session.far_streams[1];
        session_mix_in(&session, healthy, 3, 1, &bad);
        session.stream = session.far_streams[2];
        eddy_storage_number after = session_make_from(&session, 4, 1, &healthy);
        expect_failure(&session, bad, EDDY_OUT_OF_RANGE);
        expect_failure(&session, healthy, EDDY_SKIPPED);
        expect_failure(&session, after, EDDY_OUT_OF_RANGE);
        cr_assert_eq(eddy_vm_recover(session.vm, &healthy, 1, test_origin), EDDY_OK);
        cr_assert_eq(session_read(&session, healthy), value_of(7, 0), "its bytes are as before");
        session_overwrite(&session, bad, 9);
        cr_assert_eq(session_read(&session, bad), value_of(9, 0), "a covering write heals");
        session_mix_in_failing(&session, healthy, 5);
        expect_failure(&session, healthy, EDDY_TORN);
        session_release(&session, healthy);
        session_release(&session, bad);
        session_release(&session, after);
    }
}

/* A copy runs whatever it finds; who reads it must not take that for a success. */
Test(device, what_copies_a_failure_is_known_to_have_failed) {
    ON_EACH_PATH_FAR(session, 30) {
        eddy_storage_number target = session_make(&session, 7), copy = 0;
        eddy_storage_number bad = session_make_failing(&session, 1);
        cr_assert_eq(eddy_vm_copy(session.vm, session.far_streams[1], bad, 0, CELLS * 8,
                                  session.device, NULL, &copy),
                     EDDY_OK);
        session.stream = session.far_streams[2];
        session_mix_in(&session, target, 3, 1, &copy);
        expect_failure(&session, target, EDDY_SKIPPED);
        expect_failure(&session, copy, EDDY_OUT_OF_RANGE);
        cr_assert_eq(eddy_vm_recover(session.vm, &target, 1, test_origin), EDDY_OK);
        cr_assert_eq(session_read(&session, target), value_of(7, 0));
        session_release(&session, target);
        session_release(&session, bad);
        session_release(&session, copy);
    }
}

/* Its second launch comes later than its place in the queue. */
Test(device, what_comes_after_a_late_call_does_not_touch_its_inputs_before) {
    ON_EACH_PATH_FAR(session, 30) {
        eddy_storage_number input = session_make(&session, 1);
        eddy_vm_operand target = {.access = EDDY_ACCESS_MUT2,
                                  .is_new = true,
                                  .covers_all = true,
                                  .device = session.device};
        cr_assert_eq(session_call(&session, &synthetic_late_op, 5, false, 1, &input, 1, &target),
                     EDDY_OK);
        session_overwrite(&session, input, 2);
        eddy_vm_event *event;
        cr_assert_eq(eddy_vm_event_record(session.vm, session.stream, test_origin, &event),
                     EDDY_OK);
        cr_assert_eq(eddy_vm_event_wait(event, &forever), EDDY_OK);
        cr_assert(eddy_vm_is_ready(session.vm, target.storage), "it came before the event");
        eddy_vm_event_release(event);
        eddy_shape shape;
        cr_assert_eq(eddy_vm_late_shape(session.vm, target.storage, &forever, &shape), EDDY_OK);
        cr_assert_eq(shape.dims[0], CELLS);
        cr_assert_eq(session_read(&session, target.storage), value_from(5, value_of(1, 0)));
        cr_assert_eq(session_read(&session, input), value_of(2, 0));
        session_release(&session, input);
        session_release(&session, target.storage);
    }
}

Test(device, an_event_comes_after_the_second_launch_of_a_late_call) {
    ON_EACH_PATH_FAR(session, 20) {
        eddy_vm_operand target = {.access = EDDY_ACCESS_MUT2,
                                  .is_new = true,
                                  .covers_all = true,
                                  .device = session.device};
        cr_assert_eq(session_call(&session, &synthetic_late_op, 5, false, 0, NULL, 1, &target),
                     EDDY_OK);
        eddy_vm_event *event;
        cr_assert_eq(eddy_vm_event_record(session.vm, session.stream, test_origin, &event),
                     EDDY_OK);
        cr_assert_eq(eddy_vm_event_wait(event, &forever), EDDY_OK);
        cr_assert(eddy_vm_is_ready(session.vm, target.storage));
        eddy_vm_event_release(event);
        session_release(&session, target.storage);
    }
}

/* More sources than a launch looks at: the last ones are waited for. */
Test(device, a_failure_among_many_inputs_is_found) {
    for (int bad = 0; bad < 8; bad++)
        ON_EACH_PATH_FAR(session, 3) {
            eddy_storage_number inputs[8], target = session_make(&session, 50);
            for (int i = 0; i < 8; i++) {
                session.stream = session.far_streams[i % 3];
                inputs[i] =
                    i == bad ? session_make_failing(&session, i) : session_make(&session, i);
            }
            session_mix_in(&session, target, 3, 8, inputs);
            expect_failure(&session, target, EDDY_SKIPPED);
            cr_assert_eq(eddy_vm_recover(session.vm, &target, 1, test_origin), EDDY_OK);
            cr_assert_eq(session_read(&session, target), value_of(50, 0));
            session_release(&session, target);
            for (int i = 0; i < 8; i++)
                session_release(&session, inputs[i]);
        }
}

Test(device, a_lost_device_fails_what_was_launched_and_what_comes_later) {
    for (int path = 0; path < 3; path++) {
        vm_session session = session_open(session_paths[path]);
        session_far(&session, (eddy_far_options){.is_by_hand = true});
        eddy_storage_number a = session_make(&session, 1),
                            b = session_make_from(&session, 2, 1, &a);
        eddy_far_lose(session.far);
        eddy_storage_number c = session_make(&session, 3);
        session_settle(&session);
        expect_failure(&session, a, EDDY_DEVICE_LOST);
        expect_failure(&session, b, EDDY_DEVICE_LOST);
        expect_failure(&session, c, EDDY_DEVICE_LOST);
        /* The host goes on. */
        session.device = 0;
        session.stream = NULL;
        eddy_storage_number here = session_make(&session, 4);
        cr_assert_eq(session_read(&session, here), value_of(4, 0));
        eddy_storage_number all[] = {a, b, c, here};
        for (int i = 0; i < 4; i++)
            session_release(&session, all[i]);
        session_close(&session);
    }
}

/* ---- memory ---- */

Test(device, an_instruction_without_memory_waits_for_what_is_released) {
    ON_EACH_PATH(session) {
        session_far(&session, (eddy_far_options){.seed = 1, .bytes = 8 << 20});
        for (int i = 0; i < 40; i++) {
            eddy_storage_number large = session_make_sized(&session, 1, 3 << 20, 0, NULL);
            session_release(&session, large);
        }
        session_settle(&session);
        cr_assert_eq(eddy_vm_counters_read(session.vm).errors_made, 0);
    }
}

Test(device, trimming_gives_its_memory_back) {
    ON_EACH_PATH(session) {
        session_far(&session, (eddy_far_options){.seed = 1});
        session_release(&session, session_make_sized(&session, 1, 5 << 20, 0, NULL));
        session_settle(&session);
        while (eddy_far_acquired_bytes(session.far) > 0)
            (void)eddy_vm_trim(session.vm);
    }
}

Test(device, what_never_fits_fails_and_what_comes_after_it_runs) {
    ON_EACH_PATH(session) {
        session_far(&session, (eddy_far_options){.seed = 1, .bytes = 8 << 20});
        eddy_storage_number kept = session_make_sized(&session, 1, 6 << 20, 0, NULL);
        eddy_storage_number large = session_make_sized(&session, 1, 6 << 20, 0, NULL);
        eddy_storage_number small = session_make(&session, 2);
        expect_failure(&session, large, EDDY_OUT_OF_MEMORY);
        cr_assert_eq(session_read(&session, small), value_of(2, 0));
        session_release(&session, kept);
        session_release(&session, large);
        session_release(&session, small);
    }
}

/* All become ready with the event, or by the dispatch of another: the first two have the memory, as in a run of one call after another. */
Test(device, calls_that_become_ready_together_have_memory_in_their_order) {
    vm_session session = session_open_threads(2);
    session_hold(&session, true);
    session.stream = session.held;
    eddy_storage_number first = session_make(&session, 1);
    eddy_vm_event *event;
    cr_assert_eq(eddy_vm_event_record(session.vm, session.held, test_origin, &event), EDDY_OK);
    session_far(&session, (eddy_far_options){.seed = 1, .bytes = 8 << 20});
    for (int i = 0; i < 2; i++)
        cr_assert_eq(eddy_vm_stream_wait(session.vm, session.far_streams[i], event, test_origin),
                     EDDY_OK);
    eddy_storage_number a = session_make_sized(&session, 1, 3 << 20, 0, NULL),
                        b = session_make_sized(&session, 1, 3 << 20, 0, NULL);
    session.stream = session.far_streams[1];
    eddy_storage_number large = session_make_sized(&session, 1, 6 << 20, 0, NULL);
    session_step(&session);
    expect_failure(&session, large, EDDY_OUT_OF_MEMORY);
    cr_assert_eq(session_read(&session, a), value_of(1, 0));
    cr_assert_eq(session_read(&session, b), value_of(1, 0));
    eddy_vm_event_release(event);
    session_release(&session, first);
    session_release(&session, a);
    session_release(&session, b);
    session_release(&session, large);
    session_close(&session);
}

/* ---- the host ---- */

typedef struct seen_by_callback {
    eddy_sleep_word is_called;
    int64_t value;
    eddy_status status;
} seen_by_callback;

static void look(void *context, void *data, int64_t bytes, const eddy_error *error) {
    seen_by_callback *seen = context;
    (void)bytes;
    seen->status = error ? error->status : EDDY_OK;
    if (data) {
        seen->value = *(int64_t *)data;
        *(int64_t *)data = 77;
    }
    eddy_store_release(&seen->is_called, 1u);
    eddy_sleep_wake_all(&seen->is_called);
}

Test(device, lends_and_callbacks_see_a_copy_and_write_it_back) {
    ON_EACH_PATH_FAR(session, 5) {
        eddy_storage_number a = session_make(&session, 1), b;
        void *data;
        eddy_vm_lend *lend;
        cr_assert_eq(eddy_vm_lend_begin(session.vm, a, true, &forever, &data, &lend), EDDY_OK);
        cr_assert_eq(((int64_t *)data)[1], value_of(1, 1));
        ((int64_t *)data)[0] = 5;
        b = session_make_from(&session, 2, 1, &a);
        cr_assert_not(eddy_vm_is_ready(session.vm, b), "it is behind the lend");
        eddy_vm_lend_end(session.vm, lend, false);
        cr_assert_eq(session_read(&session, b), value_from(2, 5));
        seen_by_callback seen = {0};
        cr_assert_eq(eddy_vm_access(session.vm, a, true, look, &seen, test_origin), EDDY_OK);
        cr_assert_eq(session_read(&session, a), 77);
        cr_assert_eq(seen.value, 5);
        eddy_storage_number bad = session_make_failing(&session, 1);
        cr_assert_eq(eddy_vm_lend_begin(session.vm, bad, false, &forever, &data, &lend),
                     EDDY_OUT_OF_RANGE);
        taken_error();
        session_release(&session, a);
        session_release(&session, b);
        session_release(&session, bad);
    }
}

/* What the launcher takes of the pool of small blocks it finds there again. */
Test(device, lends_take_their_copies_from_what_earlier_ones_had) {
    ON_EACH_PATH_FAR(session, 5) {
        eddy_storage_number a = session_make(&session, 1);
        int64_t held = 0;
        for (int i = 0; i < 20; i++) {
            void *data;
            eddy_vm_lend *lend;
            cr_assert_eq(eddy_vm_lend_begin(session.vm, a, false, &forever, &data, &lend), EDDY_OK);
            eddy_vm_lend_end(session.vm, lend, false);
            session_settled_counters(&session);
            int64_t now = eddy_memory_counted(EDDY_MEMORY_TENSOR).bytes;
            cr_assert(i == 0 || now == held, "%d: %lld bytes more", i, (long long)(now - held));
            held = now;
        }
        session_release(&session, a);
    }
}

Test(device, copies_go_to_the_device_and_back) {
    ON_EACH_PATH_FAR(session, 5) {
        uint8_t device = session.device;
        session.device = 0;
        eddy_vm_stream *stream = session.stream;
        session.stream = NULL;
        eddy_storage_number here = session_make(&session, 6), there = 0, again = 0, back = 0;
        cr_assert_eq(eddy_vm_copy(session.vm, stream, here, 0, CELLS * 8, device, NULL, &there),
                     EDDY_OK);
        session_overwrite(&session, here, 8);
        cr_assert_eq(
            eddy_vm_copy(session.vm, session.far_streams[1], there, 8, 16, device, NULL, &again),
            EDDY_OK);
        cr_assert_eq(eddy_vm_copy(session.vm, session.far_streams[2], again, 8, 8, 0, NULL, &back),
                     EDDY_OK);
        cr_assert_eq(session_read(&session, back), value_of(6, 2));
        cr_assert_eq(session_read(&session, here), value_of(8, 0));
        eddy_storage_number all[] = {here, there, again, back};
        for (int i = 0; i < 4; i++)
            session_release(&session, all[i]);
    }
}

/* ---- streams and events ---- */

Test(device, events_and_gates_order_streams_of_a_device_and_of_the_host) {
    ON_EACH_PATH_FAR(session, 10) {
        eddy_storage_number a = session_make(&session, 1);
        eddy_vm_event *event;
        cr_assert_eq(eddy_vm_event_record(session.vm, session.far_streams[0], test_origin, &event),
                     EDDY_OK);
        cr_assert_eq(eddy_vm_stream_wait(session.vm, session.far_streams[1], event, test_origin),
                     EDDY_OK);
        cr_assert_eq(eddy_vm_stream_wait(session.vm, NULL, event, test_origin), EDDY_OK);
        session.stream = session.far_streams[1];
        eddy_storage_number b = session_make(&session, 2);
        cr_assert_eq(eddy_vm_event_wait(event, &forever), EDDY_OK);
        cr_assert(eddy_vm_is_ready(session.vm, a), "it came before the event");
        cr_assert_eq(session_read(&session, b), value_of(2, 0));
        eddy_vm_event_release(event);
        session_release(&session, a);
        session_release(&session, b);
    }
}

Test(device, a_device_takes_more_than_its_window_and_more_streams_than_queues) {
    ON_EACH_PATH(session) {
        session_far(&session, (eddy_far_options){.seed = 3});
        eddy_vm_stream *streams[20];
        eddy_storage_number kept[20];
        for (int i = 0; i < 20; i++) {
            cr_assert_eq(
                eddy_vm_device_stream_create(session.vm, session.device, 0, NULL, &streams[i]),
                EDDY_OK);
            session.stream = streams[i];
            kept[i] = session_make(&session, i);
        }
        for (int i = 0; i < 3 * EDDY_DEVICE_WINDOW; i++) {
            session.stream = streams[i % 20];
            session_mix_in(&session, kept[i % 7], i, 1, &kept[10 + i % 10]);
        }
        session_settle(&session);
        int64_t cells[7];
        for (int i = 0; i < 7; i++)
            cells[i] = value_of(i, 0);
        for (int i = 0; i < 3 * EDDY_DEVICE_WINDOW; i++)
            cells[i % 7] = synthetic_mix(cells[i % 7], synthetic_mix(i, value_of(10 + i % 10, 0)));
        for (int i = 0; i < 7; i++)
            cr_assert_eq(session_read(&session, kept[i]), cells[i]);
        for (int i = 0; i < 20; i++) {
            session_release(&session, kept[i]);
            eddy_vm_stream_release(streams[i]);
        }
    }
}

/* Those that have priority 0, as a device's own have, are shared by none of the others. */
Test(device, a_stream_shares_a_queue_of_its_priority) {
    vm_session session = session_open_threads(2);
    session_far(&session, (eddy_far_options){.is_by_hand = true});
    enum { OWN = EDDY_BACKEND_QUEUES - 6, ALL = OWN + 40 };
    eddy_vm_stream *streams[ALL];
    int shared[EDDY_BACKEND_QUEUES] = {0};
    for (int i = 0; i < ALL; i++) {
        int32_t priority = i < OWN ? i % 3 - 1 : i % 2 == 0 ? 1 : INT32_MIN;
        cr_assert_eq(
            eddy_vm_device_stream_create(session.vm, session.device, priority, NULL, &streams[i]),
            EDDY_OK);
        if (i >= OWN)
            shared[streams[i]->device_queue]++;
    }
    for (int i = 0; i < OWN; i++) {
        int count = shared[streams[i]->device_queue];
        cr_assert(i % 3 == 1 ? count == 0 : count > 0, "queue of stream %d: %d", i, count);
    }
    for (int i = 0; i < ALL; i++)
        eddy_vm_stream_release(streams[i]);
    session_close(&session);
}

Test(device, a_vm_closes_with_work_in_flight) {
    for (uint64_t seed = 1; seed <= 20; seed++) {
        vm_session session = session_open_threads(2);
        session_far(&session, (eddy_far_options){.seed = seed});
        for (int i = 0; i < 50; i++) {
            session.stream = session.far_streams[i % 3];
            session_release(&session, session_make(&session, i));
        }
        session_close(&session);
    }
}
