/* Memory of a device that goes back at the launch of what comes after its last users (vm/DEVICES.md 4). Where a device works by hand, nothing has run yet: what has another
 * storage's memory has got it ahead of that one's end. */
#include "by_hand.h"
#include <tests/rounds.h>

#define LINKS 1000
#define LINK_BYTES 4096

static vm_session open_by_hand(void) {
    vm_session session = session_open_threads(2);
    session_far(&session, (eddy_far_options){.is_by_hand = true});
    return session;
}

static eddy_device_pool_statistics pool_of(const vm_session *session) {
    return eddy_device_pool_statistics_read(session->vm->devices[session->device]->pool);
}

static eddy_storage_number make_sized(vm_session *session, int64_t seed, bool fails, int64_t bytes,
                                      int input_count, const eddy_storage_number *inputs) {
    eddy_vm_operand target = {.access = EDDY_ACCESS_MUT,
                              .is_new = true,
                              .covers_all = true,
                              .device = session->device,
                              .bytes = bytes};
    cr_assert_eq(session_call(session, &synthetic_op, seed, fails, input_count, inputs, 1, &target),
                 EDDY_OK);
    return target.storage;
}

/* Each link but the last is released once the next is submitted. Link `failing` fails. */
static eddy_storage_number make_chain(vm_session *session, int links, int failing) {
    eddy_storage_number link = make_sized(session, 0, failing == 0, LINK_BYTES, 0, NULL);
    for (int i = 1; i < links; i++) {
        eddy_storage_number next = make_sized(session, i, failing == i, LINK_BYTES, 1, &link);
        session_release(session, link);
        link = next;
    }
    return link;
}

static int64_t value_of_chain(int links) {
    int64_t value = value_of(0, 0);
    for (int i = 1; i < links; i++)
        value = value_from(i, value);
    return value;
}

static void run_all(vm_session *session) {
    while (eddy_far_step(session->far, 0))
        ;
}

/* The address that its launch, which is over, has got. */
static const void *address_of(const vm_session *session, eddy_storage_number storage) {
    return eddy_vm_storage(session->vm, storage)->shared.data;
}

static void release_all(vm_session *session, const eddy_storage_number *all, int count) {
    for (int i = 0; i < count; i++)
        session_release(session, all[i]);
}

/* ---- one queue ---- */

Test(early, a_chain_has_the_memory_of_a_few_links_though_all_are_in_flight) {
    vm_session session = open_by_hand();
    eddy_storage_number last = make_chain(&session, LINKS, -1);
    await_ticket(&session, LINKS);
    cr_assert_leq(pool_of(&session).peak_bytes, 8 * LINK_BYTES);
    run_all(&session);
    session_settle(&session);
    eddy_vm_counters counters = session_settled_counters(&session);
    cr_assert_eq(counters.errors_made, 0);
    cr_assert_eq(pool_of(&session).live_bytes, LINK_BYTES);
    session_release(&session, last);
    session_close(&session);
}

Test(early, a_chain_computes_what_it_should) {
    for (uint64_t seed = 1; seed <= ROUNDS_OF(10); seed++)
        ON_EACH_PATH(session) {
            session_far(&session, (eddy_far_options){.seed = seed});
            eddy_storage_number last = make_chain(&session, 100, -1);
            cr_assert_eq(session_read(&session, last), value_of_chain(100));
            session_release(&session, last);
        }
}

/* What was released before its last user was dispatched is noticed at that. */
Test(early, a_chain_behind_a_lend_has_the_memory_of_a_few_links) {
    vm_session session = open_by_hand();
    session.device = 0;
    session.stream = NULL;
    eddy_storage_number here = session_make(&session, 1);
    void *data;
    eddy_vm_lend *lend;
    cr_assert_eq(eddy_vm_lend_begin(session.vm, here, true, &forever, &data, &lend), EDDY_OK);
    session.device = 1;
    session.stream = session.far_streams[0];
    eddy_storage_number link = make_sized(&session, 0, false, LINK_BYTES, 1, &here);
    for (int i = 1; i < 200; i++) {
        eddy_storage_number next = make_sized(&session, i, false, LINK_BYTES, 1, &link);
        session_release(&session, link);
        link = next;
    }
    eddy_vm_lend_end(session.vm, lend, false);
    await_ticket(&session, 200);
    cr_assert_leq(pool_of(&session).peak_bytes, 8 * LINK_BYTES);
    run_all(&session);
    session_settle(&session);
    session_release(&session, link);
    session_release(&session, here);
    session_close(&session);
}

