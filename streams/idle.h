/* How long a worker that has run out of work spins before it sleeps: as long as pays, by what it has seen. No clock, no lock: for one
 * thread.
 *
 * To spin for as long as a hand-over to a sleeper takes costs twice what is best at most (A. Karlin, M. Manasse, L. McGeoch, S. Owicki,
 * "Competitive randomized algorithms for nonuniform problems", 1994). Where work mostly comes later it only costs, and where a program
 * is done with the worker it may never come: so it is done while work has mostly come so soon. */
#ifndef EDDY_STREAMS_IDLE_H
#define EDDY_STREAMS_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#define EDDY_IDLE_SPIN_LEAST_NS 8000
#define EDDY_IDLE_SPIN_MOST_NS 60000

typedef struct eddy_idle {
    int64_t since; /* 0: not idle */
    bool has_slept;
    int32_t credit;
} eddy_idle;

/* Nothing is left to do. Once, until there was something. */
void eddy_idle_begin(eddy_idle *idle, int64_t now);
/* Slices of a kernel have come. `hand_over_ns`: to a sleeper and back. */
void eddy_idle_end(eddy_idle *idle, int64_t now, int64_t hand_over_ns);
/* What has come was no slice, and says nothing about the next ones. */
void eddy_idle_forget(eddy_idle *idle);
void eddy_idle_sleep(eddy_idle *idle);

int64_t eddy_idle_spin_ns(const eddy_idle *idle, int64_t hand_over_ns);

#endif
