/* Recording failures. */
#include "serial_team.h"
#include <criterion/criterion.h>

static void fail_slice(void *context, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
        if (i >= 300)
            eddy_kernel_fail(context, i % 2 ? EDDY_OUT_OF_RANGE : EDDY_KERNEL_FAILED, i, i * 10,
                             i * 100);
}

Test(kernel, the_lowest_position_wins_on_any_number_of_threads) {
    eddy_kernel_team *teams[] = {&serial_team, &shuffling_team, &threaded_team};
    for (int t = 0; t < 3; t++) {
        eddy_kernel_error error = {.position = INT64_MAX};
        eddy_kernel_call call = {.team = teams[t], .error = &error};
        teams[t]->parallel_for(teams[t], 5000, 7, fail_slice, &call);
        cr_assert_eq(eddy_load_relaxed(&error.position), 300);
        cr_assert_eq(eddy_load_relaxed(&error.status), EDDY_KERNEL_FAILED);
        cr_assert(error.value == 3000 && error.bound == 30000);
    }
}
