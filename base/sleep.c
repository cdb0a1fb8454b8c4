#include <base/sleep.h>

#include <base/assert.h>
#include <base/cpu.h>
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic uint64_t wake_count, sleep_count; /* atomic: relaxed counters */

/* With a replaced clock: the time of a sleep before the clock is read again. */
#define REPLACED_CLOCK_LOOK_NS 1000000

/* Pauses before a lock's waiter sleeps: about as long as the futex call itself would take. */
#define LOCK_SPIN_PAUSES 100

bool eddy_sleep_wait(eddy_sleep_word *word, uint32_t expected, int64_t deadline_ns) {
    struct timespec left, *timeout = NULL;
    if (deadline_ns != EDDY_CLOCK_FOREVER) {
        int64_t left_ns = deadline_ns - eddy_clock_ns();
        if (left_ns <= 0)
            return false;
        if (eddy_clock_is_replaced() && left_ns > REPLACED_CLOCK_LOOK_NS)
            left_ns = REPLACED_CLOCK_LOOK_NS;
        left = (struct timespec){.tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000};
        timeout = &left;
    }
    int errno_before = errno;
    eddy_add_relaxed(&sleep_count, 1u);
    long result = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout, NULL, 0);
    bool has_timed_out = result != 0 && errno == ETIMEDOUT;
    errno = errno_before;
    return !has_timed_out || eddy_clock_ns() < deadline_ns;
}

static void wake(eddy_sleep_word *word, int count) {
    int errno_before = errno;
    eddy_add_relaxed(&wake_count, 1u);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
    errno = errno_before;
}

void eddy_sleep_wake_one(eddy_sleep_word *word) {
    wake(word, 1);
}

void eddy_sleep_wake_all(eddy_sleep_word *word) {
    wake(word, INT32_MAX);
}

uint64_t eddy_sleep_wake_count(void) {
    return eddy_load_relaxed(&wake_count);
}

uint64_t eddy_sleep_count(void) {
    return eddy_load_relaxed(&sleep_count);
}

/* If there is one processor, the holder runs only once the waiter sleeps. */
static int lock_spin_pauses(void) {
    static _Atomic int32_t
        known; /* atomic: relaxed; pauses + 1, 0 while unknown; every writer writes the same */
    int32_t pauses = eddy_load_relaxed(&known) - 1;
    if (pauses < 0) {
        pauses = eddy_cpu_count() > 1 ? LOCK_SPIN_PAUSES : 0;
        eddy_store_relaxed(&known, pauses + 1);
    }
    return pauses;
}

bool eddy_lock_acquire_slow(eddy_lock *lock, int64_t deadline_ns) {
    for (int i = lock_spin_pauses(); i > 0; i--) {
        uint32_t expected = 0;
        if (eddy_load_relaxed(&lock->word) == 0 && eddy_cas_acquire(&lock->word, &expected, 1u))
            return true;
        eddy_atomic_pause();
    }
    /* A thread that slept takes the lock as 2: others may still sleep. */
    while (eddy_exchange_acquire(&lock->word, 2u) != 0)
        if (!eddy_sleep_wait(&lock->word, 2, deadline_ns))
            return false;
    return true;
}
