#include <base/cpu.h>
#include <base/float_environment.h>
#include <base/order.h>
#include <base/process.h>
#include <base/sleep.h>
#include <base/thread.h>
#include <base/trace.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <streams/idle.h>
#include <streams/lanes.h>
#include <streams/team.h>
#include <string.h>

#define WORKER_MAX 256
#define JOB_MAX 64

/* The time until a woken thread runs: the initial guess, and the bounds of a measurement. */
#define WAKE_GUESS_NS 20000
#define WAKE_LEAST_NS 2000
#define WAKE_MOST_NS 200000
/* The weight of a new measurement is one over this. */
#define WAKE_WEIGHT 8
/* Checks of the epoch between two readings of the clock. */
#define SPIN_CHECKS 64

#define OWNER_SLEEPS 0x80000000u

typedef struct team_job {
    eddy_lanes lanes;
    void (*body)(void *context, int64_t begin, int64_t end);
    void *context;
    eddy_trace_kernel of; /* const; what it is a part of, where somebody hears */
    int32_t helper_limit; /* const */
    bool is_for_workers;  /* const; its slices take long */
    int32_t helpers;      /* lock: team.lock; helpers now inside */
    uint32_t taken_lanes; /* lock: team.lock; a bit for each lane that has a thread */
    eddy_sleep_word
        inside; /* atomic: helpers inside, and OWNER_SLEEPS; they leave with release, the owner waits
                               with acquire */
} team_job;

static struct {
    eddy_lock lock;
    eddy_work *head[2], **tail[2];    /* lock: lock; [1] is urgent */
    team_job *jobs[JOB_MAX];          /* lock: lock */
    int32_t job_count;                /* lock: lock */
    _Atomic int32_t open_jobs;        /* atomic: a hint that avoids the lock */
    eddy_sleep_word epoch;            /* atomic: bumped (seq_cst) with every addition */
    _Atomic int32_t sleepers;         /* atomic: seq_cst */
    _Atomic int32_t spinners;         /* atomic: relaxed; workers, one at a time */
    _Atomic int32_t spinning_waiters; /* atomic: relaxed; they look for slices */
    _Atomic int32_t queued;           /* atomic: seq_cst; works in the queues */
    _Atomic int32_t kernels;          /* atomic: seq_cst; permits taken: threads in kernels */
    _Atomic int32_t limit; /* atomic: relaxed; how many permits there are; written under `life` */
    _Atomic int32_t cpu_count; /* atomic: relaxed; written under `life` */
    _Atomic int64_t
        woken_at; /* atomic: relaxed; when a sleeper was last woken, 0 once one has run */
    _Atomic int64_t
        wake_ns; /* atomic: relaxed; smoothed time from the wake until it ran, 0 while unknown */
    _Atomic bool is_ending;
    _Atomic bool
        is_halted; /* atomic: set under the lock; read relaxed elsewhere, since a thread that sees it late counts in `running` */
    _Atomic int32_t
        running; /* atomic: works, helpers and owners of jobs; added to under the lock, where is_halted is
                                false; left with release, for which the halting thread waits (acquire) */
    int32_t shares, worker_count; /* lock: life */
    eddy_thread workers[WORKER_MAX];
    eddy_lock life;
} team = {.lock = EDDY_LOCK_OF(EDDY_RANK_LEAF), .tail = {&team.head[0], &team.head[1]}};

/* ---- halt ---- */

/* How often the calling thread is in `running`: a work may own a job. */
static __thread int32_t my_running;

/* Lock: team.lock; the team is not halted. */
static void run_begin(void) {
    my_running++;
    eddy_add_relaxed(&team.running, 1);
}

static void run_end(void) {
    my_running--;
    eddy_sub_release(&team.running, 1);
}

static void stay_halted(void) {
    eddy_sub_release(&team.running, my_running);
    eddy_thread_park();
}

void eddy_team_halt_point(void) {
    if (EDDY_UNLIKELY(eddy_load_relaxed(&team.is_halted)))
        stay_halted();
}

bool eddy_team_halt(int64_t deadline_ns) {
    eddy_lock_acquire(&team.lock);
    eddy_store_relaxed(&team.is_halted, true);
    eddy_lock_release(&team.lock);
    /* A thread that calls exit inside a kernel counts among the running ones. */
    while (eddy_load_acquire(&team.running) > my_running) {
        if (eddy_clock_ns() >= deadline_ns)
            return false;
        sched_yield();
    }
    return true;
}

/* ---- adding and waking ---- */

/* The calling worker checks the queue once more before it sleeps. */
static __thread bool will_look;

