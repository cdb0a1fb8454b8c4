/* What every kind of work queue has to keep of the contract in <streams/work_queue.h>: one suite, run for each kind by a test_*.c
 * that says how to make one, how its work gets done, and in what it differs as the contract allows. */
#ifndef EDDY_TESTS_CONFORMANCE_H
#define EDDY_TESTS_CONFORMANCE_H

#include <base/memory.h>
#include <base/sleep.h>
#include <base/thread.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <streams/team.h>
#include <streams/work_queue.h>
#include <unistd.h>

typedef struct conformance_kind {
    bool is_ordered;
    bool has_thread;           /* of its own: without one there is no queue */
    bool runs_inside_dispatch; /* on the dispatching thread, as in one-thread mode; else never */
    eddy_work_queue *(*create)(void);
    /* Sees to it that `*finished` gets to `goal`; NULL: it does by itself. */
    void (*pump)(eddy_work_queue *stream, const eddy_sleep_word *finished, uint32_t goal);
} conformance_kind;

typedef struct conformance_work {
    eddy_work work;
    struct conformance_run *run;
    int number;
    int times_run;
    uint32_t position;
    eddy_status failure;
    eddy_work *next_work; /* dispatched from inside, as the engine does on a worker */
} conformance_work;

typedef struct conformance_run {
    eddy_work_queue *stream;
    eddy_sleep_word finished; /* atomic */
    _Atomic uint32_t next_position;
    _Atomic int inside;
    _Atomic bool has_overlapped;
    pthread_t dispatcher; /* const while work is under way */
    _Atomic bool is_dispatching;
    _Atomic bool ran_inside_dispatch;
} conformance_run;

static inline void conformance_execute(eddy_work *work, eddy_status failure) {
    conformance_work *mine = (conformance_work *)(void *)work;
    conformance_run *run = mine->run;
    if (eddy_load_acquire(&run->is_dispatching) && pthread_equal(pthread_self(), run->dispatcher))
        eddy_store_release(&run->ran_inside_dispatch, true);
    int inside = eddy_add_acq_rel(&run->inside, 1) + 1;
    if (inside > 1)
        eddy_store_release(&run->has_overlapped, true);
    mine->times_run++;
    mine->failure = failure;
    for (int i = 0; i < mine->number % 50; i++)
        eddy_atomic_pause();
    if (mine->next_work)
        eddy_work_queue_dispatch(run->stream, mine->next_work);
    eddy_sub_release(&run->inside, 1);
    mine->position = eddy_add_acq_rel(&run->next_position, 1u);
    /* The test may be over as soon as it sees the count. */
    eddy_add_acq_rel(&run->finished, 1u);
    eddy_sleep_wake_all(&run->finished);
}

static inline void conformance_await(conformance_run *run, const conformance_kind *kind,
                                     uint32_t goal) {
    if (kind->pump)
        kind->pump(run->stream, &run->finished, goal);
    uint32_t now;
    while ((now = eddy_load_acquire(&run->finished)) < goal)
        eddy_sleep_wait(&run->finished, now, EDDY_CLOCK_FOREVER);
}

static inline conformance_run conformance_begin(const conformance_kind *kind) {
    alarm(60);
    cr_assert_gt(eddy_team_acquire(3), 0);
    conformance_run run = {.stream = kind->create(), .dispatcher = pthread_self()};
    cr_assert_not_null(run.stream);
    cr_assert_eq(run.stream->is_ordered, kind->is_ordered);
    cr_assert_str_not_empty(run.stream->class->name);
    return run;
}

static inline void conformance_end(conformance_run *run) {
    run->stream->class->destroy(run->stream);
    eddy_team_release();
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_RUNTIME).bytes, 0);
}

static inline void conformance_dispatch(conformance_run *run, conformance_work *work, int number) {
    *work = (conformance_work){.run = run, .number = number, .work = {.run = conformance_execute}};
    eddy_store_release(&run->is_dispatching, true);
    eddy_work_queue_dispatch(run->stream, &work->work);
    eddy_store_release(&run->is_dispatching, false);
}

/* ---- the suite ---- */

enum { CONFORMANCE_WORKS = 3000 };

static inline void conformance_each_work_runs_once(const conformance_kind *kind) {
    conformance_run run = conformance_begin(kind);
    conformance_work *works = calloc(CONFORMANCE_WORKS, sizeof(*works));
    cr_assert_not_null(works);
    for (int i = 0; i < CONFORMANCE_WORKS; i++) {
        conformance_dispatch(&run, &works[i], i);
        if (kind->runs_inside_dispatch)
            cr_assert_eq(works[i].times_run, 1);
    }
    conformance_await(&run, kind, CONFORMANCE_WORKS);
    for (int i = 0; i < CONFORMANCE_WORKS; i++) {
        cr_assert_eq(works[i].times_run, 1, "work %d", i);
        cr_assert_eq(works[i].failure, EDDY_OK);
        if (kind->is_ordered)
            cr_assert_eq(works[i].position, (uint32_t)i, "work %d was number %u", i,
                         works[i].position);
    }
    cr_assert_not(kind->is_ordered && eddy_load_acquire(&run.has_overlapped), "one after another");
    cr_assert_eq(eddy_load_acquire(&run.ran_inside_dispatch), kind->runs_inside_dispatch);
    free(works);
    conformance_end(&run);
}

