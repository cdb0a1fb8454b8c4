/* The one team of worker threads of the process: runs work of every runtime, and slices of kernels.
 *
 * States of a worker: SCAN -> RUN -> SCAN, SCAN -> SPIN -> SCAN | SLEEP -> SCAN. A worker reads `epoch`, scans, counts itself
 * among the sleepers (seq_cst) and sleeps on `epoch`; a thread that adds work increments `epoch` (seq_cst) and then reads the number of
 * sleepers (seq_cst): one of the two sees the other. */
#ifndef EDDY_STREAMS_TEAM_H
#define EDDY_STREAMS_TEAM_H

#include <kernels/kernel.h>
#include <streams/work_queue.h>

/* Takes a reference of the team and starts workers until it has at least `thread_count`. Returns their number
 * (0: threads cannot be started). Every acquire, also one that returns 0, is paired with one release. */
int32_t eddy_team_acquire(int32_t thread_count);
/* The last release ends the workers and joins them; all work has completed. */
void eddy_team_release(void);
/* Forgets the team without joining its threads; in a forked child, and at exit. */
void eddy_team_abandon(void);

/* Adds work; wakes a worker if one sleeps. Any thread. */
void eddy_team_push(eddy_work *work, bool is_urgent);

/* Permits: at most as many threads run kernels at once as the team has workers, other threads included. A thread takes one for a
 * kernel of microseconds and more; false: none is left, and the kernel has to go to the queue. is_forced: takes one beyond the
 * limit if none is left. Nested permits are free. Never blocks. */
bool eddy_team_kernel_begin(bool is_forced);
void eddy_team_kernel_end(void);

/* The time of a hand-over to a sleeping thread and back on this machine: twice the time that workers took to wake lately. */
int64_t eddy_team_hand_over_ns(void);

/* Whether a worker is spinning, so that slices cost no wake; a hint. */
bool eddy_team_has_spinner(void);

/* Asks whether a waiting thread may spin for a while, looking for slices: false if no processor is free for it. */
bool eddy_team_spin_begin(void);
void eddy_team_spin_end(void);

/* Whether every worker is busy; a hint. Takes the team's lock: a thread that looks for work later sees the caller's earlier
 * stores, and the other way round. */
bool eddy_team_is_busy(void);

/* For waiters that help. Runs one slice of any open job; false when there is none. */
bool eddy_team_help_slice(void);
/* For waiters that help. Takes the first work that the predicate accepts out of the queue and runs it; false if there is
 * none. The predicate is called under the team's lock. */
bool eddy_team_help_work(bool (*accepts)(const eddy_work *work, const void *context),
                         const void *context);

/* At exit, for good: no work and no slice begins any more. A thread between two of them stays there until the
 * process ends. True once nothing runs; false if something still runs at the deadline. */
bool eddy_team_halt(int64_t deadline_ns);
/* Between two works that a thread of the team runs in a row. Does not return once the team is halted. */
void eddy_team_halt_point(void);

/* A VM's view of the team: parallel_for with at most thread_count - 1 helpers. */
void eddy_team_view_init(eddy_kernel_team *view, int32_t thread_count);
/* Calls body(context, seat, seat + 1) for each of `count` seats, on the calling thread and, while seats are left, on workers: never on a waiting thread, which
 * a long call would hold up. Returns when all calls have. The calling thread takes any seat, and all that nobody else takes: so a call has to return where what it
 * waits for is to be done by another one that may not begin. */
void eddy_team_run_beside(eddy_kernel_team *view, int64_t count,
                          void (*body)(void *context, int64_t seat, int64_t end), void *context);

/* A team of one: slices run on the calling thread, in order. */
extern eddy_kernel_team eddy_team_serial;

#endif
