#include <streams/idle.h>

/* The score: one more for each time that work came that soon, so many fewer for each time it did not. */
#define CREDIT_SPINS 8
#define CREDIT_MOST 16
#define CREDIT_LOSS 2

static int64_t most_ns(int64_t hand_over_ns) {
    return hand_over_ns < EDDY_IDLE_SPIN_LEAST_NS  ? EDDY_IDLE_SPIN_LEAST_NS
           : hand_over_ns > EDDY_IDLE_SPIN_MOST_NS ? EDDY_IDLE_SPIN_MOST_NS
                                                   : hand_over_ns;
}

void eddy_idle_begin(eddy_idle *idle, int64_t now) {
    idle->since = now;
}

void eddy_idle_forget(eddy_idle *idle) {
    idle->since = 0;
    idle->has_slept = false;
}

void eddy_idle_end(eddy_idle *idle, int64_t now, int64_t hand_over_ns) {
    /* A worker that slept is late by the time of the wake. */
    int64_t waited = now - idle->since - (idle->has_slept ? hand_over_ns / 2 : 0);
    int32_t credit = idle->credit + (waited <= most_ns(hand_over_ns) ? 1 : -CREDIT_LOSS);
    idle->credit = credit < 0 ? 0 : credit > CREDIT_MOST ? CREDIT_MOST : credit;
    eddy_idle_forget(idle);
}

void eddy_idle_sleep(eddy_idle *idle) {
    idle->has_slept = true;
}

int64_t eddy_idle_spin_ns(const eddy_idle *idle, int64_t hand_over_ns) {
    return idle->credit >= CREDIT_SPINS ? most_ns(hand_over_ns) : EDDY_IDLE_SPIN_LEAST_NS;
}
