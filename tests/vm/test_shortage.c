/* Launches that a device has no memory for, ahead of others that would give some back (vm/DEVICES.md 4). That of runs in rounds is in test_device_rounds.c. */
#include "short_of_memory.h"

#define LIMIT (8 << 20)

/* ---- late calls ---- */

/* What the late call reads, and who made it has released, is freed with its end. */
Test(shortage, a_late_call_fills_ahead_of_what_lacks_the_memory_of_its_input) {
    for (int stream = 0; stream < 2; stream++) {
        vm_session session = session_open_threads(2);
        session_far(&session, (eddy_far_options){.is_by_hand = true, .bytes = LIMIT});
        eddy_storage_number input = session_make_sized(&session, 1, 6 << 20, 0, NULL);
        run_pieces(&session, 2);
        cr_assert_eq(wait_for(&session, input), EDDY_OK);
        eddy_storage_number late = make_late(&session, 2, input, CELLS);
        session_release(&session, input);
        await_ticket(&session, 2);
        session.stream = session.far_streams[stream];
        eddy_storage_number large = session_make_sized(&session, 3, 6 << 20, 0, NULL);
        await_stall(&session);
        run_pieces(&session, 6);
        cr_assert_eq(wait_for(&session, large), EDDY_OK);
        cr_assert_eq(wait_for(&session, late), EDDY_OK);
        session_release(&session, late);
        session_release(&session, large);
        session_close(&session);
    }
}

/* What lacks memory was called first, but could not begin: it lacks it in the order of the calls, too, and gives the late call no chance to fail. */
Test(shortage, an_earlier_call_that_was_ready_later_fails_before_a_late_one) {
    vm_session session = session_open_threads(2);
    session_far(&session, (eddy_far_options){.is_by_hand = true, .bytes = LIMIT});
    eddy_storage_number input = session_make_sized(&session, 1, 6 << 20, 0, NULL);
    run_pieces(&session, 2);
    cr_assert_eq(wait_for(&session, input), EDDY_OK);
    session.stream = session.far_streams[1];
    hold_back(&session, session.stream);
    eddy_storage_number large = session_make_sized(&session, 3, 6 << 20, 0, NULL);
    session.stream = session.far_streams[0];
    eddy_storage_number late = make_late(&session, 2, input, CELLS);
    session_release(&session, input);
    await_ticket(&session, 2);
    session_step(&session);
    await_stall(&session);
    run_pieces(&session, 6);
    cr_assert_eq(wait_for(&session, large), EDDY_OUT_OF_MEMORY);
    cr_assert_eq(wait_for(&session, late), EDDY_OK);
    session_release(&session, late);
    session_release(&session, large);
    session_close(&session);
}

/* All behind what stalls has new tickets: what is waited for, what is looked at, and when memory goes early, is by these. */
Test(shortage, what_is_dispatched_again_keeps_its_order) {
    for (uint64_t seed = 1; seed <= ROUNDS_OF(80); seed++) {
        vm_session session = session_open_threads(2);
        session_far(&session, (eddy_far_options){.seed = seed, .bytes = LIMIT});
        eddy_storage_number input = session_make_sized(&session, 1, 5 << 20, 0, NULL),
                            small = session_make_sized(&session, 2, 64, 0, NULL);
        eddy_storage_number late = make_late(&session, 3, input, CELLS);
        session_release(&session, input);
        eddy_storage_number all[8] = {session_make_sized(&session, 4, 5 << 20, 1, &small)};
        session_release(&session, small);
        for (int i = 1; i < 8; i++) {
            session.stream = session.far_streams[i % 3];
            all[i] = session_make_sized(&session, 4 + i, 64, 1, &all[i - 1]);
            if (i > 1)
                session_release(&session, all[i - 1]);
        }
        session.stream = session.far_streams[0];
        eddy_storage_number other = session_make_sized(&session, 20, 64, 0, NULL);
        int64_t value = value_from(4, value_of(2, 0));
        cr_assert_eq(session_read(&session, all[0]), value);
        for (int i = 1; i < 8; i++)
            value = value_from(4 + i, value);
        cr_assert_eq(session_read(&session, all[7]), value);
        cr_assert_eq(session_read(&session, late), value_from(3, value_of(1, 0)));
        cr_assert_eq(session_read(&session, other), value_of(20, 0));
        eddy_storage_number kept[] = {late, all[0], all[7], other};
        for (int i = 0; i < 4; i++)
            session_release(&session, kept[i]);
        cr_assert_eq(eddy_vm_counters_read(session.vm).errors_made, 0);
        session_close(&session);
    }
}

