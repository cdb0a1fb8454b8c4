/* How often entries of the driver were called. The fake driver alone tells: on another one a test makes its runs and compares them all the same, and is skipped at its end. */
#ifndef EDDY_TESTS_PROGRAM_DRIVER_CALLS_H
#define EDDY_TESTS_PROGRAM_DRIVER_CALLS_H

#include <tests/fake_cuda/needed.h>

static bool calls_are_unknown;

/* 0 where it is unknown. */
static inline long calls_of(const char *entry) {
    static long (*calls)(const char *);
    if (!calls)
        *(void **)&calls = fake_cuda_find("fake_cuda_calls_of");
    calls_are_unknown = !calls;
    if (!calls)
        return 0;
    cr_assert_geq(calls(entry), 0, "%s", entry);
    return calls(entry);
}

#define must_count(condition, ...)                                                                 \
    do {                                                                                           \
        bool is_counted = (condition);                                                             \
        cr_assert(is_counted || calls_are_unknown, #condition __VA_ARGS__);                        \
    } while (0)

static inline void end_of_counts(void) {
    if (calls_are_unknown)
        cr_skip_test("its runs were compared, but the driver does not say what was called");
}

#endif
