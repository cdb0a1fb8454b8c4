/* How many rounds of random code a test runs in a build with a sanitizer, which takes many times as long: what it looks for is in each of
 * them, and builds without one run them all. */
#ifndef EDDY_TESTS_ROUNDS_H
#define EDDY_TESTS_ROUNDS_H

#if defined(__SANITIZE_THREAD__)
#define ROUNDS_OF(count) (((count) + 7) / 8)
#elif defined(__SANITIZE_ADDRESS__)
#define ROUNDS_OF(count) (((count) + 3) / 4)
#else
#define ROUNDS_OF(count) (count)
#endif

#endif
