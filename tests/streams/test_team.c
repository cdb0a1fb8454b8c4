#include <base/sleep.h>
#include <base/thread.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <streams/team.h>
#include <unistd.h>

/* ---- slices ---- */

typedef struct covered_range {
    int64_t count, grain;
    _Atomic int32_t *times; /* how often each index was handed out */
    _Atomic bool is_bad;    /* a slice that does not follow from count and grain */
} covered_range;

static void count_indices(void *context, int64_t begin, int64_t end) {
    covered_range *cover = context;
    int64_t expected_end =
        begin + cover->grain < cover->count ? begin + cover->grain : cover->count;
    if (begin % cover->grain != 0 || end != expected_end)
        eddy_store_relaxed(&cover->is_bad, true);
    for (int64_t i = begin; i < end; i++)
        eddy_add_relaxed(&cover->times[i], 1);
}

static void cover_range(eddy_kernel_team *team, int64_t count, int64_t grain) {
    static _Atomic int32_t times[10000];
    for (int64_t i = 0; i < count; i++)
        eddy_store_relaxed(&times[i], 0);
    covered_range cover = {.count = count, .grain = grain, .times = times};
    team->parallel_for(team, count, grain, count_indices, &cover);
    cr_assert_not(eddy_load_relaxed(&cover.is_bad));
    for (int64_t i = 0; i < count; i++)
        cr_assert_eq(eddy_load_relaxed(&times[i]), 1, "index %lld of %lld by %lld", (long long)i,
                     (long long)count, (long long)grain);
}

Test(team, each_index_is_in_exactly_one_slice) {
    alarm(60);
    cr_assert_gt(eddy_team_acquire(3), 0);
    static const int64_t counts[] = {0, 1, 2, 63, 64, 65, 1000, 9973};
    static const int64_t grains[] = {1, 2, 7, 64, 1000, 100000};
    for (int32_t threads = 1; threads <= 4; threads++) {
        eddy_kernel_team view;
        eddy_team_view_init(&view, threads);
        cr_assert_eq(view.thread_count, threads);
        for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++)
            for (size_t g = 0; g < sizeof(grains) / sizeof(*grains); g++)
                for (int round = 0; round < 3; round++)
                    cover_range(&view, counts[c], grains[g]);
    }
    for (size_t g = 0; g < sizeof(grains) / sizeof(*grains); g++)
        cover_range(&eddy_team_serial, 1000, grains[g]);
    eddy_team_release();
}

static void note_order(void *context, int64_t begin, int64_t end) {
    int64_t *next = context;
    (void)end;
    if (*next == begin)
        *next = end;
}

Test(team, a_team_of_one_goes_in_order) {
    int64_t next = 0;
    eddy_team_serial.parallel_for(&eddy_team_serial, 1000, 7, note_order, &next);
    cr_assert_eq(next, 1000);
    next = 0;
    eddy_team_serial.parallel_for(&eddy_team_serial, 5, 0, note_order, &next);
    cr_assert_eq(next, 5, "a grain below one counts as one");
}

/* ---- helping ---- */

typedef struct helped_job {
    eddy_kernel_team *view;
    eddy_sleep_word entered, is_open; /* atomic */
    _Atomic int finished;
} helped_job;

static void hold_slice(void *context, int64_t begin, int64_t end) {
    helped_job *helped = context;
    (void)begin, (void)end;
    errno = 999;
    eddy_add_acq_rel(&helped->entered, 1u);
    eddy_sleep_wake_all(&helped->entered);
    while (eddy_load_acquire(&helped->is_open) == 0)
        eddy_sleep_wait(&helped->is_open, 0, EDDY_CLOCK_FOREVER);
    eddy_add_relaxed(&helped->finished, 1);
}

static void *run_held(void *context) {
    helped_job *helped = context;
    helped->view->parallel_for(helped->view, 2, 1, hold_slice, helped);
    return NULL;
}

static void await(eddy_sleep_word *word, uint32_t goal) {
    uint32_t now;
    while ((now = eddy_load_acquire(word)) < goal)
        eddy_sleep_wait(word, now, EDDY_CLOCK_FOREVER);
}

