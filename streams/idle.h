/* How long a worker without work spins before it sleeps, from how soon work came lately. No clock, no lock: for one
 * thread.
 *
 * Spinning for the time of a hand-over to a sleeper costs at most twice the optimum (A. Karlin, M. Manasse, L. McGeoch, S. Owicki,
 * "Competitive randomized algorithms for nonuniform problems", 1994). If work mostly comes later, or never again, spinning is a loss:
 * so a worker spins that long only while work has mostly come that soon. */
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

/* The worker has no work. Called once for each idle period. */
void eddy_idle_begin(eddy_idle *idle, int64_t now);
/* Slices of a kernel have come. `hand_over_ns`: the time of a hand-over to a sleeper and back. */
void eddy_idle_end(eddy_idle *idle, int64_t now, int64_t hand_over_ns);
/* The work that has come was no slice, so it says nothing about the next slices. */
void eddy_idle_forget(eddy_idle *idle);
void eddy_idle_sleep(eddy_idle *idle);

int64_t eddy_idle_spin_ns(const eddy_idle *idle, int64_t hand_over_ns);

#endif
