#include <base/sleep.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#define MS INT64_C(1000000)

Test(sleep, a_word_that_has_changed_does_not_sleep) {
    eddy_sleep_word word = 1;
    uint64_t before = eddy_sleep_count();
    cr_assert(eddy_sleep_wait(&word, 0, EDDY_CLOCK_FOREVER));
    cr_assert_geq(eddy_sleep_count(), before);
}

Test(sleep, a_deadline_ends_the_wait_and_errno_is_kept) {
    eddy_sleep_word word = 0;
    errno = 5;
    int64_t begin = eddy_clock_ns();
    int64_t deadline = eddy_clock_deadline(20 * MS);
    while (eddy_sleep_wait(&word, 0, deadline)) {
    }
    int64_t took = eddy_clock_ns() - begin;
    cr_assert_geq(took, 20 * MS);
    cr_assert_eq(errno, 5);
    cr_assert_not(eddy_sleep_wait(&word, 0, begin), "a deadline in the past");
}

static eddy_sleep_word shared_word;

static void *sleep_until_woken(void *unused) {
    (void)unused;
    while (eddy_load_acquire(&shared_word) == 0)
        eddy_sleep_wait(&shared_word, 0, EDDY_CLOCK_FOREVER);
    return NULL;
}

Test(sleep, wake_all_wakes_everybody) {
    pthread_t threads[5];
    for (int i = 0; i < 5; i++)
        pthread_create(&threads[i], NULL, sleep_until_woken, NULL);
    eddy_store_release(&shared_word, 1u);
    uint64_t before = eddy_sleep_wake_count();
    eddy_sleep_wake_all(&shared_word);
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(eddy_sleep_wake_count(), before + 1);
}

Test(sleep, wake_one_wakes_one_after_another) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, sleep_until_woken, NULL);
    eddy_store_release(&shared_word, 1u);
    for (int i = 0; i < 3; i++)
        eddy_sleep_wake_one(&shared_word);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

static _Atomic int signals_seen;

static void count_signal(int number) {
    (void)number;
    eddy_add_relaxed(&signals_seen, 1);
}

static void *wait_through_signals(void *result) {
    eddy_sleep_word word = 0;
    int64_t deadline = eddy_clock_deadline(30 * MS);
    while (eddy_sleep_wait(&word, 0, deadline)) {
    }
    *(int64_t *)result = eddy_clock_ns() - deadline;
    return NULL;
}

Test(sleep, signals_do_not_end_a_wait_loop) {
    struct sigaction action = {.sa_handler = count_signal};
    sigaction(SIGUSR1, &action, NULL);
    pthread_t thread;
    int64_t late = -1;
    pthread_create(&thread, NULL, wait_through_signals, &late);
    for (int i = 0; i < 5; i++) {
        usleep(2000);
        pthread_kill(thread, SIGUSR1);
    }
    pthread_join(thread, NULL);
    cr_assert_geq(late, 0);
    cr_assert_gt(eddy_load_relaxed(&signals_seen), 0);
}

static _Atomic int64_t fake_now;

static int64_t fake_clock(void) {
    return eddy_load_relaxed(&fake_now);
}

static void *wait_on_the_fake_clock(void *unused) {
    eddy_sleep_word word = 0;
    (void)unused;
    while (eddy_sleep_wait(&word, 0, 1000 * MS * 1000)) {
    }
    return NULL;
}

Test(sleep, a_replaced_clock_decides_deadlines) {
    eddy_clock_replace(fake_clock);
    eddy_store_relaxed(&fake_now, 5);
    cr_assert_eq(eddy_clock_ns(), 5);
    cr_assert_eq(eddy_clock_deadline(10), 15);
    cr_assert_eq(eddy_clock_deadline(-10), 5);
    cr_assert_eq(eddy_clock_deadline(INT64_MAX), EDDY_CLOCK_FOREVER);
    cr_assert_eq(eddy_clock_deadline(INT64_MAX - 1), EDDY_CLOCK_FOREVER);
    pthread_t thread;
    pthread_create(&thread, NULL, wait_on_the_fake_clock, NULL);
    eddy_store_relaxed(&fake_now, 2000 * MS * 1000);
    pthread_join(thread, NULL);
    eddy_clock_replace(NULL);
    cr_assert_gt(eddy_clock_ns(), 5);
}

static eddy_lock shared_lock;
static int64_t guarded; /* lock: shared_lock */

static void *count_under_lock(void *rounds) {
    for (int64_t i = 0; i < *(int64_t *)rounds; i++) {
        eddy_lock_acquire(&shared_lock);
        guarded++;
        if (i % 1024 == 0)
            usleep(10); /* held while descheduled: the others must sleep */
        eddy_lock_release(&shared_lock);
    }
    return NULL;
}

Test(sleep, a_lock_excludes_and_never_loses_a_waiter) {
    pthread_t threads[4];
    int64_t rounds = 20000;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, count_under_lock, &rounds);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(guarded, 4 * rounds);
    cr_assert(eddy_lock_try(&shared_lock));
    cr_assert_not(eddy_lock_try(&shared_lock));
    eddy_lock_release(&shared_lock);
}
