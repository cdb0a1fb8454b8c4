/* How many rounds of random code a test runs in a build with a sanitizer, which takes many times as long: what it looks for is in each of
 * them, and builds without one run them all. */
#ifndef EDDY_TESTS_ROUNDS_H
#define EDDY_TESTS_ROUNDS_H

#include <stdbool.h>
#include <stdlib.h>

#if defined(__SANITIZE_THREAD__)
#define ROUNDS_OF(count) (((count) + 7) / 8)
#elif defined(__SANITIZE_ADDRESS__)
#define ROUNDS_OF(count) (((count) + 3) / 4)
#else
#define ROUNDS_OF(count) (count)
#endif

/* Whether the next one of many cases is tried: with EDDY_TEST_SHARE=7, where each takes long (tests/meson.build), the first and one in 7. Under ThreadSanitizer all but the first are other cases than
 * elsewhere. The number has no factor in common with the counts of nested loops. Not for threads. */
static inline bool rounds_has_next(void) {
    static int count;
    const char *text = getenv("EDDY_TEST_SHARE");
    int share = text ? atoi(text) : 1, first = 0;
#ifdef __SANITIZE_THREAD__
    first = share / 2;
#endif
    int number = count++;
    return number == 0 || number % share == first;
}

#endif
