#include <interpreter/handle/trace.h>

#include <base/clock.h>
#include <base/option.h>
#include <base/status.h>
#include <base/trace.h>
#include <eddy/trace.h>
#include <interpreter/handle/runtime.h>
#include <stdio.h>
#include <string.h>
#include <trace/top.h>
#include <trace/tracer.h>

/* The longest wait of exit for the file. */
#define EXIT_NS INT64_C(1000000000)
#define LIMIT_DEFAULT (INT64_C(1) << 30)
#define LIMIT_LEAST (INT64_C(1) << 20)

/* ---- curves ---- */

/* What is told of all runtimes together. */
typedef struct sums {
    eddy_tracer_tell *tell;
    void *context;
    bool tells_counters; /* of each runtime, for eddy top */
    int64_t in_flight, ready, running, bytes_in_flight;
    struct {
        bool is_used;
        eddy_vm_memory memory;
    } devices[EDDY_DEVICE_KIND_COUNT][EDDY_RUNTIME_DEVICES];
} sums;

static void add_memory(sums *to, eddy_runtime *runtime, eddy_device device) {
    eddy_vm_memory read = eddy_vm_memory_read(runtime->vm, eddy_runtime_vm_device(runtime, device));
    eddy_vm_memory *memory = &to->devices[device.kind][device.index].memory;
    memory->live_bytes += read.live_bytes;
    memory->cached_bytes += read.cached_bytes;
    memory->peak_bytes += read.peak_bytes;
    to->devices[device.kind][device.index].is_used = true;
}

static void tell_counters(const sums *to, eddy_runtime *runtime, const eddy_vm_counters *counters) {
    char group[40];
    snprintf(group, sizeof(group), "runtime %llu", (unsigned long long)runtime->id);
    to->tell(to->context, group, "threads", eddy_vm_thread_count(runtime->vm));
#define EDDY_COUNTER_ROW(name) to->tell(to->context, group, #name, (int64_t)counters->name);
    EDDY_COUNTER_LIST(EDDY_COUNTER_ROW)
    EDDY_MORE_COUNTER_LIST(EDDY_COUNTER_ROW)
#undef EDDY_COUNTER_ROW
}

static void add_runtime(eddy_runtime *runtime, void *context) {
    sums *to = context;
    if (!eddy_runtime_is_running(runtime))
        return;
    eddy_vm_counters counters = eddy_vm_counters_read(runtime->vm);
    to->in_flight += counters.in_flight;
    to->ready += counters.ready;
    to->running += counters.running;
    to->bytes_in_flight += counters.bytes_in_flight;
    if (to->tells_counters)
        tell_counters(to, runtime, &counters);
    add_memory(to, runtime, EDDY_CPU);
    for (int kind = 0; kind < EDDY_DEVICE_KIND_COUNT; kind++)
        for (int32_t index = 0; index < EDDY_RUNTIME_DEVICES; index++)
            if (eddy_load_acquire(&runtime->vm_devices[kind][index]) != 0)
                add_memory(to, runtime, eddy_device_make((eddy_device_kind)kind, index));
}

static void tell_memory(const sums *to, eddy_device device) {
    char name[64] = "memory of ";
    size_t length = strlen(name);
    const eddy_vm_memory *memory = &to->devices[device.kind][device.index].memory;
    (void)eddy_device_format(device, name + length, sizeof(name) - length);
    to->tell(to->context, name, "live", memory->live_bytes);
    to->tell(to->context, name, "cached", memory->cached_bytes);
    to->tell(to->context, name, "peak", memory->peak_bytes);
}

static void tell_devices(const sums *to) {
    for (int kind = 0; kind < EDDY_DEVICE_KIND_COUNT; kind++)
        for (int32_t index = 0; index < EDDY_RUNTIME_DEVICES; index++)
            if (to->devices[kind][index].is_used)
                tell_memory(to, eddy_device_make((eddy_device_kind)kind, index));
}

static void sample(eddy_tracer_tell *tell, void *context) {
    sums to = {.tell = tell, .context = context};
    if (!eddy_runtime_each(add_runtime, &to))
        return;
    tell(context, "in flight", "instructions", to.in_flight);
    tell(context, "ready", "instructions", to.ready);
    tell(context, "running", "instructions", to.running);
    tell(context, "bytes in flight", "bytes", to.bytes_in_flight);
    tell_devices(&to);
}

