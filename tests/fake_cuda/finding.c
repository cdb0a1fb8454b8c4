#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <tests/fake_cuda/finding.h>
#include <tests/fake_cuda/option.h>
#include <unistd.h>

/* Further ones are counted only. */
#define LINES_MAX 50

static _Atomic int count; /* atomic: relaxed, a count */
static _Atomic pid_t
    process; /* atomic: relaxed; where they were found: a forked child has none of them */

static void say(const char *format, va_list arguments) {
    char text[512];
    vsnprintf(text, sizeof(text), format, arguments);
    fprintf(stderr, "fake_cuda: %s\n", text);
}

void fake_finding(const char *format, ...) {
    int before = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    atomic_store_explicit(&process, getpid(), memory_order_relaxed);
    if (before < LINES_MAX) {
        va_list arguments;
        va_start(arguments, format);
        say(format, arguments);
        va_end(arguments);
    } else if (before == LINES_MAX) {
        fprintf(stderr, "fake_cuda: and more\n");
    }
    if (fake_options_read()->aborts)
        abort();
}

void fake_abort(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    abort();
}

int fake_cuda_findings(void) {
    return atomic_load_explicit(&count, memory_order_relaxed);
}

/* Behind all handlers of exit, which may still find something. */
__attribute__((destructor)) static void end_with_status(void) {
    if (fake_cuda_findings() == 0 ||
        atomic_load_explicit(&process, memory_order_relaxed) != getpid())
        return;
    fprintf(stderr, "fake_cuda: %d findings\n", fake_cuda_findings());
    fflush(NULL);
    _exit(FAKE_FINDING_STATUS);
}
