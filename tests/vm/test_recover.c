#include "session.h"

static void recover(vm_session *session, eddy_storage_number storage) {
    cr_assert_eq(eddy_vm_recover(session->vm, &storage, 1, test_origin), EDDY_OK);
}

static eddy_status wait_and_take(vm_session *session, eddy_storage_number storage,
                                 eddy_error *error) {
    eddy_status status = eddy_vm_wait_storage(session->vm, storage, &forever);
    *error = taken_error();
    return status;
}

static void assert_state(vm_session *session, eddy_storage_number storage, eddy_status expected,
                         const char *blamed) {
    eddy_error error;
    cr_assert_eq(wait_and_take(session, storage, &error), expected);
    if (blamed)
        cr_assert_not_null(strstr(error.message, blamed), "%s", error.message);
}

Test(recover, a_failed_kernel_poisons_what_it_makes_and_what_follows_from_it) {
    ON_EACH_PATH(session) {
        eddy_storage_number bad = session_make_failing(&session, 7);
        eddy_storage_number next = session_make_from(&session, 1, 1, &bad);
        eddy_storage_number last = session_make_from(&session, 2, 1, &next);
        assert_state(&session, last, EDDY_OUT_OF_RANGE, "seed 7");
        assert_state(&session, bad, EDDY_OUT_OF_RANGE, "seed 7");
        session_settle(&session);
        cr_assert_eq(eddy_vm_counters_read(session.vm).errors_made, 1, "propagation makes none");
        cr_assert_eq(eddy_vm_counters_read(session.vm).skipped, 2);
        session_release(&session, bad);
        session_release(&session, next);
        session_release(&session, last);
    }
}

/* By order of submission, whatever finished first. */
Test(recover, the_lowest_root_is_to_blame) {
    ON_EACH_PATH(session) {
        eddy_storage_number first = session_make_failing(&session, 11),
                            second = session_make_failing(&session, 12);
        eddy_storage_number both[2] = {second, first};
        eddy_storage_number mixed = session_make_from(&session, 1, 2, both);
        assert_state(&session, mixed, EDDY_OUT_OF_RANGE, "seed 11");
        session_release(&session, first);
        session_release(&session, second);
        session_release(&session, mixed);
    }
}

Test(recover, the_lowest_root_is_to_blame_even_when_it_fails_last) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    session_hold(&session, false);
    session.stream = session.held;
    eddy_storage_number first = session_make_failing(&session, 11),
                        second = session_make_failing(&session, 12);
    while (eddy_fake_queue_held(session.fake) < 2)
        sched_yield();
    cr_assert(eddy_fake_queue_step(session.fake, 1, NULL, NULL));
    session_step(&session);
    eddy_storage_number both[2] = {second, first};
    session.stream = NULL;
    eddy_storage_number mixed = session_make_from(&session, 1, 2, both);
    assert_state(&session, mixed, EDDY_OUT_OF_RANGE, "seed 11");
    session_release(&session, first);
    session_release(&session, second);
    session_release(&session, mixed);
    session_close(&session);
}

Test(recover, a_write_that_covers_heals_and_one_in_place_does_not) {
    ON_EACH_PATH(session) {
        eddy_storage_number a = session_make_failing(&session, 7);
        session_mix_in(&session, a, 1, 0, NULL);
        assert_state(&session, a, EDDY_OUT_OF_RANGE, "seed 7");
        session_overwrite(&session, a, 2);
        cr_assert_eq(session_read(&session, a), value_of(2, 0));
        session_release(&session, a);
    }
}

Test(recover, a_skipped_write_in_place_leaves_the_bytes_and_can_be_recovered) {
    ON_EACH_PATH(session) {
        eddy_storage_number bad = session_make_failing(&session, 7),
                            parameter = session_make(&session, 1);
        session_mix_in(&session, parameter, 2, 1, &bad);
        assert_state(&session, parameter, EDDY_SKIPPED, "seed 7");
        recover(&session, parameter);
        cr_assert_eq(session_read(&session, parameter), value_of(1, 0), "as before");
        cr_assert_eq(eddy_vm_counters_read(session.vm).healed, 1);
        session_mix_in(&session, parameter, 3, 0, NULL);
        cr_assert_eq(session_read(&session, parameter), synthetic_mix(value_of(1, 0), 3));
        session_release(&session, bad);
        session_release(&session, parameter);
    }
}

