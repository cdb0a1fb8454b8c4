#include "conformance.h"
#include <sched.h>
#include <streams/launcher.h>

static eddy_work_queue *create(void) {
    return eddy_launcher_create(true, (eddy_launcher_duty){0});
}

static eddy_work_queue *create_without_a_thread(void) {
    return eddy_launcher_create(false, (eddy_launcher_duty){0});
}

static const conformance_kind with_thread = {
    .is_ordered = true, .has_thread = true, .create = create};
static const conformance_kind without_thread = {
    .is_ordered = true, .runs_inside_dispatch = true, .create = create_without_a_thread};

CONFORMANCE_SUITE(launcher_with_a_thread, with_thread)
CONFORMANCE_SUITE(launcher_without_a_thread, without_thread)

/* ---- stalls ---- */

/* A work that notes its place, and stalls as often as it is told. */
typedef struct launcher_work {
    eddy_work work;
    int stalls; /* how often it cannot go on */
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
    launcher = has_thread ? create() : create_without_a_thread();
    cr_assert_not_null(launcher);
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
    count(&finished);
}

static void dispatch(launcher_work *work) {
    work->work.run = run;
    eddy_work_queue_dispatch(launcher, &work->work);
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
