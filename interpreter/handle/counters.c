/* Counters of the current runtime, and of ops. */
#include <base/status.h>
#include <interpreter/handle/runtime.h>
#include <stdio.h>
#include <trace/times.h>

/* Lower-case names of phases, for the list of those that are timed. */
#define EDDY_TRACE_PHASE_ROW(enumerator, name) phase_##name = EDDY_TRACE_##enumerator,
enum { EDDY_TRACE_PHASE_LIST(EDDY_TRACE_PHASE_ROW) };
#undef EDDY_TRACE_PHASE_ROW

static void add_times(eddy_counters *to) {
    eddy_times times;
    eddy_times_read(&times);
#define EDDY_COUNTER_ROW(name)                                                                     \
    to->name##_count = times.phases[phase_##name].count;                                           \
    to->name##_ns = times.phases[phase_##name].ns;
    EDDY_TIMED_PHASE_LIST(EDDY_COUNTER_ROW)
#undef EDDY_COUNTER_ROW
    to->throttle_count = times.throttled.count;
    to->throttle_ns = times.throttled.ns;
    to->memory_taken = times.memory_taken;
    to->memory_refused = times.memory_refused;
    to->memory_given_back = times.memory_given_back;
    to->failed_run = times.failed;
    to->poisoned_run = times.skipped;
}

eddy_status eddy_counters_read(eddy_counters *counters) {
    eddy_origin origin = EDDY_ORIGIN("counters_read");
    eddy_runtime *runtime;
    if (!counters)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "counters is NULL");
    eddy_status status = eddy_runtime_running(origin, &runtime);
    if (status != EDDY_OK)
        return status;
    eddy_vm_counters read = eddy_vm_counters_read(runtime->vm);
    eddy_runtime_cache *programs = eddy_load_acquire(&runtime->programs);
    eddy_counters full = {.size = counters->size,
#define EDDY_COUNTER_ROW(name) .name = (int64_t)read.name,
                          EDDY_COUNTER_LIST(EDDY_COUNTER_ROW)
                              EDDY_MORE_COUNTER_LIST(EDDY_COUNTER_ROW)
#undef EDDY_COUNTER_ROW
                                  .programs_built = eddy_load_relaxed(&runtime->programs_built),
                          .programs_shared = eddy_load_relaxed(&runtime->programs_shared),
                          .program_cache_bytes = programs ? programs->bytes(programs) : 0};
    add_times(&full);
    size_t bytes =
        counters->size > 0 && counters->size < sizeof(full) ? counters->size : sizeof(full);
    __builtin_memcpy(counters, &full, bytes);
    return EDDY_OK;
}

typedef struct wanted {
    void *counters;
    int64_t room;
} wanted;

static void copy_op(void *context, int64_t place, const eddy_times_row *row) {
    const wanted *to = context;
    if (place >= to->room)
        return;
    eddy_op_counters *op = (eddy_op_counters *)to->counters + place;
    *op = (eddy_op_counters){
        .count = row->count, .total_ns = row->ns, .most_ns = row->most_ns, .bytes = row->bytes};
    snprintf(op->name, sizeof(op->name), "%s", row->name);
}

int64_t eddy_op_counters_read(eddy_op_counters *counters, int64_t room) {
    return eddy_times_ops(copy_op, &(wanted){counters, counters ? room : 0});
}

static void copy_stream(void *context, int64_t place, const eddy_times_row *row) {
    const wanted *to = context;
    if (place >= to->room)
        return;
    eddy_stream_counters *stream = (eddy_stream_counters *)to->counters + place;
    *stream = (eddy_stream_counters){.count = row->count, .busy_ns = row->ns};
    snprintf(stream->name, sizeof(stream->name), "%s", row->name);
}

int64_t eddy_stream_counters_read(eddy_stream_counters *counters, int64_t room) {
    return eddy_times_streams(copy_stream, &(wanted){counters, counters ? room : 0});
}
