/* The streams of a program without branches and loops: its steps as a few rows, each in the order of the code, that several threads may run.
 *
 *   stream 0   s0 ---- s2 ----------- s5 --- s6       a segment: steps of a stream between two waits, of its own or of others for it
 *                 \                 /
 *   stream 1       s1 --- s3 --- s4                   a wait: segments of another stream that have to be done before this one begins
 *
 * Steps are ordered where one of them writes a storage that the other reads or writes: a dependency. Within a stream the row keeps that order;
 * between streams a wait does, unless others imply it. Which are implied a clock for each step tells: how many steps of each stream have
 * run for sure when it has (vector clocks: Fidge, 1988; Mattern, 1989). What is left is the least number of waits for these rows.
 *
 * Several streams are made only where the estimates say that they save a quarter of the time: a hand-over between threads is dear, and dear steps have
 * helpers of their own on one stream. The order that streams keep is a part of the order of the code, so that steps may run in that order too. */
#ifndef EDDY_PROGRAM_STREAMS_H
#define EDDY_PROGRAM_STREAMS_H

#include <program/arena.h>
#include <stddef.h>

#define EDDY_STREAMS_MOST 4

/* Beyond so many steps a program keeps one stream: what plans the memory of several takes time by the square. */
#define EDDY_STREAMS_STEPS_MOST 4096

typedef struct eddy_accesses eddy_accesses; /* accesses.h */

typedef struct eddy_segment_wait {
    uint32_t stream;
    uint32_t segments; /* of that stream, from its first on, that have to be done */
} eddy_segment_wait;

typedef struct eddy_segment {
    uint32_t steps_at, step_count; /* a part of streams->steps */
    uint32_t waits_at, wait_count;
} eddy_segment;

typedef struct eddy_stream_row {
    uint32_t segments_at, segment_count;
    uint32_t steps_at, step_count; /* a part of streams->steps */
} eddy_stream_row;

typedef struct eddy_streams {
    uint32_t count; /* 1: all steps in a row, and nothing of the arrays is there */
    eddy_stream_row rows[EDDY_STREAMS_MOST];
    uint32_t step_count, segment_count, wait_count;
    uint32_t dependency_count; /* between streams: as many waits without clocks */
    uint32_t *steps;           /* those of each row, one row behind the other */
    eddy_segment *segments;
    eddy_segment_wait *waits;
    int64_t one_ps, several_ps; /* estimates: on one stream with helpers, on these */
    bool is_asked_for;          /* whether they pay or not */
} eddy_streams;

/* Per step and stream: how many steps of the stream have run for sure once the step has, itself included. */
typedef struct eddy_stream_clocks {
    uint32_t stream_count, step_count;
    uint8_t *stream_of; /* [step_count] */
    uint32_t *items;    /* [step_count][EDDY_STREAMS_MOST] */
} eddy_stream_clocks;

typedef struct eddy_streams_wish {
    int32_t thread_count; /* that run the steps */
    int32_t stream_count; /* 0: as many as pay */
} eddy_streams_wish;

/* Whether it is worth looking for several streams of a program of so many steps that takes so long. */
bool eddy_streams_may_pay(int64_t cost_ps, uint32_t step_count, const eddy_streams_wish *wish);

/* Makes streams, and their clocks, which stay empty with one stream. False without memory: nothing is left. */
EDDY_MUST_USE bool eddy_streams_make(eddy_streams *streams, eddy_stream_clocks *clocks,
                                     const eddy_accesses *accesses, const eddy_streams_wish *wish);
void eddy_streams_fini(eddy_streams *streams);
void eddy_stream_clocks_fini(eddy_stream_clocks *clocks);
int64_t eddy_streams_bytes(const eddy_streams *streams);

/* The lives of the blocks that the accesses name, in arrays with room for `block_count` rows of streams. */
void eddy_streams_find_lives(const eddy_stream_clocks *clocks, const eddy_accesses *accesses,
                             uint32_t block_count, eddy_arena_lives *lives);

/* Where a step is: its stream, its place there, from 0 on, and the segment that begins with it, or NULL. Of several streams. */
typedef struct eddy_stream_place {
    uint32_t stream, place;
    const eddy_segment *begins;
} eddy_stream_place;
eddy_stream_place eddy_streams_find(const eddy_streams *streams, uint32_t step);
/* How many steps of its stream a wait is for. */
uint32_t eddy_streams_wait_steps(const eddy_streams *streams, const eddy_segment_wait *wait);

static inline const uint32_t *eddy_stream_clock(const eddy_stream_clocks *clocks, uint32_t step) {
    return clocks->items + (size_t)step * EDDY_STREAMS_MOST;
}

/* ---- streams_check.c: shares no code with what makes streams ---- */

/* Whether the streams hold each step once, in the order of the code, and their rows and waits order every two steps of which one writes what the other
 * accesses. *is_known: false without memory. */
EDDY_MUST_USE bool eddy_streams_check(const eddy_streams *streams, const eddy_accesses *accesses,
                                      bool *is_known);

/* Whether two blocks of the arena share bytes only where every use of one has run for sure before the first of the other. Blocks are those of the storages
 * with these numbers; one of no bytes has no memory. */
EDDY_MUST_USE bool eddy_streams_check_memory(const eddy_streams *streams,
                                             const eddy_accesses *accesses,
                                             const eddy_arena_block *blocks, uint32_t count,
                                             bool *is_known);

#endif