Test(recover, what_was_issued_before_the_recovery_is_skipped_and_what_comes_after_runs) {
    ON_EACH_PATH(session) {
        eddy_storage_number bad = session_make_failing(&session, 7),
                            parameter = session_make(&session, 1);
        session_mix_in(&session, parameter, 2, 1, &bad);
        session_mix_in(&session, parameter, 3, 0, NULL);
        eddy_storage_number between = session_make_from(&session, 4, 1, &parameter);
        assert_state(&session, between, EDDY_OUT_OF_RANGE, "seed 7");
        recover(&session, parameter);
        eddy_storage_number after = session_make_from(&session, 5, 1, &parameter);
        cr_assert_eq(session_read(&session, after), value_from(5, value_of(1, 0)));
        eddy_storage_number all[] = {bad, parameter, between, after};
        for (int i = 0; i < 4; i++)
            session_release(&session, all[i]);
    }
}

Test(recover, nothing_is_recovered_before_the_record_was_seen) {
    vm_session session = session_open((eddy_runtime_options){.uses_one_thread = true});
    eddy_storage_number bad = session_make_failing(&session, 7),
                        parameter = session_make(&session, 1);
    session_mix_in(&session, parameter, 2, 1, &bad);
    recover(&session, parameter);
    assert_state(&session, parameter, EDDY_SKIPPED, "seed 7");
    recover(&session, parameter);
    cr_assert_eq(session_read(&session, parameter), value_of(1, 0));
    session_release(&session, bad);
    session_release(&session, parameter);
    session_close(&session);
}

Test(recover, torn_is_refused_and_only_a_covering_write_heals_it) {
    ON_EACH_PATH(session) {
        eddy_storage_number a = session_make(&session, 1);
        session_mix_in_failing(&session, a, 9);
        assert_state(&session, a, EDDY_TORN, "seed 9");
        recover(&session, a);
        assert_state(&session, a, EDDY_TORN, "seed 9");
        session_overwrite(&session, a, 3);
        cr_assert_eq(session_read(&session, a), value_of(3, 0));
        session_release(&session, a);
    }
}

Test(recover, what_was_never_made_is_not_recovered) {
    ON_EACH_PATH(session) {
        eddy_storage_number a = session_make_failing(&session, 7);
        assert_state(&session, a, EDDY_OUT_OF_RANGE, "seed 7");
        recover(&session, a);
        assert_state(&session, a, EDDY_OUT_OF_RANGE, "seed 7");
        session_release(&session, a);
    }
}

Test(recover, a_lost_device_leaves_the_targets_as_they_were) {
    vm_session session = session_open((eddy_runtime_options){.threads = 2});
    session_hold(&session, true);
    eddy_storage_number a = session_make(&session, 1);
    session.stream = session.held;
    session_mix_in(&session, a, 2, 0, NULL);
    eddy_storage_number b = session_make_from(&session, 3, 1, &a);
    while (eddy_fake_queue_held(session.fake) < 2)
        sched_yield();
    cr_assert(eddy_fake_queue_step(session.fake, 0, session_lose_device, NULL));
    session_step(&session);
    assert_state(&session, a, EDDY_SKIPPED, "synthetic");
    assert_state(&session, b, EDDY_DEVICE_LOST, "synthetic");
    recover(&session, a);
    cr_assert_eq(session_read(&session, a), value_of(1, 0));
    session_release(&session, a);
    session_release(&session, b);
    session_close(&session);
}

Test(recover, a_late_shape_whose_maker_failed_is_an_error_and_no_shape) {
    ON_EACH_PATH(session) {
        eddy_storage_number bad = session_make_failing(&session, 7);
        eddy_vm_operand target = {.access = EDDY_ACCESS_MUT2, .is_new = true, .covers_all = true};
        cr_assert_eq(session_call(&session, &synthetic_late_op, 1, false, 1, &bad, 1, &target),
                     EDDY_OK);
        eddy_shape shape = {.rank = 9};
        cr_assert_eq(eddy_vm_late_shape(session.vm, target.storage, &forever, &shape),
                     EDDY_OUT_OF_RANGE);
        cr_assert_not_null(strstr(taken_error().message, "seed 7"));
        cr_assert_eq(shape.rank, 9, "written on success only");
        session_release(&session, bad);
        session_release(&session, target.storage);
    }
}

Test(recover, a_list_is_recovered_in_one_instruction) {
    vm_session session = session_open_threads(2);
    enum { COUNT = 300 };
    eddy_storage_number bad = session_make_failing(&session, 7), parameters[COUNT];
    for (int i = 0; i < COUNT; i++) {
        parameters[i] = session_make(&session, i);
        session_mix_in(&session, parameters[i], 2, 1, &bad);
    }
    session_settle(&session);
    cr_assert_eq(eddy_vm_recover(session.vm, parameters, COUNT, test_origin), EDDY_OK);
    for (int i = 0; i < COUNT; i++) {
        cr_assert_eq(session_read(&session, parameters[i]), value_of(i, 0));
        session_release(&session, parameters[i]);
    }
    session_release(&session, bad);
    session_close(&session);
}
