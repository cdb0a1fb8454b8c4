/* Calls of a device that are left to its launcher while that is awake (PROTOCOL.md 7, model/attend.pml): who issues them does not look for the engine's role, and the launcher takes it when
 * it has nothing to launch. */
#ifndef EDDY_VM_ATTEND_H
#define EDDY_VM_ATTEND_H

#include <streams/launcher.h>
#include <vm/ring.h>

struct eddy_vm_device;

typedef struct eddy_attendance {
    /* atomic: the launcher numbers its turns (relaxed), and clears it under the submission lock before it sleeps; issuers load it under that lock (relaxed) */
    _Atomic uint32_t turn __attribute__((aligned(EDDY_CACHE_LINE)));
    uint32_t last_turn; /* launcher only */
    /* Lock: submission. */
    uint32_t turn_seen __attribute__((aligned(EDDY_CACHE_LINE)));
    uint32_t left; /* calls, since the turn was seen */
    _Atomic uint64_t
        left_until; /* atomic: relaxed, under the lock; the ring's position behind the last one. The launcher reads it without */
} eddy_attendance;

/* What the launcher of the device does while it has nothing to launch. */
eddy_launcher_duty eddy_attend_duty(struct eddy_vm_device *device);
/* Leaves the call whose record was written last to the device's launcher, if that is awake; whether it did. Lock: submission, since before it was written. */
bool eddy_attend_leaves(struct eddy_vm_device *device);
/* Whether one that was left has not been taken. Any thread; for sure once its issuer has left the lock. */
static inline bool eddy_attend_has_left(const eddy_attendance *attendance, const eddy_ring *ring) {
    return eddy_load_relaxed(&attendance->left_until) > eddy_load_relaxed(&ring->head);
}

#endif