Test(early, a_failure_within_a_chain_is_that_of_its_link) {
    for (uint64_t seed = 1; seed <= ROUNDS_OF(10); seed++)
        ON_EACH_PATH(session) {
            session_far(&session, (eddy_far_options){.seed = seed});
            eddy_storage_number last = make_chain(&session, 60, 30);
            int64_t value;
            cr_assert_eq(eddy_vm_read_small(session.vm, last, 0, 8, &value, &forever),
                         EDDY_OUT_OF_RANGE);
            cr_assert_str_eq(taken_error().message, "synthetic: told to fail, seed 30");
            eddy_vm_counters counters = session_settled_counters(&session);
            cr_assert_eq(counters.errors_made, 1);
            cr_assert_eq(counters.skipped, 29);
            session_release(&session, last);
        }
}

/* ---- several queues ---- */

Test(early, only_the_queue_of_the_last_users_has_the_memory_before_they_have_ended) {
    vm_session session = open_by_hand();
    eddy_storage_number a = make_sized(&session, 1, false, LINK_BYTES, 0, NULL), all[4];
    session.stream = session.far_streams[1];
    all[0] = make_sized(&session, 2, false, LINK_BYTES, 1, &a);
    await_ticket(&session, 2);
    const void *address = address_of(&session, a);
    session_release(&session, a);
    /* Its launch gives the memory back, and does not get it: it is too small. */
    all[1] = make_sized(&session, 3, false, 2 * LINK_BYTES, 0, NULL);
    session.stream = session.far_streams[0];
    all[2] = make_sized(&session, 4, false, LINK_BYTES, 0, NULL);
    await_ticket(&session, 4);
    cr_assert_neq(address_of(&session, all[2]), address, "the queue of the first user");
    session.stream = session.far_streams[1];
    all[3] = make_sized(&session, 5, false, LINK_BYTES, 0, NULL);
    await_ticket(&session, 5);
    cr_assert_eq(address_of(&session, all[3]), address, "the queue of the last");
    run_all(&session);
    session_settle(&session);
    release_all(&session, all, 4);
    session_close(&session);
}

/* The first of two readers is over, the second is not. */
Test(early, other_queues_have_it_after_the_last_of_several_users) {
    vm_session session = open_by_hand();
    eddy_storage_number a = make_sized(&session, 1, false, LINK_BYTES, 0, NULL), all[4];
    session.stream = session.far_streams[1];
    for (int i = 0; i < 2; i++)
        all[i] = make_sized(&session, 2, false, 2 * LINK_BYTES, 1, &a);
    await_ticket(&session, 3);
    const void *address = address_of(&session, a);
    session_release(&session, a);
    all[2] = make_sized(&session, 3, false, 2 * LINK_BYTES, 0, NULL);
    await_ticket(&session, 4);
    /* The first kernel, a wait for it and a reader, with two marks. */
    run_pieces(&session, 5);
    session.stream = session.far_streams[0];
    all[3] = make_sized(&session, 4, false, LINK_BYTES, 0, NULL);
    await_ticket(&session, 5);
    cr_assert_neq(address_of(&session, all[3]), address);
    run_all(&session);
    session_settle(&session);
    release_all(&session, all, 4);
    session_close(&session);
}

