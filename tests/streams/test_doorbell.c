#include <base/thread.h>
#include <criterion/criterion.h>
#include <streams/doorbell.h>
#include <unistd.h>

/* A thread that has been woken may not run for a while: as if it were asleep. */
Test(doorbell, a_sleeper_is_woken_once_however_often_it_rings) {
    eddy_doorbell bell = {0};
    eddy_store_seq_cst(&bell.is_asleep, 1u);
    uint64_t before = eddy_sleep_wake_count();
    for (int i = 0; i < 100; i++)
        eddy_doorbell_ring(&bell);
    cr_assert_eq(eddy_sleep_wake_count() - before, 1);
    cr_assert_eq(eddy_doorbell_seen(&bell), 100);
}

Test(doorbell, nobody_is_woken_who_does_not_sleep) {
    eddy_doorbell bell = {0};
    uint64_t before = eddy_sleep_wake_count();
    eddy_doorbell_ring(&bell);
    cr_assert_eq(eddy_sleep_wake_count(), before);
}

Test(doorbell, nobody_sleeps_who_has_not_heard_all) {
    alarm(60);
    eddy_doorbell bell = {0};
    uint32_t seen = eddy_doorbell_seen(&bell);
    eddy_doorbell_ring(&bell);
    eddy_doorbell_sleep(&bell, seen, EDDY_CLOCK_FOREVER);
    cr_assert_eq(eddy_load_relaxed(&bell.is_asleep), 0);
}

Test(doorbell, a_sleep_has_an_end) {
    alarm(60);
    eddy_doorbell bell = {0};
    int64_t deadline_ns = eddy_clock_ns() + 1000000;
    while (eddy_clock_ns() < deadline_ns)
        eddy_doorbell_sleep(&bell, eddy_doorbell_seen(&bell), deadline_ns);
    cr_assert_eq(eddy_load_relaxed(&bell.is_asleep), 0);
}

/* ---- several that ring, and one that takes ---- */

enum { RINGERS = 3, EACH = 20000 };
static eddy_doorbell shared;
static _Atomic uint32_t given; /* atomic */

static void give(void *context) {
    (void)context;
    for (int i = 0; i < EACH; i++) {
        /* Who gives the first one rings: the others are seen with it. */
        if (eddy_add_acq_rel(&given, 1u) == 0)
            eddy_doorbell_ring(&shared);
        for (int turns = i % 60 * 10; turns > 0; turns--)
            eddy_atomic_pause();
    }
}

Test(doorbell, no_ring_is_lost) {
    alarm(120);
    eddy_thread ringers[RINGERS];
    for (int i = 0; i < RINGERS; i++)
        cr_assert_eq(eddy_thread_create(&ringers[i], "ringer", give, NULL), EDDY_OK);
    uint32_t taken = 0;
    while (taken < RINGERS * EACH) {
        uint32_t seen = eddy_doorbell_seen(&shared);
        uint32_t now = eddy_exchange_acq_rel(&given, 0u);
        taken += now;
        if (now == 0 && (taken % 2 || !eddy_doorbell_spin(&shared, seen)))
            eddy_doorbell_sleep(&shared, seen, EDDY_CLOCK_FOREVER);
    }
    for (int i = 0; i < RINGERS; i++)
        eddy_thread_join(&ringers[i]);
    cr_assert_eq(taken, RINGERS * EACH);
}
