/* Events: passed once. Streams and waits refer to them. */
#ifndef EDDY_VM_EVENT_H
#define EDDY_VM_EVENT_H

#include <vm/machine.h>

static inline bool eddy_vm_event_is_passed(const eddy_vm_event *event) {
    return eddy_load_acquire(&event->is_passed);
}

/* Engine: the instructions before the event have retired; releases the instruction's reference. */
void eddy_vm_event_pass(eddy_vm_event *event);

#endif
