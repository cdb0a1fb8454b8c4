#include <base/memory.h>
#include <base/sleep.h>
#include <base/thread.h>
#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <streams/launcher.h>
#include <unistd.h>

/* A work that notes its place, stalls as often as it is told, or dispatches another. */
typedef struct launcher_work {
    eddy_work work;
    int stalls;                  /* how often it cannot go on */
    struct launcher_work *after; /* dispatched by it */
    bool has_run_inside;         /* `after` had run when its dispatch returned */
    int times_tried, position;
} launcher_work;

static eddy_work_queue *launcher;
static eddy_sleep_word finished, tried; /* atomic */
static int next_position;               /* of the launching thread */

static void begin(bool has_thread) {
    alarm(60);
    eddy_store_relaxed(&finished, 0u);
    eddy_store_relaxed(&tried, 0u);
    next_position = 0;
    launcher = eddy_launcher_create(has_thread, (eddy_launcher_duty){0});
    cr_assert_not_null(launcher);
    cr_assert(launcher->is_ordered);
}

static void end(void) {
    launcher->class->destroy(launcher);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_RUNTIME).bytes, 0);
}

static void count(eddy_sleep_word *word) {
    eddy_add_release(word, 1u);
    eddy_sleep_wake_all(word);
}

static void await(eddy_sleep_word *word, uint32_t goal) {
    uint32_t now;
    while ((now = eddy_load_acquire(word)) < goal)
        eddy_sleep_wait(word, now, EDDY_CLOCK_FOREVER);
}

/* After a stall the work belongs to who resumes. */
static void run(eddy_work *work, eddy_status failure) {
    launcher_work *mine = (launcher_work *)(void *)work;
    cr_assert_eq(failure, EDDY_OK);
    mine->times_tried++;
    if (mine->stalls > 0) {
        mine->stalls--;
        eddy_launcher_stall(launcher, work);
        count(&tried);
        return;
    }
    mine->position = next_position++;
    if (mine->after) {
        eddy_work_queue_dispatch(launcher, &mine->after->work);
        mine->has_run_inside = mine->after->times_tried > 0;
    }
    count(&finished);
}

static void dispatch(launcher_work *work) {
    work->work.run = run;
    eddy_work_queue_dispatch(launcher, &work->work);
}

Test(launcher, works_run_in_the_order_of_dispatch_and_once) {
    enum { WORKS = 3000 };
    for (int has_thread = 0; has_thread < 2; has_thread++) {
        begin(has_thread);
        launcher_work *works = calloc(WORKS, sizeof(*works));
        cr_assert_not_null(works);
        for (int i = 0; i < WORKS; i++)
            dispatch(&works[i]);
        await(&finished, WORKS);
        for (int i = 0; i < WORKS; i++) {
            cr_assert_eq(works[i].position, i);
            cr_assert_eq(works[i].times_tried, 1);
        }
        end();
        free(works);
    }
}

Test(launcher, nothing_behind_a_stalled_work_runs_and_the_order_stays) {
    for (int has_thread = 0; has_thread < 2; has_thread++) {
        begin(has_thread);
        launcher_work works[6] = {[1] = {.stalls = 3}, [4] = {.stalls = 1}};
        for (int i = 0; i < 3; i++)
            dispatch(&works[i]);
        for (uint32_t times = 1; times <= 3; times++) {
            await(&tried, times);
            cr_assert(eddy_launcher_is_stalled(launcher));
            cr_assert_eq(eddy_load_acquire(&finished), 1);
            if (times == 2)
                for (int i = 3; i < 6; i++)
                    dispatch(&works[i]);
            cr_assert(eddy_launcher_is_stalled(launcher), "a dispatch does not resume");
            eddy_launcher_resume(launcher);
        }
        await(&tried, 4);
        cr_assert_eq(eddy_load_acquire(&finished), 4);
        eddy_launcher_resume(launcher);
        await(&finished, 6);
        cr_assert_not(eddy_launcher_is_stalled(launcher));
        for (int i = 0; i < 6; i++) {
            cr_assert_eq(works[i].position, i);
            cr_assert_eq(works[i].times_tried, i == 1 ? 4 : i == 4 ? 2 : 1);
        }
        end();
    }
}

/* The only work, and the last of several: what comes after it finds the end of the list. */
Test(launcher, what_is_dispatched_behind_the_only_stalled_work_is_not_lost) {
    begin(true);
    for (uint32_t round = 0; round < 300; round++) {
        launcher_work works[3] = {{.stalls = 1}};
        dispatch(&works[0]);
        await(&tried, round + 1);
        for (int i = 1; i < 3; i++)
            dispatch(&works[i]);
        eddy_launcher_resume(launcher);
        await(&finished, 3 * (round + 1));
        cr_assert(works[0].position < works[1].position && works[1].position < works[2].position);
    }
    end();
}

