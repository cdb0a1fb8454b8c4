#include <base/assert.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

_Noreturn void eddy_assert_failed(const char *condition, const char *file, int line) {
    /* Not stdio: the failing thread may hold its lock. */
    char text[512];
    int length = snprintf(text, sizeof(text), "eddy: broken invariant at %s:%d: %s\n", file, line,
                          condition);
    if (length >= (int)sizeof(text))
        length = (int)sizeof(text) - 1;
    ssize_t written = write(STDERR_FILENO, text, (size_t)length);
    (void)written;
    abort();
}
