/* Options of a runtime: one list, from which the struct, the environment variables and their description come. */
#ifndef EDDY_OPTIONS_H
#define EDDY_OPTIONS_H

#include <eddy/export.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A pointer to an option struct for one call; functions also take NULL for all defaults:
 * eddy_cross_entropy(x, labels, EDDY_OPTIONS(cross_entropy, .reduction = EDDY_REDUCTION_SUM)). Fields left out are 0,
 * which means the default. In C++ the fields go in the order of the struct (C++20, or the GNU extension before it). */
#ifdef __cplusplus
#define EDDY_OPTIONS(name, ...)                                                                    \
    (&static_cast<const eddy_##name##_options &>(                                                  \
        eddy_##name##_options{.size = sizeof(eddy_##name##_options), __VA_ARGS__}))
#else
#define EDDY_OPTIONS(name, ...)                                                                    \
    (&(const eddy_##name##_options){.size = sizeof(eddy_##name##_options), __VA_ARGS__})
#endif

/* One row per option. BOOL: name, variable, sentence. INT: name, variable, least, most, default, sentence.
 * STRING: name, variable, default, sentence. A field that is 0, false or NULL takes the variable's value, else the
 * default. Numbers of bytes may carry K, M or G in the environment (1024 each). */
#define EDDY_RUNTIME_OPTION_LIST(BOOL, INT, STRING)                                                \
    INT(threads, "EDDY_THREADS", 0, 1024, 0,                                                       \
        "Threads that run kernels, a helping waiter included; 0: as many as affinity mask and "    \
        "cgroup quota allow.")                                                                     \
    STRING(device, "EDDY_DEVICE", "cpu",                                                           \
           "Device of creation ops that name none: \"cpu\", \"cuda:1\", or \"far\", which is "     \
           "simulated for tests.")                                                                 \
    STRING(isa, "EDDY_ISA", "",                                                                    \
           "Instruction set of CPU kernels: portable, v2, v3 or v4; empty: the machine's "         \
           "highest. One per process, "                                                            \
           "settled when the first runtime starts: a later one may name no other, and one that "   \
           "names none in its "                                                                    \
           "struct takes it as it is. Above portable the matrix libraries choose theirs by "       \
           "themselves.")                                                                          \
    INT(seed, "EDDY_SEED", 0, INT64_MAX, 0,                                                        \
        "Seed of the runtime's generators until eddy_seed is called.")                             \
    BOOL(uses_one_thread, "EDDY_ONE_THREAD", "No threads: each op runs at its call.")              \
    BOOL(uses_full_path, "EDDY_FULL_PATH",                                                         \
         "Every op goes through the scheduler thread, however cheap it is.")                       \
    BOOL(uses_worker_path, "EDDY_WORKER_PATH",                                                     \
         "Every op goes through the scheduler thread to a worker thread.")                         \
    BOOL(syncs_each_op, "EDDY_SYNC_EACH_OP", "Each call waits until its op has run.")              \
    BOOL(checks_finite, "EDDY_CHECK_FINITE",                                                       \
         "Looks for NaN, and for infinities that were not passed in, in the outputs of each op; "  \
         "`nan` in the "                                                                           \
         "environment: for NaN alone (checks_nan).")                                               \
    INT(dump_after_ms, "EDDY_DUMP_AFTER_MS", 0, INT32_MAX, 0,                                      \
        "Logs the live instructions, and what each waits for, after so many ms without progress; " \
        "0: never.")                                                                               \
    INT(in_flight_high, "EDDY_IN_FLIGHT_HIGH", 0, INT32_MAX, 16384,                                \
        "Instructions in flight at which a caller is held back.")                                  \
    INT(in_flight_bytes_high, "EDDY_IN_FLIGHT_BYTES_HIGH", 0, INT64_MAX, INT64_C(1) << 30,         \
        "Bytes issued and unfinished on a device at which a caller that goes on there is held "    \
        "back; at most a quarter of what tensors may have there (the CPU: memory_limit).")         \
    INT(memory_limit, "EDDY_MEMORY_LIMIT", 0, INT64_MAX, 0,                                        \
        "Bytes of host memory for tensors, process-wide; 0: what cgroup and MemAvailable leave, "  \
        "less a sixteenth.")                                                                       \
    BOOL(exits_silently, "EDDY_SILENT_EXIT",                                                       \
         "No line on stderr at exit about errors that nobody saw.")                                \
    BOOL(checks_nan, "EDDY_CHECK_NAN",                                                             \
         "checks_finite, but for NaN alone. Of several runtimes in a process that check, the "     \
         "strictest decides.")                                                                     \
    STRING(passes, "EDDY_PASSES", "all",                                                           \
           "Passes that recorded programs go through: all, none, or names with commas between "    \
           "them; all,fast: also those that round otherwise; all,subbatch: also the one that "     \
           "takes less memory (docs/programs.md). None with checks_finite.")                       \
    INT(program_cache_bytes, "EDDY_PROGRAM_CACHE_BYTES", 0, INT64_MAX, INT64_C(1) << 26,           \
        "Bytes of built programs that are kept, so that others of the same content need not be "   \
        "built; 1: none.")                                                                         \
    BOOL(allows_tf32, "EDDY_ALLOW_TF32",                                                           \
         "Libraries that multiply and convolve f32 on CUDA devices may round factors to TF32, 10 " \
         "bits of fraction, as tensor cores take them; sums stay f32 (docs/devices.md).")          \
    BOOL(allows_rounded_weights, "EDDY_ALLOW_ROUNDED_WEIGHTS",                                     \
         "eddy_sdpa of f16 and bf16 on CUDA devices may round the softmax's weights to the "       \
         "dtype, as tensor cores take them, where NVIDIA's library computes it "                   \
         "(docs/devices.md).")                                                                     \
    BOOL(captures_graphs, "EDDY_CUDA_GRAPHS",                                                      \
         "Programs on CUDA devices run in rounds, in which launches that come again with the "     \
         "same memory are one CUDA graph (docs/devices.md). Not with checks_finite.")              \
    INT(program_streams, "EDDY_PROGRAM_STREAMS", 0, 4, 0,                                          \
        "Streams of a recorded program, which several threads run at once; 0: as many as pay, by " \
        "estimates and then by measured times; 1: one; 2 to 4: that many where possible, whether " \
        "they pay or not.")                                                                        \
    STRING(cache_dir, "EDDY_CACHE_DIR", "",                                                        \
           "Folder that keeps kernels which were compiled for programs on GPUs (64 MB at most); "  \
           "empty: $XDG_CACHE_HOME/eddy, else ~/.cache/eddy; none: they are not kept.")            \
    BOOL(takes_times, "EDDY_TIMES",                                                                \
         "Counts how often and how long ops and phases run (eddy_counters_read, "                  \
         "eddy_op_counters_read), from the first runtime that asks for it on.")                    \
    BOOL(shows_top, "EDDY_TOP",                                                                    \
         "Counters of the process can be watched by `eddy top PID`, by the same user; with "       \
         "takes_times also its ops.")                                                              \
    STRING(log, "EDDY_LOG", "",                                                                    \
           "Rooms and levels of the log, vm:2,interpreter:1 (docs/debugging.md); in the "          \
           "environment also stderr or info, warning, error, 0: what else is written to stderr.")  \
    STRING(trace, "EDDY_TRACE", "",                                                                \
           "File for a trace of what the process does (docs/profiling.md), compressed where its "  \
           "name ends in .gz; "                                                                    \
           "%p in it is the number of the process. The first runtime that names one begins it; a " \
           "forked child writes none.")                                                            \
    INT(trace_limit, "EDDY_TRACE_LIMIT", INT64_C(1) << 20, INT64_MAX, INT64_C(1) << 30,            \
        "Bytes at which the trace ends.")                                                          \
    STRING(trace_phases, "EDDY_TRACE_PHASES", "",                                                  \
           "Phases that are traced, names with commas between them, as issue,kernel,wait; empty: " \
           "all.")

/* All zero means the defaults. `size` is sizeof(eddy_runtime_options) (EDDY_OPTIONS fills it in), so that the struct can
 * grow; 0 stands for the fields of version 0.2. Strings are borrowed for the call. */
typedef struct eddy_runtime_options {
    size_t size;
#define EDDY_OPTION_BOOL(name, variable, sentence) bool name;
#define EDDY_OPTION_INT(name, variable, least, most, default_value, sentence) int64_t name;
#define EDDY_OPTION_STRING(name, variable, default_value, sentence) const char *name;
    EDDY_RUNTIME_OPTION_LIST(EDDY_OPTION_BOOL, EDDY_OPTION_INT, EDDY_OPTION_STRING)
#undef EDDY_OPTION_BOOL
#undef EDDY_OPTION_INT
#undef EDDY_OPTION_STRING
} eddy_runtime_options;

#ifdef __cplusplus
}
#endif
#endif
