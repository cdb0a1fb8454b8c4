#include <base/clock.h>

#include <base/assert.h>
#include <base/atomic.h>
#include <time.h>

static int64_t (*_Atomic replaced_clock)(void); /* atomic: set by tests (release), read acquire */

static int64_t real_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t eddy_clock_ns(void) {
    int64_t (*clock)(void) = eddy_load_acquire(&replaced_clock);
    return EDDY_UNLIKELY(clock != NULL) ? clock() : real_clock_ns();
}

void eddy_clock_replace(int64_t (*clock)(void)) {
    eddy_store_release(&replaced_clock, clock);
}

int64_t eddy_clock_deadline(int64_t timeout_ns) {
    int64_t now = eddy_clock_ns();
    if (timeout_ns <= 0)
        return now;
    return timeout_ns > EDDY_CLOCK_FOREVER - now ? EDDY_CLOCK_FOREVER : now + timeout_ns;
}

int64_t eddy_clock_left(int64_t deadline_ns) {
    if (deadline_ns == EDDY_CLOCK_FOREVER)
        return EDDY_CLOCK_FOREVER;
    int64_t left_ns = deadline_ns - eddy_clock_ns();
    return left_ns > 0 ? left_ns : 0;
}

bool eddy_clock_is_replaced(void) {
    return eddy_load_acquire(&replaced_clock) != NULL;
}