static void note_wake(void) {
    int64_t woken_at = eddy_load_relaxed(&team.woken_at);
    if (woken_at == 0 || !eddy_cas_relaxed(&team.woken_at, &woken_at, (int64_t)0))
        return;
    int64_t took = eddy_clock_ns() - woken_at, known = eddy_load_relaxed(&team.wake_ns);
    took = took < WAKE_LEAST_NS ? WAKE_LEAST_NS : took > WAKE_MOST_NS ? WAKE_MOST_NS : took;
    eddy_store_relaxed(&team.wake_ns, known == 0 ? took : known + (took - known) / WAKE_WEIGHT);
}

int64_t eddy_team_hand_over_ns(void) {
    int64_t known = eddy_load_relaxed(&team.wake_ns);
    return 2 * (known == 0 ? WAKE_GUESS_NS : known);
}

static void announce(int32_t wanted) {
    eddy_add_seq_cst(&team.epoch, 1u);
    int32_t sleepers = eddy_load_seq_cst(&team.sleepers);
    if (sleepers == 0 || wanted <= 0)
        return;
    eddy_store_relaxed(&team.woken_at, eddy_clock_ns());
    if (wanted >= sleepers)
        eddy_sleep_wake_all(&team.epoch);
    else
        for (int32_t i = 0; i < wanted; i++)
            eddy_sleep_wake_one(&team.epoch);
}

void eddy_team_push(eddy_work *work, bool is_urgent) {
    work->next = NULL;
    eddy_lock_acquire(&team.lock);
    *team.tail[is_urgent] = work;
    team.tail[is_urgent] = &work->next;
    eddy_add_seq_cst(&team.queued, 1);
    eddy_lock_release(&team.lock);
    /* A worker that retires its kernel and finds the next one takes it itself: its operands are in the worker's cache. */
    if (will_look)
        will_look = false;
    else
        announce(1);
}

/* ---- permits ---- */

/* How often the calling thread has taken its permit: a kernel may run inside another one. */
static __thread int32_t my_permits;

bool eddy_team_kernel_begin(bool is_forced) {
    if (my_permits > 0) {
        my_permits++;
        return true;
    }
    /* Without workers no permit is needed: in tests, and in a thread that helps before any runtime has started. */
    int32_t limit = eddy_load_relaxed(&team.limit), kernels = eddy_load_seq_cst(&team.kernels);
    do {
        if (!is_forced && limit > 0 && kernels >= limit)
            return false;
    } while (!eddy_cas_seq_cst(&team.kernels, &kernels, kernels + 1));
    my_permits = 1;
    return true;
}

/* True when the thread's permit is free again. */
static bool permit_return(void) {
    if (--my_permits > 0)
        return false;
    eddy_sub_seq_cst(&team.kernels, 1);
    return true;
}

void eddy_team_kernel_end(void) {
    /* Another thread may have found no permit for a queued work: so this check comes after the return of the permit, in one total
     * order with its two checks. */
    if (permit_return() &&
        (eddy_load_seq_cst(&team.queued) > 0 || eddy_load_relaxed(&team.open_jobs) > 0))
        announce(1);
}

bool eddy_team_has_spinner(void) {
    return eddy_load_relaxed(&team.spinners) > 0;
}

bool eddy_team_spin_begin(void) {
    int32_t busy = eddy_load_relaxed(&team.kernels) + eddy_load_relaxed(&team.spinners) +
                   eddy_load_relaxed(&team.spinning_waiters);
    if (busy >= eddy_load_relaxed(&team.cpu_count))
        return false;
    eddy_add_relaxed(&team.spinning_waiters, 1);
    return true;
}

void eddy_team_spin_end(void) {
    eddy_sub_relaxed(&team.spinning_waiters, 1);
}

bool eddy_team_is_busy(void) {
    eddy_lock_acquire(&team.lock);
    bool is_busy = eddy_load_relaxed(&team.sleepers) == 0 && eddy_load_relaxed(&team.spinners) == 0;
    eddy_lock_release(&team.lock);
    return is_busy;
}

typedef bool (*accepts_fn)(const eddy_work *work, const void *context);

/* Lock: team.lock. The first work that the predicate accepts, urgent ones before the others. */
static eddy_work *find_work(accepts_fn accepts, const void *context) {
    for (int urgent = 1; urgent >= 0; urgent--) {
        for (eddy_work **link = &team.head[urgent]; *link; link = &(*link)->next) {
            eddy_work *work = *link;
            if (accepts && !accepts(work, context))
                continue;
            *link = work->next;
            if (!*link)
                team.tail[urgent] = link;
            eddy_sub_seq_cst(&team.queued, 1);
            return work;
        }
    }
    return NULL;
}

