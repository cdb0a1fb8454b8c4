/* Assertions for our own bugs; user input never reaches one. Kept in release builds: each is O(1). */
#ifndef EDDY_BASE_ASSERT_H
#define EDDY_BASE_ASSERT_H

#include <stdbool.h>

/* Writes one line to stderr and aborts: an invariant of the library is broken. */
_Noreturn void eddy_assert_failed(const char *condition, const char *file, int line);

#define EDDY_ASSERT(condition)                                                                     \
    (__builtin_expect(!!(condition), 1) ? (void)0                                                  \
                                        : eddy_assert_failed(#condition, __FILE__, __LINE__))

/* Only in check builds (-Dchecks=true): may cost more than O(1). */
#ifdef EDDY_CHECKS
#define EDDY_CHECK(condition) EDDY_ASSERT(condition)
#else
#define EDDY_CHECK(condition) ((void)0)
#endif

#define EDDY_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define EDDY_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define EDDY_MUST_USE __attribute__((warn_unused_result))

#endif
