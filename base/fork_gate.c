/* Who enters adds 1 to a slot, then looks whether a fork has closed the gate; who forks closes it, then looks at the slots. All four
 * accesses are sequentially consistent, so at least one of the two sees the other. vm/model/fork_gate.pml. */
#include <base/atomic.h>
#include <base/clock.h>
#include <base/fork_gate.h>
#include <base/sleep.h>
#include <time.h>

#define SLOTS 32 /* threads share one when there are more */

/* In a cache line of its own, so that threads do not disturb each other. */
typedef struct slot {
    /* atomic: seq_cst, see above; release where a thread leaves */
    _Alignas(64) _Atomic uint32_t inside;
} slot;

static slot slots[SLOTS];
static eddy_sleep_word closed;      /* forks under way; atomic: seq_cst */
static _Atomic uint32_t slot_count; /* atomic: relaxed; only spreads threads over slots */

static _Thread_local slot *own; /* NULL until the thread enters */
static _Thread_local uint32_t depth;

void eddy_fork_gate_enter(void) {
    if (depth++ > 0)
        return;
    if (!own)
        own = &slots[eddy_add_relaxed(&slot_count, 1u) % SLOTS];
    for (;;) {
        eddy_add_seq_cst(&own->inside, 1u);
        uint32_t forks = eddy_load_seq_cst(&closed);
        if (forks == 0)
            return;
        eddy_sub_release(&own->inside, 1u);
        eddy_sleep_wait(&closed, forks, EDDY_CLOCK_FOREVER);
    }
}

void eddy_fork_gate_leave(void) {
    if (--depth == 0)
        eddy_sub_release(&own->inside, 1u);
}

/* A signal handler may fork on a thread that is inside. */
static uint32_t own_share(const slot *s) {
    return s == own && depth > 0;
}

static bool others_are_inside(void) {
    for (int i = 0; i < SLOTS; i++)
        if (eddy_load_seq_cst(&slots[i].inside) > own_share(&slots[i]))
            return true;
    return false;
}

/* Polls, since those who leave should pay nothing for a fork that hardly ever comes. */
void eddy_fork_gate_close(void) {
    eddy_add_seq_cst(&closed, 1u);
    int64_t deadline = eddy_clock_deadline(EDDY_FORK_GATE_WAIT_NS);
    while (others_are_inside() && eddy_clock_ns() < deadline)
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

void eddy_fork_gate_open(void) {
    eddy_sub_seq_cst(&closed, 1u);
    eddy_sleep_wake_all(&closed);
}

void eddy_fork_gate_open_in_child(void) {
    for (int i = 0; i < SLOTS; i++)
        eddy_store_seq_cst(&slots[i].inside, own_share(&slots[i]));
    eddy_store_seq_cst(&closed, 0u);
}