/* Runs the first work that the predicate accepts (without one: the first of all); false if there is none, or no permit. If it
 * returns true the caller has the permit. */
static bool run_work(accepts_fn accepts, const void *context) {
    if (eddy_load_seq_cst(&team.queued) == 0 || !eddy_team_kernel_begin(false))
        return false;
    eddy_lock_acquire(&team.lock);
    eddy_work *work = eddy_load_relaxed(&team.is_halted) ? NULL : find_work(accepts, context);
    if (work)
        run_begin();
    eddy_lock_release(&team.lock);
    if (!work) {
        eddy_team_kernel_end();
        return false;
    }
    work->run(work, EDDY_OK);
    run_end();
    return true;
}

bool eddy_team_help_work(accepts_fn accepts, const void *context) {
    int saved_errno = errno;
    bool has_run = run_work(accepts, context);
    if (has_run)
        eddy_team_kernel_end();
    errno = saved_errno;
    return has_run;
}

/* ---- slices ---- */

/* The preferred lane of the calling thread: the same in every job, so that its elements are in its cache. */
static __thread int32_t my_lane;

/* Lock: team.lock. The thread's own lane, or the next free one. If there are more threads than lanes, some share a lane, and
 * the first of them to leave frees it for both: a lane only decides where a thread looks first. */
static int32_t take_lane(team_job *job) {
    int32_t count = job->lanes.lane_count;
    for (int32_t i = 0; i < count; i++) {
        int32_t lane = (my_lane + i) % count;
        if (!(job->taken_lanes & 1u << lane)) {
            job->taken_lanes |= 1u << lane;
            return lane;
        }
    }
    return my_lane % count;
}

/* Runs one slice; false if none is left. */
static bool run_slice(team_job *job, int32_t lane) {
    if (!eddy_lanes_has_more(&job->lanes))
        return false;
    /* After the check for remaining slices: an owner that waits for its helpers sees them leave. */
    eddy_team_halt_point();
    int64_t begin, end;
    if (!eddy_lanes_take(&job->lanes, lane, &begin, &end))
        return false;
    job->body(job->context, begin, end);
    return true;
}

/* A helper's: all that it takes of the job, or one. */
static void help_job(team_job *job, int32_t lane, bool takes_all) {
    eddy_trace_kernel of = job->of;
    eddy_trace_span span =
        EDDY_TRACE_BEGIN(SLICE, .op = of.op, .runtime = of.runtime, .sequence = of.sequence);
    while (run_slice(job, lane) && takes_all) {
    }
    EDDY_TRACE_END(span, .op = of.op, .sequence = of.sequence);
}

/* If it returns a job the caller has a permit. */
static team_job *join_job(int32_t *lane, bool is_worker) {
    if (eddy_load_relaxed(&team.open_jobs) == 0 || !eddy_team_kernel_begin(false))
        return NULL;
    team_job *joined = NULL;
    eddy_lock_acquire(&team.lock);
    for (int32_t i = 0; i < team.job_count && !joined && !eddy_load_relaxed(&team.is_halted); i++) {
        team_job *job = team.jobs[i];
        if (job->helpers < job->helper_limit && (is_worker || !job->is_for_workers) &&
            eddy_lanes_has_more(&job->lanes)) {
            run_begin();
            job->helpers++;
            *lane = take_lane(job);
            eddy_add_relaxed(&job->inside, 1u);
            joined = job;
        }
    }
    eddy_lock_release(&team.lock);
    if (!joined && permit_return() && eddy_load_seq_cst(&team.queued) > 0)
        announce(1);
    return joined;
}

static void leave_job(team_job *job, int32_t lane) {
    eddy_lock_acquire(&team.lock);
    job->helpers--;
    job->taken_lanes &= ~(1u << lane);
    /* The owner may return as soon as it reads 0: under the lock, so that it cannot have gone before we unlock. */
    if (eddy_sub_release(&job->inside, 1u) == (OWNER_SLEEPS | 1u))
        eddy_sleep_wake_all(&job->inside);
    eddy_lock_release(&team.lock);
    run_end();
}

bool eddy_team_help_slice(void) {
    eddy_order_check();
    int32_t lane;
    team_job *job = join_job(&lane, false);
    if (!job)
        return false;
    int saved_errno = errno;
    eddy_float_environment environment = eddy_float_environment_enter();
    help_job(job, lane, false);
    eddy_float_environment_leave(environment);
    errno = saved_errno;
    leave_job(job, lane);
    eddy_team_kernel_end();
    return true;
}

