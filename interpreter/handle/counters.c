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
    eddy_op_counters *counters;
    int64_t room;
} wanted;

static void copy(void *context, int64_t place, const eddy_times_op *op) {
    const wanted *to = context;
    if (place >= to->room)
        return;
    to->counters[place] = (eddy_op_counters){
        .count = op->count, .total_ns = op->ns, .most_ns = op->most_ns, .bytes = op->bytes};
    snprintf(to->counters[place].name, sizeof(to->counters[place].name), "%s", op->name);
}

int64_t eddy_op_counters_read(eddy_op_counters *counters, int64_t room) {
    return eddy_times_ops(copy, &(wanted){counters, counters ? room : 0});
}
