/* Runtimes, which run the issued ops.
 *
 * A thread has a current runtime: the one it chose with eddy_runtime_use, else the process's default one, which
 * starts on first use. A tensor belongs to one runtime; an op on tensors of two runtimes is RUNTIME_MISMATCH. Runtimes share
 * one team of worker threads. At exit the runtimes refuse calls and wait for work in flight, 1 s in all.
 * In a forked child the parent's runtimes return FORKED, releases do nothing, and a new runtime (or the default one,
 * which starts anew) works. Any thread. */
#ifndef EDDY_RUNTIME_H
#define EDDY_RUNTIME_H

#include <eddy/export.h>
#include <eddy/options.h>
#include <eddy/shape.h>
#include <eddy/status.h>
#include <eddy/tensor.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Starts a runtime; options as <eddy/options.h> says, NULL for all defaults. One reference, the caller's. NULL with
 * INVALID_ARGUMENT, UNSUPPORTED (an instruction set that the machine lacks, or another one than the process uses) or
 * OUT_OF_MEMORY in the slot. If no threads can be started, each op runs at its call. */
EDDY_API eddy_runtime *eddy_runtime_create(const eddy_runtime_options *options);
/* One more reference; returns its argument, which may be NULL. */
EDDY_API eddy_runtime *eddy_runtime_retain(eddy_runtime *runtime);
/* Gives up a reference and clears the pointer. With the last one (each thread that uses the runtime holds one) the runtime
 * shuts down, as by eddy_runtime_shutdown with EDDY_FOREVER: the call blocks. Its remaining tensors then fail with
 * SHUT_DOWN. In a callback, or by a thread that has mapped or borrowed a tensor of it, it runs on until the process ends. */
EDDY_API void eddy_runtime_release(eddy_runtime **runtime);

/* Refuses new calls, waits up to `timeout` ns for work in flight, and stops. Later calls on the runtime and its
 * tensors return SHUT_DOWN; retain, release and views, which only read the handle, still work. TIMED_OUT: the remaining work
 * is abandoned with its memory. WOULD_DEADLOCK inside a callback. Does nothing if it was shut down before. */
EDDY_API eddy_status eddy_runtime_shutdown(eddy_runtime *runtime, int64_t timeout);

/* The calling thread's current runtime, borrowed; starts the default one. NULL with the error in the slot. */
EDDY_API eddy_runtime *eddy_runtime_current(void);
/* Makes `runtime` the calling thread's current one (it takes a reference); NULL goes back to the default one. */
EDDY_API eddy_status eddy_runtime_use(eddy_runtime *runtime);

/* ---- waiting ---- */

/* Waits for everything that any thread issued before the call. If there are unseen errors, returns that of the op
 * issued first, with its record in the slot and the count of the others in `more`. All of them count as seen then:
 * the next call succeeds, though tensors may still hold the errors. Memory that this thread, or one that has ended, has released before is given back then;
 * what other threads have released by their next call at the latest (up to 32 KB each). */
EDDY_API eddy_status eddy_sync(int64_t timeout);
/* Waits until every deleter and callback that is due has returned. */
EDDY_API eddy_status eddy_sync_deleters(int64_t timeout);

/* Makes skipped tensors usable again, with the elements from before the skipped write. It is ordered like a write, does not wait, and
 * does nothing to tensors without an error. For a torn tensor it fails late, as an error of the tensor: overwrite all of it, or
 * use a clone. RUNTIME_MISMATCH if the tensors do not belong to one runtime. */
EDDY_API eddy_status eddy_recover(eddy_list tensors);

/* ---- counters and dumps ---- */

/* Since the runtime started; each is exact, but they are not read at one moment. What eddy_sync has waited for is counted. */
#define EDDY_COUNTER_LIST(row)                                                                     \
    row(submitted) row(caller_run) row(scheduler_run) row(worker_run) row(skipped) row(edges_made) \
        row(edges_skipped) row(nodes_made) row(wakes) row(sleeps) row(errors_made)                 \
            row(errors_seen) row(in_flight) row(in_flight_peak) row(bytes_in_flight)               \
                row(bytes_in_flight_peak) row(bytes_live) row(bytes_cached) row(bytes_peak)

/* Behind these in eddy_counters: instructions that wait for nothing but a thread (ready), and that one runs or that are on a device (running), as the scheduler last said;
 * hand-overs between threads, one where the scheduler ran an instruction, two where a worker did (hops); waits of callers since the ring to the scheduler was full (ring_stalls); instructions that found no memory and were tried again (starved); tensors' storages that were poisoned, and then
 * written in whole or recovered (healed); how often memory was found among what is kept for reuse, but for what threads keep at hand, which counts nothing (memory_found). */
#define EDDY_MORE_COUNTER_LIST(row)                                                                \
    row(ready) row(running) row(hops) row(ring_stalls) row(starved) row(healed) row(memory_found)

/* Phases that the option takes_times (EDDY_TIMES) counts, of all runtimes of the process: how often (issue_count) and how long (issue_ns). docs/profiling.md says what they are. */
#define EDDY_TIMED_PHASE_LIST(row)                                                                 \
    row(issue) row(infer) row(schedule) row(dispatch) row(kernel) row(slice) row(release)          \
        row(wait) row(callback) row(program)