static void wait_for_helpers(team_job *job) {
    for (;;) {
        for (int i = 0; i < 2000; i++) {
            if ((eddy_load_acquire(&job->inside) & ~OWNER_SLEEPS) == 0)
                return;
            eddy_atomic_pause();
        }
        uint32_t inside = eddy_or_acq_rel(&job->inside, OWNER_SLEEPS) | OWNER_SLEEPS;
        if (inside == OWNER_SLEEPS)
            return;
        eddy_sleep_wait(&job->inside, inside, EDDY_CLOCK_FOREVER);
    }
}

static void run_serial(int64_t count, int64_t grain,
                       void (*body)(void *context, int64_t begin, int64_t end), void *context) {
    for (int64_t begin = 0; begin < count; begin += grain) {
        eddy_team_halt_point();
        body(context, begin, begin + grain < count ? begin + grain : count);
    }
}

/* Wakes helpers for slices: at most as many as there are permits, less the spinning threads that may take them. */
static void announce_slices(int32_t wanted, bool is_for_workers) {
    int32_t free = eddy_load_relaxed(&team.limit) - eddy_load_relaxed(&team.kernels);
    wanted = wanted < free ? wanted : free;
    int32_t waiters = is_for_workers ? 0 : eddy_load_relaxed(&team.spinning_waiters);
    announce(wanted - eddy_load_relaxed(&team.spinners) - waiters);
}

static void run_job(const eddy_kernel_team *view, int64_t count, int64_t grain, bool is_for_workers,
                    void (*body)(void *context, int64_t begin, int64_t end), void *context) {
    int64_t slices = count / grain + (count % grain != 0);
    if (slices <= 1 || view->thread_count <= 1) {
        run_serial(count, grain, body, context);
        return;
    }
    int32_t limit = view->thread_count - 1;
    team_job job;
    eddy_lanes_init(&job.lanes, count, grain, view->thread_count);
    job.body = body;
    job.context = context;
    if (eddy_trace_hears(EDDY_TRACE_SLICE))
        job.of = eddy_trace_inside;
    else
        job.of = (eddy_trace_kernel){0};
    job.helper_limit = limit;
    job.is_for_workers = is_for_workers;
    job.helpers = 0;
    job.taken_lanes = 0;
    eddy_store_relaxed(&job.inside, 0u);
    eddy_lock_acquire(&team.lock);
    int32_t lane = take_lane(&job);
    bool is_open = team.job_count < JOB_MAX && !eddy_load_relaxed(&team.is_halted);
    if (is_open) {
        run_begin();
        team.jobs[team.job_count++] = &job;
        eddy_add_relaxed(&team.open_jobs, 1);
    }
    eddy_lock_release(&team.lock);
    if (!is_open) {
        run_serial(count, grain, body, context);
        return;
    }
    /* The caller of a lend's parallel loop has no permit, and works nevertheless. */
    eddy_team_kernel_begin(true);
    announce_slices(slices - 1 < limit ? (int32_t)(slices - 1) : limit, is_for_workers);
    while (run_slice(&job, lane)) {
    }
    eddy_lock_acquire(&team.lock);
    for (int32_t i = 0; i < team.job_count; i++)
        if (team.jobs[i] == &job) {
            team.jobs[i] = team.jobs[--team.job_count];
            break;
        }
    eddy_sub_relaxed(&team.open_jobs, 1);
    eddy_lock_release(&team.lock);
    wait_for_helpers(&job);
    /* leave_job touches the job under the lock until its helper is out: pass through it once more. */
    eddy_lock_acquire(&team.lock);
    eddy_lock_release(&team.lock);
    run_end();
    eddy_team_kernel_end();
}

static void parallel_for(eddy_kernel_team *view, int64_t count, int64_t grain,
                         void (*body)(void *context, int64_t begin, int64_t end), void *context) {
    run_job(view, count, grain < 1 ? 1 : grain, false, body, context);
}

void eddy_team_run_beside(eddy_kernel_team *view, int64_t count,
                          void (*body)(void *context, int64_t seat, int64_t end), void *context) {
    run_job(view, count, 1, true, body, context);
}

static void parallel_for_serial(eddy_kernel_team *view, int64_t count, int64_t grain,
                                void (*body)(void *context, int64_t begin, int64_t end),
                                void *context) {
    (void)view;
    run_serial(count, grain < 1 ? 1 : grain, body, context);
}

eddy_kernel_team eddy_team_serial = {.parallel_for = parallel_for_serial, .thread_count = 1};