/* ---- stalls at any moment, also while the launcher has taken several works and others are listed ---- */

static _Atomic bool has_finished; /* atomic: relaxed */

static void resume_whatever_stalls(void *context) {
    (void)context;
    while (!eddy_load_relaxed(&has_finished)) {
        if (eddy_launcher_is_stalled(launcher))
            eddy_launcher_resume(launcher);
        else
            sched_yield();
    }
}

static int stalls_of(uint32_t number) {
    uint32_t mixed = number * 2654435761u >> 16;
    return mixed % 5 == 0 ? (int)(mixed % 3) + 1 : 0;
}

Test(launcher, stalls_at_any_moment_lose_nothing_and_keep_the_order) {
    enum { WORKS = 20000 };
    begin(true);
    eddy_thread resumer;
    cr_assert_eq(eddy_thread_create(&resumer, "resumer", resume_whatever_stalls, NULL), EDDY_OK);
    launcher_work *works = calloc(WORKS, sizeof(*works));
    cr_assert_not_null(works);
    for (uint32_t i = 0; i < WORKS; i++) {
        works[i].stalls = stalls_of(i);
        dispatch(&works[i]);
        for (uint32_t turns = i % 50 == 0 ? i % 2000 : 0; turns > 0; turns--)
            eddy_atomic_pause();
    }
    await(&finished, WORKS);
    eddy_store_relaxed(&has_finished, true);
    eddy_thread_join(&resumer);
    for (uint32_t i = 0; i < WORKS; i++) {
        cr_assert_eq(works[i].position, (int)i);
        cr_assert_eq(works[i].times_tried, stalls_of(i) + 1);
    }
    end();
    free(works);
}

Test(launcher, without_a_thread_a_work_runs_inside_dispatch_and_resume) {
    begin(false);
    launcher_work works[3] = {[1] = {.stalls = 1}};
    dispatch(&works[0]);
    cr_assert_eq(eddy_load_acquire(&finished), 1);
    dispatch(&works[1]);
    dispatch(&works[2]);
    cr_assert_eq(eddy_load_acquire(&finished), 1);
    eddy_launcher_resume(launcher);
    cr_assert_eq(eddy_load_acquire(&finished), 3);
    end();
}

Test(launcher, what_a_work_dispatches_runs_after_it) {
    enum { CHAIN = 1000 };
    for (int has_thread = 0; has_thread < 2; has_thread++) {
        begin(has_thread);
        static launcher_work works[CHAIN];
        for (int i = 0; i < CHAIN; i++)
            works[i] =
                (launcher_work){.work.run = run, .after = i + 1 < CHAIN ? &works[i + 1] : NULL};
        dispatch(&works[0]);
        await(&finished, CHAIN);
        for (int i = 0; i < CHAIN; i++) {
            cr_assert_eq(works[i].position, i);
            cr_assert_not(works[i].has_run_inside);
        }
        end();
    }
}

/* Each work may be gone as soon as it has run. */
static eddy_sleep_word freed; /* atomic */

static void run_and_free(eddy_work *work, eddy_status failure) {
    (void)failure;
    free(work);
    count(&freed);
}

Test(launcher, a_work_may_be_gone_once_it_has_run) {
    for (int has_thread = 0; has_thread < 2; has_thread++) {
        begin(has_thread);
        eddy_store_relaxed(&freed, 0u);
        for (int i = 0; i < 2000; i++) {
            eddy_work *work = calloc(1, sizeof(*work));
            cr_assert_not_null(work);
            work->run = run_and_free;
            eddy_work_queue_dispatch(launcher, work);
        }
        await(&freed, 2000);
        end();
    }
}

/* A lost wake-up would leave the last work with a thread that sleeps: the dispatcher comes at each moment of its way to sleep. */
Test(launcher, no_wake_up_is_lost) {
    begin(true);
    for (uint32_t i = 0; i < 20000; i++) {
        launcher_work work = {0};
        dispatch(&work);
        for (uint32_t turns = i % 200 * 20; turns > 0; turns--)
            eddy_atomic_pause();
        await(&finished, i + 1);
    }
    end();
}

Test(launcher, it_may_be_destroyed_once_all_is_done) {
    for (int round = 0; round < 500; round++) {
        begin(true);
        launcher_work works[4] = {0};
        for (int i = 0; i < round % 5; i++)
            dispatch(&works[i]);
        await(&finished, (uint32_t)(round % 5));
        end();
    }
}

Test(launcher, without_memory_or_a_thread_there_is_none) {
    eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, 0, 1);
    cr_assert_null(eddy_launcher_create(true, (eddy_launcher_duty){0}));
    eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, 0, 0);
    eddy_thread_fail_at(0, 1);
    cr_assert_null(eddy_launcher_create(true, (eddy_launcher_duty){0}));
    begin(false);
    eddy_thread_fail_at(0, 0);
    end();
}
