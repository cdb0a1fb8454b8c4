/* The records of one thread, on their way to the file (README.md: who may do what, and the memory orders). */
#ifndef EDDY_TRACE_RING_H
#define EDDY_TRACE_RING_H

#include <base/assert.h>
#include <base/atomic.h>
#include <base/sleep.h>
#include <trace/record.h>

#define EDDY_RINGS_MOST 256
#define EDDY_RING_LINES 16384  /* 1 MB; a power of two */
#define EDDY_RING_OPEN_MOST 64 /* ranges within each other; those within are counted as dropped */

typedef union eddy_ring_line {
    eddy_record record;
    char text[EDDY_RECORD_LINE];
} eddy_ring_line;

/* A range that is open. */
typedef struct eddy_ring_open {
    eddy_record record;
    char text[EDDY_RECORD_TEXT_BYTES];
} eddy_ring_open;

typedef enum eddy_ring_state { EDDY_RING_FREE, EDDY_RING_OWNED, EDDY_RING_LEFT } eddy_ring_state;

typedef struct eddy_ring {
    /* of the owner */
    _Alignas(EDDY_CACHE_LINE) _Atomic uint64_t
        head;                 /* atomic: release by the owner; lines ever appended */
    uint64_t tail_seen;       /* owner only */
    uint64_t trace;           /* owner only: number of the trace that `lines` are of */
    uint32_t depth;           /* owner only; others where it lies still */
    _Atomic uint64_t dropped; /* atomic: relaxed, written by the owner */
    eddy_ring_open *open;     /* const while there are lines; EDDY_RING_OPEN_MOST */
    eddy_ring_line *lines; /* const while `head` differs from `tail`; NULL: there was no memory */
    /* of the writer */
    _Alignas(EDDY_CACHE_LINE) _Atomic uint64_t
        tail;               /* atomic: release by the writer; lines ever taken */
    _Atomic uint32_t state; /* atomic: eddy_ring_state; acquire and release */
    uint32_t row;           /* writer only: of the owner in the file */
} eddy_ring;

extern eddy_ring eddy_rings[EDDY_RINGS_MOST];
extern eddy_sleep_word eddy_rings_word; /* atomic: release; the writer sleeps on it */

/* ---- of the thread that events are of ---- */

/* The calling thread's ring for this trace; NULL where there is none, or no memory. Its first record names the thread. */
eddy_ring *eddy_ring_own(uint64_t trace);
/* Appends the record with its texts, or counts it as dropped; wakes the writer when the ring is half full. */
void eddy_ring_append(eddy_ring *ring, const eddy_record *record, const char *text);

/* ---- of the writer ---- */

typedef void eddy_ring_taker(void *context, eddy_ring *ring, const eddy_record *record,
                             const char *text);
/* Calls `take` for each record that is there; `text` has record->texts lines. Where the owner has left: also for the ranges that it left open, which end at `now_ns`; then the ring is free. Returns how many. */
int64_t eddy_ring_take(eddy_ring *ring, int64_t now_ns, eddy_ring_taker *take, void *context);
/* The ranges that are open, as if they ended now. Nobody is in a listener. */
int64_t eddy_ring_take_open(eddy_ring *ring, int64_t now_ns, eddy_ring_taker *take, void *context);
/* What is dropped, by all rings and by threads that have none; since eddy_rings_free. */
int64_t eddy_rings_dropped(void);

/* ---- of who starts and stops ---- */

/* Nobody appends or takes. */
void eddy_rings_free(void);
/* In a forked child, with one thread: no other has a ring. */
void eddy_rings_fork_child(void);

#endif