static void *open_when_two_are_inside(void *context) {
    helped_job *helped = context;
    await(&helped->entered, 2);
    eddy_store_release(&helped->is_open, 1u);
    eddy_sleep_wake_all(&helped->is_open);
    return NULL;
}

/* No worker: the owner is inside the first slice, and only the helper can enter the second. */
Test(team, a_waiting_thread_helps_with_one_slice) {
    alarm(60);
    eddy_kernel_team view;
    eddy_team_view_init(&view, 2);
    helped_job shared = {.view = &view};
    pthread_t owner, opener;
    pthread_create(&owner, NULL, run_held, &shared);
    await(&shared.entered, 1);
    pthread_create(&opener, NULL, open_when_two_are_inside, &shared);
    errno = 5;
    cr_assert(eddy_team_help_slice());
    cr_assert_eq(errno, 5, "the helper's own");
    pthread_join(owner, NULL);
    pthread_join(opener, NULL);
    cr_assert_eq(shared.finished, 2);
    cr_assert_not(eddy_team_help_slice(), "nothing is left");
}

/* ---- seats ---- */

static void *take_seats(void *context) {
    helped_job *helped = context;
    eddy_team_run_beside(helped->view, 3, hold_slice, helped);
    return NULL;
}

Test(team, seats_are_for_workers_and_not_for_waiting_threads) {
    alarm(60);
    eddy_kernel_team view;
    eddy_team_view_init(&view, 2);
    helped_job shared = {.view = &view};
    pthread_t owner;
    pthread_create(&owner, NULL, take_seats, &shared);
    await(&shared.entered, 1);
    cr_assert_not(eddy_team_help_slice());
    /* A worker comes for the second. */
    cr_assert_gt(eddy_team_acquire(2), 0);
    await(&shared.entered, 2);
    eddy_store_release(&shared.is_open, 1u);
    eddy_sleep_wake_all(&shared.is_open);
    pthread_join(owner, NULL);
    cr_assert_eq(shared.finished, 3);
    eddy_team_release();
}

/* A waiting thread that spins is none that would come: a worker is woken all the same. */
Test(team, who_spins_takes_no_seat) {
    alarm(60);
    eddy_kernel_team view;
    eddy_team_view_init(&view, 2);
    cr_assert_gt(eddy_team_acquire(2), 0);
    bool spins = eddy_team_spin_begin();
    for (int i = 0; i < 20; i++) {
        helped_job shared = {.view = &view};
        pthread_t owner, opener;
        usleep(1000); /* workers sleep */
        pthread_create(&opener, NULL, open_when_two_are_inside, &shared);
        pthread_create(&owner, NULL, take_seats, &shared);
        pthread_join(owner, NULL);
        pthread_join(opener, NULL);
        cr_assert_eq(shared.finished, 3);
    }
    if (spins)
        eddy_team_spin_end();
    eddy_team_release();
}

/* A view of two threads takes one helper, however many slices and threads there are. */
Test(team, there_are_no_more_helpers_than_the_view_allows) {
    alarm(60);
    eddy_kernel_team view;
    eddy_team_view_init(&view, 2);
    helped_job shared = {.view = &view};
    pthread_t owner;
    pthread_create(&owner, NULL, run_held, &shared);
    await(&shared.entered, 1);
    cr_assert_eq(eddy_team_acquire(2), 2);
    await(&shared.entered, 2); /* a worker has joined, and both slices are taken */
    cr_assert_not(eddy_team_help_slice());
    eddy_store_release(&shared.is_open, 1u);
    eddy_sleep_wake_all(&shared.is_open);
    pthread_join(owner, NULL);
    eddy_team_release();
}

/* ---- work ---- */

typedef struct counted_work {
    eddy_work work;
    eddy_sleep_word *finished;
    int number;
    int runs;
} counted_work;

static void count_work(eddy_work *work, eddy_status failure) {
    (void)failure;
    eddy_sleep_word *finished = ((counted_work *)(void *)work)->finished;
    ((counted_work *)(void *)work)->runs++;
    errno = 6;
    eddy_add_acq_rel(finished, 1u);
    eddy_sleep_wake_all(finished);
}

static bool is_number(const eddy_work *work, const void *context) {
    return ((const counted_work *)(const void *)work)->number == *(const int *)context;
}

