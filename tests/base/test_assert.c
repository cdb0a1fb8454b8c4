#include <base/assert.h>
#include <criterion/criterion.h>
#include <signal.h>

Test(assert, a_broken_invariant_aborts, .signal = SIGABRT) {
    EDDY_ASSERT(1 + 1 == 3);
}

Test(assert, a_kept_invariant_is_silent) {
    int evaluated = 0;
    EDDY_ASSERT(++evaluated == 1);
    cr_assert_eq(evaluated, 1);
}