Test(early, what_is_read_in_two_queues_stays_until_both_have_ended) {
    vm_session session = open_by_hand();
    eddy_storage_number a = make_sized(&session, 1, false, LINK_BYTES, 0, NULL), all[6];
    for (int i = 0; i < 2; i++) {
        session.stream = session.far_streams[i];
        all[i] = make_sized(&session, 2, false, LINK_BYTES, 1, &a);
    }
    session_release(&session, a);
    for (int i = 2; i < 6; i++) {
        session.stream = session.far_streams[i % 2];
        all[i] = make_sized(&session, 3, false, LINK_BYTES, 0, NULL);
    }
    await_ticket(&session, 7);
    cr_assert_eq(pool_of(&session).live_bytes, 7 * LINK_BYTES);
    run_all(&session);
    session_settle(&session);
    cr_assert_eq(pool_of(&session).live_bytes, 6 * LINK_BYTES);
    release_all(&session, all, 6);
    session_close(&session);
}

/* A reader in another queue that a later write waits for is over with that. */
Test(early, a_write_stands_for_all_that_it_waits_for) {
    vm_session session = open_by_hand();
    eddy_storage_number a = make_sized(&session, 1, false, LINK_BYTES, 0, NULL), all[2];
    session.stream = session.far_streams[1];
    all[0] = session_make_from(&session, 2, 1, &a);
    session.stream = session.far_streams[0];
    session_mix_in(&session, a, 3, 0, NULL);
    await_ticket(&session, 3);
    const void *address = address_of(&session, a);
    session_release(&session, a);
    all[1] = make_sized(&session, 4, false, LINK_BYTES, 0, NULL);
    await_ticket(&session, 4);
    cr_assert_eq(address_of(&session, all[1]), address);
    run_all(&session);
    session_settle(&session);
    release_all(&session, all, 2);
    session_close(&session);
}

/* Chains that cross: each queue reads what another has made, and memory goes round among them. */
Test(early, chains_through_several_queues_compute_what_they_should) {
    for (uint64_t seed = 1; seed <= ROUNDS_OF(20); seed++)
        ON_EACH_PATH(session) {
            session_far(&session, (eddy_far_options){.seed = seed});
            eddy_storage_number links[3];
            int64_t values[3];
            for (int i = 0; i < 3; i++) {
                session.stream = session.far_streams[i];
                links[i] = make_sized(&session, i, false, 8, 0, NULL);
                values[i] = value_of(i, 0);
            }
            for (int i = 0; i < 150; i++) {
                int to = i % 3, from = (i + 1 + i / 7 % 2) % 3;
                session.stream = session.far_streams[i / 5 % 3];
                eddy_storage_number next = make_sized(
                    &session, i, false, 8, 2, (eddy_storage_number[]){links[to], links[from]});
                values[to] =
                    synthetic_mix(synthetic_mix(synthetic_mix(i, values[to]), values[from]), 0);
                session_release(&session, links[to]);
                links[to] = next;
            }
            for (int i = 0; i < 3; i++)
                cr_assert_eq(session_read(&session, links[i]), values[i]);
            release_all(&session, links, 3);
        }
}

/* ---- what stays until the end ---- */

Test(early, memory_that_was_handed_on_stays_until_its_users_have_ended) {
    vm_session session = open_by_hand();
    eddy_storage_number a = make_sized(&session, 1, false, LINK_BYTES, 0, NULL);
    await_ticket(&session, 1);
    eddy_store_relaxed(&eddy_vm_storage(session.vm, a)->shared.is_kept, true);
    session_release(&session, a);
    eddy_storage_number b = make_sized(&session, 2, false, LINK_BYTES, 0, NULL);
    await_ticket(&session, 2);
    cr_assert_eq(pool_of(&session).live_bytes, 2 * LINK_BYTES);
    run_all(&session);
    session_settle(&session);
    cr_assert_eq(pool_of(&session).live_bytes, LINK_BYTES);
    session_release(&session, b);
    session_close(&session);
}