Test(team, a_queued_work_is_run_once_by_a_helper_or_a_worker) {
    alarm(60);
    eddy_sleep_word finished = 0;
    counted_work works[6];
    for (int i = 0; i < 6; i++) {
        works[i] = (counted_work){.work = {.run = count_work}, .finished = &finished, .number = i};
        eddy_team_push(&works[i].work, i % 2);
    }
    int wanted = 3, unknown = 17, last = 4;
    errno = 5;
    cr_assert_not(eddy_team_help_work(is_number, &unknown));
    cr_assert(eddy_team_help_work(is_number, &wanted));
    cr_assert_eq(works[3].runs, 1);
    cr_assert_not(eddy_team_help_work(is_number, &wanted));
    cr_assert(eddy_team_help_work(is_number, &last), "the queue's last");
    cr_assert_eq(errno, 5, "the helper's own");
    eddy_team_push(&works[4].work, false);
    /* The workers come later, and run the rest. */
    cr_assert_eq(eddy_team_acquire(2), 2);
    await(&finished, 7);
    eddy_team_release();
    for (int i = 0; i < 6; i++)
        cr_assert_eq(works[i].runs, i == 4 ? 2 : 1);
}

static _Atomic int next_position;

typedef struct placed_work {
    eddy_work work;
    eddy_sleep_word *finished;
    int position;
} placed_work;

static void place_work(eddy_work *work, eddy_status failure) {
    (void)failure;
    placed_work *mine = (placed_work *)(void *)work;
    mine->position = eddy_add_relaxed(&next_position, 1);
    eddy_add_acq_rel(mine->finished, 1u);
    eddy_sleep_wake_all(mine->finished);
}

Test(team, urgent_work_goes_first_and_the_rest_in_order) {
    alarm(60);
    eddy_sleep_word finished = 0;
    placed_work works[8];
    for (int i = 0; i < 8; i++) {
        works[i] = (placed_work){{.run = place_work}, &finished, -1};
        eddy_team_push(&works[i].work, i >= 6);
    }
    cr_assert_eq(eddy_team_acquire(1), 1);
    await(&finished, 8);
    eddy_team_release();
    cr_assert_eq(works[6].position, 0);
    cr_assert_eq(works[7].position, 1);
    for (int i = 0; i < 6; i++)
        cr_assert_eq(works[i].position, 2 + i);
}

/* ---- life ---- */

Test(team, it_grows_on_demand_and_ends_with_its_last_share) {
    alarm(60);
    for (int round = 0; round < 200; round++) {
        cr_assert_eq(eddy_team_acquire(1), 1);
        cr_assert_eq(eddy_team_acquire(3), 3);
        cr_assert_eq(eddy_team_acquire(2), 3, "never smaller");
        eddy_sleep_word finished = 0;
        counted_work works[10];
        for (int i = 0; i < 10; i++) {
            works[i] =
                (counted_work){.work = {.run = count_work}, .finished = &finished, .number = i};
            eddy_team_push(&works[i].work, false);
        }
        await(&finished, 10);
        for (int i = 0; i < 3; i++)
            eddy_team_release();
    }
}

Test(team, fewer_threads_than_asked_for_is_an_answer) {
    alarm(60);
    eddy_thread_fail_at(2, 1000);
    cr_assert_eq(eddy_team_acquire(5), 2);
    eddy_team_release();
    eddy_thread_fail_at(0, 1000);
    cr_assert_eq(eddy_team_acquire(5), 0);
    eddy_team_release();
    eddy_thread_fail_at(0, 0);
    cr_assert_eq(eddy_team_acquire(2), 2);
    eddy_team_release();
}

/* Workers that have slept are woken by slices and by work, time and again. */
Test(team, sleepers_wake_for_slices) {
    alarm(60);
    cr_assert_eq(eddy_team_acquire(2), 2);
    eddy_kernel_team view;
    eddy_team_view_init(&view, 2);
    for (int round = 0; round < 50; round++) {
        helped_job shared = {.view = &view};
        pthread_t owner;
        pthread_create(&owner, NULL, run_held, &shared);
        await(&shared.entered, 2); /* the owner and a worker */
        eddy_store_release(&shared.is_open, 1u);
        eddy_sleep_wake_all(&shared.is_open);
        pthread_join(owner, NULL);
    }
    eddy_team_release();
}

