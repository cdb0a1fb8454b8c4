/* How long idle workers spin: made-up times. */
#include <criterion/criterion.h>
#include <streams/idle.h>

#define HAND_OVER 30000

/* Slices that come so long after the last ones, so many times. */
static void come_after(eddy_idle *idle, int64_t ns, bool has_slept, int times) {
    for (int i = 0; i < times; i++) {
        eddy_idle_begin(idle, 1000);
        if (has_slept)
            eddy_idle_sleep(idle);
        eddy_idle_end(idle, 1000 + ns, HAND_OVER);
    }
}

Test(idle, spins_little_until_work_has_come_soon) {
    eddy_idle idle = {0};
    cr_assert_eq(eddy_idle_spin_ns(&idle, HAND_OVER), EDDY_IDLE_SPIN_LEAST_NS);
    come_after(&idle, 25000, false, 3);
    cr_assert_eq(eddy_idle_spin_ns(&idle, HAND_OVER), EDDY_IDLE_SPIN_LEAST_NS);
    come_after(&idle, 25000, false, 20);
    cr_assert_eq(eddy_idle_spin_ns(&idle, HAND_OVER), HAND_OVER);
}

Test(idle, stops_when_work_comes_late) {
    eddy_idle idle = {0};
    come_after(&idle, 25000, false, 100);
    come_after(&idle, 35000, false, 1);
    cr_assert_eq(eddy_idle_spin_ns(&idle, HAND_OVER), HAND_OVER, "one that is late is none");
    come_after(&idle, 35000, false, 5);
    cr_assert_eq(eddy_idle_spin_ns(&idle, HAND_OVER), EDDY_IDLE_SPIN_LEAST_NS);
    for (int i = 0; i < 100; i++) {
        come_after(&idle, 25000, false, 1);
        come_after(&idle, 35000, false, 1);
    }
    cr_assert_eq(eddy_idle_spin_ns(&idle, HAND_OVER), EDDY_IDLE_SPIN_LEAST_NS,
                 "as often as not does not pay");
}

Test(idle, a_sleeper_is_late_by_its_way) {
    eddy_idle idle = {0};
    come_after(&idle, 25000 + HAND_OVER / 2, true, 20);
    cr_assert_eq(eddy_idle_spin_ns(&idle, HAND_OVER), HAND_OVER);
    eddy_idle awake = {0};
    come_after(&awake, 25000 + HAND_OVER / 2, false, 20);
    cr_assert_eq(eddy_idle_spin_ns(&awake, HAND_OVER), EDDY_IDLE_SPIN_LEAST_NS);
}

Test(idle, other_work_says_nothing) {
    eddy_idle idle = {0};
    come_after(&idle, 25000, false, 20);
    for (int i = 0; i < 100; i++) {
        eddy_idle_begin(&idle, 1000);
        eddy_idle_sleep(&idle);
        eddy_idle_forget(&idle);
    }
    cr_assert_eq(idle.since, 0);
    cr_assert_eq(eddy_idle_spin_ns(&idle, HAND_OVER), HAND_OVER);
    come_after(&idle, 25000 + HAND_OVER / 2, false, 20);
    cr_assert_eq(eddy_idle_spin_ns(&idle, HAND_OVER), EDDY_IDLE_SPIN_LEAST_NS,
                 "that it had slept is forgotten");
}

Test(idle, within_bounds) {
    eddy_idle idle = {0};
    for (int i = 0; i < 20; i++) {
        eddy_idle_begin(&idle, 1000);
        eddy_idle_end(&idle, 2000, 400000);
    }
    cr_assert_eq(eddy_idle_spin_ns(&idle, 400000), EDDY_IDLE_SPIN_MOST_NS);
    cr_assert_eq(eddy_idle_spin_ns(&idle, 4000), EDDY_IDLE_SPIN_LEAST_NS);
}
