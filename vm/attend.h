/* Calls of a device that are left to its launcher while that is awake (PROTOCOL.md 7, model/attend.pml): who issues them does not look for the engine's role, and the launcher takes it when
 * it has nothing to launch. */
#ifndef EDDY_VM_ATTEND_H
#define EDDY_VM_ATTEND_H

#include <streams/launcher.h>
#include <vm/machine.h>

typedef struct eddy_attendance {
    /* atomic: the launcher numbers its turns (relaxed), and clears it under the submission lock before it sleeps; issuers load it under that lock (relaxed) */
    _Atomic uint32_t turn __attribute__((aligned(EDDY_CACHE_LINE)));
    uint32_t last_turn; /* launcher only */
    /* Lock: submission. */
    uint32_t turn_seen __attribute__((aligned(EDDY_CACHE_LINE)));
    uint32_t left; /* calls, since the turn was seen */
} eddy_attendance;

/* What the launcher of the device does while it has nothing to launch. */
eddy_launcher_duty eddy_attend_duty(struct eddy_vm_device *device);
/* Whether an instruction that was written for a stream of the device is left to its launcher. Lock: submission, since before it was written. */
bool eddy_attend_leaves(struct eddy_vm_device *device, const eddy_instruction *instruction);

#endif