/* ---- permits ---- */

static void *take_permit(void *context) {
    (void)context;
    return (void *)(intptr_t)eddy_team_kernel_begin(false);
}

static bool another_takes_permit(void) {
    pthread_t thread;
    void *has_taken;
    cr_assert_eq(pthread_create(&thread, NULL, take_permit, NULL), 0);
    cr_assert_eq(pthread_join(thread, &has_taken), 0);
    return has_taken != NULL;
}

Test(team, there_are_as_many_permits_as_threads_were_asked_for) {
    alarm(60);
    eddy_thread_fail_at(1, 1000);
    cr_assert_eq(eddy_team_acquire(2), 1, "the system gives one");
    eddy_thread_fail_at(0, 0);
    cr_assert(eddy_team_kernel_begin(false));
    cr_assert(eddy_team_kernel_begin(false), "a thread that has one needs no other");
    cr_assert(another_takes_permit());
    cr_assert_not(another_takes_permit());
    eddy_team_kernel_end();
    cr_assert_not(another_takes_permit(), "the outer one is held still");
    eddy_team_kernel_end();
    cr_assert(another_takes_permit());
}

/* Work that was queued while there was no permit is taken as soon as there is one. */
Test(team, a_permit_that_comes_back_wakes_who_found_none) {
    alarm(60);
    cr_assert_eq(eddy_team_acquire(1), 1);
    for (int round = 0; round < 200; round++) {
        /* The worker may still be on its way out of the last one. */
        while (!eddy_team_kernel_begin(false))
            sched_yield();
        eddy_sleep_word finished = 0;
        counted_work work = {.work = {.run = count_work}, .finished = &finished, .number = 1};
        eddy_team_push(&work.work, false);
        for (int i = 0; i < round; i++)
            sched_yield();
        eddy_team_kernel_end();
        await(&finished, 1);
    }
    eddy_team_release();
}

/* ---- halt ---- */

static void *run_many_held(void *context) {
    helped_job *helped = context;
    helped->view->parallel_for(helped->view, 100, 1, hold_slice, helped);
    return NULL;
}

Test(team, once_halted_nothing_begins_any_more) {
    alarm(60);
    cr_assert_eq(eddy_team_acquire(4), 4); /* a permit is left for whoever begins in spite of it */
    eddy_kernel_team view;
    eddy_team_view_init(&view, 3);
    helped_job shared = {.view = &view};
    pthread_t owner;
    pthread_create(&owner, NULL, run_many_held, &shared);
    await(&shared.entered, 3); /* the owner and two workers, none of whom comes back */
    cr_assert_not(eddy_team_halt(eddy_clock_ns()), "slices run");
    eddy_store_release(&shared.is_open, 1u);
    eddy_sleep_wake_all(&shared.is_open);
    cr_assert(eddy_team_halt(EDDY_CLOCK_FOREVER));
    cr_assert_eq(shared.finished, 3, "those that had begun, and no other");
    eddy_sleep_word finished = 0;
    counted_work work = {.work = {.run = count_work}, .finished = &finished, .number = 1};
    int wanted = 1;
    eddy_team_push(&work.work, true);
    cr_assert_not(eddy_team_help_work(is_number, &wanted));
    cr_assert_not(eddy_team_help_slice());
    cr_assert_eq(shared.entered, 3);
    cr_assert_eq(work.runs, 0);
}

static void halt_from_inside(eddy_work *work, eddy_status failure) {
    cr_assert(eddy_team_halt(EDDY_CLOCK_FOREVER), "who exits does not wait for itself");
    count_work(work, failure);
}

Test(team, it_may_be_halted_by_a_work_of_its_own) {
    alarm(60);
    cr_assert_eq(eddy_team_acquire(2), 2);
    eddy_sleep_word finished = 0;
    counted_work work = {.work = {.run = halt_from_inside}, .finished = &finished, .number = 1};
    eddy_team_push(&work.work, false);
    await(&finished, 1);
    cr_assert_eq(work.runs, 1);
}
