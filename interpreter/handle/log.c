#include <interpreter/handle/log.h>

#include <base/clock.h>
#include <base/option.h>
#include <base/status.h>
#include <eddy/log.h>
#include <interpreter/handle/runtime.h>
#include <string.h>
#include <trace/event_log.h>

/* The longest wait of exit for a sink. */
#define EXIT_NS INT64_C(1000000000)

eddy_status eddy_log_levels_set(const char *text) {
    eddy_origin origin = EDDY_ORIGIN("log_levels_set");
    uint8_t levels[EDDY_LOG_ROOM_COUNT];
    eddy_status status = eddy_event_log_parse(text ? text : "", false, "levels", origin, levels);
    eddy_runtime_watch_exit();
    return status == EDDY_OK ? eddy_event_log_set(levels, origin) : status;
}

/* Without a room there is nothing to change: another runtime, or a call, may have set levels. */
eddy_status eddy_log_look(const eddy_runtime_options *given, const eddy_runtime_options *resolved) {
    eddy_origin origin = {"log_levels_set", NULL};
    uint8_t levels[EDDY_LOG_ROOM_COUNT];
    bool is_given = EDDY_OPTION(given, log);
    eddy_status status = eddy_event_log_parse(resolved->log, !is_given,
                                              is_given ? "log" : "EDDY_LOG", origin, levels);
    return status == EDDY_OK && strchr(resolved->log, ':') ? eddy_event_log_set(levels, origin)
                                                           : status;
}

void eddy_log_exit(void) {
    eddy_event_log_end(eddy_clock_deadline(EXIT_NS));
}
