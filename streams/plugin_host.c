/* Part of every plug-in: the library's functions, by way of the table that it has given. */
#include <base/log.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <streams/plugin_host.h>

static const eddy_plugin_host *host;

void eddy_plugin_keep_host(const eddy_plugin_host *given) {
    host = given;
}

/* `return` of what is void is C's too, as an extension that both compilers take; hence one macro for all rows. */
#define EDDY_PLUGIN_HOST_ROW(result, name, parameters, arguments)                                  \
    result name parameters {                                                                       \
        return host->name arguments;                                                               \
    }
EDDY_PLUGIN_HOST_LIST(EDDY_PLUGIN_HOST_ROW)
#undef EDDY_PLUGIN_HOST_ROW

_Noreturn void eddy_assert_failed(const char *condition, const char *file, int line) {
    host->assert_failed(condition, file, line);
    abort();
}

void eddy_log_line(const char *format, ...) {
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    host->log_line("%s", line);
}
