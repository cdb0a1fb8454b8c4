/* The one sleep primitive: a 32-bit word to sleep on (a futex), with a short spin before it. */
#ifndef EDDY_BASE_SLEEP_H
#define EDDY_BASE_SLEEP_H

#include <base/atomic.h>
#include <base/clock.h>
#include <base/order.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic uint32_t eddy_sleep_word;

/* Sleeps while *word == expected, until woken, until `deadline_ns` (eddy_clock_ns's clock; EDDY_CLOCK_FOREVER: none), or
 * spuriously. Returns false when the deadline had passed. A cancellation-free, EINTR-safe futex wait (private). */
bool eddy_sleep_wait(eddy_sleep_word *word, uint32_t expected, int64_t deadline_ns);
void eddy_sleep_wake_one(eddy_sleep_word *word);
void eddy_sleep_wake_all(eddy_sleep_word *word);

/* System calls made by eddy_sleep_wake_* and times a thread slept, since the process began (relaxed counters). */
uint64_t eddy_sleep_wake_count(void);
uint64_t eddy_sleep_count(void);

/* A lock for a few microseconds: spins, then sleeps. Not recursive. Zero-initialised is unlocked. TSan sees it as C11
 * atomics. Uncontended: one exchange to lock, one to unlock. */
typedef struct eddy_lock {
    eddy_sleep_word word; /* 0 free, 1 held, 2 held and a thread may sleep */
#ifdef EDDY_CHECKS
    eddy_lock_rank rank; /* const after init; zero-initialised: none */
#endif
} eddy_lock;

#ifdef EDDY_CHECKS
#define EDDY_LOCK_OF(rank_)                                                                        \
    { .rank = (rank_) }
#define EDDY_LOCK_FOLLOW(what, lock) eddy_order_##what((lock)->rank)
#else
#define EDDY_LOCK_OF(rank_)                                                                        \
    { 0 }
#define EDDY_LOCK_FOLLOW(what, lock) ((void)0)
#endif

/* Makes an unlocked lock. Statically: = EDDY_LOCK_OF(rank). */
static inline void eddy_lock_init(eddy_lock *lock, eddy_lock_rank rank) {
    (void)rank;
    *lock = (eddy_lock)EDDY_LOCK_OF(rank);
}

/* False: it was not free until the deadline. */
bool eddy_lock_acquire_slow(eddy_lock *lock, int64_t deadline_ns);

static inline bool eddy_lock_try(eddy_lock *lock) {
    uint32_t expected = 0;
    if (!eddy_cas_acquire(&lock->word, &expected, 1u))
        return false;
    EDDY_LOCK_FOLLOW(taken, lock);
    return true;
}

static inline void eddy_lock_acquire(eddy_lock *lock) {
    uint32_t expected = 0;
    EDDY_LOCK_FOLLOW(taken, lock);
    if (!eddy_cas_acquire(&lock->word, &expected, 1u))
        (void)eddy_lock_acquire_slow(lock, EDDY_CLOCK_FOREVER);
}

/* The same until a deadline, for a lock that is held for as long as a kernel takes. */
static inline bool eddy_lock_acquire_until(eddy_lock *lock, int64_t deadline_ns) {
    if (eddy_lock_try(lock))
        return true;
    if (!eddy_lock_acquire_slow(lock, deadline_ns))
        return false;
    EDDY_LOCK_FOLLOW(taken, lock);
    return true;
}

static inline void eddy_lock_release(eddy_lock *lock) {
    EDDY_LOCK_FOLLOW(given_up, lock);
    if (eddy_exchange_release(&lock->word, 0u) == 2)
        eddy_sleep_wake_one(&lock->word);
}

#endif
