#include <streams/doorbell.h>
#include <streams/team.h>

/* About what a wake takes. */
#define SPIN_NS 20000
#define SPIN_CHECKS 64

bool eddy_doorbell_spin(eddy_doorbell *bell, uint32_t seen) {
    return eddy_doorbell_spin_until(bell, seen, NULL, NULL);
}

bool eddy_doorbell_spin_until(eddy_doorbell *bell, uint32_t seen, bool (*is_over)(void *context),
                              void *context) {
    if (!eddy_team_spin_begin())
        return false;
    bool ends = false;
    int64_t end = eddy_clock_ns() + SPIN_NS;
    while (!ends && eddy_clock_ns() < end)
        for (int i = 0; i < SPIN_CHECKS && !ends; i++) {
            ends = eddy_load_acquire(&bell->rings) != seen || (is_over && is_over(context));
            eddy_atomic_pause();
        }
    eddy_team_spin_end();
    return ends;
}

void eddy_doorbell_sleep(eddy_doorbell *bell, uint32_t seen, int64_t deadline_ns) {
    eddy_store_seq_cst(&bell->is_asleep, 1u);
    if (eddy_load_seq_cst(&bell->rings) == seen)
        eddy_sleep_wait(&bell->is_asleep, 1u, deadline_ns);
    eddy_store_seq_cst(&bell->is_asleep, 0u);
}
