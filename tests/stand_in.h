/* Stands in for Criterion in builds with a sanitizer: it does not start under ThreadSanitizer, and under AddressSanitizer starts each test as a program, which
 * takes longer than most tests. `Test` and the assertions in use, over a plain main that runs each test in a process of its own.
 *
 * Tests include <criterion/criterion.h>; builds with a sanitizer find tests/stand_in/criterion/criterion.h, which is this. */
#ifndef EDDY_TESTS_STAND_IN_H
#define EDDY_TESTS_STAND_IN_H

#include <fnmatch.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* An assertion without a message has an empty format. */
#pragma GCC diagnostic ignored "-Wformat-zero-length"

typedef struct stand_in_test {
    const char *suite, *name;
    void (*run)(void);
    void (*init)(void), (*fini)(void); /* Test(suite, name, .init = ...) */
    int signal;                        /* the test must end by it */
    int exit_code;
    double timeout; /* seconds; 0: the runner's */
    bool disabled;
    const char *description;
    struct stand_in_test *next;
} stand_in_test;

/* Shared by the sources of one program: the tests, last registered first, and what went wrong in the running one. */
__attribute__((weak)) stand_in_test *stand_in_tests;
__attribute__((weak)) _Atomic int stand_in_failures;

#define Test(suite_, name_, ...)                                                                   \
    static void suite_##_##name_##_run(void);                                                      \
    static stand_in_test suite_##_##name_##_test = {                                               \
        .suite = #suite_, .name = #name_, .run = suite_##_##name_##_run, ##__VA_ARGS__};           \
    __attribute__((constructor)) static void suite_##_##name_##_register(void) {                   \
        suite_##_##name_##_test.next = stand_in_tests;                                             \
        stand_in_tests = &suite_##_##name_##_test;                                                 \
    }                                                                                              \
    static void suite_##_##name_##_run(void)

__attribute__((format(printf, 5, 6), unused)) static void stand_in_fail(bool ends, const char *file,
                                                                        int line,
                                                                        const char *condition,
                                                                        const char *format, ...) {
    char text[1024];
    __builtin_va_list arguments;
    __builtin_va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    __builtin_va_end(arguments);
    fprintf(stderr, "%s:%d: %s%s%s\n", file, line, condition, *text ? ": " : "", text);
    stand_in_failures++;
    if (ends)
        _exit(1);
}