/* Work by work, so that an ordered stream gives its token up and takes it again each time. */
static inline void conformance_it_starts_again_after_it_was_empty(const conformance_kind *kind) {
    conformance_run run = conformance_begin(kind);
    for (uint32_t i = 0; i < 500; i++) {
        conformance_work work;
        conformance_dispatch(&run, &work, (int)i % 7);
        conformance_await(&run, kind, i + 1);
        cr_assert_eq(work.times_run, 1);
    }
    conformance_end(&run);
}

/* A work that dispatches the next one: what the engine does when a worker retires. An ordered queue runs that behind it, wherever it runs works. */
static inline void conformance_work_may_dispatch_more(const conformance_kind *kind) {
    conformance_run run = conformance_begin(kind);
    enum { CHAIN = 1000 };
    static conformance_work works[CHAIN];
    for (int i = 0; i < CHAIN; i++)
        works[i] = (conformance_work){.run = &run,
                                      .number = i,
                                      .work = {.run = conformance_execute},
                                      .next_work = i + 1 < CHAIN ? &works[i + 1].work : NULL};
    eddy_work_queue_dispatch(run.stream, &works[0].work);
    conformance_await(&run, kind, CHAIN);
    for (int i = 0; i < CHAIN; i++) {
        cr_assert_eq(works[i].times_run, 1);
        if (kind->is_ordered)
            cr_assert_eq(works[i].position, (uint32_t)i);
    }
    cr_assert_not(kind->is_ordered && eddy_load_acquire(&run.has_overlapped), "one after another");
    conformance_end(&run);
}

static inline void conformance_free(eddy_work *work, eddy_status failure) {
    conformance_run *run = ((conformance_work *)(void *)work)->run;
    (void)failure;
    free(work);
    eddy_add_acq_rel(&run->finished, 1u);
    eddy_sleep_wake_all(&run->finished);
}

/* The queue looks at no work that has run. */
static inline void conformance_work_may_be_gone_once_it_has_run(const conformance_kind *kind) {
    conformance_run run = conformance_begin(kind);
    for (int i = 0; i < CONFORMANCE_WORKS; i++) {
        conformance_work *work = calloc(1, sizeof(*work));
        cr_assert_not_null(work);
        *work = (conformance_work){.run = &run, .work = {.run = conformance_free}};
        eddy_work_queue_dispatch(run.stream, &work->work);
    }
    conformance_await(&run, kind, CONFORMANCE_WORKS);
    conformance_end(&run);
}

/* The stream may be destroyed as soon as the last work has completed, at every such moment. */
static inline void conformance_it_may_be_destroyed_once_all_is_done(const conformance_kind *kind) {
    alarm(60);
    cr_assert_gt(eddy_team_acquire(3), 0);
    for (int round = 0; round < 500; round++) {
        conformance_run run = {.stream = kind->create(), .dispatcher = pthread_self()};
        conformance_work works[4];
        for (int i = 0; i < 4; i++)
            conformance_dispatch(&run, &works[i], i * round % 60);
        conformance_await(&run, kind, 4);
        run.stream->class->destroy(run.stream);
    }
    eddy_team_release();
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_RUNTIME).bytes, 0);
}

static inline void conformance_no_memory_is_an_answer(const conformance_kind *kind) {
    eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, 0, 1);
    cr_assert_null(kind->create());
    eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, 0, 0);
    eddy_work_queue *stream = kind->create();
    cr_assert_not_null(stream);
    stream->class->destroy(stream);
}

static inline void conformance_no_thread_is_an_answer(const conformance_kind *kind) {
    eddy_thread_fail_at(0, 1);
    eddy_work_queue *stream = kind->create();
    eddy_thread_fail_at(0, 0);
    cr_assert_eq(stream == NULL, kind->has_thread);
    if (stream)
        stream->class->destroy(stream);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_RUNTIME).bytes, 0);
}

/* The suite under the name of a kind. */
#define CONFORMANCE_SUITE(name, kind)                                                              \
    Test(name, each_work_runs_once) {                                                              \
        conformance_each_work_runs_once(&(kind));                                                  \
    }                                                                                              \
    Test(name, it_starts_again_after_it_was_empty) {                                               \
        conformance_it_starts_again_after_it_was_empty(&(kind));                                   \
    }                                                                                              \
    Test(name, work_may_dispatch_more) {                                                           \
        conformance_work_may_dispatch_more(&(kind));                                               \
    }                                                                                              \
    Test(name, work_may_be_gone_once_it_has_run) {                                                 \
        conformance_work_may_be_gone_once_it_has_run(&(kind));                                     \
    }                                                                                              \
    Test(name, it_may_be_destroyed_once_all_is_done) {                                             \
        conformance_it_may_be_destroyed_once_all_is_done(&(kind));                                 \
    }                                                                                              \
    Test(name, no_memory_is_an_answer) {                                                           \
        conformance_no_memory_is_an_answer(&(kind));                                               \
    }                                                                                              \
    Test(name, no_thread_is_an_answer) {                                                           \
        conformance_no_thread_is_an_answer(&(kind));                                               \
    }

#endif