void eddy_team_view_init(eddy_kernel_team *view, int32_t thread_count) {
    view->parallel_for = parallel_for;
    view->thread_count = thread_count;
}

/* ---- workers ---- */

static bool spin_for_change(uint32_t seen, int64_t spin_ns) {
    int32_t others = eddy_add_relaxed(&team.spinners, 1);
    if (others > 0 ||
        eddy_load_relaxed(&team.kernels) + eddy_load_relaxed(&team.spinning_waiters) >=
            eddy_load_relaxed(&team.cpu_count)) {
        eddy_sub_relaxed(&team.spinners, 1);
        return false;
    }
    int64_t end = eddy_clock_ns() + spin_ns;
    bool has_changed = false;
    do {
        for (int i = 0; i < SPIN_CHECKS && !has_changed; i++) {
            has_changed = eddy_load_acquire(&team.epoch) != seen;
            eddy_atomic_pause();
        }
    } while (!has_changed && eddy_clock_ns() < end);
    eddy_sub_relaxed(&team.spinners, 1);
    return has_changed;
}

static void worker_main(void *context) {
    /* Lane 0 is for other threads. */
    my_lane = 1 + (int32_t)((eddy_thread *)context - team.workers);
    eddy_float_environment_enter();
    eddy_idle idle = {0};
    for (;;) {
        eddy_team_halt_point();
        uint32_t seen = eddy_load_seq_cst(&team.epoch);
        will_look = true;
        /* It checks again at once: no other thread need be woken for its permit. */
        if (run_work(NULL, NULL)) {
            permit_return();
            eddy_idle_forget(&idle);
            continue;
        }
        int32_t lane;
        team_job *job = join_job(&lane, true);
        if (job) {
            if (idle.since != 0)
                eddy_idle_end(&idle, eddy_clock_ns(), eddy_team_hand_over_ns());
            help_job(job, lane, true);
            leave_job(job, lane);
            permit_return();
            continue;
        }
        if (eddy_load_acquire(&team.is_ending))
            return;
        if (idle.since == 0)
            eddy_idle_begin(&idle, eddy_clock_ns());
        if (spin_for_change(seen, eddy_idle_spin_ns(&idle, eddy_team_hand_over_ns())))
            continue;
        eddy_idle_sleep(&idle);
        will_look = false;
        eddy_add_seq_cst(&team.sleepers, 1);
        eddy_sleep_wait(&team.epoch, seen, EDDY_CLOCK_FOREVER);
        eddy_sub_seq_cst(&team.sleepers, 1);
        note_wake();
    }
}

static bool watches_forks; /* lock: team.life; outside the team, which a child forgets */

int32_t eddy_team_acquire(int32_t thread_count) {
    if (thread_count > WORKER_MAX)
        thread_count = WORKER_MAX;
    eddy_lock_acquire(&team.life);
    if (!watches_forks)
        eddy_process_at_fork_child(eddy_team_abandon);
    watches_forks = true;
    team.shares++;
    while (team.worker_count < thread_count) {
        char name[16];
        snprintf(name, sizeof(name), "eddy-worker-%d", (int)team.worker_count % 100);
        if (eddy_thread_create(&team.workers[team.worker_count], name, worker_main,
                               &team.workers[team.worker_count]) != EDDY_OK)
            break;
        team.worker_count++;
    }
    int32_t count = team.worker_count;
    /* The requested number, even if there are fewer workers: then waiting threads help. */
    if (thread_count > eddy_load_relaxed(&team.limit))
        eddy_store_relaxed(&team.limit, thread_count);
    eddy_store_relaxed(&team.cpu_count, eddy_cpu_count());
    eddy_lock_release(&team.life);
    return count;
}

void eddy_team_release(void) {
    eddy_lock_acquire(&team.life);
    EDDY_ASSERT(team.shares > 0);
    bool is_last = --team.shares == 0;
    if (is_last)
        eddy_store_relaxed(&team.limit, 0);
    if (is_last && team.worker_count > 0) {
        eddy_store_release(&team.is_ending, true);
        announce(team.worker_count);
        for (int32_t i = 0; i < team.worker_count; i++)
            eddy_thread_join(&team.workers[i]);
        team.worker_count = 0;
        eddy_store_release(&team.is_ending, false);
    }
    eddy_lock_release(&team.life);
}

void eddy_team_abandon(void) {
    memset(&team, 0, sizeof(team));
    eddy_lock_init(&team.lock, EDDY_RANK_LEAF);
    my_permits = my_running = my_lane = 0;
    will_look = false;
    team.tail[0] = &team.head[0];
    team.tail[1] = &team.head[1];
}
