/* The threads of one run of a program with several streams.
 *
 *   stream   FREE --(a thread takes it: cas acquire)--> HELD --(a wait is not met, or it is done: store release)--> FREE
 *
 * Who holds a stream runs its segments in a row, as long as what they wait for is done. A thread that finds no stream to run waits until one has
 * moved: a worker for a while, after which it leaves; the run's own thread until all is done. That thread needs nobody: while no other runs a
 * segment, the first one that is left, in the order of the code, may begin. So a run ends, whatever the workers do.
 *
 *   done    atomic, written by the stream's holder: release behind the last step of a segment; who waits for it reads it with acquire, and
 *           then finds what the steps wrote
 *   moved   atomic, counts what was done, by any thread (seq_cst), which then reads is_asleep (seq_cst) and wakes; the run's thread reads it before it
 *           looks for a stream, sets is_asleep (seq_cst) and sleeps on what it has read: one of the two sees the other
 *
 * vm/model/crew.pml is this file as a model. */
#ifndef EDDY_PROGRAM_CREW_H
#define EDDY_PROGRAM_CREW_H

#include <base/sleep.h>
#include <program/executable.h>

typedef struct eddy_crew_stream {
    _Atomic bool is_held;
    _Atomic uint32_t done; /* segments; atomic: above */
    uint32_t steps_done;   /* its holder only, and after the run its thread; so the rest */
    bool has_failed;       /* the step behind those, whose error is the frame's */
    eddy_frame frame;
} __attribute__((aligned(EDDY_CACHE_LINE))) eddy_crew_stream;

typedef struct eddy_crew {
    const eddy_executable *executable;
    const void *owner; /* the run's thread, by an address of its own */
    char *arena;
    eddy_sleep_word moved;
    _Atomic bool is_asleep;  /* the run's thread, on `moved` */
    _Atomic bool is_stopped; /* a step has failed: no segment begins any more (relaxed: a hint) */
    eddy_crew_stream streams[EDDY_STREAMS_MOST];
} eddy_crew;

/* What a run needs behind its frame, for an executable with several streams. */
int64_t eddy_crew_bytes(const eddy_executable *executable);

/* Runs all steps, on the calling thread and up to thread_count - 1 workers of the frame's team. memory: eddy_crew_bytes, aligned to a line, which is the crew. False where
 * a step has failed; then some of the others have not run. */
bool eddy_crew_run(const eddy_executable *executable, const eddy_frame *frame, void *memory);

/* What has become of steps, which are asked for in the order of the code. */
typedef enum eddy_crew_fate { EDDY_CREW_RAN, EDDY_CREW_FAILED, EDDY_CREW_LEFT } eddy_crew_fate;

typedef struct eddy_crew_reader {
    const eddy_crew *crew;
    uint32_t passed[EDDY_STREAMS_MOST]; /* steps of each stream */
} eddy_crew_reader;

/* The fate of the next step. *failed: the frame of one that failed, with its error and its copy of attributes. */
eddy_crew_fate eddy_crew_read(eddy_crew_reader *reader, uint32_t step, const eddy_frame **failed);

#endif
