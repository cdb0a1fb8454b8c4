#include <base/order.h>

#ifdef EDDY_CHECKS
#include <base/assert.h>

static __thread int held;

void eddy_order_held(void) {
    held++;
}

void eddy_order_given_up(void) {
    EDDY_ASSERT(held > 0);
    held--;
}

void eddy_order_check(void) {
    EDDY_ASSERT(held == 0);
}
#else
/* A translation unit holds something. */
typedef int eddy_order_is_not_checked;
#endif