static void sample_top(eddy_tracer_tell *tell, void *context) {
    sums to = {.tell = tell, .context = context, .tells_counters = true};
    (void)!eddy_runtime_each(add_runtime, &to);
    tell_devices(&to);
}

/* ---- start and stop ---- */

/* "kernel,wait" as bits. */
static eddy_status parse_phases(const char *text, const char *from, eddy_origin origin,
                                uint32_t *phases) {
    char names[256] = "";
    *phases = 0;
    while (*text) {
        size_t length = strcspn(text, ",");
        uint32_t p = 0;
        while (p < EDDY_TRACE_PHASE_COUNT &&
               !(strlen(eddy_trace_phase_name((eddy_trace_phase)p)) == length &&
                 strncmp(text, eddy_trace_phase_name((eddy_trace_phase)p), length) == 0))
            p++;
        if (p == EDDY_TRACE_PHASE_COUNT) {
            for (p = 0; p < EDDY_TRACE_PHASE_COUNT; p++) {
                size_t used = strlen(names);
                snprintf(names + used, sizeof(names) - used, "%s%s", p == 0 ? "" : ", ",
                         eddy_trace_phase_name((eddy_trace_phase)p));
            }
            return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "%s: %.*s is no phase; there are %s",
                             from, (int)length, text, names);
        }
        *phases |= 1u << p;
        text += length + (text[length] == ',');
    }
    if (*phases == 0)
        *phases = EDDY_TRACE_ALL_PHASES;
    return EDDY_OK;
}

static eddy_status start(const char *path, int64_t limit, const char *phases, const char *from,
                         eddy_origin origin) {
    eddy_tracer_settings settings = {
        .path = path, .limit_bytes = limit > 0 ? limit : LIMIT_DEFAULT, .sample = sample};
    eddy_status status = parse_phases(phases ? phases : "", from, origin, &settings.phases);
    return status == EDDY_OK ? eddy_tracer_start(&settings, origin) : status;
}

eddy_status eddy_trace_start(const char *path, const eddy_trace_options *options) {
    eddy_origin origin = EDDY_ORIGIN("trace_start");
    if (!path || !*path)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "a trace needs a path");
    int64_t limit = EDDY_OPTION(options, limit_bytes) ? options->limit_bytes : 0;
    const char *phases = EDDY_OPTION(options, phases) ? options->phases : NULL;
    if (limit != 0 && limit < LIMIT_LEAST)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "limit_bytes is %lld, not 1 MB or more",
                         (long long)limit);
    eddy_runtime_watch_exit();
    return start(path, limit, phases, "phases", origin);
}

eddy_status eddy_trace_stop(int64_t timeout) {
    return eddy_tracer_stop(eddy_clock_deadline(timeout), EDDY_ORIGIN("trace_stop"));
}

/* Of all runtimes the first that names a trace begins it: not one that comes after the trace, and not one of a forked child, which would empty the file. */
static eddy_status start_once(const eddy_runtime_options *options) {
    static _Atomic bool has_begun; /* atomic: acq_rel; also in a forked child */
    if (eddy_exchange_acq_rel(&has_begun, true))
        return EDDY_OK;
    eddy_status status = start(options->trace, options->trace_limit, options->trace_phases,
                               "trace_phases", (eddy_origin){"trace_start", NULL});
    if (status != EDDY_OK)
        eddy_store_release(&has_begun, false);
    return status;
}

eddy_status eddy_trace_look(const eddy_runtime_options *options) {
    eddy_runtime_watch_exit();
    eddy_status status = options->shows_top
                             ? eddy_top_begin(sample_top, (eddy_origin){"runtime_create", NULL})
                             : EDDY_OK;
    if (status != EDDY_OK)
        return status;
    return *options->trace && !eddy_tracer_is_on() ? start_once(options) : EDDY_OK;
}

void eddy_trace_exit(void) {
    int64_t deadline_ns = eddy_clock_deadline(EXIT_NS);
    (void)!eddy_tracer_stop(deadline_ns, (eddy_origin){"exit", NULL});
    eddy_tracer_await_log(deadline_ns);
}
