#include <base/sleep.h>
#include <criterion/criterion.h>
#include <signal.h>

static eddy_lock submission = EDDY_LOCK_OF(EDDY_RANK_SUBMISSION),
                 pool = EDDY_LOCK_OF(EDDY_RANK_POOL), leaf = EDDY_LOCK_OF(EDDY_RANK_LEAF), unranked;

static void take_all(void) {
    eddy_lock_acquire(&submission);
    eddy_lock_acquire(&pool);
    eddy_lock_acquire(&leaf);
}

static void give_all_back(void) {
    eddy_lock_release(&submission); /* in any order */
    eddy_lock_release(&leaf);
    eddy_lock_release(&pool);
}

Test(order, higher_ranks_may_be_taken_under_lower_ones) {
    for (int round = 0; round < 2; round++) {
        take_all();
        eddy_lock_acquire(&unranked);
        eddy_lock_release(&unranked);
        give_all_back();
        eddy_order_check();
    }
    eddy_lock_acquire(&unranked);
    eddy_order_check(); /* not followed */
    take_all();
    give_all_back();
    eddy_lock_release(&unranked);
}

Test(order, a_lock_that_was_not_to_be_had_is_not_held) {
    eddy_store_relaxed(&leaf.word, 1u);
    cr_assert_not(eddy_lock_try(&leaf));
    eddy_order_check();
    eddy_store_relaxed(&leaf.word, 0u);
    cr_assert(eddy_lock_try(&leaf));
    eddy_lock_release(&leaf);
    eddy_order_check();
}

#ifdef EDDY_CHECKS
Test(order, a_lower_rank_under_a_higher_one_stops, .signal = SIGABRT) {
    eddy_lock_acquire(&leaf);
    eddy_lock_acquire(&pool);
}

Test(order, two_of_one_rank_stop, .signal = SIGABRT) {
    static eddy_lock other = EDDY_LOCK_OF(EDDY_RANK_LEAF);
    eddy_lock_acquire(&leaf);
    eddy_lock_acquire(&other);
}

Test(order, who_waits_with_one_stops, .signal = SIGABRT) {
    eddy_lock_acquire(&leaf);
    eddy_order_check();
}
#endif
