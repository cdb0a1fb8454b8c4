#include <base/order.h>

#ifdef EDDY_CHECKS
#include <base/assert.h>

static __thread unsigned held; /* a bit for each rank */

void eddy_order_taken(eddy_lock_rank rank) {
    if (rank == EDDY_RANK_NONE)
        return;
    EDDY_ASSERT(held >> rank == 0);
    held |= 1u << rank;
}

void eddy_order_given_up(eddy_lock_rank rank) {
    if (rank == EDDY_RANK_NONE)
        return;
    EDDY_ASSERT(held >> rank & 1u);
    held &= ~(1u << rank);
}

void eddy_order_check(void) {
    EDDY_ASSERT(held == 0);
}
#else
/* A translation unit must not be empty. */
typedef int eddy_order_is_not_checked;
#endif