/* A late call has a launch to come, with another ticket. */
Test(early, what_a_late_call_reads_stays_until_its_end) {
    vm_session session = open_by_hand();
    eddy_storage_number a = make_sized(&session, 1, false, LINK_BYTES, 0, NULL);
    run_pieces(&session, 2);
    session_settle(&session);
    eddy_vm_operand late = {
        .access = EDDY_ACCESS_MUT2, .is_new = true, .covers_all = true, .device = session.device};
    cr_assert_eq(session_call(&session, &synthetic_late_op, 7, false, 1, &a, 1, &late), EDDY_OK);
    await_ticket(&session, 2);
    const void *address = address_of(&session, a);
    session_release(&session, a);
    eddy_storage_number between = make_sized(&session, 2, false, LINK_BYTES, 0, NULL);
    await_ticket(&session, 3);
    cr_assert_neq(address_of(&session, between), address);
    run_pieces(&session, 6);
    session_settle(&session);
    eddy_storage_number all[] = {between, late.storage};
    cr_assert_eq(eddy_vm_counters_read(session.vm).errors_made, 0);
    release_all(&session, all, 2);
    session_close(&session);
}

/* The list does not have it any more when its number is another storage's. */
Test(early, what_has_ended_is_not_given_once_more) {
    vm_session session = open_by_hand();
    eddy_storage_number a = make_sized(&session, 1, false, EDDY_PENDING_BYTES, 0, NULL), all[40];
    session_release(&session, a);
    await_ticket(&session, 1);
    run_pieces(&session, 2);
    session_settled_counters(&session);
    cr_assert_eq(pool_of(&session).live_bytes, 0);
    session.stream = session.far_streams[1];
    bool is_used_again = false;
    for (int i = 0; i < 39; i++) {
        all[i] = make_sized(&session, i, false, LINK_BYTES, 0, NULL);
        is_used_again |= all[i] == a;
    }
    cr_assert(is_used_again, "else nothing is seen here");
    session.stream = session.far_streams[0];
    all[39] = make_sized(&session, 39, false, LINK_BYTES, 0, NULL);
    await_ticket(&session, 41);
    cr_assert_eq(pool_of(&session).live_bytes, 40 * LINK_BYTES);
    run_all(&session);
    session_settle(&session);
    release_all(&session, all, 40);
    session_close(&session);
}

/* ---- short of memory, lost ---- */

/* The launcher has no further launch in the queue that could give the memory back: it is there when the users have ended. */
Test(early, a_stalled_launcher_gets_what_was_released_before_and_behind_it) {
    vm_session session = session_open_threads(2);
    session_far(&session, (eddy_far_options){.is_by_hand = true, .bytes = 8 << 20});
    eddy_storage_number a = make_sized(&session, 1, false, 3 << 20, 0, NULL),
                        b = make_sized(&session, 2, false, 3 << 20, 0, NULL);
    session.stream = session.far_streams[1];
    eddy_storage_number large = make_sized(&session, 3, false, 6 << 20, 0, NULL);
    session.stream = session.far_streams[0];
    session_release(&session, a);
    eddy_storage_number behind = session_make(&session, 4);
    session_release(&session, b);
    run_pieces(&session, 8);
    session_settle(&session);
    cr_assert_eq(eddy_vm_counters_read(session.vm).errors_made, 0);
    session_release(&session, large);
    session_release(&session, behind);
    session_close(&session);
}

/* Nothing has run when the device is lost, and what follows fails with it. */
Test(early, a_device_lost_within_a_chain_leaves_nothing_behind) {
    vm_session session = open_by_hand();
    eddy_storage_number link = make_chain(&session, 40, -1);
    await_ticket(&session, 20);
    eddy_far_lose(session.far);
    for (int i = 0; i < 40; i++) {
        eddy_storage_number next = make_sized(&session, i, false, LINK_BYTES, 1, &link);
        session_release(&session, link);
        link = next;
    }
    int64_t value;
    cr_assert_eq(eddy_vm_read_small(session.vm, link, 0, 8, &value, &forever), EDDY_DEVICE_LOST);
    taken_error();
    session_release(&session, link);
    session_settle(&session);
    session_close(&session);
}
