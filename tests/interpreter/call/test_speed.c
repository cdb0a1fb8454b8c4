#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <interpreter/call/packed.h>
#include <interpreter/call/speed.h>
#include <kernels/cost.h>

static int64_t factor(void) {
    return eddy_load_relaxed(&eddy_speed_factor);
}

Test(speed, is_measured_before_the_first_op) {
    eddy_store_relaxed(&eddy_speed_factor, (int64_t)0);
    cr_assert_not_null(eddy_runtime_current());
    cr_assert(factor() >= EDDY_SPEED_ONE / 4 && factor() <= 2 * EDDY_SPEED_ONE, "%lld",
              (long long)factor());
    int64_t measured = factor();
    eddy_runtime *second = eddy_runtime_create(NULL);
    cr_assert_not_null(second);
    cr_assert_eq(factor(), measured, "once per process");
    eddy_runtime_release(&second);
}

Test(speed, estimates_follow_the_factor) {
    eddy_store_relaxed(&eddy_speed_factor, (int64_t)EDDY_SPEED_ONE / 2);
    cr_assert_eq(eddy_speed_ps(0), 0);
    cr_assert_eq(eddy_speed_ps(3000), 1500);
    cr_assert_eq(eddy_speed_ps(EDDY_COST_MOST), EDDY_COST_MOST / 2);
    eddy_store_relaxed(&eddy_speed_factor, (int64_t)2 * EDDY_SPEED_ONE);
    cr_assert_eq(eddy_speed_ps(EDDY_COST_MOST), 2 * EDDY_COST_MOST, "without overflow");
}

static void run_nothing(const eddy_kernel_call *call) {
    (void)call;
}

/* The estimate of a call without operands whose kernel says 1000 ps. */
static int64_t planned_ps(bool is_registered) {
    static const eddy_kernel kernel = {.run = run_nothing, .cost_base_ps = 1000};
    const eddy_op op = {.name = "test.op", .is_registered = is_registered};
    int64_t block[(sizeof(eddy_packed_arguments) + EDDY_KERNEL_PLAN_BYTES) / sizeof(int64_t)] = {0};
    eddy_packed_arguments *packed = (eddy_packed_arguments *)(void *)block;
    packed->op = &op;
    packed->kernel = &kernel;
    size_t bytes = sizeof(*packed);
    int64_t cost_ps = -1;
    cr_assert_eq(eddy_packed_prepare(packed, &bytes, &cost_ps), EDDY_OK);
    return cost_ps;
}

Test(speed, a_registered_op_states_its_own_time) {
    eddy_store_relaxed(&eddy_speed_factor, (int64_t)EDDY_SPEED_ONE / 4);
    cr_assert_eq(planned_ps(false), 250);
    cr_assert_eq(planned_ps(true), 1000);
}
