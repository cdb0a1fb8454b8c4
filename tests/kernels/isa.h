/* What tests of block functions across instruction sets share. */
#ifndef EDDY_TESTS_ISA_H
#define EDDY_TESTS_ISA_H

#include "tensor.h"
#include <base/cpu.h>
#include <criterion/criterion.h>
#include <string.h>

/* The next level from `isa` on that has kernels of its own. */
static inline eddy_isa built_isa(int isa) {
    while (isa < EDDY_ISA_COUNT && (int)eddy_isa_served_by((eddy_isa)isa) != isa)
        isa++;
    return (eddy_isa)isa;
}

/* The levels that were built and that this machine has: all, and those above the lowest, which serves EDDY_ISA_PORTABLE. */
#define EACH_FROM(isa, first)                                                                      \
    for (eddy_isa isa = built_isa(first); isa <= eddy_isa_machine(); isa = built_isa(isa + 1))
#define EACH_ISA(isa) EACH_FROM (isa, EDDY_ISA_PORTABLE)
#define EACH_OTHER(isa) EACH_FROM (isa, eddy_isa_served_by(EDDY_ISA_PORTABLE) + 1)

static inline void need_another(void) {
    if (built_isa(eddy_isa_served_by(EDDY_ISA_PORTABLE) + 1) > eddy_isa_machine())
        cr_skip_test("one instruction set alone: the build or this machine has no second");
}

static inline void fill_f32(float *x, int64_t count, double low, double high) {
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(low + (high - low) * test_unit());
}

static inline void fill_f64(double *x, int64_t count, double low, double high) {
    for (int64_t i = 0; i < count; i++)
        x[i] = low + (high - low) * test_unit();
}

#define ASSERT_SAME(want, got, bytes, isa, ...)                                                    \
    cr_assert_eq(memcmp(want, got, bytes), 0, "%s, seed %llu: %s[%lld]", eddy_isa_name(isa),       \
                 (unsigned long long)test_seed, __VA_ARGS__)

#endif