#define STAND_IN_ASSERT(ends, condition, ...)                                                      \
    ((condition) ? (void)0 : stand_in_fail(ends, __FILE__, __LINE__, #condition, "" __VA_ARGS__))

#define cr_assert(condition, ...) STAND_IN_ASSERT(true, condition, __VA_ARGS__)
#define cr_assert_not(condition, ...) STAND_IN_ASSERT(true, !(condition), __VA_ARGS__)
#define cr_assert_eq(a, b, ...) STAND_IN_ASSERT(true, (a) == (b), __VA_ARGS__)
#define cr_assert_neq(a, b, ...) STAND_IN_ASSERT(true, (a) != (b), __VA_ARGS__)
#define cr_assert_lt(a, b, ...) STAND_IN_ASSERT(true, (a) < (b), __VA_ARGS__)
#define cr_assert_leq(a, b, ...) STAND_IN_ASSERT(true, (a) <= (b), __VA_ARGS__)
#define cr_assert_gt(a, b, ...) STAND_IN_ASSERT(true, (a) > (b), __VA_ARGS__)
#define cr_assert_geq(a, b, ...) STAND_IN_ASSERT(true, (a) >= (b), __VA_ARGS__)
#define cr_assert_null(a, ...) STAND_IN_ASSERT(true, (a) == NULL, __VA_ARGS__)
#define cr_assert_not_null(a, ...) STAND_IN_ASSERT(true, (a) != NULL, __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) STAND_IN_ASSERT(true, strcmp(a, b) == 0, __VA_ARGS__)
#define cr_assert_str_neq(a, b, ...) STAND_IN_ASSERT(true, strcmp(a, b) != 0, __VA_ARGS__)
#define cr_assert_str_empty(a, ...) STAND_IN_ASSERT(true, *(a) == '\0', __VA_ARGS__)
#define cr_assert_str_not_empty(a, ...) STAND_IN_ASSERT(true, *(a) != '\0', __VA_ARGS__)
#define cr_assert_float_eq(a, b, epsilon, ...)                                                     \
    STAND_IN_ASSERT(true, fabs((double)(a) - (double)(b)) <= (epsilon), __VA_ARGS__)
#define cr_assert_arr_eq(a, b, bytes, ...)                                                         \
    STAND_IN_ASSERT(true, memcmp(a, b, bytes) == 0, __VA_ARGS__)
#define cr_assert_arr_neq(a, b, bytes, ...)                                                        \
    STAND_IN_ASSERT(true, memcmp(a, b, bytes) != 0, __VA_ARGS__)
#define cr_assert_fail(...) STAND_IN_ASSERT(true, false, __VA_ARGS__)
#define cr_fatal(...) cr_assert_fail(__VA_ARGS__)

#define cr_expect(condition, ...) STAND_IN_ASSERT(false, condition, __VA_ARGS__)
#define cr_expect_not(condition, ...) STAND_IN_ASSERT(false, !(condition), __VA_ARGS__)
#define cr_expect_eq(a, b, ...) STAND_IN_ASSERT(false, (a) == (b), __VA_ARGS__)
#define cr_expect_neq(a, b, ...) STAND_IN_ASSERT(false, (a) != (b), __VA_ARGS__)
#define cr_expect_lt(a, b, ...) STAND_IN_ASSERT(false, (a) < (b), __VA_ARGS__)
#define cr_expect_leq(a, b, ...) STAND_IN_ASSERT(false, (a) <= (b), __VA_ARGS__)
#define cr_expect_gt(a, b, ...) STAND_IN_ASSERT(false, (a) > (b), __VA_ARGS__)
#define cr_expect_geq(a, b, ...) STAND_IN_ASSERT(false, (a) >= (b), __VA_ARGS__)
#define cr_expect_null(a, ...) STAND_IN_ASSERT(false, (a) == NULL, __VA_ARGS__)
#define cr_expect_not_null(a, ...) STAND_IN_ASSERT(false, (a) != NULL, __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...) STAND_IN_ASSERT(false, strcmp(a, b) == 0, __VA_ARGS__)
#define cr_expect_str_neq(a, b, ...) STAND_IN_ASSERT(false, strcmp(a, b) != 0, __VA_ARGS__)
#define cr_expect_float_eq(a, b, epsilon, ...)                                                     \
    STAND_IN_ASSERT(false, fabs((double)(a) - (double)(b)) <= (epsilon), __VA_ARGS__)
#define cr_expect_arr_eq(a, b, bytes, ...)                                                         \
    STAND_IN_ASSERT(false, memcmp(a, b, bytes) == 0, __VA_ARGS__)
#define cr_fail(...) STAND_IN_ASSERT(false, false, __VA_ARGS__)

#define cr_log_info(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), (void)0)
#define cr_skip_test(...) (fprintf(stderr, "skipped: " __VA_ARGS__), fputc('\n', stderr), _exit(77))

/* Whether the test ended as it should. A child process, so that nothing of one test is left for the next. */
static inline int stand_in_run(const stand_in_test *test) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (test->timeout > 0)
            alarm((unsigned)ceil(test->timeout));
        if (test->init)
            test->init();
        test->run();
        if (test->fini)
            test->fini();
        fflush(NULL);
        exit(stand_in_failures != 0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 1;
    if (WIFSIGNALED(status))
        return WTERMSIG(status) != test->signal;
    if (WEXITSTATUS(status) == 77)
        return 77;
    return test->signal != 0 || WEXITSTATUS(status) != test->exit_code;
}

/* Criterion's pattern of "suite/name"; NULL: every test is meant. */
static inline bool stand_in_is_meant(const stand_in_test *test, const char *pattern) {
    char name[256];
    snprintf(name, sizeof(name), "%s/%s", test->suite, test->name);
    return !pattern || fnmatch(pattern, name, FNM_EXTMATCH) == 0;
}

/* PROGRAM [--filter PATTERN] */
__attribute__((weak)) int main(int argc, char **argv) {
    int passed = 0, failed = 0, skipped = 0;
    const char *pattern = argc == 3 && strcmp(argv[1], "--filter") == 0 ? argv[2] : NULL;
    for (const stand_in_test *test = stand_in_tests; test; test = test->next) {
        if (test->disabled || !stand_in_is_meant(test, pattern))
            continue;
        int result = stand_in_run(test);
        passed += result == 0;
        skipped += result == 77;
        failed += result != 0 && result != 77;
        if (result != 0)
            fprintf(stderr, "%s: %s::%s\n", result == 77 ? "skipped" : "FAILED", test->suite,
                    test->name);
    }
    fprintf(stderr, "%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    if (pattern && passed + failed + skipped == 0)
        return 1; /* it names no test */
    return failed ? 1 : passed ? 0 : 77;
}

#endif
