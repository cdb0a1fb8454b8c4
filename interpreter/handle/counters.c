/* Counters of the current runtime, and of ops. */
#include <base/name_table.h>
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

int64_t eddy_op_counters_read(eddy_op_counters *counters, int64_t room) {
    eddy_times_op ops[EDDY_NAMES_MOST];
    int64_t count = eddy_times_ops(ops, EDDY_NAMES_MOST);
    if (!counters)
        room = 0;
    for (int64_t i = 0; i < room && i < count; i++) {
        counters[i] = (eddy_op_counters){.count = ops[i].count,
                                         .total_ns = ops[i].ns,
                                         .most_ns = ops[i].most_ns,
                                         .bytes = ops[i].bytes};
        snprintf(counters[i].name, sizeof(counters[i].name), "%s", ops[i].name);
    }
    return count;
}