typedef struct eddy_counters {
    size_t size; /* set it to sizeof(eddy_counters): a newer library writes no more than that */
#define EDDY_COUNTER_ROW(name) int64_t name;
    EDDY_COUNTER_LIST(EDDY_COUNTER_ROW)
#undef EDDY_COUNTER_ROW
    /* Programs, backward passes and variants included, that were built, and those that took over what one of the same content was built to;
     * bytes of what is kept for programs to come (the option program_cache_bytes). */
    int64_t programs_built, programs_shared, program_cache_bytes;
    /* The rest is 0 without takes_times. */
#define EDDY_COUNTER_ROW(name) int64_t name##_count, name##_ns;
    EDDY_TIMED_PHASE_LIST(EDDY_COUNTER_ROW)
#undef EDDY_COUNTER_ROW
    int64_t throttle_count,
        throttle_ns; /* waits of callers that were held back, since too much was in flight; among the waits */
    int64_t memory_taken, memory_refused,
        memory_given_back; /* how often, from and to the system and devices */
    int64_t failed_run,
        poisoned_run; /* instructions that failed, that did not run since others had */
    /* Of the runtime, with and without takes_times. */
#define EDDY_COUNTER_ROW(name) int64_t name;
    EDDY_MORE_COUNTER_LIST(EDDY_COUNTER_ROW)
#undef EDDY_COUNTER_ROW
} eddy_counters;

/* Kernels of one op. */
typedef struct eddy_op_counters {
    char name[40];
    int64_t count, total_ns, most_ns;
    int64_t bytes; /* of all operands */
} eddy_op_counters;

/* What was on one stream. */
typedef struct eddy_stream_counters {
    char name[96]; /* "stream 0" (the default one), "loader", "far:0, compute" */
    int64_t count; /* instructions; of a device also what it copies for the host */
    /* On the host the time that their kernels took: of a stream that is not ordered, all threads together. On a device from the launch of each, or the end of what was before it there, until it was noticed to
     * be done. */
    int64_t busy_ns;
} eddy_stream_counters;

/* Of the current runtime. */
EDDY_API eddy_status eddy_counters_read(eddy_counters *counters);
/* The same for each op, of all runtimes of the process, those that took longest first: at most `room` of them. Returns how many there are; 0 without the option takes_times (EDDY_TIMES), or without memory to sort them. Where a kernel is launched on a device its time is that of
 * the launch. */
EDDY_API int64_t eddy_op_counters_read(eddy_op_counters *counters, int64_t room);
/* The same for each stream, the busiest first. Those of one name are one, also of several runtimes; beyond 256 the others are counted together, as "(others)". */
EDDY_API int64_t eddy_stream_counters_read(eddy_stream_counters *counters, int64_t room);
/* Threads of the current runtime that run kernels, a helping waiter included; 0 on failure. */
EDDY_API int32_t eddy_thread_count(void);
/* Gives cached memory (blocks of the current runtime and what it keeps for programs to come, handles of the calling thread) back to the system;
 * returns the bytes. */
EDDY_API int64_t eddy_trim(void);
/* Writes each live instruction of the current runtime, and what it waits for, to the log sink. */
EDDY_API eddy_status eddy_dump(void);
/* The same as a graph for Graphviz (dot -Tsvg), 2000 instructions at most: what has not finished, and an edge to each from those that it waits for. As snprintf: returns the length of the whole text; -1 with INVALID_ARGUMENT, or with
 * TIMED_OUT where the thread that orders instructions has run one for 0.2 s. */
EDDY_API int eddy_dump_dot(char *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_runtime_create(...) EDDY_AT_CALL_SITE(eddy_runtime_create(__VA_ARGS__))
#define eddy_runtime_shutdown(...) EDDY_AT_CALL_SITE(eddy_runtime_shutdown(__VA_ARGS__))
#define eddy_runtime_current(...) EDDY_AT_CALL_SITE(eddy_runtime_current(__VA_ARGS__))
#define eddy_runtime_use(...) EDDY_AT_CALL_SITE(eddy_runtime_use(__VA_ARGS__))
#define eddy_sync(...) EDDY_AT_CALL_SITE(eddy_sync(__VA_ARGS__))
#define eddy_sync_deleters(...) EDDY_AT_CALL_SITE(eddy_sync_deleters(__VA_ARGS__))
#define eddy_recover(...) EDDY_AT_CALL_SITE(eddy_recover(__VA_ARGS__))
#define eddy_counters_read(...) EDDY_AT_CALL_SITE(eddy_counters_read(__VA_ARGS__))
#define eddy_op_counters_read(...) EDDY_AT_CALL_SITE(eddy_op_counters_read(__VA_ARGS__))
#define eddy_stream_counters_read(...) EDDY_AT_CALL_SITE(eddy_stream_counters_read(__VA_ARGS__))
#define eddy_thread_count(...) EDDY_AT_CALL_SITE(eddy_thread_count(__VA_ARGS__))
#define eddy_trim(...) EDDY_AT_CALL_SITE(eddy_trim(__VA_ARGS__))
#define eddy_dump(...) EDDY_AT_CALL_SITE(eddy_dump(__VA_ARGS__))
#define eddy_dump_dot(...) EDDY_AT_CALL_SITE(eddy_dump_dot(__VA_ARGS__))
#endif
#endif
