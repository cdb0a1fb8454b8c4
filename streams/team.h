/* The one team of worker threads of the process: runs work of every runtime, and slices of kernels.
 *
 * States of a worker: SCAN -> RUN -> SCAN, SCAN -> SPIN -> SCAN | SLEEP -> SCAN. A worker reads `epoch`, scans, counts itself
 * among the sleepers (seq_cst) and sleeps on `epoch`; who adds work bumps `epoch` (seq_cst) and then looks for
 * sleepers (seq_cst): one of the two sees the other. */
#ifndef EDDY_STREAMS_TEAM_H
#define EDDY_STREAMS_TEAM_H

#include <kernels/kernel.h>
#include <streams/work_queue.h>

/* Takes a share of the team and sees to it that it has at least `thread_count` workers. Answers how many there are
 * (0: threads cannot be made). Every acquire, also one answered 0, is given back by one release. */
int32_t eddy_team_acquire(int32_t thread_count);
/* The last release ends the workers and joins them; all work has completed. */
void eddy_team_release(void);
/* Gives up the team of the parent process, without joining; in a forked child, and at exit. */
void eddy_team_abandon(void);

/* Adds work; wakes a worker if one sleeps. Any thread. */
void eddy_team_push(eddy_work *work, bool is_urgent);

/* Permits: as many threads run kernels at once as the team has workers, whoever they are. Take one round a kernel that is worth
 * microseconds; false: there is none, the kernel has to go to the queue. is_forced: one more where there is none. Nested ones are
 * free. Never blocks. */
bool eddy_team_kernel_begin(bool is_forced);
void eddy_team_kernel_end(void);

/* What handing work to a sleeping thread and back costs here: twice the time that workers took to wake lately. */
int64_t eddy_team_hand_over_ns(void);

/* Whether a worker looks for work right now, so that slices cost no wake; a hint. */
bool eddy_team_has_spinner(void);

/* A thread that waits may spin for a while, looking for slices: false where no processor is left for it. */
bool eddy_team_spin_begin(void);
void eddy_team_spin_end(void);

/* Whether every worker has something to do; a hint. Passes through the team's lock: what the caller stored before is seen by who
 * looks for work after, and the other way round. */
bool eddy_team_is_busy(void);

/* For waiters that help. Runs one slice of any open job; false when there is none. */
bool eddy_team_help_slice(void);
/* For waiters that help. Takes the first work that the predicate accepts out of the queue and runs it; false when there is
 * none. The predicate is called under the team's lock. */
bool eddy_team_help_work(bool (*accepts)(const eddy_work *work, const void *context),
                         const void *context);

/* At exit, for good: no work and no slice begins any more. A thread that is between two of them stays there until the
 * process ends. True when nothing runs; false when something still did at the deadline. */
bool eddy_team_halt(int64_t deadline_ns);
/* Between two works that a thread of the team runs in a row. Does not return once the team is halted. */
void eddy_team_halt_point(void);

/* A VM's view of the team: parallel_for with at most thread_count - 1 helpers. */
void eddy_team_view_init(eddy_kernel_team *view, int32_t thread_count);
/* A team of one: slices run on the calling thread, in order. */
extern eddy_kernel_team eddy_team_serial;

#endif
