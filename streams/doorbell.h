/* What one thread sleeps on while it has nothing to do, and others ring after they have given it something. No ring is lost: the sleeper reads how often it has rung
 * before it looks for work for the last time (vm/model/doorbell.pml). */
#ifndef EDDY_STREAMS_DOORBELL_H
#define EDDY_STREAMS_DOORBELL_H

#include <base/sleep.h>

typedef struct eddy_doorbell {
    eddy_sleep_word rings; /* atomic: seq_cst; compared for equality */
    /* atomic: its thread sets and clears it (seq_cst), and sleeps on it; a ring reads it (seq_cst), and the first clears it, too (acq_rel): a thread that was woken and does not run yet is woken by no other one */
    eddy_sleep_word is_asleep;
} eddy_doorbell;

/* Before the last look for work. */
static inline uint32_t eddy_doorbell_seen(eddy_doorbell *bell) {
    return eddy_load_seq_cst(&bell->rings);
}

/* After there is something to find. Any thread. */
static inline void eddy_doorbell_ring(eddy_doorbell *bell) {
    eddy_add_seq_cst(&bell->rings, 1u);
    if (eddy_load_seq_cst(&bell->is_asleep) && eddy_exchange_acq_rel(&bell->is_asleep, 0u))
        eddy_sleep_wake_one(&bell->is_asleep);
}

/* Looks for a ring for a while, if a processor is free for that; whether there was one. The other form also ends when `is_over` says so (NULL: it never does). */
bool eddy_doorbell_spin(eddy_doorbell *bell, uint32_t seen);
bool eddy_doorbell_spin_until(eddy_doorbell *bell, uint32_t seen, bool (*is_over)(void *context),
                              void *context);
/* Sleeps until there is one, until the deadline, or spuriously. One thread at a time. */
void eddy_doorbell_sleep(eddy_doorbell *bell, uint32_t seen, int64_t deadline_ns);

#endif