Test(shortage, one_thread_launches_in_another_order_too) {
    vm_session session = session_open((eddy_runtime_options){.uses_one_thread = true});
    session_far(&session, (eddy_far_options){.seed = 1, .bytes = LIMIT});
    eddy_storage_number gate = session_make(&session, 1);
    void *data;
    eddy_vm_lend *lend;
    cr_assert_eq(eddy_vm_lend_begin(session.vm, gate, true, &forever, &data, &lend), EDDY_OK);
    eddy_storage_number input = session_make_sized(&session, 2, 5 << 20, 1, &gate);
    eddy_storage_number late = make_late(&session, 3, input, CELLS);
    session_release(&session, input);
    session.stream = session.far_streams[1];
    eddy_storage_number large = session_make_sized(&session, 4, 5 << 20, 1, &gate);
    eddy_vm_lend_end(session.vm, lend, false);
    session_settle(&session);
    cr_assert_eq(eddy_vm_counters_read(session.vm).errors_made, 0);
    eddy_storage_number all[] = {gate, late, large};
    for (int i = 0; i < 3; i++)
        session_release(&session, all[i]);
    session_close(&session);
}

/* The late call gives back too little: what stalls fails once that has ended. */
Test(shortage, what_never_fits_fails_behind_a_late_call) {
    vm_session session = session_open_threads(2);
    session_far(&session, (eddy_far_options){.seed = 3, .bytes = LIMIT});
    eddy_storage_number kept = session_make_sized(&session, 1, 5 << 20, 0, NULL);
    eddy_storage_number late = make_late(&session, 2, kept, CELLS);
    eddy_storage_number large = session_make_sized(&session, 3, 5 << 20, 0, NULL);
    cr_assert_eq(wait_for(&session, large), EDDY_OUT_OF_MEMORY);
    cr_assert_eq(session_read(&session, late), value_from(2, value_of(1, 0)));
    eddy_storage_number all[] = {kept, late, large};
    for (int i = 0; i < 3; i++)
        session_release(&session, all[i]);
    session_close(&session);
}

/* ---- many calls ---- */

#define ALIVE 7
#define CALLS 400
/* Eight blocks of 1 MB in chunks of two, and what stands beyond each chunk. */
#define MANY_BYTES (((int64_t)ALIVE + 2) << 20)

/* Streams are chosen at random. Without late calls each waits for others by dispatch alone: none fails, as they have room one after another. */
static void run_many(uint64_t seed, bool is_late) {
    vm_session session = session_open_threads(2);
    session_far(&session, (eddy_far_options){.seed = seed, .bytes = MANY_BYTES});
    eddy_storage_number alive[ALIVE];
    int64_t values[ALIVE];
    for (int i = 0; i < ALIVE; i++) {
        alive[i] = session_make_sized(&session, i, 1 << 20, 0, NULL);
        values[i] = value_of(i, 0);
    }
    uint64_t random = seed;
    for (int i = 0; i < CALLS; i++) {
        session.stream = session.far_streams[next_random(&random) % 3];
        uint32_t from = next_random(&random) % ALIVE, to = next_random(&random) % ALIVE;
        eddy_storage_number made =
            is_late && next_random(&random) % 3 == 0
                ? make_late(&session, 100 + i, alive[from], CELLS)
                : session_make_sized(&session, 100 + i, 1 << 20, 1, &alive[from]);
        int64_t value = value_from(100 + i, values[from]);
        session_release(&session, alive[to]);
        alive[to] = made;
        values[to] = value;
    }
    for (int i = 0; i < ALIVE; i++) {
        int64_t value = 0;
        eddy_status status =
            eddy_vm_read_small(session.vm, alive[i], 0, sizeof(value), &value, &forever);
        taken_error();
        cr_assert(status == EDDY_OK
                      ? value == values[i]
                      : is_late && (status == EDDY_OUT_OF_MEMORY || status == EDDY_SKIPPED));
        session_release(&session, alive[i]);
    }
    cr_assert(is_late || eddy_vm_counters_read(session.vm).errors_made == 0);
    session_close(&session);
}

Test(shortage, calls_of_several_streams_have_the_memory_of_their_order) {
    for (uint64_t seed = 1; seed <= ROUNDS_OF(24); seed++)
        run_many(seed, false);
}

/* Which calls fail for want of memory is left open, but each ends, and what has not failed is right. */
Test(shortage, late_calls_among_others_end) {
    for (uint64_t seed = 1; seed <= ROUNDS_OF(24); seed++)
        run_many(seed, true);
}
