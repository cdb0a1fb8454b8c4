#include <base/float_environment.h>
#include <criterion/criterion.h>
#include <fenv.h>

static double add_tiny(double a) {
    volatile double tiny = 1e-200;
    return a + tiny;
}

static float eighth(float a) {
    volatile float eight = 8;
    return a / eight;
}

/* As kernels are called: through pointers that the compiler cannot follow. */
static double (*volatile call_add_tiny)(double a) = add_tiny;
static float (*volatile call_eighth)(float a) = eighth;

Test(float_environment, enter_makes_the_default_and_leave_restores) {
    int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (int i = 0; i < 4; i++) {
        fesetround(modes[i]);
        double outside = call_add_tiny(1);
        eddy_float_environment before = eddy_float_environment_enter();
        double inside = call_add_tiny(1);
        eddy_float_environment_leave(before);
        cr_assert_eq(inside, 1.0);
        cr_assert_eq(call_add_tiny(1), outside);
        cr_assert_eq(fegetround(), modes[i]);
    }
    fesetround(FE_TONEAREST);
}

#if defined(__x86_64__)
Test(float_environment, flush_to_zero_is_lifted_inside) {
    _mm_setcsr(_mm_getcsr() | 0x8040u);
    eddy_float_environment before = eddy_float_environment_enter();
    float inside = call_eighth(1e-38f);
    eddy_float_environment_leave(before);
    float outside = call_eighth(1e-38f);
    _mm_setcsr(EDDY_MXCSR_DEFAULT);
    cr_assert_gt(inside, 0);
    cr_assert_eq(outside, 0);
}
#endif
