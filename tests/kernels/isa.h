/* What tests of block functions across instruction sets share. */
#ifndef EDDY_TESTS_ISA_H
#define EDDY_TESTS_ISA_H

#include "tensor.h"
#include <base/cpu.h>
#include <criterion/criterion.h>
#include <string.h>

/* The levels beyond the portable one that this machine has. */
#define EACH_OTHER(isa) for (eddy_isa isa = EDDY_ISA_V2; isa <= eddy_isa_machine(); isa++)

static inline void need_another(void) {
    if (eddy_isa_machine() == EDDY_ISA_PORTABLE)
        cr_skip_test("this machine has no second instruction set");
}

static inline void fill_f32(float *x, int64_t count, double low, double high) {
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(low + (high - low) * test_unit());
}

static inline void fill_f64(double *x, int64_t count, double low, double high) {
    for (int64_t i = 0; i < count; i++)
        x[i] = low + (high - low) * test_unit();
}

#define ASSERT_SAME(want, got, bytes, isa, ...)                                                                        \
    cr_assert_eq(memcmp(want, got, bytes), 0, "%s, seed %llu: %s[%lld]", eddy_isa_name(isa),                           \
                 (unsigned long long)test_seed, __VA_ARGS__)

#endif
